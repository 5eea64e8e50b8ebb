"""Programs over several host devices: the cost of a call, and data-parallel steps.

The number of CPU devices is fixed when a process starts, so each library has a second
process for these cases, with 8 of them (`Aside`). The same functions make the table of
`scaling.py`.

Programs whose devices wait for each other are waited for one by one: JAX aborts on a
machine of few cores when many of them are under way.
"""

import functools
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy

from . import models
from .library import Case, Cases, Library, timed

DEVICES = 8
BATCH = 128
RATE = 1e-3


# -- what is measured, in a process with 8 devices -------------------------------------


def parted(tree: Any, count: int) -> Any:
    """Arrays `[n, …]` as `[count, n / count, …]`."""
    if isinstance(tree, tuple):
        return tuple(parted(x, count) for x in tree)
    return tree.reshape(count, len(tree) // count, *tree.shape[1:])


def pmap_call(library: Library, leaves: int) -> Callable[[], float]:
    """The cost of going in and out: additions on 8 devices."""
    function = library.root.pmap(lambda xs: [x + 1 for x in xs])
    xs = [numpy.ones((DEVICES, 4), numpy.float32) for _ in range(leaves)]
    arrays = function(xs)  # where it wants them
    return timed(lambda: function(arrays), library.root.block_until_ready)


def pmap_sum(library: Library) -> Callable[[], float]:
    """The same with a sum over the devices in it."""
    function = library.root.pmap(lambda x: library.lax.psum(x, "i"), "i")
    x = function(numpy.ones((DEVICES, 4), numpy.float32))
    wait = library.root.block_until_ready
    return timed(lambda: wait(function(x)), wait)


def pmap_slice(library: Library) -> Callable[[], float]:
    """One device's slice of a result."""
    x = library.root.pmap(lambda x: x + 1)(numpy.ones((DEVICES, 4), numpy.float32))
    return timed(lambda: x[3], library.root.block_until_ready)


def adam(library: Library) -> tuple[Any, Any]:
    """Adam, written out so that both libraries run the same: `init` and `update`."""
    tree, np = library.root.tree, library.np

    def init(params: Any) -> Any:
        zeros = tree.map(np.zeros_like, params)
        return zeros, zeros, np.zeros((), np.float32)

    def update(gradients: Any, state: Any, params: Any) -> Any:
        first, second, count = state
        count = count + 1
        first = tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradients)
        second = tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradients)
        size = RATE * np.sqrt(1 - 0.999**count) / (1 - 0.9**count)

        def moved(p: Any, m: Any, v: Any) -> Any:
            return p - size * m / (np.sqrt(v) + 1e-8)

        return tree.map(moved, params, first, second), (first, second, count)

    return init, update


def one_device_step(library: Library, batch: int) -> Callable[[], float]:
    """The step of the perceptron on one device, by `jit`."""
    model = models.mlp(library, batch)
    init, update = adam(library)

    def step(params: Any, memory: Any, given: Any) -> Any:
        value, gradients = library.root.value_and_grad(model.loss)(params, *given)
        return *update(gradients, memory, params), value

    function = library.root.jit(step, donate_argnums=(0, 1))
    params = library.root.tree.map(library.np.asarray, model.params)
    return _stepping(library, function, params, library.root.jit(init)(params), model)


def pmap_step(library: Library, devices: int, batch: int) -> Callable[[], float]:
    """The step with a copy of the parameters on each device."""
    model = models.mlp(library, batch)
    init, update = adam(library)

    def step(params: Any, memory: Any, given: Any) -> Any:
        value, gradients = library.root.value_and_grad(model.loss)(params, *given)
        value, gradients = library.lax.pmean((value, gradients), "i")
        return *update(gradients, memory, params), value

    function = library.root.pmap(step, "i", donate_argnums=(0, 1))
    copies = library.root.tree.map(
        lambda x: numpy.broadcast_to(x, (devices, *x.shape)), model.params
    )
    params = library.root.pmap(lambda p: p)(copies)
    memory = library.root.pmap(init)(params)
    cut = model._replace(batch=parted(model.batch, devices))
    return _stepping(library, function, params, memory, cut)


