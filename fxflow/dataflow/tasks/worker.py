"""A task: a process that runs fragments for a controller.

It has no code of the user. The controller sends its part of each program once, as
StableHLO text, and step numbers after that. It serves one controller at a time; when
the connection to it ends, all arrays are dropped.
"""

from __future__ import annotations

import contextlib
import math
import os
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from importlib import metadata
from typing import Any

import numpy as np

from fxflow._version import __version__
from fxflow.core.arrays import Array, ArrayType, Aval, dtypes, type_on
from fxflow.core.arrays.array import from_host, host_of
from fxflow.core.runtime.execute import Program
from fxflow.dataflow.measuring import Times
from fxflow.dataflow.placing import Place
from fxflow.dataflow.rows import Part, PlaceRow, ProgramRow
from fxflow.dataflow.tasks.devices import HERE
from fxflow.dataflow.tasks.executor import Executor, PartStep, Prepared, Worker
from fxflow.dataflow.tasks.messages import (
    LIMITS,
    NUMBERS,
    TIMES,
    Doing,
    DoingOk,
    Done,
    Failed,
    Fetch,
    Fetched,
    Free,
    Hold,
    Meet,
    Register,
    Registered,
    Renew,
    Run,
    Stop,
    Value,
    Want,
)
from fxflow.devices import Device, buffers, lapack, memory_stats
from fxflow.devices.clients import default_backend
from fxflow.devices.clients import local_devices as devices_here
from fxflow.devices.compile import compile as compile_text
from fxflow.devices.meshes import Mesh, PartitionSpec
from fxflow.devices.relay import accept
from fxflow.devices.shardings import NamedSharding
from fxflow.distributed.messages import handshake
from fxflow.distributed.messages.codec import Message
from fxflow.distributed.messages.keys import Keys
from fxflow.distributed.messages.stream import Receiver, Stream
from fxflow.distributed.program_text import require_harmless
from fxflow.errors import DistributedError, MessageError, PlacementError

#: Seconds for a process that connects to say what it is.
MEETING = 10.0
#: Seconds for a controller that left to connect again, before the task ends (`--once`).
RETURN = 10.0
#: Seconds for the connection to an earlier controller to end.
LEAVING = 2.0
#: The most blocks of shared memory for values to one process of this machine.
BLOCKS = 64
#: The most axes of a mesh, or of a value on it.
MOST_AXES = 32
#: The most connections that have not yet said what they are.
_STRANGERS = 64


def jaxlib_version() -> str:
    """Returns the version of jaxlib: programs of two versions may differ."""
    return metadata.version("jaxlib")


def own_devices() -> list[Device]:
    """Returns this process's devices: those of the default platform, then CPUs."""
    found = list(devices_here())
    if default_backend() != "cpu":
        found += devices_here(backend="cpu")
    return found


def stream_to(connection: socket.socket, address: str) -> Stream:
    """Returns the stream of a connection between two processes of a cluster.

    Args:
      connection: to the process that listens at the address, or from one.
      address: where one of them listens.
    """
    blocks = BLOCKS if handshake.is_local(address) else 0
    return Stream(connection, limits=LIMITS, blocks=blocks)


def disagreement(own: Meet, other: Meet) -> str:
    """Returns why two processes cannot work together; empty if they can."""
    if (own.version, own.jaxlib) != (other.version, other.jaxlib):
        return (
            f"it has fxflow {own.version} and jaxlib {own.jaxlib}, and the process "
            f"that connects fxflow {other.version} and jaxlib {other.jaxlib}: install "
            "the same versions everywhere"
        )
    return ""


