"""What a person waits for at the start: each measurement is a fresh process."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from .library import Case, Cases

IMPORT = {
    "fxflow": "import fxflow, fxflow.numpy as np",
    "jax": "import jax as fxflow, jax.numpy as np",
    "torch": "import torch",
}
FIRST = """
x = np.asarray([1.0, 2.0, 3.0])
y = x + x
f = fxflow.jit(lambda x: (np.sin(x) * x).sum())
float(f(x))
fxflow.grad(lambda x: (np.cos(x) * x).sum())(x).block_until_ready()
"""
# A training script that ran before, until its first step is done.
TRAINING = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from cases.library import load
from cases.tracing import put
from cases.training import MODELS, step_of
library = load({{library!r}})
model = MODELS[{{model!r}}](library)
params, batch = put(library, model.params), put(library, model.batch)
params, loss = step_of(library, model)(params, *batch)
float(loss)
"""
# Resident now, not at the peak: what stays is what a process costs.
RESIDENT = """
import os
with open("/proc/self/statm") as file:
    print(int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6)
"""
# fxflow's disk cache is on by default; JAX's is switched on, for small programs too.
JAX_CACHE = {
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}


def run(code: str, environment: dict[str, str]) -> str:
    """What a fresh interpreter prints; its error, without paths, when it fails."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return done.stdout


def seconds(code: str, cache: str | None = None) -> float:
    """Wall time of a fresh interpreter that runs `code`."""
    environment = dict(os.environ)
    if cache:
        environment |= JAX_CACHE
        environment["FXFLOW_CACHE_DIR"] = environment["JAX_COMPILATION_CACHE_DIR"] = (
            cache
        )
    started = time.perf_counter()
    run(code, environment)
    return time.perf_counter() - started


def with_cache(code: str) -> Callable[[], float]:
    """Measures `code` with a disk cache that an earlier run has filled."""
    folder = tempfile.TemporaryDirectory()
    return lambda: seconds(code, folder.name)


def resident(code: str) -> float:
    """Megabytes that a process holds after `code`."""
    return float(run(code + RESIDENT, dict(os.environ)))


def training(library: str, model: str) -> Case:
    code = TRAINING.format(library=library, model=model)
    return Case("s", lambda: with_cache(code), 0.65, 0.35)


def cases(library: str) -> Cases:
    code = IMPORT[library]
    found = {
        "start: import": Case("s", lambda: lambda: seconds(code), 0.45, 0.35),
        "start: memory after import": Case(
            "MB", lambda: lambda: resident(code), 0.8, 0.7
        ),
    }
    if library != "torch":
        found["start: import, first eager, jit, grad"] = Case(
            "s", lambda: with_cache(code + FIRST), 0.40, 0.30
        )
        for model in ("MLP", "LSTM", "transformer"):
            found[f"start: second run, first step, {model}"] = training(library, model)
    return found
