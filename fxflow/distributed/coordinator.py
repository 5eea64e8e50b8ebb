"""The coordinator: the server through which the processes of a run find each other.

It registers processes, serves barriers, monitors which processes are alive, and
connects the runtime's clients to the runtime's service, all on one port.
It runs in the launcher, or in process 0 if there is no launcher.

The server has two threads for each process, which spend their time waiting.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterable, Set
from contextlib import AbstractContextManager
from typing import Any, ClassVar, NamedTuple

from fxflow.devices.cluster import Service, StandIn
from fxflow.devices.relay import splice
from fxflow.distributed import protocol
from fxflow.distributed.addresses import Address
from fxflow.distributed.admission import admitted, require_token
from fxflow.distributed.messages.channel import Channel, Message


def listing(processes: Iterable[int]) -> str:
    """Returns "process 2" or "processes 0, 2", for a message."""
    found = sorted(processes)
    if not found:
        return "no process"
    numbers = ", ".join(map(str, found))
    return f"process {numbers}" if len(found) == 1 else f"processes {numbers}"


# -- a group of processes --------------------------------------------------------------


class Caller(NamedTuple):
    """The process that sent a request, the request's number, and its bytes."""

    rank: int
    channel: Channel
    id: int | None
    payload: Any = b""

    def answer(self, payload: Any = b"", **fields: Any) -> None:
        """Sends the answer."""
        self.channel.post({"re": self.id, **fields}, payload)


class _Barrier(NamedTuple):
    """The ranks that a barrier waits for, and those that have arrived."""

    needed: frozenset[int]
    arrived: dict[int, Caller]


class StopDecision:
    """The coordinator's part in stopping all processes at one step; see `preemption`.

    It collects reports and decides once, without I/O.
    """

    def __init__(self) -> None:
        self._reports: dict[int, int] = {}
        self._is_asked = self._is_decided = False

    def ask(self) -> bool:
        """Returns whether to ask the processes to hold: True for the first call."""
        is_first, self._is_asked = not self._is_asked, True
        return is_first

    def report(self, rank: int, step: int) -> None:
        """Records a process's report; only its first one counts.

        Args:
          rank: the process.
          step: the first step that it has not begun.
        """
        if self._is_asked:
            self._reports.setdefault(rank, step)

    def decide(self, ranks: Set[int]) -> int | None:
        """Returns `until` once, when all processes have reported; otherwise None.

        Args:
          ranks: the live processes.
        """
        if self._is_decided or not ranks or not ranks <= self._reports.keys():
            return None
        self._is_decided = True
        return max(self._reports.values())


