"""``fxflow launch --ps 2 --workers 4``: launches an asynchronous run.

Each process has a job (`ps`, `worker`, `chief`, `evaluator`), which it reads from the
environment. The launcher restarts processes that die, at most ``--restarts`` times,
while the others continue. When all workers have finished, it ends the evaluators, then
the servers. Another launch may add servers and workers (``--join``); when its workers
have finished, its servers transfer their shards to the others.

On one machine, processes communicate through sockets in a folder that other users
cannot access, which is as safe as keys and several times as fast. Between machines
(``--hosts``) they use keys, which they receive with their environment over ssh's
standard input, never on a command line.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fxflow.distributed.addresses import Address
from fxflow.distributed.children import Child
from fxflow.distributed.clusters.base import job_port
from fxflow.distributed.launcher import GRACE, Launcher
from fxflow.distributed.messages.keys import Keys
from fxflow.distributed.parameter_server import messages
from fxflow.distributed.parameter_server.monitor.polling import ServerPoll
from fxflow.distributed.parameter_server.restarting import RESTART
from fxflow.distributed.parameter_server.running import (
    CHIEF,
    SERVERS,
    SHARDS,
    TASK,
    WORKERS,
)
from fxflow.distributed.parameter_server.views import View
from fxflow.distributed.processes import KILL, status_of
from fxflow.errors import DistributedError

#: Seconds for servers to answer a launch that joins their run.
_ANSWER_TIMEOUT = 5.0
#: Seconds for servers to transfer their shards, which takes at most 20.
LEAVE_GRACE = 25.0
#: Seconds for evaluators to finish a last evaluation after the workers have finished.
EVALUATOR_GRACE = 30.0


@dataclasses.dataclass(frozen=True)
class Job:
    """A process of the run.

    Attributes:
      name: `ps`, `worker`, `chief`, `evaluator`, or in a run of `--tasks` `task` and
        `controller`.
      index: its number among the processes of that name.
      command: the command that it runs.
      environment: variables on top of the launcher's.
      host: the machine; empty for this one.
    """

    name: str
    index: int
    command: Sequence[str]
    environment: Mapping[str, str]
    host: str = ""

    @property
    def is_awaited(self) -> bool:
        """Whether the run lasts until this process has finished."""
        return self.name in ("worker", "chief", "controller")

    @property
    def serves(self) -> bool:
        """Whether it ends after the processes that connect to it."""
        return self.name in ("ps", "task")

    def __str__(self) -> str:
        return f"{self.name} {self.index}"


class JoinedRun(NamedTuple):
    """A run that another launch has started.

    Attributes:
      servers: the addresses of all servers that were ever in it, by number.
      shards: the number of shards of its parameters.
      workers: the first number that no worker has used.
    """

    servers: tuple[str, ...]
    shards: int
    workers: int


def joined_run(addresses: Sequence[str], keys: Keys | None) -> JoinedRun:
    """Returns what servers report about their run.

    Args:
      addresses: the addresses of some of its servers.
      keys: the run's keys; None on this machine.

    Raises:
      DistributedError: no server answers, or a text is not an address.
    """
    with ServerPoll(addresses, keys, patience=_ANSWER_TIMEOUT) as servers:
        answers = servers.ask(messages.Stats())
        reports = [a.message.fields.stats for a in answers if a.message]
        if not reports:
            silent = ", ".join(f"{a.address} ({a.problem})" for a in answers)
            raise DistributedError(f"no server of the run to join answers: {silent}")
        view = View.from_json(max(reports, key=lambda stats: stats["epoch"])["view"])
    names = (w["name"] for stats in reports for w in stats["workers"].values())
    numbers = (name.removeprefix("worker ") for name in names)
    workers = 1 + max((int(n) for n in numbers if n.isdigit()), default=-1)
    return JoinedRun(view.addresses, len(view.holders), workers)


def jobs_of(
    options: argparse.Namespace,
    command: Sequence[str],
    slots: Sequence[str],
    addresses: Sequence[str],
    keys: Keys | None = None,
    run: JoinedRun | None = None,
) -> list[Job]:
    """Returns the processes of a run.

    Args:
      options: the options of the command line.
      command: the command that all processes except servers run.
      slots: machines for the chief and workers, used in turn; servers are distributed
        over the same machines in turn, and the evaluator runs on the first.
      addresses: the servers' addresses.
      keys: the run's keys; None for a run on this machine alone.
      run: the run to join; None starts a new one.
    """
    begun = run or JoinedRun(tuple(addresses), options.ps_shards, 0)
    machines = list(dict.fromkeys(slots))
    shared = {
        SERVERS: ",".join(begun.servers),
        WORKERS: str(begun.workers + options.workers),
        CHIEF: str(int(options.chief)),
        SHARDS: str(begun.shards),
        # Python buffers output to a pipe otherwise.
        "PYTHONUNBUFFERED": "1",
        # A run with servers has no coordinator.
        "FXFLOW_COORDINATOR_ADDRESS": "",
        "TF_CONFIG": "",
    }
    python = options.remote_python if machines != [""] else sys.executable
    serve = [python, "-m", "fxflow.distributed.parameter_server"]
    if options.ps_copies > 1:
        serve += ["--copies", str(options.ps_copies)]
    if options.ps_shards:
        serve += ["--shards", str(options.ps_shards)]
    if options.heartbeat_timeout:
        serve += ["--lost-after", f"{options.heartbeat_timeout:g}"]
    jobs: list[Job] = []
    for index, address in enumerate(addresses, len(run.servers) if run else 0):
        runs = [*serve, "--join", address] if run else list(serve)
        if options.ps_folder:
            # Servers that hold the same shard write files of the same names.
            runs += ["--folder", os.path.join(options.ps_folder, f"ps-{index}")]
        if keys is not None:
            runs += ["--listen", listen_address(address)]
        variables = {
            **shared,
            TASK: f"ps:{index}",
            **(keys.environment() if keys else {}),
        }
        host = machines[len(jobs) % len(machines)]
        jobs.append(Job("ps", index, runs, variables, host))
    if keys is not None:
        shared |= keys.for_clients().environment()
    trainers = [("chief", 0)] * options.chief
    workers = range(begun.workers, begun.workers + options.workers)
    trainers += [("worker", index) for index in workers]
    others = [("evaluator", 0)] * options.evaluator
    places = [slots[i % len(slots)] for i in range(len(trainers))]
    places += [machines[0]] * len(others)
    for (name, index), host in zip([*trainers, *others], places, strict=True):
        variables = {**shared, TASK: f"{name}:{index}"}
        jobs.append(Job(name, index, command, variables, host))
    return jobs


def listen_address(address: str) -> str:
    """Returns where a server listens that others reach at an address.

    On all interfaces: the machine's own name may resolve to 127.0.1.1.
    """
    host, port = Address.parse(address, any_port=True)
    return str(Address("::" if ":" in host else "*", port))


def device_variables(options: argparse.Namespace) -> dict[str, str]:
    """Returns the variables that the option ``--devices-per-process`` sets."""
    count = options.devices_per_process
    return {"FXFLOW_NUM_CPU_DEVICES": str(count)} if count else {}


def addresses_of(machines: Sequence[str], port: int) -> list[str]:
    """Returns the addresses of servers on several machines.

    Args:
      machines: the name of each server's machine, as other machines resolve it.
      port: the port of the first server on each machine; others use the next ports.
    """
    used: Counter[str] = Counter()
    found = []
    for machine in machines:
        host = machine.rpartition("@")[2].strip("[]")
        found.append(str(Address(host, port + used[host])))
        used[host] += 1
    return found


class JobLauncher(Launcher):
    """Starts, restarts and ends the jobs of a run.

    Servers (parameter servers, tasks) end last. The loss of a task does not end the
    run: the controller's calls raise an error that names it, and the controller decides
    whether it continues.

    Args:
      jobs: the processes.
      environment: variables for all of them.
      options: the options of the command line.
      joins: whether another launch has started the run.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        environment: Mapping[str, str],
        options: argparse.Namespace,
        joins: bool = False,
    ) -> None:
        super().__init__(options)
        self._joins = joins
        #: Whether a server's shards may move to other servers.
        self._shards_move = joins or options.ps_copies > 1 or bool(options.ps_shards)
        self._jobs = list(jobs)
        self._environment = dict(environment)
        self._options = options
        self._restarts = self._evaluator_restarts = options.restarts
        self._finished: set[int] = set()
        #: Whether servers are to end when no other process is left.
        self._closing = False
        #: When to kill evaluators, and later servers, that have not ended.
        self._kill_at = float("inf")

    def start(self) -> None:
        """Starts every process."""
        first = self._jobs[0]
        # In a run on several machines, only its own processes have the keys.
        if first.name == "ps" and not (first.host or self._joins):
            servers = first.environment[SERVERS]
            self.log(
                f"to monitor the run: fxflow parameter-server watch --servers {servers}"
            )
            more = "--ps 1 --workers 1" if self._shards_move else "--workers 1"
            self.log(f"to add processes: fxflow launch --join {servers} {more} PROGRAM")
        for number in range(len(self._jobs)):
            self._start(number)

    def _start(self, number: int) -> Child:
        job = self._jobs[number]
        child = self.children[number] = Child(
            number,
            job.command,
            {**self._environment, **job.environment},
            self.output,
            job.host,
            self._options.ssh,
            self._options.remote_python,
            label=str(job),
            ended=self.wake,
        )
        return child

    def signal_all(self, number: int) -> None:
        """Sends a signal to every process; servers get it after their clients."""
        if number == KILL:
            super().signal_all(number)
            return
        self._closing = True
        self.starts.clear()
        for which, child in self.children.items():
            if not self._jobs[which].serves:
                child.send(number)

    def on_end(self, number: int, code: int, ending: bool) -> bool:
        """Handles the end of a process; returns whether the others are to end."""
        job = self._jobs[number]
        if not code and job.is_awaited:
            self._finished.add(number)
            awaited = (n for n, other in enumerate(self._jobs) if other.is_awaited)
            if self._finished.issuperset(awaited):
                self.status: int | None = self.status or 0
                self.output.ending = True
                self._kill_at = time.monotonic() + EVALUATOR_GRACE
                self.signal_all(signal.SIGTERM)
            return False
        if ending or self.status is not None or (not code and not job.serves):
            return False
        if not code and (self._shards_move or job.name == "task"):
            self.log(f"{job} has left; the others continue without it")
            return False
        if job.name == "ps" and code == RESTART:
            self.log(f"{job} ended to be restarted; restarting it")
            self.start_again(self.finished[-1], lambda: self._start(number))
            return False
        how = f"signal {-code}" if code < 0 else f"status {code}"
        again, continues = self._may_start(number), job.name in ("evaluator", "task")
        if job.serves and code in (1, 2):
            # It has reported why it cannot serve; a restart would also fail.
            again = continues = False
        elif job.name == "ps" and not (
            self._options.ps_folder or self._options.ps_copies > 1
        ):
            how += (
                ", and its state is lost (--ps-folder logs it, --ps-copies "
                "replicates it)"
            )
            again = False
        if again:
            # Evaluators' restarts do not count against those of the other processes.
            if job.name == "evaluator":
                self._evaluator_restarts -= 1
            else:
                self._restarts -= 1
            self.log(f"{job} ended with {how}; restarting it")
            self.start_again(self.finished[-1], lambda: self._start(number))
            return False
        if continues:
            self.log(f"{job} ended with {how}; the run continues without it")
            return False
        self.log(f"{job} ended with {how}; ending the others")
        self.status = status_of(code) or 1
        self.signal_all(signal.SIGTERM)
        return True

    def _may_start(self, number: int) -> bool:
        """Returns whether a process that has just died may be restarted."""
        name = self._jobs[number].name
        if name == "controller":
            return False
        left = self._evaluator_restarts if name == "evaluator" else self._restarts
        return bool(left > 0)

    def maintain(self) -> float:
        """Ends servers when no other process is left; kills those that do not end."""
        now = time.monotonic()
        if now >= self._kill_at:
            self._kill_at = float("inf")
            for number, child in self.children.items():
                if not self._closing or not self._jobs[number].serves:
                    child.send(KILL)
        if self._closing and all(self._jobs[n].serves for n in self.children):
            self._closing = False
            # The shards are needed only if another launch continues.
            self._kill_at = now + (LEAVE_GRACE if self._joins else GRACE)
            super().signal_all(signal.SIGTERM if self._joins else signal.SIGINT)
        return self._kill_at


