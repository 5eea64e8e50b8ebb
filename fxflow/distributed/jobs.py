"""``fxflow launch --ps 2 --workers 4``: servers and workers of an asynchronous run.

Processes have jobs (`ps`, `worker`, `chief`, `evaluator`) and read theirs from the
environment. One that dies is started again, as often as ``--restarts`` says; the others
go on meanwhile. When all workers have finished, evaluators are ended, then servers.
Another launch may join with more servers and workers (``--join``); when its workers
have finished, its servers hand over what they hold.

On one machine they use sockets in a folder that no other user may enter: that
keeps strangers out as keys would, and is several times as fast. Between machines
(``--hosts``) they have keys, which go to them as their environment does: over ssh's
input, never on a command line.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fxflow.distributed.addresses import Address
from fxflow.distributed.children import Child
from fxflow.distributed.clusters.base import job_port
from fxflow.distributed.launcher import GRACE, Launcher
from fxflow.distributed.messages.keys import Keys
from fxflow.distributed.parameter_server import messages
from fxflow.distributed.parameter_server.monitor.asking import ServerPoll
from fxflow.distributed.parameter_server.running import (
    CHIEF,
    SERVERS,
    SHARDS,
    TASK,
    WORKERS,
)
from fxflow.distributed.parameter_server.views import View
from fxflow.distributed.processes import status_of
from fxflow.errors import DistributedError

#: Seconds within which servers of a run that is joined answer.
_ANSWER = 5.0
#: Seconds that servers have to hand over what they hold: they take 20.
LEAVING = 25.0
#: Seconds that evaluators have for a last look after the workers have finished.
LAST_LOOK = 30.0


@dataclasses.dataclass(frozen=True)
class Job:
    """A process of the run.

    Attributes:
      name: `ps`, `worker`, `chief` or `evaluator`.
      index: among those of the same name.
      command: what it runs.
      environment: variables on top of the launcher's.
      host: the machine; empty for this one.
    """

    name: str
    index: int
    command: Sequence[str]
    environment: Mapping[str, str]
    host: str = ""

    @property
    def trains(self) -> bool:
        """Whether the run lasts until it has finished."""
        return self.name in ("worker", "chief")

    def __str__(self) -> str:
        return f"{self.name} {self.index}"


class JoinedRun(NamedTuple):
    """A run that another launch has begun.

    Attributes:
      servers: addresses of all that ever were in it, by number.
      shards: into how many parts its parameters are cut.
      workers: the first number that no worker has.
    """

    servers: tuple[str, ...]
    shards: int
    workers: int


def joined_run(addresses: Sequence[str], keys: Keys | None) -> JoinedRun:
    """Returns what servers say of their run.

    Args:
      addresses: of some of them.
      keys: of the run; None on this machine.

    Raises:
      DistributedError: none answers, or a text is not an address.
    """
    with ServerPoll(addresses, keys, patience=_ANSWER) as servers:
        answers = servers.ask(messages.Stats())
        said = [a.message.fields.stats for a in answers if a.message]
        if not said:
            silent = ", ".join(f"{a.address} ({a.problem})" for a in answers)
            raise DistributedError(
                f"no server answers for the run to be joined: {silent}"
            )
        view = View.from_json(max(said, key=lambda stats: stats["epoch"])["view"])
    names = (worker["name"] for stats in said for worker in stats["workers"].values())
    found = (name.removeprefix("worker ") for name in names)
    workers = 1 + max((int(n) for n in found if n.isdigit()), default=-1)
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
      options: of the command line.
      command: what all but servers run.
      slots: machines for the chief and workers, in order, and then again; servers and
        the evaluator are dealt to the same machines in turn.
      addresses: of the servers.
      keys: of the run; None where no other machine takes part.
      run: that is joined; None: this one begins.
    """
    begun = run or JoinedRun(tuple(addresses), options.ps_shards, 0)
    machines = list(dict.fromkeys(slots))
    shared = {
        SERVERS: ",".join(begun.servers),
        WORKERS: str(begun.workers + options.workers),
        CHIEF: str(int(options.chief)),
        SHARDS: str(begun.shards),
        # Output to a pipe is buffered otherwise.
        "PYTHONUNBUFFERED": "1",
        # A run of servers has no coordinator of processes in step.
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
            # Servers that hold the same shard have files of the same names.
            runs += ["--folder", os.path.join(options.ps_folder, f"ps-{index}")]
        if keys is not None:
            # Anywhere: a machine may know itself under its own name as 127.0.1.1.
            host, port = Address.parse(address, any_port=True)
            anywhere = Address("::" if ":" in host else "*", port)
            runs += ["--listen", str(anywhere)]
        told = {**shared, TASK: f"ps:{index}", **(keys.environment() if keys else {})}
        jobs.append(Job("ps", index, runs, told, machines[len(jobs) % len(machines)]))
    if keys is not None:
        shared |= keys.for_clients().environment()
    trainers = [("chief", 0)] * options.chief
    workers = range(begun.workers, begun.workers + options.workers)
    trainers += [("worker", index) for index in workers]
    others = [("evaluator", 0)] * options.evaluator
    places = [slots[i % len(slots)] for i in range(len(trainers))]
    places += [machines[0]] * len(others)
    for (name, index), host in zip([*trainers, *others], places, strict=True):
        told = {**shared, TASK: f"{name}:{index}"}
        jobs.append(Job(name, index, command, told, host))
    return jobs


def addresses_of(count: int, slots: Sequence[str], port: int) -> list[str]:
    """Returns where servers on several machines are reached.

    Args:
      count: of servers.
      slots: the machines, as other machines know them.
      port: of the first server on each machine; the next ones follow.
    """
    machines = [slot.rpartition("@")[2].strip("[]") for slot in dict.fromkeys(slots)]
    return [
        str(Address(machines[index % len(machines)], port + index // len(machines)))
        for index in range(count)
    ]


class JobLauncher(Launcher):
    """Starts the jobs of a run, starts them again, and ends them.

    Args:
      jobs: the processes.
      environment: variables for all of them.
      options: of the command line.
      joins: whether another launch has begun the run.
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
        #: Whether what a server holds may move to others.
        self._moves = joins or options.ps_copies > 1 or bool(options.ps_shards)
        self._jobs = list(jobs)
        self._environment = dict(environment)
        self._options = options
        self._restarts = self._looks = options.restarts
        self._finished: set[int] = set()
        #: Whether servers are to end when no other process is left.
        self._closing = False
        #: When evaluators and, after them, servers are killed that are to end.
        self._kill_at = float("inf")

    def start(self) -> None:
        """Starts every process."""
        first = self._jobs[0]
        # With other machines only the run's processes have the keys.
        if not (first.host or self._joins):
            servers = first.environment[SERVERS]
            self.say(f"to watch: fxflow parameter-server watch --servers {servers}")
            more = "--ps 1 --workers 1" if self._moves else "--workers 1"
            self.say(f"to add to it: fxflow launch --join {servers} {more} PROGRAM")
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

    def tell_all(self, number: int) -> None:
        """Sends a signal to every process, to servers after their clients."""
        if number == signal.SIGKILL:
            super().tell_all(number)
            return
        self._closing = True
        self.starts.clear()
        for which, child in self.children.items():
            if self._jobs[which].name != "ps":
                child.send(number)

    def ended(self, number: int, code: int, ending: bool) -> bool:
        """Notes how a process ended; returns whether the others are to end."""
        job = self._jobs[number]
        if not code and job.trains:
            self._finished.add(number)
            if all(n in self._finished for n, j in enumerate(self._jobs) if j.trains):
                self.status = self.status or 0
                self.output.ending = True
                self._kill_at = time.monotonic() + LAST_LOOK
                self.tell_all(signal.SIGTERM)
            return False
        if ending or self.status is not None or (not code and job.name != "ps"):
            return False
        if not code and self._moves:
            self.say(f"{job} has left; the others go on without it")
            return False
        how = f"signal {-code}" if code < 0 else f"status {code}"
        again = self._may_start(number)
        if job.name == "ps":
            if code in (1, 2):
                # It has said why it cannot serve, and could not the next time.
                again = False
            elif not self._options.ps_folder and self._options.ps_copies < 2:
                how += (
                    ", and what it held is lost (--ps-folder keeps logs of it, "
                    "--ps-copies copies)"
                )
                again = False
        if again:
            # An evaluator's deaths are not to cost a worker its next life.
            if job.name == "evaluator":
                self._looks -= 1
            else:
                self._restarts -= 1
            self.say(f"{job} ended with {how}; it is started again")
            self.start_again(self.finished[-1], lambda: self._start(number))
            return False
        if job.name == "evaluator":
            self.say(f"{job} ended with {how}; the run goes on without it")
            return False
        self.say(f"{job} ended with {how}; ending the others")
        self.status = status_of(code) or 1
        self.tell_all(signal.SIGTERM)
        return True

    def _may_start(self, number: int) -> bool:
        """Returns whether a process that has just died may be started again."""
        looks = self._jobs[number].name == "evaluator"
        return bool((self._looks if looks else self._restarts) > 0)

    def look_after(self) -> float:
        """Ends servers when no other process is left; kills those that do not end."""
        now = time.monotonic()
        if now >= self._kill_at:
            self._kill_at = float("inf")
            for number, child in self.children.items():
                if not self._closing or self._jobs[number].name != "ps":
                    child.send(signal.SIGKILL)
        if self._closing and all(self._jobs[n].name == "ps" for n in self.children):
            self._closing = False
            # Unless other launches continue, what they hold is not needed any more.
            self._kill_at = now + (LEAVING if self._joins else GRACE)
            super().tell_all(signal.SIGTERM if self._joins else signal.SIGINT)
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
      options: of the command line.
      command: what workers run.
      slots: machines for workers; ``[""]`` for this one alone.
      variables: for all processes.
      keys: of a run on several machines.

    Returns:
      The exit status.

    Raises:
      DistributedError: no server of the run that is to be joined answers.
    """
    environment = dict(variables)
    if options.devices_per_process:
        environment["FXFLOW_NUM_CPU_DEVICES"] = str(options.devices_per_process)
    run = joined_run(options.join.split(","), keys) if options.join else None
    # Its mode is 0700; its path is short, as those of sockets have to be.
    with tempfile.TemporaryDirectory(prefix="fxflow-") as folder:
        if keys is not None:
            port = options.port or job_port(os.getpid())
            names = slots if slots != [""] else [options.address]
            addresses = addresses_of(options.ps, names, port)
        else:
            addresses = [f"ipc://{folder}/ps-{number}" for number in range(options.ps)]
        jobs = jobs_of(options, command, slots, addresses, keys, run)
        return JobLauncher(jobs, environment, options, bool(run)).run()
