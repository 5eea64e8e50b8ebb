"""One namespace for fxflow and JAX, whose names are equal, and how cases are timed."""

import importlib
import itertools
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple


class Case(NamedTuple):
    """A measurement.

    `prepare` builds and warms up; what it returns measures once and gives seconds (or
    megabytes) for one call. `at_most` and `aim` are ratios to JAX.
    """

    unit: str
    prepare: Callable[[], Callable[[], float]]
    at_most: float | None = None
    aim: float | None = None
    most_rounds: int = 1000


Cases = dict[str, Case]


class Timed(NamedTuple):
    """A measurement that knows what it does at least.

    Attributes:
      measure: gives seconds for one call.
      flops: of one call.
      nbytes: of what a call reads and writes: arguments and results, once each.
    """

    measure: Callable[[], float]
    flops: float
    nbytes: float

    def __call__(self) -> float:
        return self.measure()


class Library(NamedTuple):
    """The parts of fxflow or JAX that the cases use."""

    name: str
    root: ModuleType
    np: ModuleType
    lax: ModuleType
    nn: ModuleType


def load(name: str) -> Library:
    """Imports fxflow or JAX."""
    parts = [
        importlib.import_module(f"{name}.{part}") for part in ("numpy", "lax", "nn")
    ]
    return Library(name, importlib.import_module(name), *parts)


def version(name: str) -> str:
    """`name version`, and jaxlib's where it is used."""
    text = f"{name} {importlib.import_module(name).__version__}"
    if name != "torch":
        text += f" (jaxlib {importlib.import_module('jaxlib').__version__})"
    return text


ROUND_SECONDS = 0.05
#: The same for training steps: long enough to fill caches, and to outlast threads of
#: the previous library that still spin.
STEP_SECONDS = 0.4


def timed(
    call: Callable[[], Any],
    finish: Callable[[Any], Any],
    seconds: float = ROUND_SECONDS,
) -> Callable[[], float]:
    """Measures `call` in a loop that is long enough for the clock.

    `finish` waits for the last result; it belongs to the time.
    """

    def loop(count: int) -> float:
        result = None
        steps = itertools.repeat(None, count)
        started = time.perf_counter()
        for _ in steps:
            result = call()
        finish(result)
        return time.perf_counter() - started

    loop(3)
    count = 1
    while (taken := loop(count)) < seconds / 4:
        count *= 4
    count = max(1, round(count * seconds / taken))
    return lambda: loop(count) / count


def peaks(library: Library) -> dict[str, float]:
    """The most that programs reach here: `flops` and `bytes` a second.

    By a large product of matrices, and by adding to an array in place that is larger
    than a cache.
    """
    np, root = library.np, library.root

    def best(step: Callable[[Any], Any], x: Any) -> float:
        times = []
        for _ in range(10):
            started = time.perf_counter()
            x = root.block_until_ready(step(x))
            times.append(time.perf_counter() - started)
        return min(times)

    square, long = np.ones((2048, 2048)) / 2048, np.ones(1 << 26)
    nbytes = 2 * long.nbytes
    return {
        "flops": 2 * 2048**3 / best(root.jit(lambda x: x @ x), square),
        "bytes": nbytes / best(root.jit(lambda x: x + 1, donate_argnums=0), long),
    }


def nbytes_of(compiled: Any, what: str) -> int:
    """What a compiled program's `memory_analysis()` says, of fxflow or JAX."""
    sizes = compiled.memory_analysis()
    nbytes: int = sizes[what] if isinstance(sizes, dict) else getattr(sizes, what)
    return nbytes


def once(call: Callable[[], Any]) -> float:
    """Seconds of one call."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started
