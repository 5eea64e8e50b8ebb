"""The coordinator: the one port at which the processes of a run find each other.

It calls the roll, keeps a store of small values, counts processes at barriers, watches
who is alive, and leads the runtime's own clients to the runtime's service. It runs in
the launcher; without a launcher in process 0.

It is a server of threads: two for each process, all of them waiting.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from fxflow.devices.cluster import Service, StandIn
from fxflow.devices.relay import splice
from fxflow.distributed.addresses import Address
from fxflow.distributed.admission import admitted, require_token
from fxflow.distributed.messages.channel import Channel, Message
from fxflow.distributed.stop_agreement import StopDecision


def listing(processes: Iterable[int]) -> str:
    """Returns "process 2" or "processes 0, 2" for a message."""
    found = sorted(processes)
    if not found:
        return "no process"
    numbers = ", ".join(map(str, found))
    return f"process {numbers}" if len(found) == 1 else f"processes {numbers}"


# -- a set of processes that coordinate ------------------------------------------------


class Group:
    """A key-value store and the barriers of processes 0 to `size` - 1, in one epoch.

    Not safe by itself: the server holds its lock.
    """

    def __init__(self, size: int, epoch: int = 0) -> None:
        self.size, self.epoch = size, epoch
        self.lines: dict[int, Channel] = {}
        #: Rank of each process that has left or died → why.
        self.gone: dict[int, str] = {}
        self._store: dict[str, Any] = {}
        #: key → the requests that wait for it: (line, request).
        self._getters: dict[str, list[tuple[Channel, int]]] = {}
        #: name → (members, rank of each that arrived → line, request, bytes).
        self._barriers: dict[
            str, tuple[frozenset[int], dict[int, tuple[Channel, int, Any]]]
        ] = {}
        self._stop = StopDecision()
        #: What comes after the step at which all stop: "stop" or "reform".
        self._purpose = ""

    def handle(self, rank: int, line: Channel, message: Message, payload: Any) -> None:
        """Answers a request of process `rank`."""
        operation = message["op"]
        handler = getattr(self, f"_{operation}", None)
        if operation not in _OPERATIONS or handler is None:
            line.post({"re": message["id"], "error": f"unknown request {operation}"})
            return
        handler(rank, line, message, payload)

    # -- the store ---------------------------------------------------------------------

    def _set(self, rank: int, line: Channel, message: Message, payload: Any) -> None:
        key = message["key"]
        if key in self._store and not message.get("overwrite"):
            line.post({"re": message["id"], "error": "exists"})
            return
        self._store[key] = payload
        line.post({"re": message["id"]})
        for other, request in self._getters.pop(key, ()):
            other.post({"re": request}, payload)

    def _get(self, rank: int, line: Channel, message: Message, payload: Any) -> None:
        key = message["key"]
        if key in self._store:
            line.post({"re": message["id"]}, self._store[key])
        elif message.get("wait"):
            self._getters.setdefault(key, []).append((line, message["id"]))
        else:
            line.post({"re": message["id"], "error": "missing"})

    def _increment(
        self, rank: int, line: Channel, message: Message, payload: Any
    ) -> None:
        key = message["key"]
        try:
            value = int(bytes(self._store.get(key, b"0"))) + int(message["by"])
        except ValueError:
            line.post({"re": message["id"], "error": "not a number"})
            return
        self._store[key] = str(value).encode()
        line.post({"re": message["id"], "value": value})

    def _delete(self, rank: int, line: Channel, message: Message, payload: Any) -> None:
        key = message["key"]
        for name in [
            k for k in self._store if k == key or k.startswith(key.rstrip("/") + "/")
        ]:
            del self._store[name]
        line.post({"re": message["id"]})

    def _list(self, rank: int, line: Channel, message: Message, payload: Any) -> None:
        prefix = message["key"].rstrip("/") + "/"
        found = sorted(k for k in self._store if k.startswith(prefix))
        line.post(
            {
                "re": message["id"],
                "keys": found,
                "sizes": [len(self._store[k]) for k in found],
            },
            b"".join(bytes(self._store[k]) for k in found),
        )

    # -- barriers, which may carry bytes: an all-gather over TCP -----------------------

    def _meet(self, rank: int, line: Channel, message: Message, payload: Any) -> None:
        name = message["key"]
        processes = frozenset(message.get("processes") or range(self.size))
        needed, arrived = self._barriers.setdefault(name, (processes, {}))
        if needed != processes:
            line.post(
                {"re": message["id"], "error": "other", "processes": sorted(needed)}
            )
            return
        arrived[rank] = (line, message["id"], payload)
        if needed <= arrived.keys():
            del self._barriers[name]
            left = [arrived[r][2] for r in sorted(arrived)]
            sizes, together = [len(p) for p in left], b"".join(left)
            for other, request, _ in arrived.values():
                other.post({"re": request, "sizes": sizes}, together)
        else:
            self._check(name)

    def _check(self, name: str) -> None:
        """Fails a barrier that a process which is gone will never reach."""
        needed, arrived = self._barriers[name]
        lost = {r: self.gone[r] for r in needed - arrived.keys() if r in self.gone}
        if lost:
            # A process that left because of a loss is a consequence, not the cause.
            lost = {r: why for r, why in lost.items() if why != _LEFT} or lost
            del self._barriers[name]
            for other, request, _ in arrived.values():
                other.post(
                    {
                        "re": request,
                        "error": "gone",
                        "processes": sorted(lost),
                        "why": lost[min(lost)],
                    }
                )

    def _cancel(self, rank: int, line: Channel, message: Message, payload: Any) -> None:
        """Withdraws a request that timed out; answers with who has not arrived."""
        name, request = message["key"], message["request"]
        waiting = self._getters.get(name, [])
        if (line, request) in waiting:
            waiting.remove((line, request))
        absent: list[int] = []
        if name in self._barriers:
            needed, arrived = self._barriers[name]
            absent = sorted(needed - arrived.keys())
            if rank in arrived and arrived[rank][1] == request:
                del arrived[rank]
                if not arrived:
                    del self._barriers[name]
        line.post({"re": message["id"], "processes": absent})

    # -- one step at which all stop ----------------------------------------------------

    def ask_to_stop(self, purpose: str) -> None:
        """Has the processes agree on the step at which all stop.

        Args:
          purpose: what comes then: ``"stop"`` or ``"reform"``; the last one counts.
        """
        self._purpose = purpose
        if self._stop.ask():
            self.tell({"event": "hold"})

    def _notice(self, rank: int, line: Channel, message: Message, payload: Any) -> None:
        """A process received SIGTERM."""
        self.ask_to_stop("stop")

    def _in_step(
        self, rank: int, line: Channel, message: Message, payload: Any
    ) -> None:
        self._stop.report(rank, int(message["step"]))
        self._decide()

    def _decide(self) -> None:
        until = self._stop.decide(self.lines.keys() - self.gone.keys())
        if until is not None:
            self.tell({"event": "until", "step": until, "then": self._purpose})

    # -- liveness ----------------------------------------------------------------------

    def _live(self, rank: int, line: Channel, message: Message, payload: Any) -> None:
        alive = sorted(self.lines.keys() - self.gone.keys())
        line.post({"re": message["id"], "processes": alive})

    def _where(self, rank: int, line: Channel, message: Message, payload: Any) -> None:
        """Asks each process to report the collective it is blocked in, if any."""
        self.tell({"event": "where"})

    def _judge(self, rank: int, line: Channel, message: Message, payload: Any) -> None:
        """Tells all processes which of them were late for a collective."""
        late = {"processes": message["processes"], "why": message["why"]}
        self.tell({"event": "late", **late})

    def leave(self, rank: int, why: str) -> None:
        """Records that a process is gone, and fails the barriers that need it."""
        self.gone[rank] = why
        for name in list(self._barriers):
            self._check(name)
        self._decide()

    def end(self, why: str) -> None:
        """Fails every pending request: the run is over."""
        answer = {"error": "gone", "processes": sorted(self.gone), "why": why}
        for _, arrived in self._barriers.values():
            for line, request, _ in arrived.values():
                line.post({"re": request, **answer})
        for waiting in self._getters.values():
            for line, request in waiting:
                line.post({"re": request, **answer})
        self._barriers.clear()
        self._getters.clear()

    def tell(self, message: Message, payload: Any = b"") -> None:
        """Sends an event of this epoch to every live process."""
        for rank, line in self.lines.items():
            if rank not in self.gone:
                line.post({**message, "epoch": self.epoch}, payload)


_LEFT = "it has left"
_OPERATIONS = frozenset(
    {
        *("set", "get", "increment", "delete", "list", "meet", "cancel", "live"),
        *("notice", "in_step", "where", "judge"),
    }
)


# -- the port --------------------------------------------------------------------------


class Server:
    """Accepts connections and hands each to what its first message asks for.

    Args:
      address: ``host:port`` to listen at; port 0 chooses one.
      token: the run's secret, which a connection must prove to know. It may be empty
        at an address of the loopback interface only.
      heartbeat_timeout: seconds of silence after which a process counts as gone.

    Attributes:
      port: where it listens.
    """

    lock: Any

    def __init__(self, address: str, token: str, heartbeat_timeout: float) -> None:
        self.heartbeat_timeout = heartbeat_timeout
        self.token = token
        self.lock = threading.RLock()
        self._stopped = threading.Event()
        place = Address.parse(address, what="a coordinator address", any_port=True)
        require_token(place.host, token)
        self._listener = place.listen()
        self.port: int = self._listener.getsockname()[1]
        self._connections: set[socket.socket] = set()
        #: line → when it was last heard.
        self._heard: dict[Channel, float] = {}
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
        line = Channel(connection)
        try:
            if not line.readable(30):
                return
            first, _ = line.receive(most=0)
            if first.get("op") == "runtime":
                service = self.service_of(first)
                if service is not None:
                    splice(connection, _local(service))
                return
            self.welcome(line, first)
        except (EOFError, ValueError, KeyError, TypeError, OSError):
            return
        finally:
            line.finish()
            line.close()
            with self.lock:
                self._connections.discard(connection)

    def converse(
        self,
        line: Channel,
        handle: Callable[[Message, Any], None],
        left: Callable[[str], None],
    ) -> None:
        """Serves a process until it is gone.

        Args:
          line: to the process.
          handle: called with each message but heartbeats, under the lock.
          left: called once, under the lock, with the reason; empty if it said
            good-bye.
        """
        why = "its connection was closed"
        self._heard[line] = time.monotonic()
        try:
            while True:
                message, payload = line.receive()
                self._heard[line] = time.monotonic()
                if message.get("op") == "ping":
                    line.post({"event": "pong"})
                    continue
                if message.get("op") == "bye":
                    why = ""
                    break
                with self.lock:
                    handle(message, payload)
        except EOFError:
            pass
        except (ValueError, KeyError, TypeError) as error:
            why = f"it sent what is not a message: {error!r}"
        silent = self._heard.pop(line, None) is None
        if silent and why:
            why = f"it has not been heard for {self.heartbeat_timeout:g} s"
        with self.lock:
            left(why)

    def _watch(self) -> None:
        while not self._stopped.wait(min(1.0, self.heartbeat_timeout / 10)):
            oldest = time.monotonic() - self.heartbeat_timeout
            for line, heard in list(self._heard.items()):
                if heard < oldest:
                    # The thread that reads it wakes up and finds it missing here.
                    self._heard.pop(line, None)
                    self.silent(line)
                    line.close()

    def silent(self, line: Channel) -> None:
        """Notes that a process was not heard for too long."""

    def welcome(self, line: Channel, first: Message) -> None:
        """Serves a process from its first message on."""
        raise ValueError(f"unknown request {first.get('op')}")

    def service_of(self, first: Message) -> Service | None:
        """Returns the runtime's service that a connection asks for."""
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
    """Stops a service, if those that stand in for processes can leave it before.

    A service that goes while a client of this process lives ends this process.
    """
    stuck = [stand_in for stand_in in stand_ins if not stand_in.close()]
    if stuck:
        _kept.append(service)
    else:
        service.stop()