class Task:
    """A task's process.

    Args:
      job: of the task.
      index: number of the task in its job.
      address: where others reach it.
      keys: of the run.
      once: whether it ends when no controller has returned for a while.
      listen: where it listens, if not at `address`.

    Raises:
      DistributedError: it cannot listen there.
    """

    job: str
    index: int
    address: str

    def __init__(
        self,
        job: str,
        index: int,
        address: str,
        keys: Keys | None,
        once: bool,
        listen: str | None = None,
    ) -> None:
        self.job, self.index, self.address, self._keys = job, index, address, keys
        self._once = once
        what = f"task {index} of job {job!r}"
        self._listener = handshake.listen(listen or address, keys, what)
        devices = own_devices()
        platforms = [str(device.platform) for device in devices]
        memory = [int(memory_stats(d).get("bytes_limit", 0)) for d in devices]
        self._own = Meet(
            index, "", __version__, jaxlib_version(), job, index, platforms,
            [], 0.0, "", memory,
        )  # fmt: skip
        self._receiver = Receiver(self._on_message, self._on_end, self._on_tick)
        self._lock = threading.Condition()
        self._service: _Service | None = None
        self._left_at = float("inf")
        self._strangers = threading.BoundedSemaphore(_STRANGERS)

    def serve(self) -> None:
        """Serves controllers until `stop` is called, or the first one leaves."""
        threading.Thread(
            target=self._accept, name="fxflow task accepts", daemon=True
        ).start()
        try:
            self._receiver.run()
        finally:
            self._close_listener()

    def stop(self) -> None:
        """Ends the task."""
        self._receiver.stop()

    def _close_listener(self) -> None:
        found = handshake.parsed(self.address)
        if isinstance(found, str):
            with contextlib.suppress(OSError):
                os.unlink(found)
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    # -- connections -------------------------------------------------------------------

    def _accept(self) -> None:
        while True:
            try:
                connection = accept(self._listener)
            except EOFError:
                return
            if connection is None:
                continue
            if not self._strangers.acquire(blocking=False):
                connection.close()
                continue
            threading.Thread(
                target=self._meet, args=(connection,), name="fxflow task meets",
                daemon=True,
            ).start()  # fmt: skip

    def _meet(self, connection: socket.socket) -> None:
        try:
            handshake.admit(connection, self._keys, MEETING)
        except DistributedError as error:
            log(str(error))
            return
        finally:
            self._strangers.release()
        stream = stream_to(connection, self.address)
        try:
            other = stream.receive(MEETING).fields
            if not isinstance(other, Meet):
                raise MessageError("kind", "it did not say what it is")
            refused = disagreement(self._own, other) or self._take(stream, other)
        except EOFError:  # it only looked whether there is a task
            stream.close()
            return
        except MessageError as error:
            log(f"a connection was refused: {error}")
            stream.close()
            return
        if refused:
            log(f"a connection was refused: {refused}")
            stream.post(Message.of(self._own._replace(refused=refused)), waits=True)
            stream.flush(1.0)
            stream.close()

    def _take(self, stream: Stream, other: Meet) -> str:
        """Takes a connection into service; returns why not, or nothing."""
        with self._lock:
            if other.number == HERE:
                # The end of a connection that was closed may just not be noted yet.
                if not self._lock.wait_for(lambda: self._service is None, LEAVING):
                    return "it works for another controller"
                self._service = _Service(self, stream, other)
            elif self._service is None or self._service.session != other.session:
                return "the process that connects works for another controller"
            else:
                self._service.links[other.number] = stream
            self._lock.notify_all()
        stream.post(Message.of(self._own))
        self._receiver.add(stream)
        return ""

    def link(self, service: _Service, number: int, seconds: float) -> None:
        """Connects to another task, or waits until that one connects.

        Args:
          service: for which.
          number: of the other task.
          seconds: to wait at most.

        Raises:
          DistributedError: it cannot be reached.
        """
        if number in service.links:
            return
        if number < service.number:
            # The one with the lower number connects.
            with self._lock:
                if not self._lock.wait_for(
                    lambda: number in service.links or service is not self._service,
                    seconds,
                ):
                    raise DistributedError(
                        f"task {number} did not connect within {seconds:g} s"
                    )
            return
        address = service.addresses[number]
        what = f"task {number}"
        connection = handshake.connect(address, self._keys, seconds, what)
        stream = stream_to(connection, address)
        own = self._own._replace(number=service.number, session=service.session)
        stream.post(Message.of(own))
        try:
            answer = stream.receive(seconds).fields
            why = answer.refused if isinstance(answer, Meet) else "it is not a task"
        except (EOFError, MessageError) as error:
            why = str(error)
        if why:
            stream.close()
            raise DistributedError(f"{what} at {address}: {why}")
        with self._lock:
            service.links[number] = stream
        self._receiver.add(stream)

    def renew(self, service: _Service, renew: Renew) -> None:
        """Ends the connections to tasks that are lost; in the receiver's thread.

        Args:
          service: for which.
          renew: the name of its session from now, and the tasks that stay.
        """
        with self._lock:
            service.session = renew.session
            left = [n for n in service.links if n != HERE and n not in renew.tasks]
            links = [service.links.pop(number) for number in left]
        for link in links:
            self._receiver.remove(link)

    # -- messages ----------------------------------------------------------------------

    def _on_message(self, stream: Stream, message: Message) -> None:
        service = self._service
        if service is None:
            return
        source = service.number_of(stream)
        if source is None:
            return
        service.handle(source, message)

    def _on_end(self, stream: Stream, why: str) -> None:
        service = self._service
        if service is None:
            return
        source = service.number_of(stream)
        if source == HERE:
            with self._lock:
                self._service = None
                self._lock.notify_all()
            service.end()
            for link in list(service.links.values()):
                if link is not stream:
                    self._receiver.remove(link)
            self._left_at = time.monotonic()
        elif source is not None:
            # The controller notices by itself, and stops the steps.
            with self._lock:
                service.links.pop(source, None)

    def _on_tick(self) -> None:
        service = self._service
        if service is not None:
            service.executor.check_deadlines()
        elif self._once and time.monotonic() > self._left_at + RETURN:
            self._receiver.stop()


