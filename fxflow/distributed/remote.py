"""What leads a process on another machine: ``python -m fxflow.distributed.remote``.

It reads its order from standard input, one line of JSON; then lines ``signal N`` and
``kill``. When the input ends, because the launcher or the connection is gone, it ends
the process and all that it started.
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

__all__ = ["main"]

_GRACE = 5.0


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
    """Run what the first line of `orders` says.

    Args:
        orders: where they come from.

    Returns:
        The process's exit status.
    """
    order = json.loads(orders.readline())
    with contextlib.suppress(OSError):
        os.chdir(order["folder"])
    try:
        process = subprocess.Popen(
            order["command"],
            env={**os.environ, **order["environment"]},
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        print(f"{order['command'][0]}: {error.strerror}", file=sys.stderr)
        return 127
    threading.Thread(target=_obey, args=(process, orders), daemon=True).start()
    code = process.wait()
    _kill(process, signal.SIGKILL)
    return 128 - code if code < 0 else code


if __name__ == "__main__":
    # A thread may still read the input, which Python would wait for.
    status = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
