"""The ways to run a program, each with the way whose answer it must give."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.programs.drawing import Program
from tests.programs.of_programs import BACKWARD_ONLY
from tests.programs.operations import Api

Answer = list[Any]
Way = Callable[[Api, Program, Sequence[Any]], Answer]

#: Dtypes on the way to or from 32-bit floats.
NARROW = {"float32", "complex64", "uint8", "int8", "bool"}
#: Dtypes of 16 bits.
HALF = {"bfloat16", "float16"}
#: Operations without a derivative backwards.
FORWARD_ONLY = {"while_loop"}


def _dtypes(program: Program) -> set[str]:
    names = {one.dtype for one in program.inputs}
    return names | {str(v) for s in program.steps for v in s.parameters.values()}


def uses_narrow_floats(program: Program) -> bool:
    """Whether there may be 32-bit floats on the way."""
    products = any(step.name == "products" for step in program.steps)
    return products or bool(_dtypes(program) & (NARROW | HALF))


def uses_half_floats(program: Program) -> bool:
    """Whether there may be 16-bit floats on the way."""
    return bool(_dtypes(program) & HALF)


def rewriting_small_programs(change: Callable[[Any, str, Any], None] = setattr) -> None:
    """Has graph passes rewrite what they find, however small it is.

    Args:
      change: sets an attribute of a module.
    """
    least = {
        "loops": {"LEAST": 1},
        "sums": {"_LEAST": 1, "_FEW": 0},
        "picks": {"_LEAST": 1, "_MANY": 0},
        "flattening": {"_LARGE": 1},
        "packing": {"_LEAST": 1, "_ROWS": 1},
        "convolutions": {"_LEAST": 1},
        "rewriting": {"LEAST": 1, "_ROWS": 1, "_COLUMNS": 1},
    }
    for name, values in least.items():
        module = importlib.import_module(f"fxflow.transforms.passes.{name}")
        for constant, value in values.items():
            assert hasattr(module, constant), constant
            change(module, constant, value)


def arrays(values: Any) -> Answer:
    """Returns results as NumPy arrays."""
    return [np.asarray(v) for v in values]


def eager(api: Api, program: Program, arguments: Sequence[Any]) -> Answer:
    """One operation after the other."""
    return arrays(program(api, *arguments))


def eager_xla(api: Api, program: Program, arguments: Sequence[Any]) -> Answer:
    """One operation after the other, each compiled."""
    with api.root.config.override(eager="xla"):
        return arrays(program(api, *arguments))


def compiled(api: Api, program: Program, arguments: Sequence[Any]) -> Answer:
    """The whole program compiled."""
    return arrays(api.jit(lambda *args: program(api, *args))(*arguments))


def some_passes(api: Api, program: Program, arguments: Sequence[Any]) -> Answer:
    """The whole program compiled, with one or two graph passes that the seed picks."""
    rng = np.random.default_rng(program.seed)
    pipeline = importlib.import_module("fxflow.transforms.passes.pipeline")
    names = rng.permutation(list(pipeline.PASSES))[: rng.integers(1, 3)]
    with api.root.config.override(passes=",".join(map(str, names))):
        return compiled(api, program, arguments)


# -- batches ---------------------------------------------------------------------------


def _batch(arguments: Sequence[Any]) -> list[Any]:
    rows = []
    for argument in arguments:
        flipped = np.flip(argument)
        again = argument * 0.5 if argument.dtype.kind in "fc" else np.roll(argument, 1)
        rows.append(np.stack([argument, flipped, np.asarray(again, argument.dtype)]))
    return rows


def loop(api: Api, program: Program, arguments: Sequence[Any]) -> Answer:
    """Each row of a batch by itself."""
    rows = [eager(api, program, row) for row in zip(*_batch(arguments))]
    return [np.stack(column) for column in zip(*rows)]


def vectorized(api: Api, program: Program, arguments: Sequence[Any]) -> Answer:
    """All rows of a batch at once."""
    function = api.jit(api.vmap(lambda *args: program(api, *args)))
    return arrays(function(*_batch(arguments)))


def vectorized_last(api: Api, program: Program, arguments: Sequence[Any]) -> Answer:
    """All rows at once, along the last axis of arguments and results."""
    moved = [np.moveaxis(a, 0, -1) for a in _batch(arguments)]
    function = api.vmap(lambda *args: program(api, *args), in_axes=-1, out_axes=-1)
    return [np.moveaxis(v, -1, 0) for v in arrays(function(*moved))]


# -- derivatives -----------------------------------------------------------------------


def _loss(api: Api, program: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    """The program as a function of its real arguments to one number."""
    places = [i for i, a in enumerate(arguments) if a.dtype.kind == "f"]

    def loss(*given: Any) -> Any:
        filled = list(arguments)
        for i, value in zip(places, given):
            filled[i] = value
        total = api.np.zeros((), "float64")
        for result in program(api, *filled):
            if np.dtype(result.dtype).kind in "fc":
                weights = np.cos(np.arange(float(result.size))).reshape(result.shape)
                total = total + api.np.sum(api.np.real(result) * weights)
        return total

    return loss, [arguments[i] for i in places]


def _gradient(wrap: Callable[[Api, Any, tuple[int, ...]], Any]) -> Way:
    def way(api: Api, program: Program, arguments: Sequence[Any]) -> Answer:
        loss, given = _loss(api, program, arguments)
        return arrays(wrap(api, loss, tuple(range(len(given))))(*given))

    return way


def _directions(given: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(
        np.cos(np.arange(float(g.size))).reshape(g.shape).astype(g.dtype) for g in given
    )


def forwards(api: Api, program: Program, arguments: Sequence[Any]) -> Answer:
    """The derivative in one direction, by `jvp`."""
    loss, given = _loss(api, program, arguments)
    return arrays([api.jvp(loss, tuple(given), _directions(given))[1]])


def backwards(api: Api, program: Program, arguments: Sequence[Any]) -> Answer:
    """The same direction, from the gradient."""
    slopes = gradient(api, program, arguments)
    pairs = zip(slopes, _directions(slopes))
    return [np.asarray(sum(np.sum(s.astype(float) * d) for s, d in pairs))]


def differences(api: Api, program: Program, arguments: Sequence[Any]) -> Answer:
    """The same direction, by the difference of two values."""
    loss, given = _loss(api, program, arguments)
    step = 1e-6
    ends = [
        float(loss(*(g + sign * step * d for g, d in zip(given, _directions(given)))))
        for sign in (1, -1)
    ]
    return [np.asarray((ends[0] - ends[1]) / (2 * step))]


gradient = _gradient(lambda api, f, n: api.grad(f, n))
gradient_compiled = _gradient(lambda api, f, n: api.jit(api.grad(f, n)))
gradient_of_compiled = _gradient(lambda api, f, n: api.grad(api.jit(f), n))
gradient_of_checkpoint = _gradient(
    lambda api, f, n: api.jit(api.grad(api.checkpoint(f), n))
)


# -- programs that leave the process ---------------------------------------------------


def _returned(
    api: Api, f: Callable[..., Any], arguments: Sequence[Any], order: int
) -> Callable[..., Any]:
    """A function, exported and read back."""
    export = importlib.import_module("fxflow.export")
    made = export.export(api.jit(f))(*arguments)
    return export.deserialize(made.serialize(vjp_order=order)).call


def exported(api: Api, program: Program, arguments: Sequence[Any]) -> Answer:
    """The whole program as an artifact."""
    f = lambda *given: program(api, *given)
    return arrays(_returned(api, f, arguments, 0)(*arguments))


gradient_exported = _gradient(
    lambda api, f, n: lambda *given: api.grad(_returned(api, f, given, 1), n)(*given)
)


# -- devices ---------------------------------------------------------------------------


def _laid_out(api: Api, program: Program, arguments: Sequence[Any]) -> list[Any]:
    """The arguments over eight devices, divided along axes that the seed picks."""
    rng = np.random.default_rng(program.seed)
    mesh = api.root.make_mesh((2, 4), ("a", "b"))
    array_type = []
    for argument in arguments:
        spec: list[Any] = [None] * argument.ndim
        names = {"a": 2, "b": 4}
        for axis in rng.permutation(argument.ndim):
            fitting = [n for n, s in names.items() if argument.shape[axis] % s == 0]
            if fitting and rng.random() < 0.8:
                spec[axis] = fitting[int(rng.integers(len(fitting)))]
                del names[spec[axis]]
        while spec and spec[-1] is None and rng.random() < 0.5:
            spec.pop()  # one layout has several spellings
        sharding = api.root.NamedSharding(mesh, api.root.P(*spec))
        array_type.append(api.root.device_put(argument, sharding))
    return array_type


def sharded(api: Api, program: Program, arguments: Sequence[Any]) -> Answer:
    """The whole program compiled, over eight devices."""
    return compiled(api, program, _laid_out(api, program, arguments))


def sharded_eager(api: Api, program: Program, arguments: Sequence[Any]) -> Answer:
    """One operation after the other, over eight devices."""
    return eager(api, program, _laid_out(api, program, arguments))


#: Four devices of this process, and of the two tasks of a cluster.
DEVICES = [f"/device:cpu:{i}" for i in range(4)]
TASKS = [f"/task:{i // 2}/device:cpu:{i % 2}" for i in range(4)]


def _scoped(
    api: Api, program: Program, devices: Sequence[Any] = DEVICES
) -> Callable[..., Any]:
    """The program with most of its steps on devices that the seed picks."""
    dataflow = importlib.import_module("fxflow.dataflow")
    rng = np.random.default_rng(program.seed)
    picks = rng.integers(-2, 4, len(program.steps))

    def scope(number: int) -> Any:
        pick = int(picks[number])
        return contextlib.nullcontext() if pick < 0 else dataflow.on(devices[pick])

    return lambda *arguments: program(api, *arguments, scope=scope)


def dataflow(api: Api, program: Program, arguments: Sequence[Any]) -> Answer:
    """The program cut over four devices."""
    jit = importlib.import_module("fxflow.dataflow").jit
    return arrays(jit(_scoped(api, program))(*arguments))


def gradient_dataflow(api: Api, program: Program, arguments: Sequence[Any]) -> Answer:
    """The gradient cut over four devices."""
    jit = importlib.import_module("fxflow.dataflow").jit
    function = _scoped(api, program)
    loss, given = _loss(api, lambda _, *args: function(*args), arguments)
    return arrays(jit(api.grad(loss, tuple(range(len(given)))))(*given))


def over_tasks(cluster: Any, gradient: bool, meshes: bool = False) -> Way:
    """The program, or its gradient, cut over the devices of two tasks.

    Args:
      cluster: the tasks; None: the same devices of this process.
      gradient: whether the gradient is meant.
      meshes: whether some places are meshes of two devices.
    """

    def way(api: Api, program: Program, arguments: Sequence[Any]) -> Answer:
        jit = importlib.import_module("fxflow.dataflow").jit
        devices: list[Any] = list(DEVICES if cluster is None else TASKS)
        if meshes:
            own = api.root.local_devices() if cluster is None else cluster.devices
            devices[1::2] = [api.root.Mesh(own[i : i + 2], "x") for i in (0, 2)]
        function = _scoped(api, program, devices)
        if not gradient:
            return arrays(jit(function, devices=cluster)(*arguments))
        loss, given = _loss(api, lambda _, *xs: function(*xs), arguments)
        gradients = api.grad(loss, tuple(range(len(given))))
        return arrays(jit(gradients, devices=cluster)(*given))

    return way


def _by_cost(api: Api) -> dict[str, Any]:
    """Options of `dataflow.jit` that spread work, as if sending took no time."""
    costs = importlib.import_module("fxflow.dataflow.costs")
    known = importlib.import_module("fxflow.dataflow.rates")
    rates = known.Rates({"elementwise": 1.0}, {"elementwise": 1.0}, 1e-9, error=0.02)
    links = {"cpu cpu": known.Link(1e-9, 1e18)}
    place = costs.Costs({"cpu cpu": rates}, links)
    return {"place": place, "devices": api.root.local_devices()[:4]}


def dataflow_by_cost(api: Api, program: Program, arguments: Sequence[Any]) -> Answer:
    """The program placed over four devices by cost; a few steps by scopes."""
    jit = importlib.import_module("fxflow.dataflow").jit
    return arrays(jit(_scoped(api, program), **_by_cost(api))(*arguments))


def gradient_by_cost(api: Api, program: Program, arguments: Sequence[Any]) -> Answer:
    """The gradient placed over four devices by cost."""
    jit = importlib.import_module("fxflow.dataflow").jit
    loss, given = _loss(api, lambda _, *args: program(api, *args), arguments)
    gradients = api.grad(loss, tuple(range(len(given))))
    return arrays(jit(gradients, **_by_cost(api))(*given))


def _auto_sharded(
    api: Api, program: Program, f: Callable[..., Any], given: Sequence[Any]
) -> Answer:
    """A function over eight devices, divided by cost."""
    mesh = api.root.make_mesh((2, 4), ("a", "b"))
    costs = _by_cost(api)["place"]
    plan = importlib.import_module("fxflow.dataflow").auto_sharding
    found = plan(f, mesh, costs=costs)(*given)
    if program.seed % 2:
        # With less memory than the fastest plan takes, if that is possible.
        with contextlib.suppress(api.root.errors.PlacementError):
            found = plan(f, mesh, costs=costs, memory=int(0.7 * found.memory))(*given)
    return arrays(api.root.tree.leaves(found.jit()(*given)))


def auto_sharded(api: Api, program: Program, arguments: Sequence[Any]) -> Answer:
    """The program over eight devices, divided by cost."""
    return _auto_sharded(api, program, lambda *a: program(api, *a), arguments)


def gradient_auto_sharded(
    api: Api, program: Program, arguments: Sequence[Any]
) -> Answer:
    """The gradient over eight devices, divided by cost."""
    loss, given = _loss(api, lambda _, *args: program(api, *args), arguments)
    f = api.grad(loss, tuple(range(len(given))))
    return _auto_sharded(api, program, f, given)


#: Each way with the way whose answer is right.
WAYS: dict[str, tuple[Way, Way]] = {
    "compiled": (compiled, eager),
    "some passes": (some_passes, eager),
    "eager xla": (eager_xla, eager),
    "vectorized": (vectorized, loop),
    "vectorized last": (vectorized_last, loop),
    "gradient compiled": (gradient_compiled, gradient),
    "gradient of compiled": (gradient_of_compiled, gradient),
    "gradient of checkpoint": (gradient_of_checkpoint, gradient),
    "exported": (exported, eager),
    "gradient exported": (gradient_exported, gradient),
    "forwards": (forwards, backwards),
    "differences": (differences, forwards),
    "sharded": (sharded, eager),
    "sharded eager": (sharded_eager, eager),
    "dataflow": (dataflow, eager),
    "gradient dataflow": (gradient_dataflow, gradient),
    "dataflow by cost": (dataflow_by_cost, eager),
    "gradient by cost": (gradient_by_cost, gradient),
    "auto sharded": (auto_sharded, eager),
    "gradient auto sharded": (gradient_auto_sharded, gradient),
}
#: What JAX is asked for.
PEER = {"jax": (compiled, eager), "jax gradient": (gradient_compiled, gradient)}


def applies(way: str, program: Program) -> bool:
    """Whether a program can be run this way, and has a right answer then."""
    names = {step.name for step in program.steps}
    backward = "gradient" in way or way == "forwards"
    if backward and names & FORWARD_ONLY:
        return False
    bodies = {b for step in program.steps for b in step.parameters.get("bodies", ())}
    if any(step.parameters.get("around") == "custom_vjp" for step in program.steps):
        bodies |= BACKWARD_ONLY
    if way in ("forwards", "differences") and bodies & BACKWARD_ONLY:
        return False
    # Infinities and ties have no slope: rules differ in what they take for it.
    smooth = all(one.values == "ordinary" for one in program.inputs)
    # So has a part of a convolution that a device pads with zeros, times an infinity.
    if way in ("forwards", "jax gradient", "gradient auto sharded"):
        return smooth
    return way != "differences" or (smooth and not uses_narrow_floats(program))


def drawn_ways(program: Program, whole: bool = False) -> list[str]:
    """The ways for a program: compiled, and two more drawn by its seed (or all)."""
    possible = [way for way in WAYS if applies(way, program)]
    if whole:
        return possible
    rng = np.random.default_rng(program.seed + 1)
    others = rng.permutation([way for way in possible if way != "compiled"])
    return ["compiled", *map(str, others[:2])]


@contextlib.contextmanager
def wide(api: Api) -> Any:
    """64 bits are the default within: rounding is then far from what is looked for."""
    if api.name == "fxflow":
        with api.root.config.override(x64=True):
            yield
    else:  # JAX reads its environment when it starts
        yield