class Group:
    """The barriers and reports of processes 0 to `size` - 1, in one epoch.

    It is not thread-safe: the server calls it under its lock.
    """

    size: int
    epoch: int

    def __init__(self, size: int, epoch: int = 0) -> None:
        self.size, self.epoch = size, epoch
        self.channels: dict[int, Channel] = {}
        #: The rank of each process that has left or died → why.
        self.departed: dict[int, str] = {}
        self._barriers: dict[str, _Barrier] = {}
        self._stop = StopDecision()
        #: What follows the step at which all stop: "stop" or "reform".
        self._purpose = ""
        #: The processes that have reported that they wait in a collective.
        self._waiting: set[int] = set()

    def handle(self, caller: Caller, request: Any) -> None:
        """Answers a process's request.

        Args:
          caller: the process.
          request: an instance of a class in `handlers`.
        """
        self.handlers[type(request)](self, caller, request)

    # -- barriers; with payloads they are all-gathers over TCP -------------------------

    def _meet(self, caller: Caller, request: protocol.Meet) -> None:
        name = request.key
        processes = frozenset(request.processes or range(self.size))
        needed, arrived = self._barriers.setdefault(name, _Barrier(processes, {}))
        if needed != processes:
            caller.answer(error="other", processes=sorted(needed))
            return
        arrived[caller.rank] = caller
        if needed <= arrived.keys():
            del self._barriers[name]
            payloads = [arrived[rank].payload for rank in sorted(arrived)]
            sizes, together = [len(p) for p in payloads], b"".join(payloads)
            for other in arrived.values():
                other.answer(together, sizes=sizes)
        else:
            self._check(name)

    def _check(self, name: str) -> None:
        """Fails a barrier that a lost process will never reach."""
        needed, arrived = self._barriers[name]
        lost = {
            r: self.departed[r] for r in needed - arrived.keys() if r in self.departed
        }
        if lost:
            # A process that left because of a loss is not its cause.
            lost = {r: why for r, why in lost.items() if why != LEFT} or lost
            del self._barriers[name]
            for other in arrived.values():
                other.answer(
                    error="unreachable", processes=sorted(lost), why=lost[min(lost)]
                )

    def _cancel(self, caller: Caller, request: protocol.Cancel) -> None:
        """Withdraws a request; answers with the processes that have not arrived."""
        name = request.key
        absent: list[int] = []
        if name in self._barriers:
            needed, arrived = self._barriers[name]
            absent = sorted(needed - arrived.keys())
            own = arrived.get(caller.rank)
            if own is not None and own.id == request.request:
                del arrived[caller.rank]
                if not arrived:
                    del self._barriers[name]
        caller.answer(processes=absent)

    # -- stopping at one step ----------------------------------------------------------

    def ask_to_stop(self, purpose: str) -> None:
        """Makes the processes agree on the step at which all stop.

        Args:
          purpose: what follows: ``"stop"`` or ``"reform"``; the last call counts.
        """
        self._purpose = purpose
        if self._stop.ask():
            self.broadcast(protocol.Hold())

    def _notice(self, caller: Caller, request: protocol.Notice) -> None:
        self.ask_to_stop("stop")

    def _in_step(self, caller: Caller, request: protocol.InStep) -> None:
        self._stop.report(caller.rank, request.step)
        self._decide()

    def _decide(self) -> None:
        until = self._stop.decide(self.channels.keys() - self.departed.keys())
        if until is not None:
            self.broadcast(protocol.Until(until, self._purpose))

    # -- liveness ----------------------------------------------------------------------

    def _ask_waiting(self, caller: Caller, request: protocol.AskWaiting) -> None:
        self.broadcast(protocol.SayWaiting())

    def _report_waiting(self, caller: Caller, request: protocol.ReportWaiting) -> None:
        self._waiting.add(caller.rank)

    def _list_waiting(self, caller: Caller, request: protocol.ListWaiting) -> None:
        caller.answer(processes=sorted(self._waiting))

    def _judge(self, caller: Caller, request: protocol.Judge) -> None:
        self.broadcast(protocol.Late(request.processes, request.why))

    def leave(self, rank: int, why: str) -> None:
        """Records that a process has left, and fails the barriers that need it."""
        self.departed[rank] = why
        for name in list(self._barriers):
            self._check(name)
        self._decide()

    def end(self, why: str) -> None:
        """Fails every pending request: the run is over."""
        lost = sorted(self.departed)
        for barrier in self._barriers.values():
            for caller in barrier.arrived.values():
                caller.answer(error="unreachable", processes=lost, why=why)
        self._barriers.clear()

    def broadcast(self, event: Any) -> None:
        """Sends an event of this epoch to every live process."""
        for rank, channel in self.channels.items():
            if rank not in self.departed:
                channel.post(protocol.written(event, epoch=self.epoch))

    #: The method that answers each request.
    handlers: ClassVar[dict[type, Callable[[Any, Caller, Any], None]]] = {
        protocol.Meet: _meet,
        protocol.Cancel: _cancel,
        protocol.Notice: _notice,
        protocol.InStep: _in_step,
        protocol.AskWaiting: _ask_waiting,
        protocol.ReportWaiting: _report_waiting,
        protocol.ListWaiting: _list_waiting,
        protocol.Judge: _judge,
    }


LEFT = "it has left"


# -- the port --------------------------------------------------------------------------


