"""What holds for every test and every example: a cache of this run, eight devices.

`--draw-files` and `--draw-cases` run a part of the suite, each seed another one.

Examples in docstrings use the usual names (`np`, `fnp`, `lax`, …) unimported.
"""

from __future__ import annotations

import inspect
import os
import pathlib
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# Read when fxflow and matplotlib are first imported, so set before that.
os.environ.setdefault("MPLBACKEND", "Agg")
# Devices for the tests of meshes; the default one is the first, as it would be alone.
if "--xla_force_host_platform_device_count" not in os.environ.get("XLA_FLAGS", ""):
    os.environ.setdefault("FXFLOW_NUM_CPU_DEVICES", "8")
_own_cache = None
if "FXFLOW_CACHE_DIR" not in os.environ:
    _own_cache = tempfile.mkdtemp(prefix="fxflow-tests-")
    os.environ["FXFLOW_CACHE_DIR"] = _own_cache

#: Where each case stands for a primitive, a program, a page or a module.
WHOLE = ("tests/conformance/", "tests/docs/", "tests/golden/", "tests/test_")
#: Tests of which `--draw-cases` draws a sixteenth, each seed another one.
SCIENCE = ("tests/scipy/", "fxflow/scipy/")
#: The guides' pages and the other examples, of which it draws a quarter.
EXAMPLES = ("tests/docs/test_tour.py::test_pages_run[", "fxflow/")

import numpy as np  # noqa: E402
import pytest  # noqa: E402

import fxflow  # noqa: E402
from fxflow import lax, nn, optim, random, train, viz  # noqa: E402
from fxflow import numpy as fnp  # noqa: E402


@pytest.fixture(autouse=True, scope="session")
def usual_names(doctest_namespace: dict[str, Any]) -> None:
    """Puts the names that docs/reference.md lists before every example."""
    doctest_namespace.update(
        fnp=fnp,
        fxflow=fxflow,
        lax=lax,
        nn=nn,
        np=np,
        optim=optim,
        pathlib=pathlib,
        random=random,
        tempfile=tempfile,
        train=train,
        viz=viz,
    )


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Runs the example of a public function where it is written, not where it is shown.

    A package shows functions behind the boundary, as functions of its own. And leaves
    out the cases that `--draw-cases` does not draw.
    """
    items[:] = [item for item in items if not _is_shown_elsewhere(item)]
    seed, parts = _seed_and_parts(config, "--draw-cases")
    left_out = set(_undrawn(items, seed, parts))
    if left_out:
        config.hook.pytest_deselected(items=[i for i in items if i in left_out])
        items[:] = [item for item in items if item not in left_out]


def _undrawn(items: list[pytest.Item], seed: int, parts: int) -> Iterator[pytest.Item]:
    """Yields the cases that a part leaves out.

    They are cases of tests with more than two, slow tests, three quarters of the
    guides' pages and of the other examples, and fifteen sixteenths of the tests and
    examples of `fxflow.scipy`, which has the most functions.
    """
    if parts == 1:
        return
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("slow") is not None:
            tests.setdefault("slow", []).append(item)
        elif item.nodeid.startswith(EXAMPLES) and not item.nodeid.startswith(SCIENCE):
            if (seed + zlib.crc32(item.nodeid.encode())) % 4:
                yield item
        elif not item.nodeid.startswith(WHOLE):
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for name, cases in tests.items():
        if len(cases) > 2:
            first = (seed + zlib.crc32(name.encode())) % parts
            yield from (c for i, c in enumerate(cases) if i % parts != first)
        elif name.startswith(SCIENCE) and (seed + zlib.crc32(name.encode())) % 16:
            yield from cases


def _seed_and_parts(config: pytest.Config, option: str) -> tuple[int, int]:
    seed, _, parts = config.getoption(option).partition("/")
    return int(seed), int(parts)


def _is_shown_elsewhere(item: pytest.Item) -> bool:
    test = getattr(item, "dtest", None)
    module = None if test is None else sys.modules.get(test.globs["__name__"])
    shown = getattr(module, test.name.rpartition(".")[2], None) if module else None
    if not hasattr(shown, "__wrapped__") or not inspect.isfunction(shown):
        return False
    return inspect.unwrap(shown).__globals__ is not vars(module)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options that draw a share of the files and of the cases."""
    for option, what in (("--draw-files", "files"), ("--draw-cases", "cases")):
        parser.addoption(
            option,
            default="1/1",
            metavar="SEED/PARTS",
            help=f"run only the {what} of one part in PARTS, which SEED chooses",
        )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves out the files that `--draw-files` does not draw."""
    seed, parts = _seed_and_parts(config, "--draw-files")
    if parts == 1 or collection_path.suffix != ".py":
        return None
    if collection_path.name in ("conftest.py", "__init__.py"):
        return None
    name = collection_path.relative_to(config.rootpath).as_posix()
    drawn = zlib.crc32(name.encode()) % parts == seed % parts
    return None if drawn else True


def pytest_unconfigure() -> None:
    """Removes this run's cache."""
    if _own_cache is not None:
        shutil.rmtree(_own_cache, ignore_errors=True)
