"""Clusters: the tasks that dataflow functions run in, found or started."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Self

from fxflow._version import __version__
from fxflow.core.arrays import ArrayType
from fxflow.dataflow.plan import Plan
from fxflow.dataflow.tasks.devices import HERE, ClusterDevices, TaskDevice
from fxflow.dataflow.tasks.messages import Meet
from fxflow.dataflow.tasks.program import ClusterProgram
from fxflow.dataflow.tasks.session import Session
from fxflow.dataflow.tasks.worker import disagreement, jaxlib_version, stream_to
from fxflow.distributed.messages import handshake
from fxflow.distributed.messages.codec import Message
from fxflow.distributed.messages.keys import Keys, keys_of
from fxflow.distributed.messages.stream import Stream
from fxflow.distributed.processes import Process
from fxflow.errors import (
    ArgumentError,
    DistributedError,
    MessageError,
    TaskLostError,
)
from fxflow.transforms.stages import Traced

#: What `fxflow launch --tasks` sets: the addresses of the tasks, in order.
TASKS = "FXFLOW_DATAFLOW_TASKS"
#: The job of tasks that `connect` and `local_cluster` know only by their addresses.
JOB = "worker"
#: Seconds for a task to start: it imports fxflow.
START = 60.0
#: Seconds for a task to answer when the cluster connects again.
ANSWER = 3.0
#: Seconds between two attempts to reach tasks that are lost.
_RETRY = 0.5


class Cluster(ClusterDevices):
    """The tasks that run the fragments of dataflow functions.

    A task is the command ``python -m fxflow.dataflow.tasks``, on this machine or
    another. `dataflow.jit(f, devices=cluster)` spreads stages over all devices of the
    tasks, and scopes name them: ``on("/job:worker/task:1/device:cpu:0")``. A task
    serves one controller at a time.

    Args:
      jobs: addresses of the tasks of each job: ``host:port``, or the path of a Unix
        socket; a sequence of addresses is those of the job "worker".
      devices: platforms of each task's devices, such as ``["cpu", "cpu"]`` for each; a
        number of CPU devices for all; None: the tasks tell when they are connected.
      keys: of the run; None: those of the environment (`FXFLOW_PS_KEYS`,
        `FXFLOW_PS_KEYS_FILE`), if there are any. Addresses beyond this machine need
        keys.
      deadline: seconds that a wait for another process lasts at most, and a fragment's
        wait for a value. Compiling does not count.

    Raises:
      ArgumentError: there is no task, an address is given twice, or the devices do not
        fit the tasks.
      DistributedError: an address is not one, or needs keys.

    Example:
      >>> from fxflow import dataflow
      >>> tasks = {"worker": ["127.0.0.1:7000", "127.0.0.1:7001"]}
      >>> cluster = dataflow.Cluster(tasks, devices=1)
      >>> cluster.devices[1]
      TaskDevice('/job:worker/task:1/device:cpu:0')
    """

    def __init__(
        self,
        jobs: Mapping[str, Sequence[str]] | Sequence[str],
        *,
        devices: Sequence[Sequence[str]] | int | None = None,
        keys: Keys | None = None,
        deadline: float = 60.0,
    ) -> None:
        named = dict(jobs) if isinstance(jobs, Mapping) else {JOB: jobs}
        addresses = [str(address) for row in named.values() for address in row]
        if not addresses or "" in addresses:
            raise ArgumentError(
                "Cluster: jobs gives the addresses of tasks, such as {'worker': "
                f"['10.0.0.1:7000']}}, got {jobs!r}"
            )
        for address in addresses:
            if addresses.count(address) > 1:
                raise ArgumentError(f"Cluster: two tasks have the address {address!r}")
        if isinstance(devices, int):
            devices = [["cpu"] * devices] * len(addresses)
        if devices is not None and len(devices) != len(addresses):
            raise ArgumentError(
                f"Cluster: devices of {len(devices)} tasks, and {len(addresses)} "
                "addresses"
            )
        if not deadline > 0:
            raise ArgumentError(f"Cluster: the deadline is positive, got {deadline!r}")
        super().__init__({job: len(row) for job, row in named.items()}, devices)
        self.addresses = addresses
        self.deadline = deadline
        self._keys = keys_of() if keys is None else keys
        for address in addresses:
            handshake.require_keys(address, self._keys)
        self._session: Session | None = None
        self._lock = threading.Lock()
        self._children: _Children | None = None
        self._closed = False
        self._returned: set[int] = set()
        #: The tasks that `_await_missing` awaits.
        self._awaiting: set[int] = set()

    # -- life --------------------------------------------------------------------------

    def connect(self, seconds: float = START) -> Self:
        """Connects to all tasks, if that has not been done.

        A function that uses the cluster does it by itself.

        Args:
          seconds: for the tasks to start.

        Returns:
          The cluster.

        Raises:
          DistributedError: a task does not answer, has other keys or another version,
            works for another controller, or has other devices than were said.
        """
        self._connected(seconds)
        return self

    def close(self) -> None:
        """Ends the connections, and the tasks if `local_cluster` started them.

        Arrays that are in tasks are lost.
        """
        self._closed = True  # before the lock, which `reconnect` may hold for long
        with self._lock:
            session, self._session = self._session, None
            children, self._children = self._children, None
        if session is not None:
            session.close()
        if children is not None:
            children.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        told = ", ".join(f"{job}: {count}" for job, count in self.jobs.items())
        state = "closed" if self._closed else "connected" if self._session else "new"
        lost = "".join(
            f"; {self.task_name(number)} is lost: {why}"
            for number, why in sorted(self.lost.items())
        )
        return f"<Cluster of tasks {told} ({state}{lost})>"

    @property
    def lost(self) -> dict[int, str]:
        """Why each task that is lost is, by its number among all tasks."""
        return {} if self._session is None else dict(self._session.lost)

    # -- connections -------------------------------------------------------------------

    def _known(self) -> list[list[TaskDevice]]:
        if self._by_task is None:
            self._connected(START)
        return super()._known()

    def _connected(self, seconds: float = START) -> Session:
        """Returns the connection to the tasks."""
        session = self._session
        if session is not None:
            return session
        with self._lock:
            if self._session is None:
                if self._closed:
                    raise DistributedError("the cluster was closed")
                self._session = self._connect(seconds)
            return self._session

    def _connect(self, seconds: float) -> Session:
        numbers = range(len(self.addresses))
        met, failed = self._meet_all(numbers, secrets.token_hex(8), seconds, True)
        if failed:
            for stream, _ in met.values():
                stream.close()
            raise failed[min(failed)]
        if self._by_task is None:
            self._learn([met[number][1].devices for number in numbers])
        return self._session_of(met)

    def _meet_all(
        self, numbers: Iterable[int], name: str, seconds: float, retry: bool
    ) -> tuple[dict[int, tuple[Stream, Meet]], dict[int, DistributedError]]:
        """Connects to tasks; returns what they say, or the errors, by number."""
        numbers = list(numbers)
        if not numbers:
            return {}, {}
        with ThreadPoolExecutor(min(32, len(numbers))) as pool:
            asked = {
                number: pool.submit(self._meet, number, name, seconds, retry)
                for number in numbers
            }
        met: dict[int, tuple[Stream, Meet]] = {}
        failed: dict[int, DistributedError] = {}
        for number, one in asked.items():
            try:
                met[number] = one.result()
            except DistributedError as error:
                failed[number] = error
        return met, failed

    def _streams_of(self, met: Mapping[int, tuple[Stream, Meet]]) -> dict[int, Stream]:
        """Returns the connections to the tasks that answered.

        Raises:
          DistributedError: one has other devices than the cluster's description.
        """
        streams = {number: stream for number, (stream, _) in met.items()}
        for number, row in enumerate(self._by_task or ()):
            have = met[number][1].devices if number in met else None
            if have is not None and [d.platform for d in row] != have[: len(row)]:
                for stream in streams.values():
                    stream.close()
                raise DistributedError(
                    f"{self.task_name(number)} has the devices {' '.join(have)}, and "
                    f"the cluster was described with {[d.platform for d in row]}",
                    [number],
                )
            if number in met:
                for device, nbytes in zip(row, met[number][1].memory, strict=False):
                    device.memory = nbytes
        return streams

    def _session_of(self, met: Mapping[int, tuple[Stream, Meet]]) -> Session:
        """Returns the session with the tasks that answered; see `_streams_of`."""
        streams = self._streams_of(met)
        children = weakref.ref(self)

        def reason(number: int) -> str:
            cluster = children()
            started = None if cluster is None else cluster._children
            return "" if started is None else started.reason(number)

        return Session(self, streams, self.deadline, reason)

    def _meet(
        self, number: int, session: str, seconds: float, retry: bool
    ) -> tuple[Stream, Meet]:
        """Connects to a task; returns what it says."""
        address, name = self.addresses[number], self.task_name(number)
        end = time.monotonic() + seconds

        def check() -> None:
            if why := self._ended(number):
                raise DistributedError(f"{name}: {why}", [number])

        connection = handshake.connect(
            address, self._keys, seconds, name, retry=retry, check=check
        )
        stream = stream_to(connection, address)
        own = Meet(
            HERE, session, __version__, jaxlib_version(), "", number, [],
            self.addresses, self.deadline, "", [],
        )  # fmt: skip
        stream.post(Message.of(own), waits=True)
        why = ""
        try:
            answer = stream.receive(max(0.1, end - time.monotonic())).fields
            if not isinstance(answer, Meet):
                why = "it is not a task"
            else:
                why = answer.refused or disagreement(answer, own)
                if (answer.job, answer.task) != self._names[number]:
                    why = why or f"it is task {answer.task} of job {answer.job!r}"
        except (EOFError, MessageError) as error:
            why = str(error)
        if why:
            stream.close()
            raise DistributedError(f"{name} at {address}: {why}", [number])
        return stream, answer

    # -- lost tasks --------------------------------------------------------------------

    def reconnect(
        self,
        *,
        minimum: int = 1,
        needed: Iterable[int] = (),
        seconds: float = START,
    ) -> list[int]:
        """Connects again to the tasks that were lost, if they answer.

        What other tasks hold, and the steps that only they take part in, stay. Arrays
        of a lost task are lost, also if it answers again.

        Functions with ``devices=cluster`` are planned again for the devices of the
        tasks that answer. The others are left out until the next call; `returned` names
        those of them that answer again.

        Args:
          minimum: the number of tasks that must answer.
          needed: numbers of tasks that must answer.
          seconds: to wait for these. Tasks of `local_cluster` that have ended are not
            awaited.

        Returns:
          The numbers of the tasks that answer.

        Raises:
          TaskLostError: too few answer in time.
          ArgumentError: there are not as many tasks, or not one of that number.
          DistributedError: the cluster was closed.
        """
        needed, count = set(needed), len(self.addresses)
        if not 0 <= minimum <= count or not needed <= set(range(count)):
            raise ArgumentError(
                f"reconnect: the cluster has {count} tasks, numbered from 0, and "
                f"minimum is {minimum}, needed {sorted(needed)}"
            )
        self._known()
        with self._lock:
            session = self._session
            name, end = secrets.token_hex(8), time.monotonic() + seconds
            met: dict[int, tuple[Stream, Meet]] = {}
            try:
                while True:
                    if self._closed:
                        raise DistributedError("the cluster was closed")
                    stay = [] if session is None else session.renew(name, ANSWER)
                    absent = {*range(count)} - met.keys() - set(stay)
                    found, failed = self._meet_all(absent, name, ANSWER, False)
                    met |= found
                    alive = {*stay, *met}
                    if len(alive) >= minimum and needed <= alive:
                        break
                    left = {*alive, *(n for n in failed if not self._ended(n))}
                    hopeless = len(left) < minimum or not needed <= left
                    if hopeless or time.monotonic() > end:
                        within = "" if hopeless else f" within {seconds:g} s"
                        raise self._too_few(alive, minimum, needed, failed, within)
                    time.sleep(_RETRY)
                streams = self._streams_of(met)
            except BaseException:
                for stream, _ in met.values():
                    stream.close()
                raise
            self.leave_out({number: str(error) for number, error in failed.items()})
            if session is None:
                self._session = self._session_of(met)
            else:
                session.join(streams)
            self._returned = set()
            self._awaiting = awaiting = {n for n in failed if not self._ended(n)}
            if awaiting:
                threading.Thread(
                    target=self._await_missing,
                    args=(awaiting,),
                    name="fxflow cluster awaits tasks",
                    daemon=True,
                ).start()
            return sorted(alive)

    def _ended(self, number: int) -> str:
        """Returns how a task of `local_cluster` ended; empty if it has not."""
        children = self._children
        return "" if children is None else children.ended(number)

    def _too_few(
        self,
        alive: set[int],
        minimum: int,
        needed: set[int],
        failed: Mapping[int, DistributedError],
        within: str,
    ) -> TaskLostError:
        absent = sorted(needed - alive) or sorted(failed)
        why = "; ".join(str(failed[number]) for number in absent)
        if needed <= alive:
            told = (
                f"{len(alive)} of {len(self.addresses)} tasks answer, and at least "
                f"{minimum} must{within}"
            )
        else:
            names = ", ".join(map(self.task_name, absent))
            told = f"{names} must answer{within}"
        return TaskLostError(f"{told}: {why}", absent[0])

    def _await_missing(self, missing: set[int]) -> None:
        """Looks which of the tasks that were left out answer again."""
        while missing and not self._closed and self._awaiting is missing:
            for number in list(missing):
                with contextlib.suppress(DistributedError):
                    address, name = self.addresses[number], self.task_name(number)
                    handshake.connect(
                        address, self._keys, ANSWER, name, retry=False
                    ).close()
                    missing.remove(number)
                    if self._awaiting is missing:
                        self._returned.add(number)
            time.sleep(_RETRY)

    @property
    def returned(self) -> list[int]:
        """The tasks that were left out by `reconnect` and answer again."""
        return sorted(self._returned)

    def program(
        self, traced: Traced, plan: Plan, arg_types: Sequence[ArrayType]
    ) -> ClusterProgram:
        """Returns a function cut over the tasks, ready to be called.

        Args:
          traced: the function.
          plan: of the function.
          arg_types: of the leaves of its arguments.

        Raises:
          PlacementError: a fragment calls what only this process has.
        """
        return ClusterProgram(traced, plan, self._connected, arg_types)


class _Children:
    """Tasks that are processes of this machine, and end with this one."""

    def __init__(self, commands: Sequence[Sequence[str]], devices: int) -> None:
        environment = {"FXFLOW_NUM_CPU_DEVICES": str(devices)}
        self._folder: str | None = None
        self._over = threading.Event()
        started = threading.Event()
        self._failure: BaseException | None = None
        self._processes: list[Process] = []

        def start() -> None:
            # Linux ends a child with the thread that started it.
            try:
                for command in commands:
                    self._processes.append(Process(command, environment))
            except BaseException as error:
                self._failure = error
            started.set()
            self._over.wait()

        threading.Thread(target=start, name="fxflow tasks", daemon=True).start()
        started.wait()
        failure: BaseException | None = self._failure
        if failure is not None:
            self.close()
            raise failure

    def ended(self, number: int) -> str:
        """Returns how a task ended; empty if it has not."""
        return self._told(self._processes[number].poll())

    def reason(self, number: int) -> str:
        """Returns how a task that does not answer ended; empty if it has not."""
        return self._told(self._processes[number].wait(0.5))

    @staticmethod
    def _told(code: int | None) -> str:
        if code is None:
            return ""
        if code < 0:
            return f"the process was ended by signal {-code}"
        return f"the process ended with status {code}"

    @property
    def pids(self) -> list[int]:
        """The process ids of the tasks."""
        return [process.pid for process in self._processes]

    def close(self) -> None:
        """Ends the tasks."""
        for process in self._processes:
            process.send(signal.SIGTERM)
        for process in self._processes:
            process.wait(1.0)
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait(5.0)
        self._over.set()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def local_cluster(
    count: int, *, devices_per_task: int = 1, deadline: float = 60.0
) -> Cluster:
    """Starts tasks on this machine, which end with the cluster or with this process.

    Args:
      count: the number of tasks, at least 1.
      devices_per_task: the number of CPU devices of each.
      deadline: seconds that a wait lasts at most; see `Cluster`.

    Returns:
      The cluster, connected; a context manager that ends the tasks.

    Raises:
      ArgumentError: a number is not positive.
      DistributedError: a task does not start.

    Example:
      >>> from fxflow import dataflow
      >>> from fxflow.dataflow import on
      >>> @dataflow.jit
      ... def f(x):
      ...     return fnp.sin(x)
      >>> with dataflow.local_cluster(1) as cluster:
      ...     def g(x):
      ...         with on("/task:0"):
      ...             return fnp.sin(x)
      ...     float(dataflow.jit(g, devices=cluster)(0.0))
      0.0
    """
    for what, number in (("count", count), ("devices_per_task", devices_per_task)):
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            raise ArgumentError(
                f"local_cluster: {what} is a positive integer, got {number!r}"
            )
    folder = tempfile.mkdtemp(prefix="fxflow-")
    addresses = [str(Path(folder, f"task-{i}")) for i in range(count)]
    try:
        cluster = Cluster({JOB: addresses}, devices=devices_per_task, deadline=deadline)
        cluster._keys = None  # Unix sockets in a folder of this user
        commands = [
            [sys.executable, "-m", "fxflow.dataflow.tasks", "--once", "--job", JOB,
             "--index", str(i), "--address", address]
            for i, address in enumerate(addresses)
        ]  # fmt: skip
        cluster._children = _Children(commands, devices_per_task)
        cluster._children._folder = folder
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    try:
        return cluster.connect()
    except BaseException:
        cluster.close()
        raise


def connect(*, deadline: float = 60.0, seconds: float = START) -> Cluster:
    """Connects to the tasks that the environment describes.

    ``fxflow launch --tasks`` sets `FXFLOW_DATAFLOW_TASKS` to the tasks' addresses,
    separated by commas, and the keys of the run.

    Args:
      deadline: seconds that a wait lasts at most; see `Cluster`.
      seconds: for the tasks to start.

    Returns:
      The cluster, connected.

    Raises:
      ArgumentError: the environment does not describe tasks.
      DistributedError: a task does not answer, or is not of this run.
    """
    text = os.environ.get(TASKS, "")
    if not text:
        raise ArgumentError(
            f"dataflow.connect: {TASKS} is not set: start this script with fxflow "
            "launch --tasks N, or give the addresses to dataflow.Cluster"
        )
    cluster = Cluster({JOB: text.split(",")}, deadline=deadline)
    with contextlib.ExitStack() as stack:
        stack.callback(cluster.close)
        cluster.connect(seconds)
        stack.pop_all()
    return cluster
