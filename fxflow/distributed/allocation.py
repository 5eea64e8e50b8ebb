"""``fxflow launch --tasks auto train.py``: a dataflow run in a cluster manager's job.

The manager (Slurm, Kubernetes, mpirun, torchrun, …) starts this command once for each
task. Each of these launchers starts and supervises its task. That of process 0 also
runs the user's program, once all launchers have registered their tasks' addresses, and
tells the others its exit status, which is that of all.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fxflow.distributed import protocol
from fxflow.distributed.addresses import Address, is_loopback
from fxflow.distributed.clusters import ClusterMembership, detect
from fxflow.distributed.coordination import Connection
from fxflow.distributed.coordinator import Server
from fxflow.distributed.jobs import Job, JobLauncher, device_variables
from fxflow.distributed.launcher import GRACE
from fxflow.distributed.messages.channel import Channel, Message, dial
from fxflow.distributed.messages.keys import keys_from, keys_of
from fxflow.distributed.processes import status_of
from fxflow.distributed.tasks import controller_job, task_job
from fxflow.errors import DistributedError

#: Seconds of silence after which a launcher counts as lost, without an option.
_HEARTBEAT = 100.0


def allocation_member() -> ClusterMembership:
    """Returns this process's number, the number of tasks, and process 0's address.

    Raises:
      DistributedError: no cluster manager is found, or it does not set them.
    """
    found = detect()
    if found is None:
        raise DistributedError(
            "--tasks auto: no cluster manager has started this process; give the "
            "number of tasks, --tasks N, to start them on this machine"
        )
    if found.num_processes == 1 and found.coordinator_address is None:
        found = found._replace(coordinator_address="127.0.0.1:0")
    if found.hosted:
        raise DistributedError(
            "--tasks auto: process 0 is the coordinator of a run of tasks: unset "
            "FXFLOW_COORDINATOR_HOSTED"
        )
    for value, name in (
        (found.coordinator_address, "FXFLOW_COORDINATOR_ADDRESS"),
        (found.num_processes, "FXFLOW_NUM_PROCESSES"),
        (found.process_id, "FXFLOW_PROCESS_ID"),
    ):
        if value is None:
            raise DistributedError(f"--tasks auto: {found.source}: set {name}, too")
    return found


class TaskRegistry(Server):
    """Collects the addresses of all tasks from their launchers; runs in process 0.

    A launcher that is restarted registers again, with the same address.

    Args:
      address: ``host:port`` to listen at.
      count: the number of tasks.
      token: the run's secret; see `Server`.
      heartbeat_timeout: seconds of silence after which a launcher counts as lost.
      log: called with each line of the log.

    Attributes:
      on_change: called, from a thread of this server, when an address is registered.
    """

    def __init__(
        self,
        address: str,
        count: int,
        *,
        token: str = "",
        heartbeat_timeout: float = _HEARTBEAT,
        log: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._count, self._log = count, log
        self._addresses: dict[int, str] = {}
        self._launchers: dict[int, tuple[Channel, str]] = {}
        self._is_begun = False
        self.on_change: Callable[[], None] = lambda: None
        super().__init__(address, token, heartbeat_timeout)

    def welcome(self, channel: Channel, first: Any) -> None:
        """Registers a task, and serves its launcher until it leaves."""
        if not isinstance(first, protocol.RegisterTask):
            raise ValueError(f"a launcher must register its task first, got {first}")
        task = first.task
        with self.lock:
            refusal = self._refusal(first)
            if not refusal:
                self._launchers[task] = channel, first.name
                self._addresses[task] = first.address
        if refusal:
            channel.send(protocol.written(protocol.Refused(refusal)))
            return
        self.on_change()

        def handle(request: Any, message: Message, payload: Any) -> None:
            raise ValueError(f"a launcher sends no {request}")

        def left(why: str) -> None:
            del self._launchers[task]
            if not self._is_begun:
                del self._addresses[task]
            if why:
                self._log(f"the launcher of task {task} ({first.name}) is lost: {why}")

        self.serve_messages(channel, handle, left)

    def _refusal(self, first: protocol.RegisterTask) -> str:
        task = first.task
        if first.tasks != self._count:
            return (
                f"task {task} expects {first.tasks} tasks, process 0 expects "
                f"{self._count}"
            )
        if not 0 <= task < self._count:
            return f"task {task} is not in 0 to {self._count - 1}"
        if task in self._launchers:
            return f"task {task} is taken by {self._launchers[task][1]}"
        known = self._addresses.get(task, first.address)
        if known != first.address:
            return (
                f"task {task} listened at {known} when the run began, and now at "
                f"{first.address}: give --port, so that a restart listens there again"
            )
        return ""

    def addresses(self) -> list[str]:
        """Returns the addresses of all tasks; empty until all have registered."""
        with self.lock:
            self._is_begun = self._is_begun or len(self._addresses) == self._count
            if not self._is_begun:
                return []
            return [self._addresses[task] for task in range(self._count)]

    def missing(self) -> list[int]:
        """Returns the tasks that have not registered."""
        with self.lock:
            return sorted(set(range(self._count)) - self._addresses.keys())

    def end(self, status: int) -> None:
        """Tells all launchers that the run has ended, and waits until they leave.

        Args:
          status: the program's exit status.
        """
        with self.lock:
            for channel, _ in self._launchers.values():
                channel.post(protocol.written(protocol.Ended(status)))
        end = time.monotonic() + GRACE
        while self._launchers and time.monotonic() < end:
            time.sleep(0.01)


class AllocationLauncher(JobLauncher):
    """Starts and supervises one task; in process 0 also the user's program.

    Args:
      member: this process in the cluster manager's job.
      channel: to the registry.
      task: the task.
      registry: in process 0, the registry; None in the others.
      controller: in process 0, makes the job of the user's program from the addresses
        of all tasks.
      environment: variables for the processes.
      options: the options of the command line.
    """

    def __init__(
        self,
        member: ClusterMembership,
        channel: Channel,
        task: Job,
        registry: TaskRegistry | None,
        controller: Callable[[Sequence[str]], Job],
        environment: Mapping[str, str],
        options: argparse.Namespace,
    ) -> None:
        super().__init__([task], environment, options)
        self._member, self._channel = member, channel
        self._registry, self._controller = registry, controller
        self._connection: Connection | None = None
        self._address = task.command[task.command.index("--address") + 1]
        #: The run's exit status, and why it ends; set by the connection's thread.
        self._outcome: tuple[int, str] | None = None
        #: When to give up waiting for the other tasks.
        self._ends_at = float("inf")
        if registry is not None:
            self._ends_at = time.monotonic() + options.start_timeout

    def start(self) -> None:
        """Registers the task, and starts it."""
        member, options = self._member, self._options
        number, count = member.process_id, member.num_processes
        assert number is not None and count is not None
        name = f"{socket.gethostname()}:{os.getpid()}"
        register = protocol.RegisterTask(number, count, name, self._address)
        self._channel.send(protocol.written(register))
        self._connection = Connection(
            self._channel,
            heartbeat_timeout=options.heartbeat_timeout or _HEARTBEAT,
            on_event=self._on_event,
            on_lost=self._on_lost,
        )
        if self._registry is not None:
            self._registry.on_change = self.wake
        super().start()

    def close(self) -> None:
        """Leaves the run."""
        if self._connection is not None:
            self._connection.close()
        else:
            self._channel.close()

    def _on_event(self, event: Any, epoch: int) -> None:
        if isinstance(event, protocol.Ended):
            self._end(event.status, "")
        elif isinstance(event, protocol.Refused):
            self._end(1, f"process 0 refused this task: {event.why}")

    def _on_lost(self, reason: str) -> None:
        where = self._member.coordinator_address
        self._end(1, f"process 0 at {where} is lost: {reason}")

    def _end(self, status: int, why: str) -> None:
        if self._outcome is None:
            self._outcome = status, why
            self.wake()

    def on_end(self, number: int, code: int, ending: bool) -> bool:
        """Handles the end of a process; returns whether the others are to end."""
        ends = super().on_end(number, code, ending)
        alone = not self.children and not self.starts
        if alone and self.status is None:
            # The cluster manager restarts this launcher, if it is to be restarted.
            self.status: int | None = status_of(code)
        return ends

    def maintain(self) -> float:
        """Starts the program when all tasks have registered; ends with the run."""
        if self._outcome is not None and self.status is None:
            self.status, why = self._outcome
            if why:
                self.log(why)
            self.output.ending = True
            self.signal_all(signal.SIGTERM)
        if self._registry is not None and len(self._jobs) == 1:
            self._begin(self._registry)
        return min(super().maintain(), self._ends_at)

    def _begin(self, registry: TaskRegistry) -> None:
        """Starts the program, or ends the run if tasks are missing for too long."""
        if self.status is not None:
            self._ends_at = float("inf")
        elif addresses := registry.addresses():
            self._ends_at = float("inf")
            self._jobs.append(self._controller(addresses))
            self._start(1)
        elif time.monotonic() >= self._ends_at:
            self._ends_at = float("inf")
            listed = ", ".join(map(str, registry.missing()))
            self.log(
                f"giving up: of {self._member.num_processes} tasks, {listed} did not "
                f"register within {self._options.start_timeout:g} s (--start-timeout)"
            )
            self.status = 1
            self.signal_all(signal.SIGTERM)


def _task_port(host: str, options: argparse.Namespace, local: int) -> int:
    """Returns the port of this task: by ``--port``, or any free one."""
    if options.port:
        return int(options.port) + local
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def launch_in_allocation(
    options: argparse.Namespace, command: Sequence[str], variables: Mapping[str, str]
) -> int:
    """Runs ``fxflow launch --tasks auto``.

    Args:
      options: the options of the command line.
      command: the user's program.
      variables: environment variables for the processes.

    Returns:
      The exit status: the program's, in all processes.

    Raises:
      DistributedError: there is no cluster manager, or process 0 does not answer.
    """
    member = allocation_member()
    number, count = member.process_id, member.num_processes
    assert number is not None and count is not None and member.coordinator_address
    place = Address.parse(member.coordinator_address, any_port=True)
    registry = None
    status = 1
    try:
        if number == 0:
            registry = TaskRegistry(
                str(place) if is_loopback(place.host) else f"0.0.0.0:{place.port}",
                count,
                token=member.token,
                heartbeat_timeout=options.heartbeat_timeout or _HEARTBEAT,
                log=lambda text: print(
                    f"fxflow launch: {text}", file=sys.stderr, flush=True
                ),
            )
            place = place._replace(port=registry.port)
        channel = dial(str(place), options.start_timeout, member.token, "launcher")
        status = _supervise(options, command, variables, member, channel, registry)
    except KeyboardInterrupt:
        status = 128 + signal.SIGINT
    finally:
        if registry is not None:
            registry.end(status)
            registry.stop()
    return status


def _supervise(
    options: argparse.Namespace,
    command: Sequence[str],
    variables: Mapping[str, str],
    member: ClusterMembership,
    channel: Channel,
    registry: TaskRegistry | None,
) -> int:
    """Runs this process's task; returns the exit status."""
    keys = keys_of() or (keys_from(member.token) if member.token else None)
    host = member.host or channel.own_host
    port = _task_port(host, options, member.local_process_id or 0)
    assert member.process_id is not None
    task = task_job(member.process_id, str(Address(host, port)), keys)
    launcher = AllocationLauncher(
        member,
        channel,
        task,
        registry,
        lambda addresses: controller_job(command, addresses, keys),
        {**variables, **device_variables(options)},
        options,
    )
    try:
        return launcher.run()
    finally:
        launcher.close()
