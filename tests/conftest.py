"""What holds for every test: the sweeps' cases, options left as found."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

from fxflow._config import Option, config
from fxflow.core.caches import alive
from fxflow.transforms.jit import _all_caches
from tests.processes import hear_interrupts, starts_processes
from tests.sweeps import sampling
from tests.timing import Timing

# A failing example is printed with what is needed to run it again. In CI the examples
# are the same in each run, so that a change is not blamed for another one's bug.
settings.register_profile(
    "fxflow",
    deadline=None,
    database=None,
    print_blob=True,
    derandomize=bool(os.environ.get("CI")),
)
settings.load_profile("fxflow")

# Where the random generators of test modules were when their tests were collected.
_states: dict[np.random.Generator, Any] = {}

_OPTIONS = [name for name, o in vars(type(config)).items() if isinstance(o, Option)]


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("sweeps", "tests/sweeps")
    group.addoption("--sweep-seed", type=int, default=0, help="which cases are drawn")
    group.addoption("--whole-sweeps", action="store_true", help="run every case")


def pytest_configure(config: pytest.Config) -> None:
    sampling.seed = config.getoption("--sweep-seed")
    sampling.whole = config.getoption("--whole-sweeps")
    hear_interrupts()
    config.pluginmanager.register(Timing())


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Marks the tests that start processes; leaves out soaks that are not asked for.

    Workers collect for themselves, and must name tests alike: an address is refused.

    Files with processes, which mostly wait, are spread evenly among the others, which
    mostly compute.
    """
    for item in items:
        names = vars(item.module) if isinstance(item, pytest.Function) else {}
        for generator in _generators(names):
            _states.setdefault(generator, generator.bit_generator.state)
        if starts_processes(item.nodeid, names):
            item.add_marker("processes")
            if sys.platform == "win32":
                item.add_marker(pytest.mark.skip(reason="Windows lacks POSIX calls"))
        if " at 0x" in item.nodeid:
            raise pytest.UsageError(f"{item.nodeid}: give the parameters ids")
    items[:] = spread(items)
    if "soak" not in config.option.markexpr:
        soaks = [item for item in items if item.get_closest_marker("soak")]
        config.hook.pytest_deselected(items=soaks)
        items[:] = [item for item in items if not item.get_closest_marker("soak")]


def pytest_collection_finish() -> None:
    """Leaves the collected tests, millions of objects, out of garbage collections."""
    gc.collect()
    gc.freeze()


def spread(items: list[pytest.Item]) -> list[pytest.Item]:
    """Returns the tests file by file, those of files with processes spread evenly."""
    files: dict[str, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.nodeid.partition("::")[0], []).append(item)
    kinds: tuple[list[list[pytest.Item]], ...] = ([], [])
    for tests in files.values():
        kinds[any(test.get_closest_marker("processes") for test in tests)].append(tests)
    placed = [
        ((number + 0.5) / len(kind), tests)
        for kind in kinds
        for number, tests in enumerate(kind)
    ]
    placed.sort(key=lambda pair: pair[0])
    return [test for _, tests in placed for test in tests]


def pytest_report_header() -> str:
    share = "every case" if sampling.whole else f"cases drawn by seed {sampling.seed}"
    return f"sweeps: {share}"


def _values() -> dict[str, object]:
    return {name: getattr(config, name) for name in _OPTIONS}


def _generators(names: Mapping[str, object]) -> list[np.random.Generator]:
    return [v for v in names.values() if isinstance(v, np.random.Generator)]


@pytest.fixture(autouse=True)
def generators_set_back(request: pytest.FixtureRequest) -> None:
    """Lets a test draw the numbers that it draws alone, whatever ran before it."""
    module = getattr(request.node, "module", None)  # a doctest has none
    for generator in _generators(vars(module) if module else {}):
        if generator in _states:
            generator.bit_generator.state = _states[generator]


@pytest.fixture(autouse=True)
def traces_counted_anew() -> None:
    """Counts traces from 0 in each test: many trace the same public function."""
    for caches in alive(_all_caches):
        caches.traces, caches.signatures = 0, ()


@pytest.fixture(autouse=True)
def options_unchanged() -> Iterator[None]:
    """Fails a test that leaves an option changed, and changes it back."""
    before = _values()
    yield
    after = _values()
    changed = {n: (before[n], after[n]) for n in _OPTIONS if before[n] != after[n]}
    for name, (value, _) in changed.items():
        setattr(config, name, value)
    assert not config.overridden(), "the test did not leave config.override"
    assert not changed, f"the test left options changed: {changed}"


@pytest.fixture(autouse=True)
def signals_unchanged() -> Iterator[None]:
    """Fails a test that leaves a handler of signals behind, and takes it away."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in numbers}
    yield
    after = {number: signal.getsignal(number) for number in numbers}
    if after != before and threading.current_thread() is threading.main_thread():
        for number, handler in before.items():
            signal.signal(number, handler)
    assert after == before, f"the test left handlers of signals: {after}"
