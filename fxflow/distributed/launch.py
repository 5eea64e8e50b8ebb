"""``fxflow launch``: starts and supervises the processes of a run.

    fxflow launch -n 2 train.py --epochs 3
    fxflow launch --hosts hosts.txt train.py
    fxflow launch --elastic 2:4 train.py
    fxflow launch --ps 2 --workers 4 train.py
    fxflow launch --ps 2 --hosts hosts.txt train.py
    fxflow launch --ps 2 --workers 4 --ray auto train.py
    fxflow launch --join HOST:PORT --ps 1 --workers 2 train.py
    fxflow launch --join HOST:PORT --ps 1 --workers 0
    fxflow launch --tasks 4 train.py
    srun fxflow launch --tasks auto train.py

The launcher runs the coordinator; no process of the run is special. Each process gets
its rank through the environment (``FXFLOW_COORDINATOR_ADDRESS``, …), which
`fxflow.distributed.initialize` and `elastic` read.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import wait
from pathlib import Path
from typing import Literal, NamedTuple, NoReturn

from fxflow.distributed.addresses import Address, address_towards, server_address
from fxflow.distributed.allocation import launch_in_allocation
from fxflow.distributed.children import Child, Output
from fxflow.distributed.coordinator import Coordinator, Server
from fxflow.distributed.jobs import launch_jobs
from fxflow.distributed.launcher import GRACE, Launcher
from fxflow.distributed.membership import Membership
from fxflow.distributed.messages.channel import new_token
from fxflow.distributed.messages.keys import keys_of, new_keys
from fxflow.distributed.processes import KILL, status_of
from fxflow.distributed.ray import launch_on_ray, resources_of
from fxflow.distributed.standalone import bounds_of
from fxflow.distributed.tasks import launch_tasks
from fxflow.errors import DistributedError


class Host(NamedTuple):
    """A machine: its name (empty for this one) and its number of processes."""

    name: str
    slots: int


def parse_hosts(text: str) -> list[Host]:
    """Returns the machines of a host file.

    Args:
      text: lines ``name`` or ``name slots=2``; ``#`` begins a comment.

    Returns:
      The machines, in order.

    Raises:
      ValueError: a line is malformed, or the file names no host.
    """
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.partition("#")[0].strip()
        if not line:
            continue
        match = re.fullmatch(r"([\w.:@\-\[\]]+)(?:\s+slots\s*=\s*(\d+))?", line)
        slots = int(match[2] or 1) if match else 0
        if match is None or slots < 1 or match[1].startswith("-"):
            raise ValueError(
                f"host file, line {number}: expected 'host' or 'host slots=2', got "
                f"{line!r}"
            )
        found.append(Host(match[1], slots))
    if not found:
        raise ValueError("the host file names no host")
    return found


# -- the command line ------------------------------------------------------------------


class _NoProgram(Exception):
    """The command line has no program."""


class _Parser(argparse.ArgumentParser):
    """A parser that raises `_NoProgram` for a missing program."""

    def error(self, message: str) -> NoReturn:
        if message.startswith("the following arguments are required: program"):
            raise _NoProgram
        super().error(message)


def _parsed(
    parser: argparse.ArgumentParser, argv: Sequence[str] | None
) -> argparse.Namespace:
    """Returns the options; only a launch that adds servers alone has no program."""
    try:
        return parser.parse_args(argv)
    except _NoProgram:
        given = sys.argv[1:] if argv is None else argv
        options = parser.parse_args([*given, ""])
        if not (options.join and options.ps and options.workers == 0):
            parser.error("no program given; for example: fxflow launch -n 2 train.py")
        return options


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="fxflow launch",
        description="Start and supervise the processes of a distributed run.",
        epilog="Exit status: that of the first process that failed, else 0.",
    )
    add = parser.add_argument
    add("-n", "--num-processes", type=int, metavar="N", help="number of processes")
    add(
        "--hosts",
        metavar="FILE",
        help="file of the machines on which ssh starts the processes: lines 'host' or "
        "'host slots=2'",
    )
    add(
        "--devices-per-process",
        type=int,
        metavar="D",
        help="CPU devices of each process",
    )
    add(
        "--elastic",
        metavar="MIN:MAX",
        help="continue when workers die, with at least MIN; admit new ones, up to MAX",
    )
    add(
        "--restarts",
        type=int,
        default=10,
        metavar="R",
        help="with --elastic, --ps or --tasks: replace at most R dead processes in "
        "total (default 10)",
    )
    add(
        "--ps",
        type=int,
        default=0,
        metavar="N",
        help="number of parameter servers; see --workers",
    )
    add(
        "--tasks",
        type=_tasks,
        metavar="N",
        help="number of tasks on which the program, which runs once, places parts of "
        "its dataflow functions; 'auto': this command is one of those that a cluster "
        "manager has started, one for each task",
    )
    add(
        "--workers",
        type=int,
        metavar="N",
        help="with --ps: number of processes that train asynchronously (default 1; "
        "with --hosts, one per slot)",
    )
    add(
        "--join",
        metavar="HOST:PORT,...",
        help="add servers (--ps, default 0) and workers to a run that another launch "
        "has started: addresses of some of its servers, as that launch prints them; "
        "with --workers 0 there is no program, and servers run until they are ended; "
        "FXFLOW_PS_KEYS_FILE names the file of the run's keys, if it has any",
    )
    add(
        "--ray",
        metavar="ADDRESS",
        help="with --ps or --tasks: run in Ray actors; ADDRESS is the Ray cluster's "
        "address, 'auto' (detect it) or 'local' (start a cluster on this machine)",
    )
    resources = ("server", "server"), ("task", "task"), ("worker", "other process")
    for which, what in resources:
        add(
            f"--{which}-resources",
            type=_resources,
            default={"CPU": 1.0},
            metavar="NAME=N,...",
            help=f"with --ray: the Ray resources of each {what} (default CPU=1)",
        )
    add(
        "--start-timeout",
        type=float,
        default=300.0,
        metavar="S",
        help="seconds within which Ray (--ray) must place the actors, or all tasks "
        "(--tasks auto) must register (default 300)",
    )
    add(
        "--chief", action="store_true", help="with --ps: add a chief, which also trains"
    )
    add("--evaluator", action="store_true", help="with --ps: add an evaluator")
    add(
        "--ps-folder",
        metavar="FOLDER",
        help="with --ps: folder for logs, from which a restarted server continues",
    )
    add(
        "--ps-copies",
        type=int,
        default=1,
        metavar="K",
        help="with --ps: number of servers that hold each shard (default 1); with 2 or "
        "more, others take over the shards of a dead server at once",
    )
    add(
        "--ps-shards",
        type=int,
        default=0,
        metavar="N",
        help="with --ps: number of shards of the parameters (default: one per "
        "server); with more shards than servers, servers may join and leave",
    )
    add(
        "--heartbeat-timeout",
        type=float,
        metavar="S",
        help="seconds of silence after which a process counts as lost (default 100, "
        "elastic 3)",
    )
    add(
        "--port",
        type=int,
        default=0,
        help="the coordinator's port (default: any free one); with --ps or --tasks on "
        "several machines, that of the first server or task on each",
    )
    add(
        "--address",
        metavar="HOST",
        help="the address at which other machines reach this one",
    )
    add(
        "--env",
        action="append",
        default=[],
        metavar="K=V",
        help="an environment variable for the processes; may be repeated",
    )
    add("--timeout", type=float, metavar="S", help="end all processes after S seconds")
    add("--no-color", action="store_true", help="do not color the prefixes of lines")
    add(
        "--ssh",
        default="ssh",
        metavar="CMD",
        help="the command that connects to a host",
    )
    add(
        "--remote-python",
        default=sys.executable,
        metavar="PATH",
        help="the path of Python on the hosts (default: that of this interpreter)",
    )
    add(
        "-m",
        "--module",
        action="store_true",
        help="program is the name of a module, as for python -m",
    )
    add("program", help="a Python file, or any command")
    add("arguments", nargs=argparse.REMAINDER, help="the program's arguments")
    return parser


def _resources(text: str) -> dict[str, float]:
    try:
        return resources_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _tasks(text: str) -> int | Literal["auto"]:
    if text == "auto":
        return "auto"
    if not (text.isascii() and text.isdigit()) or int(text) < 1:
        raise argparse.ArgumentTypeError(
            f"takes the number of tasks, or 'auto', got {text!r}"
        )
    return int(text)


def _command(options: argparse.Namespace) -> list[str]:
    python = options.remote_python if options.hosts or options.ray else sys.executable
    if options.module:
        return [python, "-m", options.program, *options.arguments]
    if options.program.endswith(".py"):
        return [python, options.program, *options.arguments]
    return [options.program, *options.arguments]


def _variables(parser: argparse.ArgumentParser, given: Sequence[str]) -> dict[str, str]:
    result = {}
    for entry in given:
        name, equals, value = entry.partition("=")
        if not equals or not name:
            parser.error(f"--env takes K=V, got {entry!r}")
        result[name] = value
    return result


def _launch_jobs(
    parser: argparse.ArgumentParser,
    options: argparse.Namespace,
    hosts: Sequence[Host],
) -> int:
    """Runs ``fxflow launch --ps`` after checking that its options are compatible."""
    for name, flag in (("num_processes", "-n"), ("elastic", "--elastic")):
        if getattr(options, name):
            parser.error(f"{flag} is for synchronous runs; with --ps, give --workers N")
    remote = bool(options.hosts or options.ray)
    if options.hosts and options.ray:
        parser.error("--hosts and --ray both decide where processes run; give only one")
    slots = [host.name for host in hosts for _ in range(host.slots)] or [""]
    if options.workers is None:
        options.workers = max(len(slots) - options.chief, 0 if options.chief else 1)
    count = options.workers + options.chief
    enough = options.ps + count if options.join else min(options.ps, count)
    if min(options.ps, options.workers) < 0 or enough < 1:
        least = "need at least one " + ("process" if options.join else "of each")
        parser.error(f"--ps {options.ps} --workers {options.workers}: {least}")
    if options.join:
        for name in ("ray", "chief", "ps_shards"):
            if getattr(options, name):
                flag = f"--{name.replace('_', '-')}"
                parser.error(
                    f"{flag} is for the launch that starts a run, not for --join"
                )
        if options.ps_copies > 1:
            parser.error("--ps-copies: the launch that started the run has set it")
    elif not 1 <= options.ps_copies <= options.ps:
        parser.error(
            f"--ps-copies must be 1 to {options.ps}, the number of servers, got "
            f"{options.ps_copies}"
        )
    if options.ps_shards and options.ps_shards < options.ps:
        parser.error(
            f"--ps-shards must be at least {options.ps}, the number of servers, got "
            f"{options.ps_shards}"
        )
    if options.hosts and count > len(slots):
        parser.error(
            f"{count} training processes, but the host file has {len(slots)} slots"
        )
    environment = _variables(parser, options.env)
    keys = None
    if remote:
        environment = {**_inherited(os.environ), **environment}
    try:
        if options.join:
            first = server_address(options.join.partition(",")[0])
            if first is not None:  # otherwise the run stays within this machine
                keys = keys_of()
                options.address = options.address or address_towards(first.host)
        elif remote:
            keys = keys_of() or new_keys()
    except DistributedError as error:
        parser.error(str(error))
    if options.hosts and keys is None:
        parser.error(
            "--hosts with --join: set FXFLOW_PS_KEYS_FILE to the run's keys file"
        )
    if options.ray:
        assert keys is not None
        try:
            return launch_on_ray(options, _command(options), environment, keys)
        except ImportError as error:
            parser.error(str(error))
    try:
        return launch_jobs(options, _command(options), slots, environment, keys)
    except DistributedError as error:
        print(f"fxflow launch: {error}", file=sys.stderr)
        return 1


def _launch_tasks(
    parser: argparse.ArgumentParser,
    options: argparse.Namespace,
    hosts: Sequence[Host],
) -> int:
    """Runs ``fxflow launch --tasks`` after checking that its options are compatible."""
    for name in (
        *("num_processes", "elastic", "ps", "workers", "join", "chief"),
        *("evaluator", "ps_folder", "ps_shards"),
    ):
        if getattr(options, name):
            flag = "-n" if name == "num_processes" else f"--{name.replace('_', '-')}"
            parser.error(
                f"{flag} is for programs that run in every process; with --tasks, the "
                "program runs once"
            )
    if options.hosts and options.ray:
        parser.error("--hosts and --ray both decide where processes run; give only one")
    environment = _variables(parser, options.env)
    command = _command(options)
    try:
        if options.tasks == "auto":
            if options.hosts or options.ray:
                parser.error(
                    "--tasks auto: a cluster manager decides where tasks run; --hosts "
                    "and --ray take a number of tasks"
                )
            return launch_in_allocation(options, command, environment)
        keys, machines = None, [""] * options.tasks
        if options.hosts or options.ray:
            environment = {**_inherited(os.environ), **environment}
            keys = keys_of() or new_keys()
        if options.ray:
            assert keys is not None
            return launch_on_ray(options, command, environment, keys)
        if options.hosts:
            machines = [host.name for host in hosts for _ in range(host.slots)]
            if options.tasks > len(machines):
                parser.error(
                    f"--tasks {options.tasks}, but the host file has {len(machines)} "
                    "slots"
                )
            machines = machines[: options.tasks]
        return launch_tasks(options, command, machines, environment, keys)
    except ImportError as error:
        parser.error(str(error))
    except DistributedError as error:
        print(f"fxflow launch: {error}", file=sys.stderr)
        return 1


def _inherited(variables: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables that processes on other machines inherit."""
    return {
        name: value
        for name, value in variables.items()
        if name.startswith("FXFLOW_") or name in ("PYTHONPATH", "XLA_FLAGS")
    }


