"""What leads a process on another machine.

The launcher sends this file's text there and has Python run it, so that nothing of
fxflow is needed before the process itself starts, and Python's own library alone is
imported. It reads its order from standard input, one line of JSON; then lines
``signal N`` and ``kill``. When the input ends, because the launcher or the connection
is gone, it ends the process and all that it started.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from typing import TextIO

#: Asks the kernel to kill this process when its parent ends, then becomes the command.
#: If the parent ended before the request there is no signal: then it ends too.
PRELUDE = (
    "import ctypes, os, sys\n"
    "try: ctypes.CDLL(None).prctl(1, 9)\n"
    "except Exception: pass\n"
    "if os.getppid() != int(sys.argv[1]): os._exit(1)\n"
    "try: os.execvp(sys.argv[2], sys.argv[2:])\n"
    "except OSError as error: why = error.strerror\n"
    "print(f'{sys.argv[2]}: {why}', file=sys.stderr)\n"
    "sys.exit(127)\n"
)
_GRACE = 5.0


def led(command: list[str]) -> list[str]:
    """Returns the command that runs `command` for as long as this process lives."""
    return [sys.executable, "-I", "-S", "-c", PRELUDE, str(os.getpid()), *command]


def _kill(process: subprocess.Popen[bytes], number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _obey(process: subprocess.Popen[bytes], orders: TextIO) -> None:
    for line in orders:
        word, _, number = line.strip().partition(" ")
        if word == "signal" and number.isdigit():
            _kill(process, int(number))
        elif word == "kill":
            _kill(process, signal.SIGKILL)
    _kill(process, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE)
    _kill(process, signal.SIGKILL)


def main(orders: TextIO = sys.stdin) -> int:
    """Runs what the first line of `orders` says.

    Args:
      orders: where they come from.

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
    process = subprocess.Popen(
        led(order["command"]),
        env={**os.environ, **order["environment"]},
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    threading.Thread(target=_obey, args=(process, orders), daemon=True).start()
    code = process.wait()
    _kill(process, signal.SIGKILL)
    return 128 - code if code < 0 else code


if __name__ == "__main__":
    # A thread may still read the input, which Python would wait for.
    status: int = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
