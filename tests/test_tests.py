"""House rules: files are short, names say what is asked, and each test can fail."""

import ast
import functools
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from tests import timing
from tests.processes import check_two_processes, starts_processes

TESTS = Path(__file__).parent
ROOT = TESTS.parent
#: Lines of a file; one that is longer is two.
LONGEST = 800
#: Lines of a function; one that is longer does several things.
LONGEST_FUNCTION = 120
#: Functions that are longer: a command line's options, and closures that share a state.
LONG_FUNCTIONS = {
    "devices/contractions.py: ir",
    "distributed/launch.py: _parser",
    "optim/linesearch.py: scale_by_backtracking_linesearch",
    "optim/linesearch.py: scale_by_zoom_linesearch",
    "scipy/optimize/_interior_point.py: solve",
    "scipy/optimize/_levenberg_marquardt.py: levenberg_marquardt",
    "scipy/optimize/_sequential_quadratic.py: _run",
    "scipy/optimize/evolution.py: differential_evolution",
    "scipy/optimize/global_minimization.py: basinhopping",
    "scipy/optimize/least_squares.py: least_squares",
    "scipy/optimize/minimization.py: minimize",
    "scipy/optimize/scalar_minimization.py: minimize_scalar",
    "transforms/vmap.py: vmap",
}
RNG = np.random.default_rng(0)
FILES = sorted([*(ROOT / "fxflow").rglob("*.py"), *TESTS.rglob("*.py")])
#: Test names that do not say what is asked, and words that `scripts/words.py` keeps out
#: of sentences.
VAGUE = re.compile(
    r"test_(errors?|mistakes?|values?|edges?)$"
    r"|_(who|nobody|whoever|somebody|anybody|told|gone)(_|$)"
    r"|(?<!there)_(is|are)_no_|_(is|are)_none$|_so_(many|long)(_|$)"
)
#: What fails by itself.
ASSERTING = {"raises", "warns", "fail", "validate"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def texts(folder: Path) -> dict[str, str]:
    """Returns the text of each file of a folder, by its path in there."""
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in FILES
        if path.is_relative_to(folder)
    }


class Definition(NamedTuple):
    """A function: its lines, and its names, `"assert"` if it can fail by itself."""

    name: str
    lines: int
    names: set[str]


class Source(NamedTuple):
    """What a file defines, and the line and the modules of each import."""

    functions: list[Definition]
    imports: list[tuple[int, list[str]]]


@functools.cache  # several rules read each file
def read(source: str) -> Source:
    """Returns what a file defines and imports.

    Args:
      source: its text.
    """
    functions, imports = [], []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, Function):
            lines = (node.end_lineno or 0) - node.lineno + 1
            functions.append(Definition(node.name, lines, names(node)))
        elif isinstance(node, ast.Import):
            imports.append((node.lineno, [alias.name for alias in node.names]))
        elif isinstance(node, ast.ImportFrom):
            package = "tests." if node.level else ""
            package += f"{node.module}." if node.module else ""
            modules = [package + alias.name for alias in node.names]
            imports.append((node.lineno, modules))
    return Source(functions, imports)


def names(function: Function) -> set[str]:
    """The names that a function speaks of; `"assert"` if it can fail by itself."""
    found = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.Assert | ast.Raise):
            found.add("assert")
    if found & ASSERTING or any(n.startswith(("assert", "check_")) for n in found):
        found.add("assert")
    return found


def silent(sources: dict[str, str]) -> list[str]:
    """The tests that assert nothing, wherever the functions they call are written."""
    every = [
        (path, function.name, function.names)
        for path, source in sources.items()
        for function in read(source).functions
    ]
    helpers = {"assert"}
    while more := {name for _, name, used in every if used & helpers} - helpers:
        helpers |= more
    return [
        f"{path}: {name}"
        for path, name, used in every
        if name.startswith("test_") and not used & helpers
    ]


def test_every_test_asserts() -> None:
    assert silent(texts(TESTS)) == []


def vague(sources: dict[str, str]) -> list[str]:
    """The tests whose names do not say what is asked."""
    return [
        f"{path}: {function.name}"
        for path, source in sources.items()
        for function in read(source).functions
        if function.name.startswith("test_") and VAGUE.search(function.name)
    ]


def test_names_say_what_is_asked() -> None:
    assert vague(texts(TESTS)) == []