# -- the run ---------------------------------------------------------------------------


class _Launcher(Launcher):
    """Launches the processes of a synchronous run; its coordinator runs here."""

    def __init__(
        self,
        server: Server,
        hosts: Sequence[str],
        command: Sequence[str],
        environment: Mapping[str, str],
        options: argparse.Namespace,
    ) -> None:
        super().__init__(options)
        self.server, self.hosts = server, list(hosts)
        self.interrupts_are_failures = not isinstance(server, Membership)
        self._command, self._environment = list(command), dict(environment)
        self._options = options
        self._next = 0
        self._killed: set[int] = set()
        self._expelled: list[int] = []
        if isinstance(server, Membership):
            server.on_expel = self._expel
        self._restarts = options.restarts

    def start(self) -> None:
        """Starts every process."""
        for host in self.hosts:
            self._start(host)

    def _start(self, host: str) -> Child:
        number, self._next = self._next, self._next + 1
        local = self.hosts[:number].count(host) if number < len(self.hosts) else 0
        environment = {
            **self._environment,
            "FXFLOW_PROCESS_ID": str(number),
            "FXFLOW_LOCAL_PROCESS_ID": str(local),
        }
        child = self.children[number] = Child(
            number,
            self._command,
            environment,
            self.output,
            host,
            self._options.ssh,
            self._options.remote_python,
            ended=self.wake,
        )
        return child

    def on_end(self, number: int, code: int, ending: bool) -> bool:
        """Handles the end of a process; returns whether the others are to end."""
        how = f"signal {-code}" if code < 0 else f"status {code}"
        if isinstance(self.server, Membership):
            if self.server.outcome:
                # A worker killed for missing heartbeats does not fail the run.
                if code and number not in self._killed and not self.status:
                    self.status = status_of(code)
            elif code:
                self.log(f"worker {number} ended with {how}")
                if not ending and self._restarts > 0:
                    self._restarts -= 1
                    host = self.hosts[number % len(self.hosts)]
                    self.start_again(self.finished[-1], lambda: self._start(host))
                else:
                    self._without_replacement(code)
            return False
        if code and self.status in (None, 0):
            number, code = self._first_to_fail(number, code)
            how = f"signal {-code}" if code < 0 else f"status {code}"
            self.status = status_of(code)
            if self.children:
                self.log(f"process {number} ended with {how}; ending the others")
                self.signal_all(signal.SIGTERM)
                return True
        return False

    def _first_to_fail(self, number: int, code: int) -> tuple[int, int]:
        """Returns the process that failed first, and its code.

        The others fail because of it, and may end first, while it still prints a
        traceback. The coordinator knows which process it lost first.
        """
        assert isinstance(self.server, Coordinator)
        first = self.server.first_lost()
        if first in (None, number):
            return number, code
        for child in [*self.children.values(), *self.finished]:
            if child.number == first:
                wait([child.status], timeout=GRACE)
                return (first, child.poll() or 0) if child.poll() else (number, code)
        return number, code

    def _without_replacement(self, code: int) -> None:
        """Ends an elastic run that has too few workers left."""
        assert isinstance(self.server, Membership)
        left = len(self.children) + len(self.starts)
        if left >= self.server.minimum:
            return
        self.status = self.status or status_of(code)
        self.server.give_up(
            f"{left} {'worker is' if left == 1 else 'workers are'} left, but at least "
            f"{self.server.minimum} are needed"
        )

    def _expel(self, number: int) -> None:
        """Requests that a worker be killed; called from a thread of the membership."""
        self._expelled.append(number)
        self.wake()

    def maintain(self) -> float:
        """Kills workers that the membership expelled."""
        while self._expelled:
            number = self._expelled.pop()
            self._killed.add(number)
            child = self.children.get(number)
            if child is not None:
                child.send(KILL)
        return float("inf")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs ``fxflow launch``.

    Args:
      argv: the arguments; None for those of the command line.

    Returns:
      The exit status.
    """
    parser = _parser()
    options = _parsed(parser, argv)
    try:
        hosts = [Host("", 0)]
        if options.hosts:
            hosts = parse_hosts(Path(options.hosts).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        parser.error(str(error))
    if options.tasks:
        return _launch_tasks(parser, options, hosts)
    if options.ray and not options.ps:
        parser.error(
            "--ray is for servers and workers, or tasks: add --ps N --workers N, or "
            "--tasks N"
        )
    if options.ps or options.join:
        return _launch_jobs(parser, options, hosts)
    bounds = bounds_of(parser, options.elastic) if options.elastic else None
    slots = [host.name for host in hosts for _ in range(host.slots)]
    count = options.num_processes or len(slots) or (bounds[1] if bounds else 0)
    if count < 1:
        parser.error(
            "give the number of processes: -n N, --hosts FILE or --elastic MIN:MAX"
        )
    if bounds and not bounds[0] <= count <= bounds[1]:
        parser.error(f"-n {count} is not within --elastic {options.elastic}")
    if options.hosts and count > len(slots):
        parser.error(f"-n {count}, but the host file has {len(slots)} slots")
    slots = slots[:count] if options.hosts else [""] * count
    variables = _variables(parser, options.env)
    remote = bool(options.hosts)
    here = options.address or (address_towards(slots[0]) if remote else "127.0.0.1")
    token = new_token()
    listen_at = (
        f"{'0.0.0.0' if remote or options.address else '127.0.0.1'}:{options.port}"
    )
    heartbeat = options.heartbeat_timeout or (3.0 if bounds else 100.0)
    output = Output(False)

    def log(text: str) -> None:
        output.write(sys.stderr, "", f"fxflow launch: {text}".encode())

    server: Server
    try:
        if bounds:
            server = Membership(
                listen_at,
                *bounds,
                wanted=count,
                token=token,
                heartbeat_timeout=heartbeat,
                log=log,
            )
        else:
            server = Coordinator(
                listen_at, count, token=token, heartbeat_timeout=heartbeat
            )
    except DistributedError as error:
        log(str(error))
        return 1
    address = str(Address(here, server.port))
    environment = {
        **(_inherited(os.environ) if remote else {}),
        "FXFLOW_TOKEN": token,
        "FXFLOW_HEARTBEAT_TIMEOUT": f"{heartbeat:g}",
        # Python buffers output to a pipe otherwise.
        "PYTHONUNBUFFERED": "1",
        **variables,
    }
    if options.devices_per_process:
        environment["FXFLOW_NUM_CPU_DEVICES"] = str(options.devices_per_process)
    if bounds:
        environment["FXFLOW_ELASTIC_ADDRESS"] = address
    else:
        environment["FXFLOW_COORDINATOR_ADDRESS"] = address
        environment["FXFLOW_COORDINATOR_HOSTED"] = "1"
        environment["FXFLOW_NUM_PROCESSES"] = str(count)
    try:
        return _Launcher(server, slots, _command(options), environment, options).run()
    finally:
        server.stop()
