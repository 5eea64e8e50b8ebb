"""Processes of tests: run by the launcher, looked for, interrupted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]


def hear_interrupts() -> None:
    """Lets SIGINT interrupt this process and its children, as it does on a terminal.

    A process that is started by `nohup`, or by `&` in a script, ignores SIGINT, and so
    do its children: Python then installs no handler.
    """
    here = threading.current_thread() is threading.main_thread()
    if here and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def starts_processes(nodeid: str, names: Mapping[str, object]) -> bool:
    """Whether a test is of processes, servers and what holds them together.

    Args:
      nodeid: where it is: the tests of `distributed`, `serve` and `deploy` all are, and
        those of `dataflow/tasks`.
      names: of its module: so are those of files that import `subprocess` or this one.
    """
    folders = nodeid.split("/")[1:-1]
    if folders[:1] in (["distributed"], ["serve"], ["deploy"]):
        return True
    if folders == ["dataflow", "tasks"]:
        return True
    return "subprocess" in names or any(
        getattr(value, "__module__", "") == __name__ for value in names.values()
    )


def in_two_processes(
    module: str, *arguments: str, devices: int = 2
) -> subprocess.CompletedProcess[str]:
    """Runs a module in two processes.

    Args:
      module: name of the module.
      *arguments: of its command line.
      devices: how many CPU devices each process has.
    """
    launch = [sys.executable, "-m", "fxflow", "launch", "-n", "2"]
    launch += ["--devices-per-process", str(devices), "--no-color", "--timeout", "90"]
    env = {k: v for k, v in os.environ.items() if k != "FXFLOW_NUM_CPU_DEVICES"}
    return subprocess.run(
        [*launch, "-m", module, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=ROOT,
        env=env,
    )


def check_two_processes(module: str, devices: int = 2) -> None:
    """Runs a module in two processes, each of which prints `done` at its end.

    Args:
      module: name of the module.
      devices: how many CPU devices each process has.
    """
    found = in_two_processes(module, devices=devices)
    assert found.returncode == 0, found.stdout + found.stderr
    assert found.stdout.count("done") == 2


def running(word: str) -> list[str]:
    """The command lines of processes that have a word in theirs.

    Args:
      word: such as a folder that nothing else knows.
    """
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if word in line:
            found.append(line)
    return found


def check_gone(word: str) -> None:
    """Checks that such processes end soon.

    Args:
      word: as of `running`.
    """
    end = time.monotonic() + 60
    while left := running(word):
        assert time.monotonic() < end, f"they are left behind: {left}"
        time.sleep(0.1)
