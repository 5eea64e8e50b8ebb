"""Processor seconds by folder, with a budget each: a table after every long run.

Seconds of a busy or slow machine are not those of a quiet one, so the table marks a
folder that is over its budget and fails nothing.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping

import pytest

#: Processor seconds of the folders' tests in CI, setup and child processes included:
#: a quarter more than was measured on 2 cores, with the part of the slow tests that
#: takes longest.
BUDGETS: dict[str, float] = {
    "fxflow": 150,
    "tests": 50,
    "tests/benchmarks": 10,
    "tests/compat": 40,
    "tests/conformance": 100,
    "tests/core": 35,
    "tests/dataflow": 115,
    "tests/deploy": 25,
    "tests/devices": 30,
    "tests/distributed": 280,
    "tests/docs": 110,
    "tests/examples": 90,
    "tests/export": 65,
    "tests/frontends": 80,
    "tests/golden": 10,
    "tests/kernels": 15,
    "tests/lax": 130,
    "tests/nn": 60,
    "tests/notebooks": 70,
    "tests/numpy": 130,
    "tests/optim": 40,
    "tests/profiler": 10,
    "tests/programs": 50,
    "tests/ragged": 20,
    "tests/random": 40,
    "tests/reports": 80,
    "tests/scipy": 210,
    "tests/serve": 60,
    "tests/sparse": 30,
    "tests/sweeps": 120,
    "tests/train": 30,
    "tests/transforms": 95,
    "tests/typing": 40,
    "tests/viz": 10,
}
#: Runs that are shorter than this print no table.
SHORT = 60.0
#: How many of the files that take most are listed below it.
FILES = 15


def _processor_seconds() -> float:
    """Returns what this process and its finished children have used."""
    return sum(os.times()[:4])


class Timing:
    """The hooks: each phase of a test carries its seconds to where reports are read."""

    def __init__(self) -> None:
        self._last = _processor_seconds()
        self._seconds: dict[str, float] = defaultdict(float)  # by file

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Iterator[None]:
        report = yield
        now = _processor_seconds()
        # An attribute of basic type travels with the report from a worker of xdist.
        report.processor_seconds, self._last = now - self._last, now
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        spent = getattr(report, "processor_seconds", 0.0)
        self._seconds[report.nodeid.partition("::")[0]] += spent

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter
    ) -> None:
        seconds = self._seconds
        if sum(seconds.values()) >= SHORT:
            terminalreporter.section("processor seconds by folder")
            terminalreporter.write_line(table(by_folder(seconds)))
            terminalreporter.section("processor seconds of files")
            most = sorted(seconds, key=lambda file: -seconds[file])[:FILES]
            for file in most:
                terminalreporter.write_line(f"{seconds[file]:8.1f}  {file}")


def by_folder(seconds: Mapping[str, float]) -> dict[str, float]:
    """Returns the seconds of folders.

    Args:
      seconds: of files.
    """
    found: dict[str, float] = defaultdict(float)
    for file, spent in seconds.items():
        found[folder_of(file)] += spent
    return found


def folder_of(file: str) -> str:
    """Returns the part of a file's path that has a budget: "fxflow", "tests/lax"."""
    parts = file.split("/")
    if parts[0] != "tests":
        return parts[0]
    return "/".join(parts[:2]) if len(parts) > 2 else "tests"


def table(seconds: Mapping[str, float]) -> str:
    """Returns the lines, most seconds first.

    Args:
      seconds: spent, by folder.
    """
    lines = []
    for folder, spent in sorted(seconds.items(), key=lambda item: -item[1]):
        budget = BUDGETS.get(folder)
        if budget is None:
            note = "no budget" if spent >= 1 else ""
        else:
            note = f"of {budget:.0f}" + ("  OVER" if spent > budget else "")
        lines.append(f"{spent:8.1f}  {folder:24}{note}".rstrip())
    lines.append(f"{sum(seconds.values()):8.1f}  in all")
    return "\n".join(lines)
