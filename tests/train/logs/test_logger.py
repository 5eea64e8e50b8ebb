"""Logging does not wait, loses nothing, and says what went wrong."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fxflow import numpy as fnp
from fxflow.errors import ArgumentError
from fxflow.train import logs, metrics


class Kept:
    """A sink that keeps what it gets."""

    def __init__(self) -> None:
        self.lines: list[tuple[int, dict[str, Any]]] = []
        self.flushes = self.closes = 0

    def write(self, step: int, seconds: float, values: Mapping[str, Any]) -> None:
        assert abs(time.time() - seconds) < 60
        self.lines.append((step, dict(values)))

    def flush(self) -> None:
        self.flushes += 1

    def close(self) -> None:
        self.closes += 1


def test_numbers_of_all_kinds() -> None:
    sink = Kept()
    with logs.Logger(sink) as log:
        log(
            3,
            {
                "array": fnp.float32(0.5),
                "one": np.ones((1, 1), np.float64),
                "half": fnp.bfloat16(2),
                "int": np.int64(2**40),
                "bool": True,
                "python": 1.5,
                "metric": metrics.mean(fnp.array([1.0, 2.0])),
            },
        )
    assert sink.lines == [
        (
            3,
            {
                "array": 0.5,
                "one": 1.0,
                "half": 2.0,
                "int": 2**40,
                "bool": 1,
                "python": 1.5,
                "metric": 1.5,
            },
        )
    ]
    assert sink.closes == 1


def test_flush_makes_all_readable() -> None:
    sink = Kept()
    log = logs.Logger(sink)
    log(0, {"n": 1})
    log.flush()
    assert (len(sink.lines), sink.flushes) == (1, 1)
    log.close()


def test_does_not_wait_for_values() -> None:
    computed = threading.Event()

    class Late:
        """Of an array that is not computed yet: whoever converts it waits."""

        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            assert computed.wait(10), "log waits for the value"
            return np.float32(1).__array__()

    sink = Kept()
    log = logs.Logger(sink)
    log(0, {"late": Late()})
    log(1, {"next": 2})
    assert sink.lines == []
    computed.set()
    log.close()
    assert sink.lines == [(0, {"late": 1.0}), (1, {"next": 2})]


def test_order_and_every_call() -> None:
    first, second = Kept(), Kept()
    with logs.Logger(first, second) as log:
        for step in range(3000):  # more than the queue holds
            log(step, {"n": step})
    assert [step for step, _ in first.lines] == list(range(3000))
    assert second.lines == first.lines


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.ones(3), r"log: a must be a number .* got float64\[3\]"),
        (1j, "log: a must be a number"),
        ("text", r"a is a text: give logs\.Text\('text'\)"),
        (None, "log: a must be a number"),
    ],
)
def test_what_went_wrong_is_raised_by_the_next_call(value: Any, words: str) -> None:
    log = logs.Logger(Kept())
    log(0, {"a": value})
    with pytest.raises(ArgumentError, match=words):
        log.flush()
    log(1, {"a": 1})
    log.close()


def test_errors_of_sinks_are_not_lost() -> None:
    class Broken(Kept):
        def write(self, *args: Any) -> None:
            raise OSError("disk gone")

    log = logs.Logger(Broken())
    log(0, {"a": 1})
    with pytest.raises(OSError, match="disk gone"):
        log.close()
    with pytest.raises(ArgumentError, match="expected sinks, got 3"):
        logs.Logger(3)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="names must be texts, got 3"):
        logs.Logger(Kept())(0, {3: 1})  # type: ignore[dict-item]


def test_histograms_of_trees() -> None:
    found = logs.histograms({"a": [fnp.ones(2), fnp.zeros(1)]}, "grads/")
    assert list(found) == ["grads/a/0", "grads/a/1"]


_PROGRAM = """
from fxflow.train import logs
log = logs.Logger(logs.json_lines({path!r}))
for step in range(100):
    log(step, {{"n": step}})
"""


def test_a_program_that_ends_without_closing(tmp_path: Path) -> None:
    path = str(tmp_path / "run.jsonl")
    program = _PROGRAM.format(path=path)
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
    assert [line["n"] for line in logs.read_json_lines(path)] == list(range(100))