class _Service:
    """What a task does for one controller."""

    def __init__(self, task: Task, stream: Stream, meet: Meet) -> None:
        self._task = task
        self.session: str = meet.session
        self.addresses: list[str] = meet.addresses
        #: The task's number in the cluster, which the controller says.
        self.number: int = meet.task
        self.links: dict[int, Stream] = {HERE: stream}
        self.compiling: str = ""
        self.executor: Executor = Executor(
            self._post, self._post_frames, self._failed, self._done, meet.deadline
        )
        self._deadline = meet.deadline
        self._programs: dict[int, Prepared] = {}
        self._compiled: dict[Any, Program] = {}
        self._registrar = Worker("fxflow register")
        self._fetcher = Worker("fxflow fetch")
        self._ended = False

    def number_of(self, stream: Stream) -> int | None:
        """Returns the number of the process at the other end."""
        for number, link in list(self.links.items()):
            if link is stream:
                return number
        return None

    def end(self) -> None:
        """Drops everything."""
        self._ended = True
        self.executor.stop_all()
        self._programs.clear()

    def _post(self, process: int, message: Message, waits: bool) -> None:
        link = self.links.get(process)
        # The controller notices a task that is lost, and stops the step.
        if link is not None:
            link.post(message, waits=waits)

    def _post_frames(self, process: int, frames: list[bytes | memoryview]) -> None:
        link = self.links.get(process)
        if link is not None:
            link.post_frames(frames)

    def _tell(self, message: Message, waits: bool = False) -> None:
        self._post(HERE, message, waits)

    def handle(self, source: int, message: Message) -> None:
        """Does what a message asks for."""
        fields, step = message.fields, message.sequence
        executor = self.executor
        match fields:
            case Run():
                program, arrays = self._programs.get(message.worker), message.arrays
                if program is None:  # the controller has just connected again
                    told = Failed("the task does not have this program", -1, -1)
                    self._tell(Message.of(told, message.worker, step))
                    return
                base, measured, *numbers = arrays.pop(NUMBERS).tolist()
                count = len(program.part.donated)
                if len(numbers) > count:
                    executor.handles.free([n for n in numbers[count:] if n >= 0])
                arrived = {int(edge): host for edge, host in arrays.items()}
                times: Times | None = {} if measured else None
                executor.begin(
                    program, step, base, numbers[:count], arrived=arrived, times=times
                )
            case Value(edge):
                (host,) = message.arrays.values()
                executor.arrive(step, edge, host)
            case Want(count):
                executor.wanted(step, source, count)
            case Stop():
                executor.stop(step)
            case Free(frees, programs):
                executor.handles.free(frees)
                for number in programs:
                    self._programs.pop(number, None)
            case Fetch(number):
                self._fetch(number)
            case Hold(number, place):
                (host,) = message.arrays.values()
                self._hold(number, place, host)
            case Doing():
                state = DoingOk(executor.doing(), self.compiling, len(executor.handles))
                self._tell(Message.of(state))
            case Renew():
                self._task.renew(self, fields)
                self._tell(Message.of(Renew(self.session, [])))
            case Register():
                self._registrar.call(lambda: self._register(message))

    def _done(self, step: PartStep, small: dict[str, np.ndarray[Any, Any]]) -> None:
        if step.times is not None:
            rows = [(number, *span) for number, span in step.times.items()]
            small[TIMES] = np.array(rows, np.float64).reshape(-1, 3)
        header = Done(), step.program.number, step.number
        frames = step.program.templates.encode(tuple(small), *header, small)
        self._post_frames(HERE, frames)

    def _failed(
        self, step: PartStep, error: BaseException, fragment: int, edge: int
    ) -> None:
        told = Failed(told_of(error), fragment, edge)
        self.executor.handles.forget(
            range(step.base, step.base + max(step.program.kept, default=-1) + 1)
        )
        self._tell(Message.of(told, step.program.number, step.number))

    def _fetch(self, number: int) -> None:
        array = self.executor.handles.get(number)

        def send() -> None:
            try:
                if array is None:
                    raise DistributedError("the task does not have this array")
                host = host_of(array)
                self._tell(
                    Message.of(Fetched(number, ""), arrays={"": host}), waits=True
                )
            except BaseException as error:
                self._tell(Message.of(Fetched(number, told_of(error))))

        self._fetcher.call(send)

    def _hold(self, number: int, place: list[Any], host: np.ndarray[Any, Any]) -> None:
        def keep() -> None:
            try:
                array = array_at(host, place_here(PlaceRow.read(place)))
                array.block_until_ready()
                self.executor.handles.keep(number, array)
                why = ""
            except BaseException as error:
                why = told_of(error)
            self._tell(Message.of(Fetched(number, why)))

        self._fetcher.call(keep)

    # -- programs ----------------------------------------------------------------------

    def _register(self, message: Message) -> None:
        register, number = message.fields, message.worker
        self.compiling = register.name
        try:
            part = Part.of(register.part)
            self._programs[number] = self._prepared(register, part, message)
            self.compiling = ""
            end = time.monotonic() + self._deadline
            for peer in sorted(part.peers - {HERE}, reverse=True):
                self._task.link(self, peer, max(0.1, end - time.monotonic()))
            why = ""
        except BaseException as error:
            why = told_of(error)
        finally:
            self.compiling = ""
        if not self._ended:
            self._tell(Message.of(Registered(why), number))

    def _prepared(self, register: Register, part: Part, message: Message) -> Prepared:
        places = [place_here(row) for row in part.places]
        programs = []
        for i, lists in enumerate(register.programs):
            row = ProgramRow(*lists)
            text = message.arrays[f"p{i}"].tobytes().decode()
            programs.append(self._compile(register.name, row, text, places))
        held: dict[tuple[int, Place], Array] = {}

        def constant(number: int, place: Place) -> Array:
            if (number, place) not in held:
                held[number, place] = array_at(message.arrays[f"c{number}"], place)
            return held[number, place]

        return Prepared(message.worker, register.name, part, places, programs, constant)

    def _compile(
        self, name: str, row: ProgramRow, text: str, places: Sequence[Place]
    ) -> Program:
        place, options = one_of(places, row.place), row.options
        inputs = [type_of(listed, places) for listed in row.inputs]
        outputs = [type_of(listed, places) for listed in row.outputs]
        key = place, text, *inputs, *outputs, tuple(sorted(options.items()))
        found = self._compiled.get(key)
        if found is None:
            require_harmless(text, name)
            if "lapack_" in text and place.platform == "cpu":
                lapack.ensure()
            executable = compile_text(
                text,
                place,
                num_partitions=len(place.devices),
                use_shardy=not place.is_single,
                options=options or None,
                name=name,
            )
            found = Program(executable, [t.placement for t in inputs], outputs, text)
            self._compiled[key] = found
        return found


