"""The terminal's lines, and lines of JSON."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path

import pytest

from fxflow.errors import ArgumentError, DataError
from fxflow.train import logs


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


def test_the_terminal_sink_writes_lines_to_a_file() -> None:
    file = io.StringIO()
    sink = logs.terminal(200, every=0, file=file)
    sink.write(100, 0.0, {"loss": 0.123456, "n": 3, "image": logs.Image(None)})
    sink.write(150, 10.0, {"loss": 1e-9, "words": logs.Text("fine")})
    sink.write(200, 3700.0, {"loss": math.nan})
    sink.close()
    assert file.getvalue().splitlines() == [
        "step 100/200  loss 0.1235  n 3",
        "step 150/200  loss 1e-09  words fine  5 steps/s  0:10 left",
        "step 200/200  loss nan  0.027 steps/s",
    ]


def test_the_terminal_sink_overwrites_one_line() -> None:
    screen = Screen()
    sink = logs.terminal(every=0, file=screen)
    sink.write(1, 0.0, {"loss": 0.123456})
    sink.write(2, 1.0, {})
    sink.close()
    assert screen.getvalue() == "\rstep 1  loss 0.1235\rstep 2  1 steps/s  \n"


def test_the_last_line_is_always_shown() -> None:
    file = io.StringIO()
    sink = logs.terminal(every=3600, file=file)
    for step in range(5):
        sink.write(step, 0.0, {})
    sink.close()
    assert file.getvalue() == "step 0\nstep 4\n"
    with pytest.raises(ArgumentError, match="every must be at least 0"):
        logs.terminal(every=-1)


def written(path: Path, *steps: int, purge_step: int | None = None) -> None:
    sink = logs.json_lines(path, purge_step=purge_step)
    for step in steps:
        sink.write(step, 1.5, {"n": step})
    sink.close()


def test_nan_is_written_as_a_string(tmp_path: Path) -> None:
    path = tmp_path / "new" / "run.jsonl"
    sink = logs.json_lines(path)
    values = {"a": math.inf, "b": math.nan, "c": logs.Text("ü\n"), "d": logs.Image(0)}
    sink.write(7, 1.5, values)
    sink.write(8, 1.5, {"d": logs.Image(0)})
    sink.close()
    line = json.loads(path.read_text(), parse_constant=lambda name: 1 / 0)
    assert line == {"step": 7, "time": 1.5, "a": "inf", "b": "nan", "c": "ü\n"}
    (found,) = logs.read_json_lines(path)
    assert found["a"] == math.inf and math.isnan(found["b"])


def test_a_resumed_run_appends_to_the_file(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    written(path, 1, 2, 3)
    written(path, 4)
    with open(path, "a") as file:
        file.write('{"step": 5, "ti')  # the run was killed
    assert [line["n"] for line in logs.read_json_lines(path)] == [1, 2, 3, 4]
    written(path, 3, purge_step=3)
    assert [line["n"] for line in logs.read_json_lines(path)] == [1, 2, 3]
    assert [child.name for child in tmp_path.iterdir()] == ["run.jsonl"]


def test_an_invalid_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text('{"step": 1}\nhello\n')
    with pytest.raises(DataError, match=r"run\.jsonl, line 2"):
        list(logs.read_json_lines(path))
    with pytest.raises(OSError, match="Is a directory"):
        logs.json_lines(tmp_path)
