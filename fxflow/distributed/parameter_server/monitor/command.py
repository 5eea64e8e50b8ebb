"""The commands ``fxflow parameter-server watch`` and ``trace``.

    fxflow parameter-server watch --servers 10.0.0.1:7000,10.0.0.2:7000
    fxflow parameter-server trace run.json.gz --seconds 5 --servers ...

``watch`` redraws its table in place on a terminal; elsewhere it prints one table after
another. Ctrl-C ends it. The exit status is 0; with ``--once`` 1 if a server did not
answer; 2 for a wrong command line or a malformed address.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from collections.abc import Sequence

from fxflow.distributed.messages.keys import keys_of
from fxflow.distributed.parameter_server.monitor.figures import Monitor
from fxflow.distributed.parameter_server.monitor.table import redrawn, table
from fxflow.distributed.parameter_server.monitor.timeline import trace
from fxflow.distributed.parameter_server.running import SERVERS
from fxflow.errors import DistributedError


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fxflow parameter-server",
        epilog="FXFLOW_PS_KEYS_FILE names the file of the run's keys.",
    )
    which = parser.add_subparsers(dest="which", required=True, metavar="watch|trace")
    watch = which.add_parser(
        "watch",
        description="Show what the servers of an asynchronous run are doing.",
        epilog="Exit status: 0; with --once 1 if a server did not answer; 2 for a "
        "wrong command line.",
    )
    watch.add_argument(
        "--every",
        type=float,
        default=2.0,
        metavar="S",
        help="seconds between two tables, over which rates are measured (default 2)",
    )
    watch.add_argument("--once", action="store_true", help="print one table and exit")
    traced = which.add_parser(
        "trace",
        description="Write a timeline of servers and workers, for ui.perfetto.dev.",
        epilog="Exit status: 0; 1 if nothing could be traced or written; 2 for a wrong "
        "command line.",
    )
    traced.add_argument("file", help="compressed if its name ends in .gz")
    traced.add_argument(
        "--seconds",
        dest="every",
        type=float,
        default=5.0,
        metavar="S",
        help="duration of the trace (default 5)",
    )
    for one in (watch, traced):
        one.add_argument(
            "--servers",
            default=os.environ.get(SERVERS, ""),
            metavar="HOST:PORT,...",
            help="addresses of all servers, in order (default: FXFLOW_PS_SERVERS)",
        )
    return parser


def servers_of(parser: argparse.ArgumentParser, listed: str) -> list[str]:
    """Returns the addresses of ``--servers``; ends with an error if there are none."""
    servers = [address for address in listed.split(",") if address]
    if not servers:
        parser.error("give the addresses of the servers: --servers HOST:PORT,HOST:PORT")
    return servers


def main(argv: Sequence[str]) -> int:
    """Runs ``fxflow parameter-server watch`` or ``trace``.

    Args:
      argv: the arguments, ``watch`` or ``trace`` first.

    Returns:
      The exit status.
    """
    parser = _parser()
    options = parser.parse_args(argv)
    servers = servers_of(parser, options.servers)
    if not options.every > 0:
        parser.error(f"seconds must be more than 0; got {options.every:g}")
    if options.which == "trace":
        return _trace(options.file, servers, options.every)
    try:
        monitor = Monitor(servers, keys_of())
    except DistributedError as error:
        parser.error(str(error))
    with monitor:
        try:
            return _watch(monitor, options.every, options.once)
        except KeyboardInterrupt:
            return 0
        except BrokenPipeError:
            # The reader has closed the pipe. Otherwise Python reports it again on exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0


def _trace(path: str, servers: Sequence[str], seconds: float) -> int:
    """Writes a trace; an interrupt shortens it."""
    try:
        with trace(path, servers, keys_of()), contextlib.suppress(KeyboardInterrupt):
            time.sleep(seconds)
    except (DistributedError, OSError) as error:
        print(f"fxflow parameter-server trace: {error}", file=sys.stderr)
        return 1
    print(f"{path}: open it at https://ui.perfetto.dev")
    return 0


def _watch(monitor: Monitor, every: float, once: bool) -> int:
    """Prints tables until an interrupt, or one table if `once`."""
    live = sys.stdout.isatty() and not once
    lines = 0
    figures = monitor.look()
    if live:
        text, lines = redrawn(table(figures), lines)
        print(text, end="", flush=True)
    while True:
        time.sleep(every)
        figures = monitor.look()
        text = table(figures)
        if live:
            text, lines = redrawn(text, lines)
        print(text, end="" if live or once else "\n", flush=True)
        if once:
            return int(any(server.problem for server in figures.servers))
