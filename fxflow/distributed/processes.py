"""Child processes: each leads a process group and ends with its parent.

To start a process on another machine, the launcher sends this file's source there, and
Python runs it (`lead`). So the file imports the standard library only, and starting a
process does not need fxflow.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import IO, NoReturn, TextIO

#: Requests that the kernel kill this process when its parent ends, then executes the
#: command. If the parent ended before the request, no signal would come, so the process
#: exits. SIGINT ends the command even if the parent ignores SIGINT, as Ray's does.
_PRELUDE = (
    "import ctypes, os, signal, sys\n"
    "try: ctypes.CDLL(None).prctl(1, 9)\n"
    "except Exception: pass\n"
    "if os.getppid() != int(sys.argv[1]): os._exit(1)\n"
    "signal.signal(signal.SIGINT, signal.SIG_DFL)\n"
    "signal.pthread_sigmask(signal.SIG_SETMASK, [])\n"
    "try: os.execvp(sys.argv[2], sys.argv[2:])\n"
    "except OSError as error: why = error.strerror\n"
    "print(f'{sys.argv[2]}: {why}', file=sys.stderr)\n"
    "sys.exit(127)\n"
)
_PAGE = 4096
if sys.platform != "win32":
    _PAGE = os.sysconf("SC_PAGE_SIZE")
#: The number of SIGKILL, which Windows lacks.
KILL = 9
#: Seconds for a process to end by itself after the leader's input ends.
_GRACE = 5.0


if sys.platform == "win32":

    def require_posix(what: str) -> NoReturn:
        """Refuses Windows.

        Raises:
          OSError: always.
        """
        raise OSError(
            f"{what} needs POSIX system calls, which Windows lacks: use Linux, macOS, "
            "or the Windows Subsystem for Linux"
        )

else:

    def require_posix(what: str) -> None:
        """Refuses Windows; type checkers see there that it does not return."""


class Process:
    """A process that leads a process group, and is killed when its parent ends.

    More exactly, Linux kills it when the thread that started it ends.

    Args:
      command: the command that it runs.
      environment: variables on top of this process's.
      folder: its working directory; None for this process's.
      output: whether `stdout` and `stderr` are pipes; otherwise it inherits them.
      orders: whether `stdin` is a pipe; otherwise its input is empty.
      pass_fds: file descriptors that it inherits.

    Attributes:
      pid: the process id.
      ended: the future exit status; -n after signal n. `asyncio.wrap_future` makes it
        awaitable.
      stdin, stdout, stderr: pipes, or None.

    Example:
      >>> Process(["sh", "-c", "exit 3"]).wait(10)
      3
    """

    pid: int
    ended: Future[int]
    stdin: IO[bytes] | None
    stdout: IO[bytes] | None
    stderr: IO[bytes] | None
    _process: subprocess.Popen[bytes]

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str] | None = None,
        *,
        folder: str | None = None,
        output: bool = False,
        orders: bool = False,
        pass_fds: Sequence[int] = (),
    ) -> None:
        require_posix("starting processes")
        prelude = [sys.executable, "-I", "-S", "-c", _PRELUDE, str(os.getpid())]
        pipe = subprocess.PIPE if output else None
        self._process = subprocess.Popen(
            [*prelude, *command],
            env={**os.environ, **(environment or {})},
            cwd=folder,
            stdin=subprocess.PIPE if orders else subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            pass_fds=pass_fds,
            start_new_session=True,
        )
        self.pid = self._process.pid
        self.stdin = self._process.stdin
        self.stdout, self.stderr = self._process.stdout, self._process.stderr
        self.ended = Future()
        self.ended.set_running_or_notify_cancel()  # it cannot be cancelled
        threading.Thread(target=self._watch, name="fxflow-process", daemon=True).start()

    def _watch(self) -> None:
        self.ended.set_result(self._process.wait())

    def poll(self) -> int | None:
        """Returns the exit status; None while the process runs."""
        return self.ended.result() if self.ended.done() else None

    def wait(self, timeout: float | None = None) -> int | None:
        """Waits for the exit status; None if it takes more than `timeout` seconds."""
        with contextlib.suppress(TimeoutError):
            return self.ended.result(timeout)
        return None

    def send(self, number: int) -> None:
        """Sends a signal to the process's group, even after the process has ended."""
        require_posix("starting processes")
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def kill(self) -> None:
        """Kills the process's group."""
        self.send(KILL)

    @property
    def memory(self) -> int:
        """Bytes of resident memory, including shared memory; 0 if unknown."""
        with (
            contextlib.suppress(OSError, IndexError),
            open(f"/proc/{self.pid}/statm") as pages,
        ):
            return int(pages.read().split()[1]) * _PAGE
        return 0


def status_of(code: int) -> int:
    """Returns the shell's exit status for `subprocess`'s: -n becomes 128 + n."""
    return 128 - code if code < 0 else code


@dataclass(frozen=True)
class Backoff:
    """The delay before a process is restarted, which grows exponentially.

    Attributes:
      second: seconds of delay after the second quick failure in a row. There is no
        delay after the first, and each further failure doubles it.
      most: the longest delay, in seconds.
      steady: a failure after at least this many seconds is not quick.
      failures: the number of quick failures in a row.

    Example:
      >>> backoff = Backoff()
      >>> for _ in range(4):
      ...     backoff = backoff.after(ran=0.5)
      ...     print(backoff.seconds)
      0.0
      0.1
      0.2
      0.4
      >>> backoff.after(ran=60).seconds
      0.0
    """

    second: float = 0.1
    most: float = 30.0
    steady: float = 10.0
    failures: int = 0

    @property
    def seconds(self) -> float:
        """The delay before the next restart."""
        if self.failures < 2:
            return 0.0
        # 2**60 seconds exceed any limit and are still a float.
        seconds: float = min(self.most, self.second * 2.0 ** min(self.failures - 2, 60))
        return seconds

    def after(self, ran: float) -> Backoff:
        """Returns the next state after the process ran for `ran` seconds and ended."""
        failures = 0 if ran >= self.steady else self.failures
        return replace(self, failures=failures + 1)


# -- on another machine ----------------------------------------------------------------


def _obey(process: Process, orders: TextIO) -> None:
    for line in orders:
        word, _, number = line.strip().partition(" ")
        if word == "signal" and number.isdigit():
            process.send(int(number))
        elif word == "kill":
            process.kill()
    process.send(signal.SIGTERM)
    process.wait(_GRACE)
    process.kill()


def lead(orders: TextIO = sys.stdin) -> int:
    """Runs a process that the launcher describes, until `orders` ends.

    It ends when the launcher exits or the connection closes.

    Args:
      orders: a line of JSON with `command`, `environment` and `folder`, then lines
        ``signal N`` and ``kill``.

    Returns:
      The process's exit status.
    """
    order = json.loads(orders.readline())
    try:
        os.chdir(order["folder"])
    except OSError as error:
        print(
            f"{order['folder']}: {error.strerror}; running in {os.getcwd()}",
            file=sys.stderr,
            flush=True,
        )
    process = Process(order["command"], order["environment"])
    threading.Thread(target=_obey, args=(process, orders), daemon=True).start()
    code = process.ended.result()
    process.kill()  # its remaining descendants
    return status_of(code)


if __name__ == "__main__":
    # A thread may still read the input, and Python's exit would wait for it.
    status: int = lead()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
