"""Runs several processes on this machine, with deadlines, and ends all of them."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent


def processes(mark: str) -> list[int]:
    """The processes that were started with `mark` in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if mark.encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue  # another user's process, or one that has exited
    return found


def listening(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Run:
    """A command that was started; collects its output."""

    def __init__(self, command: list[str], env: dict[str, str], cwd: Path) -> None:
        self.process = subprocess.Popen(
            command,
            env=env,
            cwd=cwd,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.cwd = cwd
        self.out: list[str] = []
        self.err: list[str] = []
        self._threads = [
            threading.Thread(target=self._gather, args=(pipe, lines), daemon=True)
            for pipe, lines in (
                (self.process.stdout, self.out),
                (self.process.stderr, self.err),
            )
        ]
        for thread in self._threads:
            thread.start()

    @staticmethod
    def _gather(pipe: Any, lines: list[str]) -> None:
        with pipe:
            for line in pipe:  # a loop, to see each line when it arrives
                lines.append(line.rstrip("\n"))  # noqa: PERF401

    def wait_for(self, pattern: str, seconds: float = 30) -> re.Match[str]:
        """Waits until a line matches."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for line in [*self.out, *self.err]:
                if found := re.search(pattern, line):
                    return found
            time.sleep(0.005)
        raise AssertionError(f"no line like {pattern!r} in\n{self.text}")

    @property
    def text(self) -> str:
        return "\n".join([*self.out, "-- stderr --", *self.err])

    def end(self, seconds: float = 60) -> int:
        """Waits for the command to end and returns its exit status."""
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(
                f"still running after {seconds} s:\n{self.text}"
            ) from None
        for thread in self._threads:
            thread.join(5)
        return status


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    """Starts commands; afterwards none of their processes may be left."""
    mark = f"FXFLOW_TEST_MARK={uuid.uuid4().hex}"
    runs: list[Run] = []

    def start(*command: str, **environment: str) -> Run:
        env = {k: v for k, v in os.environ.items() if not k.startswith("FXFLOW_")}
        env.pop("XLA_FLAGS", None)
        env["PYTHONPATH"] = str(ROOT)
        env["FXFLOW_CACHE_DIR"] = str(tmp_path / "cache")
        name, _, value = mark.partition("=")
        run = Run(list(command), {**env, name: value, **environment}, tmp_path)
        runs.append(run)
        return run

    yield start
    for run in runs:
        if run.process.poll() is None:
            run.process.kill()
            run.process.wait()
    end = time.monotonic() + 5
    while (left := processes(mark)) and time.monotonic() < end:
        time.sleep(0.02)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left, f"processes are left: {left}"


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], str]:
    """Writes a program and returns its file."""

    def write(code: str, name: str = "program.py") -> str:
        path = tmp_path / name
        path.write_text(code)
        return str(path)

    return write


@pytest.fixture
def launch(start: Callable[..., Run]) -> Callable[..., Run]:
    """Starts ``fxflow launch``."""

    def launch(*arguments: str, **environment: str) -> Run:
        return start(
            sys.executable,
            "-m",
            "fxflow",
            "launch",
            *arguments,
            **environment,
        )

    return launch


@pytest.fixture
def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
