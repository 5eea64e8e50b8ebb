"""``fxflow parameter-server``: one server of an asynchronous run.

    fxflow parameter-server --number 0 --servers 10.0.0.1:7000,10.0.0.2:7000
    fxflow parameter-server watch --servers 10.0.0.1:7000,10.0.0.2:7000

It needs no script and no data: the first worker brings the model. `fxflow launch --ps`
starts servers and workers together; elsewhere a manager starts this on each machine
that is to serve. ``FXFLOW_PS_KEYS`` or ``FXFLOW_PS_KEYS_FILE`` hold the run's keys,
which addresses beyond this machine need; they are made by

    fxflow parameter-server --make-keys FOLDER

as two files, `server` for servers and `client` for all others. The exit status is 0
when it was told to end (SIGTERM, Ctrl-C), 1 when it cannot begin (to listen, or to read
its log), 2 for a wrong command line, 3 when it cannot go on (an update for which there
is no memory, a full disk): a copy takes its place, or it is started again.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from fxflow.distributed.parameter_server.keys import keys_of, new_keys
from fxflow.distributed.parameter_server.monitor import Exporter
from fxflow.distributed.parameter_server.monitor import command as watching
from fxflow.distributed.parameter_server.running import COPIES, SERVERS, TASK
from fxflow.distributed.parameter_server.server.process import Server
from fxflow.distributed.parameter_server.transport import Hub
from fxflow.distributed.parameter_server.views import first_view
from fxflow.errors import DistributedError


def _log(text: str) -> None:
    print(f"fxflow parameter-server: {text}", file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fxflow parameter-server",
        description="Run one server of an asynchronous parameter server. (`fxflow "
        "parameter-server watch` shows what those that run are doing.)",
        epilog="Exit status: 0 when it was told to end, 1 when it cannot begin, 2 for "
        "a wrong command line, 3 when it cannot go on. FXFLOW_PS_KEYS_FILE names the "
        "file of the run's keys.",
    )
    add = parser.add_argument
    task = os.environ.get(TASK, "")
    number = int(task.partition(":")[2]) if task.startswith("ps:") else None
    add("--number", type=int, default=number, help="of this server, from 0")
    add(
        "--servers",
        default=os.environ.get(SERVERS, ""),
        metavar="HOST:PORT,...",
        help="addresses of all servers, in order; the same for all processes",
    )
    add(
        "--listen",
        metavar="HOST:PORT",
        help="where to listen (default: this server's among --servers)",
    )
    add(
        "--folder",
        type=Path,
        metavar="FOLDER",
        help="for a log of what was acknowledged, from which it goes on when it is "
        "started again",
    )
    add(
        "--copies",
        type=int,
        default=int(os.environ.get(COPIES, "1")),
        metavar="K",
        help="on how many servers each shard lies, the same for all (default 1); with "
        "2 or more the others go on when one is lost",
    )
    add(
        "--silent-after",
        type=float,
        default=0.5,
        metavar="S",
        help="seconds after which a silent server counts as lost (default 0.5)",
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
        help="answer Prometheus at http://127.0.0.1:PORT/metrics",
    )
    add(
        "--metrics-host",
        default="127.0.0.1",
        metavar="HOST",
        help="where else to: an address of this machine; no keys are asked for there",
    )
    add(
        "--make-keys",
        type=Path,
        metavar="FOLDER",
        help="only write the keys of a new run there: 'server' for its servers, "
        "'client' for all others",
    )
    return parser


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
    if arguments[:1] in (["watch"], ["trace"]):
        return watching.main(arguments)
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.make_keys is not None:
        return _make_keys(options.make_keys)
    servers = watching.servers_of(parser, options.servers)
    if options.number is None or not 0 <= options.number < len(servers):
        parser.error(
            f"--number must be one of 0 to {len(servers) - 1}, got {options.number}"
        )
    if not 1 <= options.copies <= len(servers):
        parser.error(
            f"--copies must be 1 to {len(servers)}, the number of servers, got "
            f"{options.copies}"
        )
    hub = None
    metrics: Exporter | None = None
    try:
        keys = keys_of()
        hub = Hub(keys)
        listener = hub.listen(options.listen or servers[options.number])
        server = Server(
            hub,
            listener,
            options.number,
            first_view(servers, options.copies),
            folder=options.folder,
            keys=keys,
            lost_after=options.lost_after,
            silent_after=options.silent_after,
        )
        if options.metrics_port is not None:
            one, host = {options.number: listener.address}, options.metrics_host
            metrics = Exporter(options.metrics_port, one, keys, host=host)
            _log(f"metrics at http://{host}:{metrics.port}/metrics")
    except DistributedError as error:
        _log(str(error))
        if hub is not None:
            hub.close()
        return 1
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: server.stop())
    _log(f"server {options.number} of {len(servers)} listens at {listener.address}")
    try:
        with metrics or contextlib.nullcontext():
            server.serve()
    except DistributedError as error:
        _log(str(error))
        return 3
    _log(f"server {options.number} ends")
    return 0