def test_vague_names_are_seen() -> None:
    good = "def test_errors_are_pickled(): ...\ndef test_there_is_no_file(): ...\n"
    bad = "def test_errors(): ...\ndef test_x_is_no_y(): ...\ndef test_who_waits(): ..."
    names = ["test_errors", "test_x_is_no_y", "test_who_waits"]
    assert vague({"a.py": good + bad}) == [f"a.py: {name}" for name in names]


def imported_tests(sources: dict[str, str]) -> list[str]:
    """The imports of test files: what two of them use belongs in a helper module."""
    return [
        f"{path}:{line}"
        for path, source in sources.items()
        for line, modules in read(source).imports
        if any(re.match(r"tests\..*\btest_", module) for module in modules)
    ]


def test_no_file_imports_a_test_file() -> None:
    assert imported_tests(texts(TESTS)) == []


def test_imports_of_test_files_are_seen() -> None:
    good = "from .conftest import a\nfrom tests.lax import ragged\nimport test_x\n"
    assert imported_tests({"a.py": good}) == []
    for bad in (
        "from .test_b import c\n",
        "from ..lax.test_b import c\n",
        "from tests.lax import test_b\n",
        "import tests.lax.test_b\n",
    ):
        assert imported_tests({"a.py": bad}) == ["a.py:1"]


def test_files_are_short_enough() -> None:
    lines = {p: len(p.read_text(encoding="utf-8").splitlines()) for p in FILES}
    assert {p: count for p, count in lines.items() if count > LONGEST} == {}


def long_functions(sources: dict[str, str]) -> set[str]:
    """The functions of more lines than one may have, docstrings and all."""
    return {
        f"{path}: {function.name}"
        for path, source in sources.items()
        for function in read(source).functions
        if function.lines > LONGEST_FUNCTION
    }


def test_functions_are_short_enough() -> None:
    sources = texts(ROOT / "fxflow")
    assert long_functions(sources) - LONG_FUNCTIONS == set()


def test_long_functions_are_seen() -> None:
    body = "    x = 1\n" * LONGEST_FUNCTION
    source = f"def long():\n{body}async def short():\n{body[10:]}"
    assert long_functions({"a.py": source}) == {"a.py: long"}


def test_what_asserts_nothing_is_seen() -> None:
    helper = "def same(a, b): assert a == b\ndef close(a, b): same(a, b)\n"
    good = "def test_a(): close(1, 1)\ndef test_b(): map(np.testing.assert_equal, x)\n"
    bad = "def test_c(): f(1)\n"
    assert silent({"h.py": helper, "good.py": good}) == []
    assert silent({"h.py": helper, "bad.py": bad}) == ["bad.py: test_c"]


def test_a_folder_over_its_budget_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "BUDGETS", {"tests/lax": 30.0, "tests/nn": 5.0})
    lines = timing.table({"tests/lax": 31.0, "tests/nn": 4.0, "tests/new": 2.0})
    assert lines.splitlines() == [
        "    31.0  tests/lax               of 30  OVER",
        "     4.0  tests/nn                of 5",
        "     2.0  tests/new               no budget",
        "    37.0  in all",
    ]
    files = ("tests/core/ir/test_graph.py", "tests/core/test_a.py", "tests/test_a.py")
    assert timing.by_folder(dict.fromkeys(files, 1.0)) == {"tests/core": 2, "tests": 1}
    assert timing.folder_of("fxflow/lax/dot.py") == "fxflow"


def test_each_folder_has_a_budget() -> None:
    folders = {
        timing.folder_of(path.relative_to(ROOT).as_posix())
        for path in TESTS.rglob("test_*.py")
    }
    assert folders | {"fxflow"} == set(timing.BUDGETS)


@pytest.mark.parametrize(
    ("nodeid", "names", "expected"),
    [
        ("tests/serve/test_cache.py::test_a", {}, True),
        ("fxflow/distributed/launch.py::launch", {}, True),
        ("tests/lax/test_dot.py::test_a", {"pytest": pytest}, False),
        ("tests/test_main.py::test_a", {"subprocess": subprocess}, True),
        ("tests/nn/test_a.py::test_a", {"check": check_two_processes}, True),
    ],
)
def test_tests_that_start_processes_are_marked(
    nodeid: str, names: dict[str, object], expected: bool
) -> None:
    assert starts_processes(nodeid, names) is expected


@pytest.mark.parametrize("again", [False, True])
def test_numbers_of_a_test_do_not_depend_on_tests_before_it(again: bool) -> None:
    assert RNG.random() == np.random.default_rng(0).random()
