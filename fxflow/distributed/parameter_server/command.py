"""``fxflow parameter-server`` runs one server of an asynchronous parameter server.

    fxflow parameter-server --number 0 --servers 10.0.0.1:7000,10.0.0.2:7000
    fxflow parameter-server --join 10.0.0.3:7000 --servers 10.0.0.1:7000,10.0.0.2:7000
    fxflow parameter-server watch --servers 10.0.0.1:7000,10.0.0.2:7000

A server needs no script and no data: the first worker sends the model. `fxflow launch
--ps` starts servers and workers together; elsewhere a cluster manager starts this
command on each server's machine. Addresses beyond this machine require the run's keys,
in ``FXFLOW_PS_KEYS`` or in the file that ``FXFLOW_PS_KEYS_FILE`` names. This command
writes them to two files, `server` for servers and `client` for all other processes:

    fxflow parameter-server --make-keys FOLDER

With more shards than servers (`--shards`), or with copies, servers may join and leave:
a new server starts with `--join` and its own address, and a server that receives
SIGTERM exits when others have taken over its shards.

The exit status is 0 after SIGTERM or Ctrl-C, 1 when the server cannot start (listen,
read its log, join), 2 for a wrong command line, 3 when it cannot continue (no memory
for an update, a full disk), 4 after SIGTERM if other servers did not take over all of
its shards in time: then a copy serves them, or a restart of this server; 75 when
``restart`` has requested that it be started again.

``restart`` restarts the servers of a run one by one while training continues, such as
for an upgrade; what started them must start those that exit with status 75 again
(`fxflow launch`, Kubernetes and systemd do).

``rebalance`` divides the shards among the servers by measured load, and ``move SHARD
SERVER`` moves one of them, while training continues.

``watch`` redraws its table in place on a terminal; elsewhere it prints one table after
another. Ctrl-C ends it. Its exit status is 0; with ``--once`` 1 if a server did not
answer; 2 for a wrong command line or a malformed address.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fxflow.devices.clients import run_in_callers
from fxflow.distributed.messages.keys import keys_of, new_keys
from fxflow.distributed.messages.zeromq import Hub
from fxflow.distributed.parameter_server.monitor import Exporter
from fxflow.distributed.parameter_server.monitor.figures import Monitor, redrawn, table
from fxflow.distributed.parameter_server.monitor.tracing import trace
from fxflow.distributed.parameter_server.moving import move_shard, rebalance_shards
from fxflow.distributed.parameter_server.restarting import RESTART, restart_servers
from fxflow.distributed.parameter_server.running import (
    COPIES,
    SERVERS,
    SHARDS,
    TASK,
    enlist,
)
from fxflow.distributed.parameter_server.server.process import ShardServer
from fxflow.distributed.parameter_server.views import first_view
from fxflow.errors import DistributedError


def _log(text: str) -> None:
    print(f"fxflow parameter-server: {text}", file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fxflow parameter-server",
        description="Run one server of an asynchronous parameter server. (`fxflow "
        "parameter-server watch` shows what running servers are doing.)",
        epilog="Exit status: 0 after SIGTERM or Ctrl-C, 1 when it cannot start, 2 for "
        "a wrong command line, 3 when it cannot continue, 4 when others did not take "
        "over its shards in time, 75 when it is to be started again. "
        "FXFLOW_PS_KEYS_FILE names the file of the run's keys.",
    )
    add = parser.add_argument
    task = os.environ.get(TASK, "")
    number = int(task.partition(":")[2]) if task.startswith("ps:") else None
    add("--number", type=int, default=number, help="number of this server, from 0")
    add(
        "--servers",
        default=os.environ.get(SERVERS, ""),
        metavar="HOST:PORT,...",
        help="addresses of all servers, in order; the same for all processes (with "
        "--join: of some running servers)",
    )
    add(
        "--join",
        metavar="HOST:PORT",
        help="join a running run as a new server, at this address",
    )
    add(
        "--listen",
        metavar="HOST:PORT",
        help="address to listen at (default: this server's in --servers, or --join)",
    )
    add(
        "--folder",
        type=Path,
        metavar="FOLDER",
        help="folder of the log of acknowledged changes, from which a restart "
        "continues",
    )
    add(
        "--copies",
        type=int,
        default=int(os.environ.get(COPIES, "1")),
        metavar="K",
        help="number of servers that hold each shard, the same for all servers "
        "(default 1); with 2 or more, the run survives the loss of one",
    )
    add(
        "--shards",
        type=int,
        default=int(os.environ.get(SHARDS, "0")),
        metavar="N",
        help="number of shards of the parameters, the same for all processes (default: "
        "one for each server); with more, servers may join and leave",
    )
    add(
        "--silent-after",
        type=float,
        default=0.5,
        metavar="S",
        help="seconds after which a silent server counts as lost (default 0.5)",
    )
    add(
        "--gone-after",
        type=float,
        default=60.0,
        metavar="S",
        help="seconds after which other servers permanently take over the shards of a "
        "lost server, if they have copies (default 60)",
    )
    add(
        "--leave-within",
        type=float,
        default=20.0,
        metavar="S",
        help="seconds after SIGTERM in which others take over this server's shards "
        "(default 20; 0: exit at once, for a restart)",
    )
    add(
        "--lost-after",
        type=float,
        default=10.0,
        metavar="S",
        help="seconds after which a silent worker counts as lost (default 10)",
    )
    add(
        "--metrics-port",
        type=int,
        metavar="PORT",
        help="serve Prometheus metrics at http://127.0.0.1:PORT/metrics",
    )
    add(
        "--metrics-host",
        default="127.0.0.1",
        metavar="HOST",
        help="serve metrics at this address of the machine, without authentication",
    )
    add(
        "--make-keys",
        type=Path,
        metavar="FOLDER",
        help="write the keys of a new run to this folder ('server' for its servers, "
        "'client' for all other processes) and exit",
    )
    return parser


def _servers_of(parser: argparse.ArgumentParser, listed: str) -> list[str]:
    """Returns the addresses of ``--servers``; ends with an error if there are none."""
    servers = [address for address in listed.split(",") if address]
    if not servers:
        parser.error("give the addresses of the servers: --servers HOST:PORT,HOST:PORT")
    return servers


def _make_keys(folder: Path) -> int:
    keys = new_keys()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        keys.save(folder / "server")
        keys.for_clients().save(folder / "client")
    except OSError as error:
        _log(f"the keys cannot be written: {error}")
        return 1
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Runs ``fxflow parameter-server``.

    Args:
      argv: the arguments; None is the command line's.

    Returns:
      The exit status.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] in [[name] for name in _COMMANDS]:
        return _monitor(arguments)
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.make_keys is not None:
        return _make_keys(options.make_keys)
    servers = _servers_of(parser, options.servers)
    if options.join is None:
        _check_number(parser, options, len(servers))
    hub = None
    metrics: Exporter | None = None
    try:
        keys = keys_of()
        hub = Hub(keys)
        if options.join is None:
            number = options.number
            listener = hub.listen(options.listen or servers[number])
            view = first_view(servers, options.copies, options.shards)
        else:
            listener = hub.listen(options.listen or options.join)
            number, view = enlist(servers, options.join, keys, folder=options.folder)
        run_in_callers()  # a server waits for each result
        server = ShardServer(
            hub,
            listener,
            number,
            view,
            folder=options.folder,
            keys=keys,
            lost_after=options.lost_after,
            silent_after=options.silent_after,
            gone_after=options.gone_after,
        )
        if options.metrics_port is not None:
            one, host = {number: listener.address}, options.metrics_host
            metrics = Exporter(options.metrics_port, one, keys, host=host)
            _log(f"metrics at http://{host}:{metrics.port}/metrics")
    except DistributedError as error:
        _log(str(error))
        if hub is not None:
            hub.close()
        return 1
    within = options.leave_within
    signal.signal(signal.SIGINT, lambda *_: server.stop())
    signal.signal(
        signal.SIGTERM, lambda *_: server.leave(within) if within else server.stop()
    )
    count = len(server.view.addresses)
    _log(f"server {number} of {count} listens at {listener.address}")
    # Objects that exist now stay alive: exclude them from garbage collection.
    gc.freeze()
    try:
        with metrics or contextlib.nullcontext():
            server.serve()
    except DistributedError as error:
        _log(str(error))
        return 3
    if server.restarts:
        _log(f"server {number} ends to be restarted")
        return RESTART
    if server.gave_up:
        _log(
            f"server {number} ends after {within:g} s (--leave-within), before other "
            "servers have taken over all of its shards"
        )
        return 4
    _log(f"server {number} ends")
    return 0


def _check_number(
    parser: argparse.ArgumentParser, options: argparse.Namespace, count: int
) -> None:
    """Checks the options of a server that does not join a running run."""
    if options.number is None or not 0 <= options.number < count:
        parser.error(f"--number must be one of 0 to {count - 1}, got {options.number}")
    if not 1 <= options.copies <= count:
        parser.error(
            f"--copies must be 1 to {count}, the number of servers, got "
            f"{options.copies}"
        )
    if options.shards and options.shards < count:
        parser.error(
            f"--shards must be at least {count}, the number of servers, got "
            f"{options.shards}"
        )


# -- commands on a running run ---------------------------------------------------------

_COMMANDS = ("watch", "trace", "restart", "rebalance", "move")


def _monitor_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fxflow parameter-server",
        epilog="FXFLOW_PS_KEYS_FILE names the file of the run's keys.",
    )
    which = parser.add_subparsers(
        dest="which", required=True, metavar="|".join(_COMMANDS)
    )
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
    rebalance = which.add_parser(
        "rebalance",
        description="Divide the shards of a run among its servers by the load that "
        "these measured, while training continues. No push is lost.",
        epilog="Exit status: 0; 1 if shards cannot move, or a move was not complete in "
        "time; 2 for a wrong command line.",
    )
    move = which.add_parser(
        "move",
        description="Move a shard to another server while training continues. No push "
        "is lost.",
        epilog="Exit status: 0; 1 if the shard cannot move there, or the move was not "
        "complete in time; 2 for a wrong command line.",
    )
    move.add_argument("shard", type=int, help="number of the shard")
    move.add_argument("server", type=int, help="number of the server")
    for one in (rebalance, move):
        one.add_argument(
            "--deadline",
            type=float,
            default=120.0,
            dest="every",
            metavar="S",
            help="seconds within which all moves must be complete (default 120)",
        )
    restart = which.add_parser(
        "restart",
        description="Restart the servers of a run one by one while training continues. "
        "No acknowledged push is lost. Servers need a folder or copies, and what "
        "started them must start them again when they exit with status 75.",
        epilog="Exit status: 0; 1 if a server refused, or did not return in time: then "
        "the others have not been restarted; 2 for a wrong command line.",
    )
    restart.add_argument(
        "--deadline",
        type=float,
        default=120.0,
        dest="every",
        metavar="S",
        help="seconds within which each server must serve again (default 120)",
    )
    for one in (watch, traced, restart, rebalance, move):
        one.add_argument(
            "--servers",
            default=os.environ.get(SERVERS, ""),
            metavar="HOST:PORT,...",
            help="addresses of all servers, in order (default: FXFLOW_PS_SERVERS)",
        )
    return parser


def _monitor(argv: Sequence[str]) -> int:
    """Runs a command on a running run; returns the exit status."""
    parser = _monitor_parser()
    options = parser.parse_args(argv)
    servers = _servers_of(parser, options.servers)
    if not options.every > 0:
        parser.error(f"seconds must be more than 0; got {options.every:g}")
    if options.which == "trace":
        return _trace(options.file, servers, options.every)
    if options.which in ("restart", "rebalance", "move"):
        return _operate(options, servers)
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


def _operate(options: argparse.Namespace, servers: Sequence[str]) -> int:
    """Restarts servers or moves shards; returns the exit status."""
    given: dict[str, Any] = {"deadline": options.every, "log": _log}
    try:
        if options.which == "restart":
            restart_servers(servers, keys_of(), **given)
        elif options.which == "move":
            move_shard(servers, options.shard, options.server, keys_of(), **given)
        else:
            rebalance_shards(servers, keys_of(), **given)
    except DistributedError as error:
        _log(str(error))
        return 1
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