_kept: list[Service] = []


class Coordinator(Server):
    """The coordinator of a run whose processes are known from the start.

    Args:
      address: ``host:port`` to listen at; port 0 chooses one.
      num_processes: how many there will be.
      token: what processes must know to take part; see `Server`.
      heartbeat_timeout: seconds of silence after which a process counts as gone.

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
        self._who: dict[int, str] = {}
        self._complete = False
        self._service: Service | None = None
        self._stand_ins: list[StandIn] = []
        super().__init__(address, token, heartbeat_timeout)
        # Asked for when all have come, so never before it is there.
        with self.lock:
            self._service = Service(num_processes)

    def service_of(self, first: Message) -> Service | None:
        """Returns the one service."""
        with self.lock:
            return self._service

    def welcome(self, line: Channel, first: Message) -> None:
        """Calls the roll, then serves the process."""
        rank, size = int(first["process"]), int(first["processes"])
        with self.lock:
            refusal = self._refusal(rank, size)
            if not refusal:
                self.group.lines[rank] = line
                self._who[rank] = str(first.get("who", "?"))
                if len(self.group.lines) == self.group.size:
                    self._complete = True
                    self.group.tell({"event": "welcome", "who": self._people()})
        if refusal:
            line.send({"error": "refused", "why": refusal})
            return

        def handle(message: Message, payload: Any) -> None:
            if message["op"] == "missing":
                absent = set(range(self.group.size)) - self.group.lines.keys()
                line.post({"re": message["id"], "processes": sorted(absent)})
            else:
                self.group.handle(rank, line, message, payload)

        def left(why: str) -> None:
            if not self._complete:
                # It may come back: a host that was restarted while others came up.
                self.group.lines.pop(rank, None)
                return
            if why:
                # Before those who wait are answered: then they know the reason.
                event = {"event": "lost", "process": rank, "why": why}
                self.group.tell({**event, "who": self._who[rank]})
            self.group.leave(rank, why or _LEFT)
            if why and self._service is not None and self._others():
                # They may be waiting in the runtime for what it was to say.
                self._stand_ins.append(StandIn(self._service, rank))

        self.converse(line, handle, left)

    def _refusal(self, rank: int, size: int) -> str:
        group = self.group
        if size != group.size:
            return (
                f"process {rank} was told that there are {size} processes, the "
                f"coordinator that there are {group.size}"
            )
        if not 0 <= rank < size:
            return f"process_id {rank} is not in 0 to {size - 1}"
        if rank in group.gone:
            return (
                f"process {rank} is gone ({group.gone[rank]}) and cannot come back "
                "to a run that has begun"
            )
        if rank in group.lines:
            return f"process_id {rank} is taken by {self._who[rank]}"
        return ""

    def first_lost(self) -> int | None:
        """Returns the process that went first without a farewell; None if none did."""
        with self.lock:
            lost = (rank for rank, why in self.group.gone.items() if why != _LEFT)
            return next(lost, None)

    def _others(self) -> bool:
        return bool(self.group.lines.keys() - self.group.gone.keys())

    def _people(self) -> list[str]:
        return [self._who[rank] for rank in range(self.group.size)]

    def stop(self) -> None:
        """Closes the port, all connections and the runtime's service."""
        super().stop()
        with self.lock:
            service, self._service = self._service, None
        if service is not None:
            end_service(service, self._stand_ins)