def jit_step(library: Library, devices: int, batch: int) -> Callable[[], float]:
    """The step by `jit`, with batches divided and parameters everywhere."""
    model = models.mlp(library, batch)
    init, update = adam(library)
    sharding = library.root.sharding
    mesh = sharding.Mesh(numpy.array(library.root.devices()[:devices]), ("i",))
    everywhere = sharding.NamedSharding(mesh, sharding.PartitionSpec())
    rows = sharding.NamedSharding(mesh, sharding.PartitionSpec("i"))

    def step(params: Any, memory: Any, given: Any) -> Any:
        value, gradients = library.root.value_and_grad(model.loss)(params, *given)
        return *update(gradients, memory, params), value

    function = library.root.jit(
        step,
        in_shardings=(everywhere, everywhere, rows),
        out_shardings=everywhere,
        donate_argnums=(0, 1),
    )
    params = library.root.device_put(model.params, everywhere)
    memory = library.root.jit(init, out_shardings=everywhere)(params)
    return _stepping(library, function, params, memory, model)


def sharded_step(
    library: Library, devices: int, batch: int, exchange: str
) -> Callable[[], float]:
    """The step of fxflow's sharded optimizer."""
    from fxflow import optim
    from fxflow.distributed import sharded_optimizer

    model = models.mlp(library, batch)
    sharded = sharded_optimizer(
        lambda params, given: model.loss(params, *given),
        optim.adam(RATE),
        mesh=library.root.make_mesh((devices,), ("data",)),
        exchange=exchange,
    )
    held = [sharded.init(model.params)]

    def call() -> Any:
        held[0], metrics = sharded.step(held[0], model.batch)
        return library.root.block_until_ready(metrics.loss)

    return timed(call, library.root.block_until_ready)


def _stepping(
    library: Library, function: Any, params: Any, memory: Any, model: models.Model
) -> Callable[[], float]:
    held = [params, memory]

    def call() -> Any:
        held[0], held[1], value = function(held[0], held[1], model.batch)
        return library.root.block_until_ready(value)

    return timed(call, library.root.block_until_ready)


def builder(name: str) -> Callable[[Library], Callable[[], float]]:
    """The measurement of a name: a function's name and its numbers, by spaces."""
    what, *numbers = name.split()
    given = [int(n) if n.isdigit() else n for n in numbers]
    return lambda library: globals()[what](library, *given)


# -- the process -----------------------------------------------------------------------


class Aside:
    """A process with 8 CPU devices that measures by name."""

    def __init__(self, library: str, python: str = sys.executable) -> None:
        self.library, self.python = library, python
        self.start()

    def start(self) -> None:
        flags = f"--xla_force_host_platform_device_count={DEVICES}"
        here = Path(__file__).resolve().parent.parent
        environment = {**os.environ, "XLA_FLAGS": flags}
        if self.library == "fxflow":
            environment["PYTHONPATH"] = str(here.parent)
        self.process = subprocess.Popen(
            [self.python, str(here / "devices_worker.py"), self.library],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=here,
            env=environment,
        )

    def measure(self, name: str) -> float:
        """Seconds of one call."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(name) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            status = self.process.wait()
            self.start()  # for the next one
            raise RuntimeError(f"{name}: exit status {status}")
        return float(json.loads(line))

    def stop(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


@functools.cache
def aside(library: str) -> Aside:
    return Aside(library)


CASES = {
    "pmap call, 8 devices": ("µs", "pmap_call 1"),
    "pmap call, 8 devices, 10 leaves": ("µs", "pmap_call 10"),
    "pmap psum, 8 devices": ("µs", "pmap_sum"),
    "pmap result, one slice": ("µs", "pmap_slice"),
    "data-parallel MLP step, pmap, 4 devices": ("ms", f"pmap_step 4 {BATCH}"),
    "data-parallel MLP step, pmap, 8 devices": ("ms", f"pmap_step 8 {BATCH}"),
    "data-parallel MLP step, jit, 4 devices": ("ms", f"jit_step 4 {BATCH}"),
}


def cases(library: Library) -> Cases:
    def case(unit: str, name: str) -> Case:
        def prepare() -> Callable[[], float]:
            return lambda: aside(library.name).measure(name)

        return Case(unit, prepare, 1.0)

    return {title: case(*named) for title, named in CASES.items()}
