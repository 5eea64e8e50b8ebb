"""The command that runs one task of a cluster.

    python -m fxflow.dataflow.tasks --job worker --index 0 --address 10.0.0.1:7000

`dataflow.local_cluster` starts it, and so does `fxflow launch --tasks`; elsewhere a
cluster manager does on each machine. Addresses beyond this machine require the run's
keys, in ``FXFLOW_PS_KEYS`` or in the file that ``FXFLOW_PS_KEYS_FILE`` names.

The exit status is 0 after SIGTERM or Ctrl-C, or when no controller is left and it was
started with `--once`; 1 when it cannot start, 2 for a wrong command line.
"""

from __future__ import annotations

import argparse
import gc
import os
import signal
import sys
from collections.abc import Sequence

from fxflow.dataflow.tasks.worker import Task, log
from fxflow.devices.process import keep_freed_memory
from fxflow.distributed.messages.keys import keys_of
from fxflow.errors import BackendError


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m fxflow.dataflow.tasks",
        description="Run one task of a cluster, which runs the fragments of dataflow "
        "functions.",
        epilog="Exit status: 0 after SIGTERM or Ctrl-C (with --once also when no "
        "controller is left), 1 when it cannot start, 2 for a wrong command line. "
        "FXFLOW_PS_KEYS_FILE names the file of the run's keys.",
    )
    add = parser.add_argument
    add("--job", default="worker", help="job of the task (default worker)")
    add("--index", type=int, required=True, help="number of the task in its job")
    add(
        "--address",
        required=True,
        metavar="ADDRESS",
        help="where others reach it: HOST:PORT, or the path of a Unix socket",
    )
    add(
        "--listen",
        metavar="ADDRESS",
        help="where to listen, if not at --address: *:PORT means all interfaces",
    )
    add(
        "--once",
        action="store_true",
        help="end ten seconds after a controller has left, unless one connects",
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a task.

    Args:
      argv: the arguments; None is the command line's.

    Returns:
      The exit status.
    """
    parser = _parser()
    options = parser.parse_args(sys.argv[1:] if argv is None else argv)
    if options.index < 0:
        parser.error(f"--index is a number from 0, got {options.index}")
    try:
        task = Task(
            options.job,
            options.index,
            options.address,
            keys_of(),
            options.once,
            options.listen,
        )
    except BackendError as error:
        log(str(error))
        return 1
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: task.stop())
    keep_freed_memory()
    # Objects that exist now stay alive: exclude them from garbage collection.
    gc.freeze()
    task.serve()
    # Threads may still wait for the runtime.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
