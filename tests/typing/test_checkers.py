"""Type checkers see what fxflow is: they accept a right program, and find mistakes."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Set
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
PROGRAMS = [str(HERE / "right.py"), str(HERE / "wrong.py")]
Found = dict[str, set[int]]

LINES = list(enumerate(Path(PROGRAMS[1]).read_text().splitlines(), 1))
MISTAKES = {number for number, line in LINES if line.endswith("  # mistake")}
#: ty accepts the body of a loop that changes the type of its carry.
MISSED_BY_TY = {number for number, line in LINES if "lambda c: True, to_text" in line}


def run(*command: str) -> str:
    """What a checker prints, run where `import fxflow` finds this checkout."""
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=ROOT,
        # --verifytypes looks along sys.path, but not where a .pth file of it points.
        env={
            **os.environ,
            "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1",
            "PYTHONPATH": str(ROOT),
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stdout + done.stderr  # 1: it found something
    return done.stdout


def require(found: Found, missed: Set[int] = frozenset()) -> None:
    assert found["right.py"] == set()
    assert found["wrong.py"] == MISTAKES - missed


def test_the_right_program_runs() -> None:
    assert math.isfinite(runpy.run_path(PROGRAMS[0])["main"]())


def test_mypy() -> None:
    # With the options of the repository, strict, whose cache it then shares.
    text = run("mypy", "--config-file", "pyproject.toml", "--no-pretty", *PROGRAMS)
    found: Found = {Path(path).name: set() for path in PROGRAMS}
    for name, line in re.findall(r"(\w+\.py):(\d+): error: ", text):
        found[name].add(int(line))
    require(found)


needs_pyright = pytest.mark.skipif(
    not (importlib.util.find_spec("pyright") and shutil.which("node")),
    reason="pyright or node, on which it runs, is not installed",
)


@needs_pyright
def test_pyright() -> None:
    options = ("--outputjson", "--pythonpath", sys.executable, *PROGRAMS)
    found: Found = {Path(path).name: set() for path in PROGRAMS}
    for entry in json.loads(run("pyright", *options))["generalDiagnostics"]:
        if entry["severity"] == "error":
            found[Path(entry["file"]).name].add(entry["range"]["start"]["line"] + 1)
    require(found)


@pytest.mark.skipif(not importlib.util.find_spec("ty"), reason="ty is not installed")
def test_ty() -> None:
    options = ("--output-format", "concise", "--python", sys.executable)
    found: Found = {Path(path).name: set() for path in PROGRAMS}
    text = run("ty", "check", *options, *PROGRAMS)
    for name, line in re.findall(r"(\w+\.py):(\d+):\d+: error", text):
        found[name].add(int(line))
    require(found, MISSED_BY_TY)


@needs_pyright
@pytest.mark.slow
def test_nearly_every_public_type_is_known() -> None:
    options = ("--verifytypes", "fxflow", "--ignoreexternal", "--outputjson")
    report = json.loads(run("pyright", *options, "--pythonpath", sys.executable))
    assert report["typeCompleteness"]["completenessScore"] >= 0.985


def test_there_are_mistakes_enough() -> None:
    assert len(MISTAKES) >= 12