class Server:
    """Accepts connections and serves each according to its first message.

    Args:
      address: ``host:port`` to listen at; port 0 chooses one.
      token: the run's secret, by which connections are authenticated. It may be empty
        only at a loopback address.
      heartbeat_timeout: seconds of silence after which a process counts as lost.

    Attributes:
      port: the port that it listens on.
    """

    def __init__(self, address: str, token: str, heartbeat_timeout: float) -> None:
        self.heartbeat_timeout = heartbeat_timeout
        self.token = token
        self.lock: AbstractContextManager[Any] = threading.RLock()
        self._stopped = threading.Event()
        place = Address.parse(address, what="a coordinator address", any_port=True)
        require_token(place.host, token)
        self._listener = place.listen()
        self.port: int = self._listener.getsockname()[1]
        self._connections: set[socket.socket] = set()
        #: channel → the time of its last message.
        self._received_at: dict[Channel, float] = {}
        self._start(self._accept)
        self._start(self._watch)

    def _start(self, target: Callable[..., None], *arguments: Any) -> None:
        threading.Thread(
            target=target, args=arguments, name="fxflow-coordinator", daemon=True
        ).start()

    def _accept(self) -> None:
        for connection in admitted(self._listener, self.token):
            with self.lock:
                self._connections.add(connection)
            self._start(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        channel = Channel(connection)
        try:
            if not channel.readable(30):
                return
            first = protocol.read(channel.receive(most=0)[0])
            if isinstance(first, protocol.Runtime):
                service = self.service_of(first)
                if service is not None:
                    splice(connection, _local(service))
                return
            self.welcome(channel, first)
        except (EOFError, ValueError, KeyError, TypeError, OSError):
            return
        finally:
            channel.finish()
            channel.close()
            with self.lock:
                self._connections.discard(connection)

    def serve_messages(
        self,
        channel: Channel,
        handle: Callable[[Any, Message, Any], None],
        left: Callable[[str], None],
    ) -> None:
        """Serves a process until it leaves or is lost.

        Args:
          channel: the channel to the process.
          handle: called under the lock for each message except heartbeats, with its
            content, the message and its payload.
          left: called under the lock with the reason when the process has left, unless
            the server stops; the reason is empty if the process signed off.
        """
        why = "its connection was closed"
        self._received_at[channel] = time.monotonic()
        try:
            while True:
                message, payload = channel.receive()
                self._received_at[channel] = time.monotonic()
                content = protocol.read(message)
                if isinstance(content, protocol.Ping):
                    channel.post(protocol.written(protocol.PingReply()))
                    continue
                if isinstance(content, protocol.Bye):
                    why = ""
                    break
                with self.lock:
                    handle(content, message, payload)
        except EOFError:
            pass
        except (ValueError, KeyError, TypeError) as error:
            why = f"it sent an invalid message: {error!r}"
        silent = self._received_at.pop(channel, None) is None
        if silent and why:
            why = f"no heartbeat arrived for {self.heartbeat_timeout:g} s"
        with self.lock:
            # A process whose connection `stop` has closed is not lost.
            if not self._stopped.is_set():
                left(why)

    def _watch(self) -> None:
        while not self._stopped.wait(min(1.0, self.heartbeat_timeout / 10)):
            oldest = time.monotonic() - self.heartbeat_timeout
            for channel, received_at in list(self._received_at.items()):
                if received_at < oldest:
                    # The thread that reads the channel wakes up, and learns the reason
                    # from the missing entry.
                    self._received_at.pop(channel, None)
                    self.handle_silence(channel)
                    channel.close()

    def handle_silence(self, channel: Channel) -> None:
        """Handles a process that was silent for too long."""

    def welcome(self, channel: Channel, first: Any) -> None:
        """Serves a process, starting with its first message."""
        raise NotImplementedError

    def service_of(self, first: protocol.Runtime) -> Service | None:
        """Returns the runtime's service that a connection requests."""
        return None

    def stop(self) -> None:
        """Closes the port and all connections."""
        self._stopped.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self.lock:
            connections = list(self._connections)
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


def _local(service: Service) -> socket.socket:
    connection = socket.create_connection(Address.parse(service.address), 10)
    connection.settimeout(None)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def end_service(service: Service, stand_ins: Iterable[StandIn]) -> None:
    """Stops a service, unless a stand-in cannot leave it first.

    If a service stops while a client in this process is connected, the runtime ends
    the process.
    """
    stuck = [stand_in for stand_in in stand_ins if not stand_in.close()]
    if stuck:
        _kept.append(service)
    else:
        service.stop()


_kept: list[Service] = []


class Coordinator(Server):
    """The coordinator of a run with a fixed number of processes.

    Args:
      address: ``host:port`` to listen at; port 0 chooses one.
      num_processes: the number of processes that will join.
      token: the run's secret; see `Server`.
      heartbeat_timeout: seconds of silence after which a process counts as lost.

    Raises:
      DistributedError: the port cannot be used.
    """

    group: Group

    def __init__(
        self,
        address: str,
        num_processes: int,
        *,
        token: str = "",
        heartbeat_timeout: float = 100.0,
    ) -> None:
        if num_processes < 1:
            raise ValueError(f"num_processes must be at least 1, got {num_processes}")
        self.group = Group(num_processes)
        self._names: dict[int, str] = {}
        self._complete = False
        self._service: Service | None = None
        self._stand_ins: list[StandIn] = []
        super().__init__(address, token, heartbeat_timeout)
        # No process requests the service before all have joined.
        with self.lock:
            self._service = Service(num_processes)

    def service_of(self, first: protocol.Runtime) -> Service | None:
        """Returns the runtime's service of this run."""
        with self.lock:
            return self._service

    def welcome(self, channel: Channel, first: Any) -> None:
        """Registers a process, then serves it."""
        if not isinstance(first, protocol.Register):
            raise ValueError(f"a process must register first, got {first}")
        rank, size = first.process, first.processes
        with self.lock:
            refusal = self._refusal(rank, size)
            if not refusal:
                self.group.channels[rank] = channel
                self._names[rank] = first.name
                if len(self.group.channels) == self.group.size:
                    self._complete = True
                    self.group.broadcast(protocol.AllJoined(self._all_names()))
        if refusal:
            channel.send(protocol.written(protocol.Refused(refusal)))
            return

        def handle(request: Any, message: Message, payload: Any) -> None:
            caller = Caller(rank, channel, message.get("id"), payload)
            if isinstance(request, protocol.Missing):
                absent = set(range(self.group.size)) - self.group.channels.keys()
                caller.answer(processes=sorted(absent))
            else:
                self.group.handle(caller, request)

        def left(why: str) -> None:
            if not self._complete:
                # It may rejoin: its host may restart while the others start.
                self.group.channels.pop(rank, None)
                return
            if why:
                # Before `leave` fails their barriers: they must know the reason first.
                self.group.broadcast(protocol.Lost(rank, self._names[rank], why))
            self.group.leave(rank, why or LEFT)
            if why and self._service is not None and self._others():
                # They may be waiting in the runtime for data from this process.
                self._stand_ins.append(StandIn(self._service, rank))

        self.serve_messages(channel, handle, left)

    def _refusal(self, rank: int, size: int) -> str:
        group = self.group
        if size != group.size:
            return (
                f"process {rank} expects {size} processes, the "
                f"coordinator expects {group.size}"
            )
        if not 0 <= rank < size:
            return f"process_id {rank} is not in 0 to {size - 1}"
        if rank in group.departed:
            return (
                f"process {rank} has left ({group.departed[rank]}) and cannot rejoin "
                "a run that has begun"
            )
        if rank in group.channels:
            return f"process_id {rank} is taken by {self._names[rank]}"
        return ""

    def first_lost(self) -> int | None:
        """Returns the first process that was lost; None if no process was."""
        with self.lock:
            lost = (rank for rank, why in self.group.departed.items() if why != LEFT)
            return next(lost, None)

    def _others(self) -> bool:
        return bool(self.group.channels.keys() - self.group.departed.keys())

    def _all_names(self) -> list[str]:
        return [self._names[rank] for rank in range(self.group.size)]

    def stop(self) -> None:
        """Closes the port, all connections and the runtime's service."""
        super().stop()
        with self.lock:
            service, self._service = self._service, None
        if service is not None:
            end_service(service, self._stand_ins)
