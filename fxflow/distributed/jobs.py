"""``fxflow launch --ps 2 --workers 4``: servers and workers of an asynchronous run.

Processes have jobs (`ps`, `worker`, `chief`, `evaluator`) and are told theirs by the
environment. One that dies is started again, as often as ``--restarts`` says; the others
go on meanwhile. When all workers are through, evaluators are told to end, then servers.

On one machine they speak over sockets in a folder that nobody else may enter: that
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

from fxflow.distributed.children import Child, status_of
from fxflow.distributed.clusters.base import job_port
from fxflow.distributed.launcher import GRACE, Launcher
from fxflow.distributed.parameter_server.keys import Keys
from fxflow.distributed.parameter_server.running import (
    CHIEF,
    SERVERS,
    SHARDS,
    TASK,
    WORKERS,
)

#: Seconds that evaluators have for a last look after the workers are through.
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
        """Whether the run lasts until it is through."""
        return self.name in ("worker", "chief")

    def __str__(self) -> str:
        return f"{self.name} {self.index}"


def jobs_of(
    options: argparse.Namespace,
    command: Sequence[str],
    slots: Sequence[str],
    addresses: Sequence[str],
    keys: Keys | None = None,
) -> list[Job]:
    """Returns the processes of a run.

    Args:
      options: of the command line.
      command: what all but servers run.
      slots: machines for those who train, in order, and then again; servers and the
        evaluator are dealt to the same machines in turn.
      addresses: of the servers.
      keys: of the run; None where no other machine takes part.
    """
    machines = list(dict.fromkeys(slots))
    shared = {
        SERVERS: ",".join(addresses),
        WORKERS: str(options.workers),
        CHIEF: str(int(options.chief)),
        SHARDS: str(options.ps_shards),
        # Lines come when they are printed: output to a pipe is buffered otherwise.
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
    jobs = []
    for index, address in enumerate(addresses):
        runs = list(serve)
        if options.ps_folder:
            # Servers that hold the same shard have files of the same names.
            runs += ["--folder", os.path.join(options.ps_folder, f"ps-{index}")]
        if keys is not None:
            # Anywhere: a machine may know itself under its own name as 127.0.1.1.
            host, _, port = address.rpartition(":")
            runs += ["--listen", f"{'[::]' if '[' in host else '*'}:{port}"]
        told = {**shared, TASK: f"ps:{index}", **(keys.environment() if keys else {})}
        jobs.append(Job("ps", index, runs, told, machines[index % len(machines)]))
    if keys is not None:
        shared |= keys.for_clients().environment()
    trainers = [("chief", 0)] * options.chief
    trainers += [("worker", index) for index in range(options.workers)]
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
    found = []
    for index in range(count):
        host = machines[index % len(machines)]
        host = f"[{host}]" if ":" in host else host
        found.append(f"{host}:{port + index // len(machines)}")
    return found


class JobLauncher(Launcher):
    """Starts the jobs of a run, starts them again, and ends them.

    Args:
      jobs: the processes.
      environment: variables for all of them.
      options: of the command line.
    """

    def __init__(
        self,
        jobs: Sequence[Job],
        environment: Mapping[str, str],
        options: argparse.Namespace,
    ) -> None:
        super().__init__(options)
        self._jobs = list(jobs)
        self._environment = dict(environment)
        self._options = options
        self._restarts = self._looks = options.restarts
        self._through: set[int] = set()
        #: Whether servers are to end when nobody else is left.
        self._closing = False
        #: When evaluators and, after them, servers are killed that were told to end.
        self._kill_at = float("inf")

    def start(self) -> None:
        """Starts every process."""
        first = self._jobs[0]
        if not first.host:  # with others only the run's processes have the keys
            servers = first.environment[SERVERS]
            self.say(f"to watch: fxflow parameter-server watch --servers {servers}")
            if self._options.ps_shards:
                more = f"{servers.rpartition('-')[0]}-{servers.count(',') + 1}"
                more = more.rpartition(",")[2]
                self.say(
                    f"to add a server: fxflow parameter-server --join {more} "
                    f"--servers {servers}"
                )
        for number in range(len(self._jobs)):
            self._start(number)

    def _start(self, number: int) -> None:
        job = self._jobs[number]
        self.children[number] = Child(
            number,
            job.command,
            {**self._environment, **job.environment},
            self.output,
            job.host,
            self._options.ssh,
            self._options.remote_python,
            label=str(job),
        )

    def tell_all(self, number: int) -> None:
        """Sends a signal to every process, to servers after those who need them."""
        if number == signal.SIGKILL:
            super().tell_all(number)
            return
        self._closing = True
        for which, child in self.children.items():
            if self._jobs[which].name != "ps":
                child.send(number)

    def ended(self, number: int, code: int, ending: bool) -> bool:
        """Notes how a process ended; returns whether the others are to end."""
        job = self._jobs[number]
        if not code and job.trains:
            self._through.add(number)
            if all(n in self._through for n, j in enumerate(self._jobs) if j.trains):
                self.status = self.status or 0
                self.output.ending = True
                self._kill_at = time.monotonic() + LAST_LOOK
                self.tell_all(signal.SIGTERM)
            return False
        if ending or self.status is not None or (not code and job.name != "ps"):
            return False
        if not code and (self._options.ps_copies > 1 or self._options.ps_shards):
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
            self._start(number)
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

    def look_after(self) -> None:
        """Tells servers to end when nobody else is left; kills who does not end."""
        now = time.monotonic()
        if now >= self._kill_at:
            self._kill_at = float("inf")
            for number, child in self.children.items():
                if not self._closing or self._jobs[number].name != "ps":
                    child.send(signal.SIGKILL)
        if self._closing and all(self._jobs[n].name == "ps" for n in self.children):
            self._closing = False
            self._kill_at = now + GRACE
            # Not SIGTERM: nobody needs any more what they hold.
            super().tell_all(signal.SIGINT)


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
    """
    environment = dict(variables)
    if options.devices_per_process:
        environment["FXFLOW_NUM_CPU_DEVICES"] = str(options.devices_per_process)
    if keys is not None:
        port = options.port or job_port(os.getpid())
        addresses = addresses_of(options.ps, slots, port)
        jobs = jobs_of(options, command, slots, addresses, keys)
        return JobLauncher(jobs, environment, options).run()
    # Its mode is 0700; its path is short, as those of sockets have to be.
    with tempfile.TemporaryDirectory(prefix="fxflow-") as folder:
        addresses = [f"ipc://{folder}/ps-{number}" for number in range(options.ps)]
        jobs = jobs_of(options, command, slots, addresses)
        return JobLauncher(jobs, environment, options).run()
