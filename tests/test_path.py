"""How much code a first call runs through: files, jumps between them, lines.

Each call is made once in a process of its own, with every cache empty, that on disk
included; modules that are imported late are imported before.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import lax

ROOT = f"{Path(fxflow.__file__).parent}{os.sep}"


class Count(NamedTuple):
    """What a call ran through.

    Attributes:
      files: files that have a function that was called.
      changes: calls of a function in another file than the call before.
      lines: distinct lines.
    """

    files: int
    changes: int
    lines: int


def traced(run: Callable[[], Any]) -> tuple[Count, set[str]]:
    """Runs a function; returns what it ran through, and which files these are."""
    called: list[str] = []
    lines: set[tuple[str, int]] = set()

    def line(frame: FrameType, event: str, arg: Any) -> Any:
        if event == "line":
            lines.add((frame.f_code.co_filename, frame.f_lineno))
        return line

    def enter(frame: FrameType, event: str, arg: Any) -> Any:
        code = frame.f_code
        # Importing is counted elsewhere (`test_import`).
        if not code.co_filename.startswith(ROOT) or code.co_name == "<module>":
            return None
        called.append(code.co_filename.removeprefix(ROOT))
        return line

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        run()
    finally:
        sys.settrace(before)
    pairs = pairwise(called)
    changes = sum(one != other for one, other in pairs)
    return Count(len({*called}), changes, len(lines)), {*called}


def loss(x: Any) -> Any:
    return fnp.sum(fnp.sin(x))


def gradient(x: Any) -> Any:
    return fxflow.jit(fxflow.grad(loss))(x)


def sum_of_two(x: Any) -> Any:
    return x + x


def scan(x: Any) -> Any:
    return lax.scan(lambda carry, a: (carry + a, carry), ZERO, x)


ZERO = fnp.zeros(())
CALLS = {call.__name__: call for call in (gradient, sum_of_two, scan)}
# A call that grows past these has become harder to follow: what it asks on the way
# belongs behind a check that most programs do not pass (`Graph.facts`, say).
CEILINGS = {
    "gradient": Count(35, 300, 1470),
    "sum_of_two": Count(8, 35, 200),
    "scan": Count(30, 275, 1150),
}


@pytest.mark.parametrize("name", CALLS)
def test_first_call(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.test_path", name],
        env={**os.environ, "FXFLOW_CACHE_DIR": str(tmp_path), "PYTHONPATH": "."},
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    numbers, *files = done.stdout.splitlines()
    found, most = Count(*map(int, numbers.split())), CEILINGS[name]
    assert all(a <= b for a, b in zip(found, most, strict=True)), (found, most, files)


def test_calls_are_counted() -> None:
    count, files = traced(lambda: fxflow.typeof(1.0))
    assert files and count.files == len(files) and count.lines >= count.changes


if __name__ == "__main__":
    x = fnp.arange(3.0)
    count, files = traced(lambda: CALLS[sys.argv[1]](x))
    print(*count)
    print(*sorted(files), sep="\n")
