"""``fxflow launch --tasks 4 train.py``: launches the tasks of a dataflow run.

A task is a process that runs fragments of the user's functions
(`fxflow.dataflow.tasks`). The user's program, the *controller*, runs once: it plans,
and says what each task runs. It finds the tasks through ``FXFLOW_DATAFLOW_TASKS``.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence

from fxflow.distributed.clusters.base import job_port
from fxflow.distributed.jobs import (
    Job,
    JobLauncher,
    addresses_of,
    device_variables,
    listen_address,
)
from fxflow.distributed.messages.keys import Keys

#: The addresses of all tasks, in order, which `dataflow.connect` reads.
TASKS = "FXFLOW_DATAFLOW_TASKS"
#: The module that a task runs.
MODULE = "fxflow.dataflow.tasks"
#: What all processes of a run get.
_SHARED = {
    # Python buffers output to a pipe otherwise.
    "PYTHONUNBUFFERED": "1",
    # The run has no coordinator, and is not a part of another one.
    "FXFLOW_COORDINATOR_ADDRESS": "",
    "TF_CONFIG": "",
}


def task_job(
    index: int,
    address: str,
    keys: Keys | None,
    host: str = "",
    python: str = sys.executable,
) -> Job:
    """Returns a task.

    Args:
      index: its number, from 0.
      address: its address.
      keys: the run's keys; None for a run on this machine alone.
      host: its machine; empty for this one.
      python: the path of Python there.
    """
    command = [python, "-m", MODULE, "--job", "worker"]
    command += ["--index", str(index), "--address", address]
    if keys is not None:
        command += ["--listen", listen_address(address)]
    variables = {**_SHARED, **(keys.environment() if keys else {})}
    return Job("task", index, command, variables, host)


def controller_job(
    command: Sequence[str], addresses: Sequence[str], keys: Keys | None, host: str = ""
) -> Job:
    """Returns the process that runs the user's program.

    Args:
      command: the program.
      addresses: those of all tasks, in order.
      keys: the run's keys; None for a run on this machine alone.
      host: its machine; empty for this one.
    """
    variables = {**_SHARED, TASKS: ",".join(addresses)}
    if keys is not None:
        variables |= keys.for_clients().environment()
    return Job("controller", 0, command, variables, host)


def task_jobs(
    options: argparse.Namespace,
    command: Sequence[str],
    machines: Sequence[str],
    addresses: Sequence[str],
    keys: Keys | None = None,
) -> list[Job]:
    """Returns the processes of a run: its tasks, then its controller.

    Args:
      options: the options of the command line.
      command: the user's program.
      machines: the machine of each task, empty for this one; the controller runs on the
        first.
      addresses: the tasks' addresses.
      keys: the run's keys; None for a run on this machine alone.
    """
    python = options.remote_python if any(machines) else sys.executable
    jobs = [
        task_job(index, address, keys, machine, python)
        for index, (address, machine) in enumerate(
            zip(addresses, machines, strict=True)
        )
    ]
    return [*jobs, controller_job(command, addresses, keys, machines[0])]


def launch_tasks(
    options: argparse.Namespace,
    command: Sequence[str],
    machines: Sequence[str],
    variables: Mapping[str, str],
    keys: Keys | None,
) -> int:
    """Runs ``fxflow launch --tasks N``.

    Args:
      options: the options of the command line.
      command: the user's program.
      machines: the machine of each task, empty for this one.
      variables: environment variables for all processes.
      keys: the keys of a run on several machines.

    Returns:
      The exit status: the program's.
    """
    # Its mode is 0700, and its path is short enough for sockets.
    with tempfile.TemporaryDirectory(prefix="fxflow-") as folder:
        if keys is not None:
            addresses = addresses_of(machines, options.port or job_port(os.getpid()))
        else:
            addresses = [f"ipc://{folder}/task-{n}" for n in range(len(machines))]
        jobs = task_jobs(options, command, machines, addresses, keys)
        environment = {**variables, **device_variables(options)}
        return JobLauncher(jobs, environment, options).run()
