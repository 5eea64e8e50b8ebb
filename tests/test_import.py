"""Importing fxflow: no backend starts, no cache is read, jax is not needed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib.machinery import PathFinder
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
Run = Callable[..., str]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs code in a fresh process whose cache directory does not exist yet."""

    def run(code: str, *options: str, **environment: str) -> str:
        env = {k: v for k, v in os.environ.items() if not k.startswith("FXFLOW_")}
        env["PYTHONPATH"] = str(ROOT)
        env["FXFLOW_CACHE_DIR"] = str(tmp_path / "cache")
        done = subprocess.run(
            [sys.executable, *options, "-c", code],
            env={**env, **environment},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    return run


EVERYTHING = """
import fxflow, fxflow.numpy, fxflow.lax, fxflow.random, fxflow.nn, fxflow.optim
import fxflow.tree, fxflow.debug, fxflow.devices
for name in dir(fxflow):
    if name not in ("compat", "distributed", "scipy", "testing", "train"):
        getattr(fxflow, name)
"""


def test_no_backend_starts(run: Run) -> None:
    code = f"""{EVERYTHING}
from fxflow.devices import clients
from jaxlib import xla_client
import threading
assert not [v for v in vars(clients).values() if isinstance(v, xla_client.Client)]
assert not [
    v for v in vars(clients).values()
    if isinstance(v, dict) and any(isinstance(x, xla_client.Client) for x in v.values())
]
assert threading.active_count() == 1
# Had a client been made, its number of devices could no longer be chosen.
fxflow.config.num_cpu_devices = 3
assert len(fxflow.local_devices()) == 3
print("fine")
"""
    assert run(code, "-W", "error") == "fine\n"


def test_no_file_is_touched(run: Run, tmp_path: Path) -> None:
    """Neither the cache nor anything but Python's own modules and libraries."""
    code = f"""
import os, sys
opened = []
def hook(event, args):
    if event == "open" and isinstance(args[0], str):
        opened.append(args[0])
    if event in ("socket.connect", "subprocess.Popen", "os.system"):
        opened.append(event)
sys.addaudithook(hook)
{EVERYTHING}
roots = tuple(p for p in sys.path if p) + (sys.prefix, sys.base_prefix)
system = ("/proc/", "/sys/", "/etc/", "/dev/", "/usr/")
odd = [o for o in opened if not o.startswith(roots + system)]
odd += [o for o in opened if o.startswith(os.environ["FXFLOW_CACHE_DIR"])]
print(odd)
"""
    assert run(code).strip() == "[]"
    assert not (tmp_path / "cache").exists()


def test_jax_is_not_imported(run: Run) -> None:
    code = f"""{EVERYTHING}
import sys
fxflow.jit(fxflow.grad(lambda x: fxflow.numpy.sin(x)))(1.0)
print([m for m in sys.modules if m == "jax" or m.startswith(("jax.", "jax_plugins"))])
"""
    assert run(code).strip() == "[]"


def test_jax_cannot_be_imported(run: Run) -> None:
    """It works where `import jax` fails."""
    code = f"""
import sys
sys.modules["jax"] = None
{EVERYTHING}
print(float(fxflow.jit(fxflow.grad(lambda x: x * x))(3.0)))
"""
    assert run(code).strip() == "6.0"


def test_mlir_and_scipy_wait_until_they_are_needed(run: Run) -> None:
    code = """
import sys, fxflow.numpy
heavy = ("jaxlib.mlir", "scipy", "opt_einsum", "matplotlib", "urllib.request")
heavy += ("hashlib", "difflib")
print([m for m in heavy if m in sys.modules])
"""
    assert run(code).strip() == "[]"


def test_loading_a_program_imports_little(run: Run) -> None:
    code = """
import sys
from fxflow import export
names = "onnx", "iree", "c_", "quantization", "exporting"
heavy = tuple(f"fxflow.export.{name}" for name in names) + ("fxflow.random",)
# A quarter of what there is to import (docs/design/0009-starting-again.md).
heavy += ("fxflow.numpy.linalg", "fxflow.numpy.fft", "fxflow.numpy.polynomial")
heavy += ("fxflow.lax.linalg", "fxflow.lax.special", "fxflow.lax.collectives")
heavy += ("fxflow.transforms.pmap", "fxflow.transforms.passes.loops")
print([m for m in sys.modules if m.startswith(heavy)])
from fxflow.export import OnnxModel, onnx
print(onnx.__module__, export.onnx is onnx)
"""
    assert run(code).splitlines() == ["[]", "fxflow.export True"]


def test_the_parameter_server_waits_until_it_is_used(run: Run) -> None:
    code = """
import sys, fxflow
fxflow.distributed.initialize
lazy = ("fxflow.distributed.parameter_server", "fxflow.distributed.zero", "zmq")
print([m for m in sys.modules if m.startswith(lazy)])
print(fxflow.distributed.sharded_optimizer.__name__, "zmq" in sys.modules)
print(fxflow.distributed.parameter_server.parameter_server.__name__)
"""
    expected = ["[]", "sharded_optimizer False", "parameter_server"]
    assert run(code).splitlines() == expected


def test_the_collector_works_again(run: Run) -> None:
    """After an import that fails as well; what the user froze stays frozen."""
    code = """
import gc, sys
gc.freeze()
frozen = gc.get_freeze_count()
sys.modules["ml_dtypes"] = None
try:
    import fxflow
except ImportError:
    pass
print(gc.isenabled())
del sys.modules["ml_dtypes"]
import fxflow.numpy
print(gc.isenabled(), gc.get_freeze_count() > frozen // 2 > 0)
"""
    assert run(code).split() == ["True"] * 3


@pytest.mark.skipif(PathFinder.find_spec("jax") is None, reason="jax is not installed")
@pytest.mark.parametrize("first", ["jax", "fxflow"])
def test_beside_jax(run: Run, first: str) -> None:
    second = {"jax": "fxflow", "fxflow": "jax"}[first]
    code = f"""
import {first}
import {second}
import jax.numpy as jnp, numpy as np, fxflow.numpy as fnp

ours = fxflow.jit(fxflow.grad(lambda x: fnp.sum(fnp.sin(x))))
theirs = jax.jit(jax.grad(lambda x: jnp.sum(jnp.sin(x))))
for _ in range(2):
    x, y = fnp.arange(4.0), jnp.arange(4.0)
    np.testing.assert_allclose(ours(x), theirs(y), rtol=1e-6)
x = fnp.arange(64.0) * 1
there = jnp.from_dlpack(x)
back = fnp.from_dlpack(there)
assert back.unsafe_buffer_pointer() == there.unsafe_buffer_pointer()
np.testing.assert_array_equal(back, x)
class Node: pass
fxflow.tree.register_pytree_node(Node, lambda n: ((), None), lambda *_: Node())
assert len(jax.tree.leaves(Node())) == 1
assert fxflow.tree.leaves(Node()) == []
# JAX's own 64 bits, which jaxlib keeps one switch for.
jax.config.update("jax_enable_x64", True)
assert jnp.ones(3).dtype == np.float64 and jax.jit(jnp.sin)(np.ones(3)).shape == (3,)
assert (jnp.arange(3) + 1).dtype == np.int64
assert fnp.ones(3).dtype == np.float32
print("fine")
"""
    assert run(code).strip().endswith("fine")


# NumPy is imported before: one that is interrupted cannot be imported again.
INTERRUPTED = """
import random, signal, numpy, ml_dtypes, jaxlib._jax
signal.signal(signal.SIGALRM, signal.default_int_handler)
signal.setitimer(signal.ITIMER_REAL, random.Random({seed}).uniform(0.005, 1.0))
try:
    import fxflow, fxflow.nn, fxflow.optim, fxflow.scipy.stats, fxflow.train
except KeyboardInterrupt:
    pass
signal.setitimer(signal.ITIMER_REAL, 0)
import fxflow, fxflow.numpy as fnp
from fxflow import nn, optim, random, train
fxflow.jit(fxflow.grad(lambda x: fnp.sum(fnp.sin(x) * x)))(fnp.arange(3.0))
fxflow.vmap(nn.softmax)(fnp.ones((2, 3)).at[0].set(2.0))
"""


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20))
def test_an_interrupted_import_can_be_done_again(run: Run, seed: int) -> None:
    run(INTERRUPTED.format(seed=seed))
