"""A pytest plugin: SciPy's own tests of the array API run on `fxflow.numpy`.

`SCIPY_ARRAY_API=1 pytest -p tests.scipy.array_api.plugin --pyargs scipy.stats`. The
tests of SciPy take the namespace from a fixture, `xp`, whose parameters are the
libraries that SciPy knows; this one takes their place. What SciPy skips or expects to
fail with JAX, whose arrays are immutable as well, it skips with fxflow.
"""

import importlib
import json
import random
from pathlib import Path
from typing import Any

import pytest

import fxflow
import fxflow.compat.scipy
import fxflow.numpy as fnp

NAME = "fxflow.numpy"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--sample", default="", help="COUNT/SEED: run some of the tests")
    parser.addoption("--outcomes", default="", help="write the outcomes into this file")


def pytest_configure(config: pytest.Config) -> None:
    """Puts the namespace into SciPy's fixture, before it is looked at."""
    fxflow.config.x64 = True  # SciPy's tests expect float64 of Python's floats
    fxflow.compat.scipy.install()
    tests: Any = importlib.import_module("scipy.conftest")
    tests.xp_known_backends.add(NAME)
    param = pytest.param(fnp, id=NAME, marks=pytest.mark.array_api_backends)
    marker = tests.xp._fixture_function_marker
    object.__setattr__(marker, "params", (param,))
    reasons_of = tests._backends_kwargs_from_request

    def reasons(request: Any, skip_or_xfail: str) -> dict[str, str]:
        found = reasons_of(request, skip_or_xfail)
        found.pop(NAME, None)
        return found | ({NAME: found["jax.numpy"]} if "jax.numpy" in found else {})

    tests._backends_kwargs_from_request = reasons
    config.pluginmanager.register(Outcomes(config.getoption("--outcomes")))


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Leaves the tests that take the namespace, or a sample of them."""
    sample = config.getoption("--sample")
    items[:] = [i for i in items if i.get_closest_marker("array_api_backends")]
    if sample:
        count, seed = map(int, sample.split("/"))
        chosen = random.Random(seed).sample(range(len(items)), min(count, len(items)))
        items[:] = [items[i] for i in sorted(chosen)]


class Outcomes:
    """Writes the outcome of each test and the message of one that failed."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.found: dict[str, tuple[str, str]] = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" or report.outcome != "passed":
            crash = getattr(report.longrepr, "reprcrash", None)
            message = str(getattr(crash, "message", report.longrepr))
            self.found[report.nodeid] = report.outcome, message[:300]

    def pytest_sessionfinish(self) -> None:
        if self.path:
            Path(self.path).write_text(json.dumps(self.found), encoding="utf-8")
