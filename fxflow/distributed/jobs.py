"""``fxflow launch --ps 2 --workers 4``: servers and workers of an asynchronous run.

Processes have jobs (`ps`, `worker`, `chief`, `evaluator`) and are told theirs by the
environment. One that dies is started again, as often as ``--restarts`` says; the others
go on meanwhile. When all workers are through, servers and evaluators are told to end.

All are on this machine, and speak over sockets in a folder that nobody else may enter:
that keeps strangers out as keys would, and is several times as fast.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence

from fxflow.distributed.children import Child, status_of
from fxflow.distributed.launcher import Launcher
from fxflow.distributed.parameter_server.running import (
    CHIEF,
    SERVERS,
    TASK,
    WORKERS,
)


@dataclasses.dataclass(frozen=True)
class Job:
    """A process of the run.

    Attributes:
      name: `ps`, `worker`, `chief` or `evaluator`.
      index: among those of the same name.
      command: what it runs.
      environment: variables on top of the launcher's.
    """

    name: str
    index: int
    command: Sequence[str]
    environment: Mapping[str, str]

    @property
    def trains(self) -> bool:
        """Whether the run lasts until it is through."""
        return self.name in ("worker", "chief")

    def __str__(self) -> str:
        return f"{self.name} {self.index}"


def jobs_of(
    options: argparse.Namespace, command: Sequence[str], folder: str
) -> list[Job]:
    """Returns the processes of a run.

    Args:
      options: of the command line.
      command: what all but servers run.
      folder: for sockets.
    """
    addresses = [f"ipc://{folder}/ps-{number}" for number in range(options.ps)]
    shared = {
        SERVERS: ",".join(addresses),
        WORKERS: str(options.workers),
        CHIEF: str(int(options.chief)),
        # Lines come when they are printed: output to a pipe is buffered otherwise.
        "PYTHONUNBUFFERED": "1",
    }
    serve = [sys.executable, "-m", "fxflow.distributed.parameter_server"]
    if options.ps_folder:
        serve += ["--folder", options.ps_folder]
    counts = {
        "ps": options.ps,
        "chief": int(options.chief),
        "worker": options.workers,
        "evaluator": int(options.evaluator),
    }
    jobs = []
    for name, count in counts.items():
        for index in range(count):
            environment = {**shared, TASK: f"{name}:{index}"}
            runs = serve if name == "ps" else command
            jobs.append(Job(name, index, runs, environment))
    return jobs


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
        self._restarts = options.restarts
        self._through: set[int] = set()

    def start(self) -> None:
        """Starts every process."""
        for number in range(len(self._jobs)):
            self._start(number)

    def _start(self, number: int) -> None:
        job = self._jobs[number]
        environment = {**self._environment, **job.environment}
        self.children[number] = Child(
            number, job.command, environment, self.output, label=str(job)
        )

    def ended(self, number: int, code: int, ending: bool) -> bool:
        """Notes how a process ended; returns whether the others are to end."""
        job = self._jobs[number]
        if not code and job.trains:
            self._through.add(number)
            if all(n in self._through for n, j in enumerate(self._jobs) if j.trains):
                self.status = self.status or 0
                self.output.ending = True
                self.tell_all(signal.SIGTERM)
                return True
            return False
        if ending or self.status is not None or (not code and job.name != "ps"):
            return False
        how = f"signal {-code}" if code < 0 else f"status {code}"
        if self._restarts > 0:
            self._restarts -= 1
            self.say(f"{job} ended with {how}; it is started again")
            self._start(number)
            return False
        self.say(f"{job} ended with {how}; ending the others")
        self.status = status_of(code) or 1
        self.tell_all(signal.SIGTERM)
        return True


def launch_jobs(
    options: argparse.Namespace,
    command: Sequence[str],
    variables: Mapping[str, str],
) -> int:
    """Runs ``fxflow launch --ps``.

    Args:
      options: of the command line.
      command: what workers run.
      variables: of ``--env``.

    Returns:
      The exit status.
    """
    environment = dict(variables)
    if options.devices_per_process:
        environment["FXFLOW_NUM_CPU_DEVICES"] = str(options.devices_per_process)
    # A run of this machine has no coordinator of processes in step.
    for name in ("FXFLOW_COORDINATOR_ADDRESS", "TF_CONFIG"):
        os.environ.pop(name, None)
    # Its mode is 0700; its path is short, as those of sockets have to be.
    with tempfile.TemporaryDirectory(prefix="fxflow-") as folder:
        jobs = jobs_of(options, command, folder)
        return JobLauncher(jobs, environment, options).run()
