"""``fxflow coordinator``: runs a coordinator without a launcher.

    fxflow coordinator --num-processes 2 --address 0.0.0.0
    fxflow coordinator --elastic 2:4 --address 0.0.0.0

Kubernetes and Slurm start the processes themselves; the processes find each other
through this command. They read its address from ``FXFLOW_COORDINATOR_ADDRESS`` (and
need ``FXFLOW_COORDINATOR_HOSTED=1``), or from ``FXFLOW_ELASTIC_ADDRESS`` in an elastic
run. When a run fails because it lost a process, the next one may begin at once: the
cluster manager restarts the processes, and they join the same coordinator.

The coordinator uses no devices and holds no state of the program. ``FXFLOW_TOKEN`` is
the run's secret: connections without it are refused, and other machines can join only
if it is set. The exit status is 0 when a run has finished, 1 when no run can finish any
more, and 2 for a wrong command line.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Sequence

from fxflow.distributed.coordinator import LEFT, Coordinator
from fxflow.distributed.membership import Membership
from fxflow.errors import DistributedError

_TICK = 0.1
#: Seconds for the other processes of a failed run to leave.
_GRACE = 5.0
#: Seconds for workers to learn the outcome of their run.
_LINGER = 2.0


def _log(text: str) -> None:
    """Writes a line to standard error."""
    print(f"fxflow coordinator: {text}", file=sys.stderr, flush=True)


def bounds_of(parser: argparse.ArgumentParser, text: str) -> tuple[int, int]:
    """Returns the bounds in ``--elastic MIN:MAX``."""
    match = re.fullmatch(r"(\d+):(\d+)", text)
    low, high = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= low <= high:
        parser.error(f"--elastic takes MIN:MAX with 1 <= MIN <= MAX, got {text!r}")
    return low, high


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(
        prog="fxflow coordinator",
        description="Run the coordinator of a distributed run, without a launcher.",
        epilog="Exit status: 0 when a run has finished, 1 when no run can finish, "
        "2 for a wrong command line. FXFLOW_TOKEN is the run's secret.",
    )
    add = parser.add_argument
    kind = parser.add_mutually_exclusive_group(required=True)
    kind.add_argument("-n", "--num-processes", type=int, metavar="N")
    kind.add_argument("--elastic", metavar="MIN:MAX", help="number of workers")
    add(
        "--address",
        default="127.0.0.1",
        help="address to listen at: 0.0.0.0 lets other machines join (default: "
        "this machine only)",
    )
    add("--port", type=int, default=8476, help="default 8476; 0 for any free port")
    add("--heartbeat-timeout", type=float, metavar="S", help="default 100, elastic 3")
    add(
        "--start-timeout",
        type=float,
        default=float("inf"),
        metavar="S",
        help="give up if processes are missing after S seconds (default: never)",
    )
    options = parser.parse_args(argv)
    if options.num_processes is not None and options.num_processes < 1:
        parser.error(f"--num-processes must be at least 1, got {options.num_processes}")
    elastic = options.elastic
    options.bounds = None if elastic is None else bounds_of(parser, elastic)
    return options


def _wait(over: Callable[[], bool], seconds: float = float("inf")) -> bool:
    """Waits until `over()` is true; returns whether that happened in time."""
    end = time.monotonic() + seconds
    while not over():
        if time.monotonic() >= end:
            return False
        time.sleep(_TICK)
    return True


def _serve(server: Coordinator, options: argparse.Namespace) -> bool | None:
    """Serves one run; returns whether it finished, None if a process was lost."""
    count, group = options.num_processes, server.group
    _log(f"waiting for {count} processes at port {server.port}")
    if not _wait(lambda: len(group.channels) == count, options.start_timeout):
        absent = sorted(set(range(count)) - group.channels.keys())
        _log(f"giving up: processes {absent} did not join")
        return False
    _log("all processes have joined")

    def lost() -> dict[int, str]:
        with server.lock:
            return {k: why for k, why in group.departed.items() if why != LEFT}

    _wait(lambda: len(group.departed) == count or bool(lost()))
    if not lost():
        _log("all processes have left; the run is done")
        return True
    for number, why in sorted(lost().items()):
        _log(f"process {number} is lost: {why}")
    _wait(lambda: len(group.departed) == count, _GRACE)
    return None


def _serve_elastic(server: Membership, options: argparse.Namespace) -> bool | None:
    """Serves an elastic run; returns whether it finished, None if another may start."""
    _log(f"waiting for {options.elastic} workers at port {server.port}")
    _wait(lambda: bool(server.outcome))
    _log(f"the run is {server.outcome}")
    time.sleep(_LINGER)
    if server.outcome == "done":
        return True
    return None if server.epoch else False  # in epoch 0, too few workers joined


def _serve_runs(options: argparse.Namespace) -> bool:
    """Serves runs until one finishes; returns whether one did."""
    token = os.environ.get("FXFLOW_TOKEN", "")
    while True:
        address = f"{options.address}:{options.port}"
        server: Coordinator | Membership
        if options.bounds:
            server = Membership(
                address,
                *options.bounds,
                wanted=options.bounds[0],  # more are admitted as they join
                token=token,
                heartbeat_timeout=options.heartbeat_timeout or 3.0,
                start_timeout=options.start_timeout,
                log=_log,
            )
        else:
            server = Coordinator(
                address,
                options.num_processes,
                token=token,
                heartbeat_timeout=options.heartbeat_timeout or 100.0,
            )
        options.port = server.port  # also for the next run
        try:
            if isinstance(server, Membership):
                finished = _serve_elastic(server, options)
            else:
                finished = _serve(server, options)
        finally:
            server.stop()
        if finished is not None:
            return finished
        _log("the run has not finished; the next one may begin")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs ``fxflow coordinator``: serves until a run has ended.

    Args:
      argv: the arguments; None for those of the command line.

    Returns:
      The exit status.
    """
    options = _parse(argv)
    # By default, signals do not end the first process of a container. Exit at once: the
    # system closes the port, which the processes notice.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, frame: os._exit(128 + number))
    try:
        finished = _serve_runs(options)
    except DistributedError as error:
        _log(str(error))
        finished = False
    return 0 if finished else 1
