"""What holds for every test: a cache of this run, no display, options left as found."""

from __future__ import annotations

import inspect
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator

# Read when fxflow and matplotlib are first imported, so set before that.
os.environ.setdefault("MPLBACKEND", "Agg")
# Devices for the tests of meshes; the default one is the first, as it would be alone.
if "--xla_force_host_platform_device_count" not in os.environ.get("XLA_FLAGS", ""):
    os.environ.setdefault("FXFLOW_NUM_CPU_DEVICES", "8")
_own_cache = None
if "FXFLOW_CACHE_DIR" not in os.environ:
    _own_cache = tempfile.mkdtemp(prefix="fxflow-tests-")
    os.environ["FXFLOW_CACHE_DIR"] = _own_cache

import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402

from fxflow._config import Option, config  # noqa: E402
from tests.sweeps import sampling  # noqa: E402

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

_OPTIONS = [name for name, o in vars(type(config)).items() if isinstance(o, Option)]


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("sweeps", "tests/sweeps")
    group.addoption("--sweep-seed", type=int, default=0, help="which cases are drawn")
    group.addoption("--whole-sweeps", action="store_true", help="run every case")


def pytest_configure(config: pytest.Config) -> None:
    sampling.seed = config.getoption("--sweep-seed")
    sampling.whole = config.getoption("--whole-sweeps")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Runs the example of a public function where it is written, not where it is shown.

    A package shows functions behind the boundary, as functions of its own.
    """
    items[:] = [item for item in items if not _is_shown_elsewhere(item)]


def _is_shown_elsewhere(item: pytest.Item) -> bool:
    test = getattr(item, "dtest", None)
    module = None if test is None else sys.modules.get(test.globs["__name__"])
    shown = getattr(module, test.name.rpartition(".")[2], None) if module else None
    if not hasattr(shown, "__wrapped__") or not inspect.isfunction(shown):
        return False
    return inspect.unwrap(shown).__globals__ is not vars(module)


def pytest_report_header() -> str:
    share = "every case" if sampling.whole else f"cases drawn by seed {sampling.seed}"
    return f"sweeps: {share}"


def pytest_unconfigure() -> None:
    if _own_cache is not None:
        shutil.rmtree(_own_cache, ignore_errors=True)


def _values() -> dict[str, object]:
    return {name: getattr(config, name) for name in _OPTIONS}


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
