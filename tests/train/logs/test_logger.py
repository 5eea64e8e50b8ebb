"""Logging does not wait, writes all values, and reports errors."""

from __future__ import annotations

import math
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
from fxflow import random
from fxflow.errors import ArgumentError
from fxflow.train import logs, loop, metrics


class Kept:
    """A sink that keeps its values."""

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


def test_numbers_of_all_kinds_are_logged() -> None:
    sink = Kept()
    with logs.Logger(sink) as log:
        log(
            3,
            {
                "array": fnp.float32(0.5),
                "one": np.ones((1, 1), np.float64),
                "half": fnp.bfloat16(2),
                "int": np.int64(2**40),
                "large": 2**70,
                "inf": -fnp.inf,
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
                "large": 2**70,
                "inf": -math.inf,
                "bool": 1,
                "python": 1.5,
                "metric": 1.5,
            },
        )
    ]
    assert sink.closes == 1


def test_flush_makes_all_values_readable() -> None:
    sink = Kept()
    log = logs.Logger(sink)
    log(0, {"n": 1})
    log.flush()
    assert (len(sink.lines), sink.flushes) == (1, 1)
    log.close()


def test_logging_does_not_wait_for_values() -> None:
    computed = threading.Event()

    class Late:
        """Acts like an array that is not yet computed: a conversion waits for it."""

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


def test_all_calls_are_written_in_order() -> None:
    first, second = Kept(), Kept()
    with logs.Logger(first, second) as log:
        for step in range(3000):  # more than the capacity of the queue
            log(step, {"n": step})
    assert [step for step, _ in first.lines] == list(range(3000))
    assert second.lines == first.lines


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.ones(3), r"log: a must be a number .* got float64\[3\]"),
        (1j, "log: a must be a number"),
        ("text", r"a is a string: use logs\.Text\('text'\)"),
        (None, "log: a must be a number"),
        (np.zeros(0), r"log: a must be a number .* got float64\[0\]"),
    ],
)
def test_a_value_that_is_not_a_number_warns_once(value: Any, words: str) -> None:
    sink = Kept()
    log = logs.Logger(sink)
    log(7, {"a": value, "b": 1})
    with pytest.warns(UserWarning, match=f"'a' at step 7 is not logged.*{words}"):
        log.flush()
    log(8, {"a": value, "b": 2})
    log.flush()
    # Other values are written; the last warning has the number of errors.
    assert sink.lines == [(7, {"b": 1}), (8, {"b": 2})]
    with pytest.warns(UserWarning, match="1 more times"):
        log.close()


class Broken(Kept):
    def write(self, *args: Any) -> None:
        raise OSError("disk gone")

    def close(self) -> None:
        raise OSError("disk gone")


def test_a_broken_sink_warns_once_and_does_not_stop_others() -> None:
    sink = Kept()
    log = logs.Logger(Broken(), sink)
    log(0, {"a": 1})
    with pytest.warns(UserWarning, match=r"Broken could not write step 0.*disk gone"):
        log.flush()
    for step in range(1, 5):
        log(step, {"a": 1})
    with pytest.warns(UserWarning, match=r"disk gone \(and 5 more times\)"):
        log.close()
    assert [step for step, _ in sink.lines] == [0, 1, 2, 3, 4] and sink.closes == 1


@pytest.mark.filterwarnings("ignore:log")
def test_logging_errors_do_not_end_a_run() -> None:
    def step(state: Any, batch: Any) -> Any:
        odd = {
            "complex": fnp.array(1j),
            "key": random.key(0),
            "nan": fnp.array(fnp.nan),
        }
        return state + batch, {"loss": state, **odd}

    sink = Kept()
    with logs.Logger(Broken(), sink) as log:
        outcome = loop.run(step, 0.0, [1.0] * 4, log=log, log_every=1)
    assert outcome.step == 4
    assert [sorted(values) for _, values in sink.lines] == [["loss", "nan"]] * 4


def test_arguments_are_checked_at_once() -> None:
    with pytest.raises(ArgumentError, match="expected sinks, got 3"):
        logs.Logger(3)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="names must be strings, got 3"):
        logs.Logger(Kept())(0, {3: 1})  # type: ignore[dict-item]


def test_every_leaf_gets_a_histogram() -> None:
    found = logs.histograms({"a": [fnp.ones(2), fnp.zeros(1)]}, "grads/")
    assert list(found) == ["grads/a/0", "grads/a/1"]


_PROGRAM = """
from fxflow.train import logs
log = logs.Logger(logs.json_lines({path!r}))
for step in range(100):
    log(step, {{"n": step}})
"""


def test_a_program_that_does_not_close_writes_all(tmp_path: Path) -> None:
    path = str(tmp_path / "run.jsonl")
    program = _PROGRAM.format(path=path)
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
    assert [line["n"] for line in logs.read_json_lines(path)] == list(range(100))