def place_here(row: PlaceRow) -> Place:
    """Returns the place of this process that a row describes.

    Raises:
      PlacementError: this process has no such device, or the row is not of a place.
    """
    by_name: dict[str, Device] = {}
    counts: Counter[str] = Counter()
    for device in own_devices():
        kind = str(device.platform)
        by_name[f"{kind}:{counts[kind]}"] = device
        counts[kind] += 1
    names, sizes, entries = row
    missing = [name for name in names if name not in by_name]
    if missing or not names:
        told, have = ", ".join(map(repr, missing)), " ".join(by_name)
        raise PlacementError(f"no device {told}: the task has {have}")
    devices = [by_name[name] for name in names]
    if sizes is None and len(devices) == 1:
        return buffers.placement(devices[0])
    numbers = [n for axes in (sizes or [], *entries) for n in axes]
    ok = all(type(n) is int and n >= 0 for n in numbers)
    few = max(len(sizes or []), *map(len, entries), len(entries)) <= MOST_AXES
    if sizes is None or not (ok and few) or math.prod(sizes) != len(devices):
        raise PlacementError(
            f"not a mesh of {' '.join(names)}: sizes {sizes}, entries {entries}"
        )
    grid = np.array(devices, object).reshape(sizes)
    spec = PartitionSpec(*map(tuple, entries))
    mesh = Mesh(grid, range(len(sizes)))
    return buffers.placement_for(NamedSharding(mesh, spec))