def launch_jobs(
    options: argparse.Namespace,
    command: Sequence[str],
    slots: Sequence[str],
    variables: Mapping[str, str],
    keys: Keys | None,
) -> int:
    """Runs ``fxflow launch --ps``.

    Args:
      options: the options of the command line.
      command: the command that workers run.
      slots: machines for workers; ``[""]`` for this one alone.
      variables: environment variables for all processes.
      keys: the keys of a run on several machines.

    Returns:
      The exit status.

    Raises:
      DistributedError: no server of the run to join answers.
    """
    environment = {**variables, **device_variables(options)}
    run = joined_run(options.join.split(","), keys) if options.join else None
    # Its mode is 0700, and its path is short enough for sockets.
    with tempfile.TemporaryDirectory(prefix="fxflow-") as folder:
        if keys is not None:
            port = options.port or job_port(os.getpid())
            names = list(dict.fromkeys(slots)) if slots != [""] else [options.address]
            machines = [names[i % len(names)] for i in range(options.ps)]
            addresses = addresses_of(machines, port)
        else:
            addresses = [f"ipc://{folder}/ps-{number}" for number in range(options.ps)]
        jobs = jobs_of(options, command, slots, addresses, keys, run)
        return JobLauncher(jobs, environment, options, bool(run)).run()
