"""Processes that the launcher starts: their output, their signals, their end.

Each child leads a process group, so that signals reach what it starts in turn, and on
Linux the kernel kills it if the launcher dies. On another machine it is started by ssh
and led there by `remote`, which ends it when the connection ends.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from . import remote

__all__ = ["Child", "Output", "status_of"]

#: Has Python run the leader's text, which is the first line of its input.
_LEADER = "import json, sys; exec(json.loads(sys.stdin.readline()))"
#: No questions; and a host that is gone is noticed within a minute.
_SSH = ("-o", "BatchMode=yes", "-o", "ServerAliveInterval=20")
_COLOURS = (36, 33, 32, 35, 34, 31, 96, 93, 92, 95, 94, 91)
#: What gloo prints to standard output whenever it connects, in pieces: its threads
#: write into each other's lines, and numbers are left over.
_NOISE = re.compile(
    rb"\[Gloo\] Rank | is connected to | ?peer ranks\. |"
    rb"Expected number of connected peer ranks is : "
)
_LEFT_OVER = re.compile(rb"[\d\s]*")
#: Seconds after such a line in which one of numbers alone belongs to it.
_AFTER = 0.05


class Output:
    """Writes lines of several children, whole and marked.

    Args:
        colour: whether marks are coloured.
    """

    def __init__(self, colour: bool) -> None:
        self._colour = colour
        self._lock = threading.Lock()

    def mark(self, number: int) -> str:
        """Return what stands before a child's lines."""
        if not self._colour:
            return f"[{number}] "
        return f"\033[{_COLOURS[number % len(_COLOURS)]}m[{number}]\033[0m "

    def write(self, stream: TextIO, mark: str, line: bytes) -> None:
        """Write one line."""
        text = mark + line.decode(errors="replace").rstrip("\r\n") + "\n"
        with self._lock, contextlib.suppress(OSError, ValueError):
            stream.write(text)
            stream.flush()


def status_of(code: int) -> int:
    """Return the shell's status for a code of `subprocess`: signal n is 128 + n."""
    return 128 - code if code < 0 else code


class Child:
    """A process of the run.

    Args:
        number: its number, for the mark of its lines.
        command: what to run.
        environment: variables on top of the launcher's.
        output: where its lines go.
        host: the machine; empty for this one.
        ssh: the command that reaches another machine.
        python: Python there.

    Attributes:
        number: its number.
    """

    def __init__(
        self,
        number: int,
        command: Sequence[str],
        environment: Mapping[str, str],
        output: Output,
        host: str = "",
        ssh: str = "ssh",
        python: str = sys.executable,
    ) -> None:
        self.number = number
        self._remote = bool(host)
        pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        if host:
            line = [*shlex.split(ssh), *_SSH, host]
            line.append(f"exec {shlex.quote(python)} -I -S -c {shlex.quote(_LEADER)}")
            self._process = subprocess.Popen(
                line, stdin=subprocess.PIPE, start_new_session=True, **pipes
            )
            self._tell(json.dumps(inspect.getsource(remote)))
            # Not on the command line, where everybody could read the secret.
            order = {
                "command": list(command),
                "environment": dict(environment),
                "folder": os.getcwd(),
            }
            self._tell(json.dumps(order))
        else:
            self._process = subprocess.Popen(
                remote.led(list(command)),
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                **pipes,
            )
        mark = output.mark(number)
        self._threads = [
            threading.Thread(
                target=self._copy, args=(pipe, stream, mark, output), daemon=True
            )
            for pipe, stream in (
                (self._process.stdout, sys.stdout),
                (self._process.stderr, sys.stderr),
            )
        ]
        for thread in self._threads:
            thread.start()

    @staticmethod
    def _copy(pipe: Any, stream: TextIO, mark: str, output: Output) -> None:
        with pipe:
            noisy = -_AFTER
            for line in pipe:
                now = time.monotonic()
                if _NOISE.search(line):
                    noisy = now
                    line = _NOISE.sub(b"", line)
                if now - noisy > _AFTER or not _LEFT_OVER.fullmatch(line):
                    output.write(stream, mark, line)

    def _tell(self, line: str) -> None:
        pipe = self._process.stdin
        assert pipe is not None
        with contextlib.suppress(OSError):
            pipe.write(line.encode() + b"\n")
            pipe.flush()

    @property
    def pid(self) -> int:
        """The process's number on this machine (of ssh, if it runs on another)."""
        return self._process.pid

    def poll(self) -> int | None:
        """Return how it ended, as `subprocess` does; None while it runs."""
        return self._process.poll()

    def send(self, number: int) -> None:
        """Send a signal to the child and what it started."""
        if self._remote:
            if number == signal.SIGKILL:
                # The other end kills the group when the connection ends.
                self._tell("kill")
            else:
                self._tell(f"signal {number}")
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def finish(self, timeout: float = 5.0) -> None:
        """Make sure that nothing of it is left, and that its output is written."""
        self.send(signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout)
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        for thread in self._threads:
            thread.join(timeout)