def one_of(places: Sequence[Place], number: int) -> Place:
    """Returns a place by its number.

    Raises:
      PlacementError: there is no such place.
    """
    if type(number) is not int or not 0 <= number < len(places):
        raise PlacementError(f"no place {number!r}: there are {len(places)}")
    return places[number]


def type_of(listed: Sequence[Any], places: Sequence[Place]) -> ArrayType:
    """Returns the type that is written as its dtype, its shape and a place's number.

    Raises:
      PlacementError: there is no such place, or an array of that shape cannot be there.
    """
    name, shape, number = listed
    place = one_of(places, number)
    if not place.is_single:
        place.sharding.shard_shape(shape)
    return type_on(Aval(tuple(shape), dtypes.dtype(name)), place, True)


def array_at(host: np.ndarray[Any, Any], place: Place) -> Array:
    """Returns an array at a place, which takes over the memory of a received one."""
    kind = type_on(Aval(host.shape, host.dtype), place, True)
    if place.is_host:
        return from_host(host, kind)
    return Array(buffers.put(kind.aval, host, place), kind)


def told_of(error: BaseException) -> str:
    """Returns what an error says, with its notes."""
    notes: Sequence[str] = getattr(error, "__notes__", ())
    return "\n".join([f"{type(error).__name__}: {error}", *notes])


def log(text: str) -> None:
    """Writes a line about this task to standard error."""
    print(f"fxflow task: {text}", file=sys.stderr, flush=True)
