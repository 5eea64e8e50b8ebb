"""Sinks that write lines: to the terminal, and to files of JSON."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from fxflow.devices import files
from fxflow.errors import ArgumentError, DataError
from fxflow.train.logs.values import Text


def _numbers(values: Mapping[str, Any]) -> dict[str, float | int | str]:
    """Returns the values that are numbers or texts."""
    return {
        name: value.text if isinstance(value, Text) else value
        for name, value in values.items()
        if isinstance(value, (int, float, Text))
    }


def _clock(seconds: float) -> str:
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


class _Terminal:
    """The sink of `terminal`."""

    def __init__(self, total: int | None, every: float, file: IO[str] | None) -> None:
        self._total, self._every, self._file = total, every, file
        self._first: tuple[int, float] | None = None
        self._written, self._width = -math.inf, 0
        self._last = ""

    @property
    def _stream(self) -> IO[str]:
        return sys.stderr if self._file is None else self._file

    def write(self, step: int, seconds: float, values: Mapping[str, Any]) -> None:
        if self._first is None:
            self._first = (step, seconds)
        self._last = self._line(step, seconds, values)
        if time.monotonic() - self._written >= self._every:
            self._show()

    def _line(self, step: int, seconds: float, values: Mapping[str, Any]) -> str:
        assert self._first is not None
        of = "" if self._total is None else f"/{self._total}"
        parts = [f"step {step}{of}"]
        for name, value in _numbers(values).items():
            parts.append(f"{name} {value:.4g}" if isinstance(value, float) else
                         f"{name} {value}")  # fmt: skip
        begun, since = self._first
        if step > begun and seconds > since:
            rate = (step - begun) / (seconds - since)
            parts.append(f"{rate:.3g} steps/s")
            if self._total is not None and step < self._total:
                parts.append(f"{_clock((self._total - step) / rate)} left")
        return "  ".join(parts)

    def _show(self, end: str = "") -> None:
        if not self._last:
            return
        line = self._last
        if self._stream.isatty():
            # Overwrite the previous line completely.
            self._stream.write(f"\r{line:<{self._width}}{end}")
            self._width = len(line)
        else:
            self._stream.write(f"{line}\n")
        self._stream.flush()
        self._last, self._written = "", time.monotonic()

    def flush(self) -> None:
        pass

    def close(self) -> None:
        if self._last:
            self._show("\n")
        elif self._width and self._stream.isatty():
            self._stream.write("\n")
            self._stream.flush()


def terminal(
    total: int | None = None, *, every: float = 1.0, file: IO[str] | None = None
) -> _Terminal:
    """Returns a sink that shows numbers, on one line of the terminal or in a file.

    Args:
      total: the total number of steps, to show the remaining time.
      every: the least number of seconds between two lines; the last line is always
        shown.
      file: where to write; None means standard error.

    Returns:
      A sink, for `Logger`.

    Raises:
      ArgumentError: `every` is negative.
    """
    if every < 0:
        raise ArgumentError(f"terminal: every must be at least 0 seconds, got {every}")
    return _Terminal(total, every, file)


# -- JSON ------------------------------------------------------------------------------


class _JsonLines:
    """The sink of `json_lines`."""

    def __init__(self, path: Path, purge_step: int | None) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        _keep(path, math.inf if purge_step is None else purge_step)
        self._file = open(path, "a", encoding="utf-8")  # noqa: SIM115 (closed later)

    def write(self, step: int, seconds: float, values: Mapping[str, Any]) -> None:
        shown = {
            name: value
            if not isinstance(value, float) or math.isfinite(value)
            else str(value)
            for name, value in _numbers(values).items()
        }
        if shown:
            line = {"step": step, "time": round(seconds, 3), **shown}
            self._file.write(json.dumps(line) + "\n")

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def _keep(path: Path, purge_step: float) -> None:
    """Drops an incomplete last line, and steps that a resumed run will write again."""
    if not path.exists():
        return
    whole = path.read_bytes()
    lines = whole[: whole.rfind(b"\n") + 1].splitlines(keepends=True)
    kept = b"".join(line for line in lines if json.loads(line)["step"] < purge_step)
    if kept != whole:
        files.write(path, kept)


def json_lines(
    path: str | os.PathLike[str], *, purge_step: int | None = None
) -> _JsonLines:
    """Returns a sink that writes numbers and texts to a file, one JSON line per call.

    Lines have `step`, `time` (seconds since 1970) and the values by name. Because JSON
    lacks these numbers, `"nan"`, `"inf"` and `"-inf"` are strings. Lines are appended
    to an existing file.

    Args:
      path: the file's path; its folder is created if necessary.
      purge_step: drops steps that are at least this one from an existing file, because
        a resumed run writes them again.

    Returns:
      A sink, for `Logger`.

    Raises:
      OSError: the file cannot be written.
    """
    return _JsonLines(Path(path), purge_step)


def read_json_lines(path: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    """Reads a file that `json_lines` wrote.

    Args:
      path: the file's path.

    Returns:
      A dictionary for each line, with nonfinite numbers as floats again. An incomplete
      last line is skipped.

    Raises:
      DataError: a line is not JSON; the message gives its number.
    """
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith("\n"):
                return
            try:
                found = json.loads(line)
            except ValueError as error:
                raise DataError(f"{path}, line {number}: {error}") from None
            yield {
                name: float(value) if value in ("nan", "inf", "-inf") else value
                for name, value in found.items()
            }
