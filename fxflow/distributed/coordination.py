"""A process's connection to the coordinator: barriers and liveness.

Every wait has a deadline, and every error names the processes that caused it. When the
coordinator or a process is lost, every pending wait fails at once.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from fxflow.devices.cluster import failure
from fxflow.distributed import protocol
from fxflow.distributed.addresses import Address
from fxflow.distributed.coordinator import listing
from fxflow.distributed.messages.channel import Channel, Message, dial, proof
from fxflow.distributed.protocol import written
from fxflow.errors import DistributedError

_DEFAULT_TIMEOUT = 60.0


class _Slot:
    """Receives the answer to a request."""

    __slots__ = ("answer", "event")

    def __init__(self) -> None:
        self.event = threading.Event()
        self.answer: tuple[Message, Any] | None = None


class Connection:
    """Sends requests and heartbeats over a channel; receives answers and events.

    Args:
      channel: to the coordinator.
      heartbeat_timeout: seconds after which a silent coordinator counts as lost.
      on_event: called with each event and its epoch, from the thread that reads.
      on_lost: called once with the reason when the coordinator is lost.

    Attributes:
      lost: why the coordinator is lost; empty while it is connected.
    """

    lost: str

    def __init__(
        self,
        channel: Channel,
        *,
        heartbeat_timeout: float = 100.0,
        on_event: Callable[[Any, int], None] | None = None,
        on_lost: Callable[[str], None] | None = None,
    ) -> None:
        self.channel = channel
        self.lost = ""
        self._on_event, self._on_lost = on_event, on_lost
        self._timeout = heartbeat_timeout
        self._numbers = itertools.count(1)
        self._slots: dict[int, _Slot] = {}
        self._lock = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(
            target=self._read, name="fxflow-coordination", daemon=True
        )
        self._thread.start()

    # -- the thread that reads ---------------------------------------------------------

    def _read(self) -> None:
        pause = min(5.0, self._timeout / 4)
        received_at = pinged = time.monotonic()
        reason = "its connection was closed"
        try:
            while True:
                now = time.monotonic()
                if now - pinged >= pause:
                    self.channel.send(written(protocol.Ping()))
                    pinged = now
                if self.channel.readable(pause):
                    message, payload = self.channel.receive()
                    received_at = time.monotonic()
                    self._take(message, payload)
                elif now - received_at > self._timeout:
                    # If this process was stopped for a while, the coordinator is
                    # fine, and its reply to the ping has already arrived.
                    if self.channel.readable(pause):
                        continue
                    reason = f"no message arrived for {now - received_at:.0f} s"
                    break
        except (EOFError, OSError):
            pass
        except (ValueError, TypeError) as error:
            reason = str(error)
        self._end(reason)

    def _take(self, message: Message, payload: Any) -> None:
        number = message.get("re")
        if number is not None:
            slot = self._slots.pop(number, None)
            if slot is not None:
                slot.answer = (message, payload)
                slot.event.set()
        elif self._on_event is not None:
            event = protocol.read(message)
            if not isinstance(event, protocol.PingReply):
                self._on_event(event, message.get("epoch", 0))

    def _end(self, reason: str) -> None:
        with self._lock:
            if self.lost or self._closed:
                reason = ""
            else:
                self.lost = reason
            slots = list(self._slots.values())
            self._slots.clear()
        for slot in slots:
            slot.event.set()
        if reason and self._on_lost is not None:
            self._on_lost(reason)

    # -- requests ----------------------------------------------------------------------

    def _lost_error(self) -> DistributedError:
        known = failure()
        if known is not None:
            # This is most likely also why the coordinator's process has ended.
            return DistributedError(str(known), known.processes, known.seconds)
        where = ""
        with contextlib.suppress(OSError):
            where = f" at {Address(*self.channel.socket.getpeername()[:2])}"
        return DistributedError(
            f"this process has lost the coordinator{where}: "
            f"{self.lost or 'the connection is closed'}; the process that hosts it "
            "(the launcher, or process 0) has ended"
        )

    def request(
        self,
        request: Any,
        payload: Any = b"",
        *,
        timeout: float = _DEFAULT_TIMEOUT,
        epoch: int = 0,
    ) -> tuple[Message, Any]:
        """Sends a request and waits for its answer.

        Args:
          request: a class of `protocol`.
          payload: bytes.
          timeout: seconds.
          epoch: the epoch of the request.

        Returns:
          The answer's message and payload.

        Raises:
          DistributedError: the coordinator is lost.
          TimeoutError: no answer arrived in time; the request is withdrawn.
        """
        number = next(self._numbers)
        slot = _Slot()
        with self._lock:
            if self.lost or self._closed:
                raise self._lost_error()
            self._slots[number] = slot
        try:
            self.channel.send(written(request, id=number, epoch=epoch), payload)
        except OSError:
            raise self._lost_error() from None
        if not slot.event.wait(timeout):
            absent: list[int] = []
            try:
                if isinstance(request, protocol.Meet):
                    cancel = protocol.Cancel(request.key, number)
                    answer, _ = self.request(cancel, timeout=10, epoch=epoch)
                    absent = answer["processes"]
                    # The channel is ordered: an answer sent before the withdrawal has
                    # arrived by now.
                    if slot.answer is not None:
                        return slot.answer
            finally:
                self._slots.pop(number, None)
            error = TimeoutError(str(request))
            error.processes = absent  # type: ignore[attr-defined]
            raise error
        if slot.answer is None:
            raise self._lost_error()
        return slot.answer

    def connect_runtime(
        self, timeout: float, token: str, epoch: int = 0
    ) -> socket.socket:
        """Returns a new connection to the runtime's service.

        Args:
          timeout: seconds.
          token: the run's secret.
          epoch: the epoch of the service.

        Raises:
          OSError: the coordinator is lost.
        """
        peer = self.channel.socket.getpeername()[:2]
        connection = socket.create_connection(peer, timeout)
        connection.settimeout(None)
        connection.sendall(proof(token))
        Channel(connection).send(written(protocol.Runtime(epoch)))
        return connection

    def close(self, graceful: bool = True) -> None:
        """Leaves.

        Args:
          graceful: whether to sign off; otherwise this process counts as lost.
        """
        with self._lock:
            if self._closed:
                return
            self._closed = True
        if graceful and not self.lost:
            with contextlib.suppress(OSError):
                self.channel.send(written(protocol.Bye()))
                self.channel.socket.shutdown(socket.SHUT_WR)
        else:
            self.channel.close()
        self._thread.join(1)
        self.channel.close()


class Coordination:
    """Barriers and exchanges between the processes of a run.

    Args:
      connection: to the coordinator.
      process_id: this process's number.
      num_processes: the number of processes.
      names: ``host:pid`` of each process.
      epoch: the epoch of its requests.
    """

    process_id: int
    num_processes: int
    names: list[str]

    def __init__(
        self,
        connection: Connection,
        process_id: int,
        num_processes: int,
        names: Sequence[str],
        epoch: int = 0,
    ) -> None:
        self.connection = connection
        self.process_id, self.num_processes = process_id, num_processes
        self.names = list(names)
        self._epoch = epoch
        self._counts: dict[str, int] = {}

    def request(
        self, request: Any, payload: Any = b"", *, timeout: float = _DEFAULT_TIMEOUT
    ) -> tuple[Message, Any]:
        """Sends a request and waits for its answer; see `Connection.request`.

        Args:
          request: a class of `protocol`.
          payload: bytes.
          timeout: seconds.

        Returns:
          The answer's message and payload.
        """
        return self.connection.request(
            request, payload, timeout=timeout, epoch=self._epoch
        )

    def post(self, message: Any) -> None:
        """Sends a message that needs no answer.

        Args:
          message: a class of `protocol`.

        Raises:
          OSError: the coordinator is lost.
        """
        self.connection.channel.send(written(message, epoch=self._epoch))

    @classmethod
    def join(
        cls,
        address: str,
        process_id: int,
        num_processes: int,
        *,
        timeout: float,
        token: str = "",
        heartbeat_timeout: float = 100.0,
        on_event: Callable[[Any, int], None] | None = None,
        on_lost: Callable[[str], None] | None = None,
    ) -> Coordination:
        """Connects and waits until all processes have joined.

        Args:
          address: the coordinator's ``host:port``.
          process_id: this process's number.
          num_processes: the number of processes that will join.
          timeout: seconds for all of it.
          token: the run's secret; empty if it has none.
          heartbeat_timeout: seconds of silence after which the coordinator counts as
            lost.
          on_event: called with each event and its epoch, from the thread that reads.
          on_lost: called once with the reason when the coordinator is lost.

        Raises:
          DistributedError: no coordinator answers, it refuses this process, or a
            process did not join; the message names it.
        """
        end = time.monotonic() + timeout
        channel = dial(address, timeout, token)
        welcome = threading.Event()
        names: list[str] = []
        refusal = ""

        def first(event: Any, epoch: int) -> None:
            # `AllJoined` is the first event.
            nonlocal refusal
            if isinstance(event, (protocol.AllJoined, protocol.Refused)):
                if isinstance(event, protocol.AllJoined):
                    names[:] = event.names
                else:
                    refusal = event.why
                welcome.set()
            elif on_event is not None:
                on_event(event, epoch)

        def lost(reason: str) -> None:
            nonlocal refusal
            if not welcome.is_set():
                refusal = reason
                welcome.set()
            elif on_lost is not None:
                on_lost(reason)

        name = f"{socket.gethostname()}:{os.getpid()}"
        channel.send(written(protocol.Register(process_id, num_processes, name)))
        connection = Connection(
            channel, heartbeat_timeout=heartbeat_timeout, on_event=first, on_lost=lost
        )
        if not welcome.wait(max(0.0, end - time.monotonic())):
            absent: list[int] = []
            with contextlib.suppress(DistributedError):
                answer, _ = connection.request(protocol.Missing(), timeout=5)
                absent = answer["processes"]
            connection.close()
            joined = sorted(set(range(num_processes)) - set(absent))
            raise DistributedError(
                f"{listing(absent)} of {num_processes} did not join within "
                f"{timeout:g} s; {listing(joined)} did. Start all processes with the "
                f"coordinator address {address}",
                absent,
                timeout,
            )
        if refusal:
            connection.close()
            raise DistributedError(
                f"the coordinator at {address} refused process {process_id}: {refusal}",
                [process_id],
            )
        return cls(connection, process_id, num_processes, names)

    # -- together ----------------------------------------------------------------------

    def exchange(
        self,
        name: str,
        payload: Any = b"",
        timeout: float = _DEFAULT_TIMEOUT,
        processes: Sequence[int] | None = None,
    ) -> list[bytes]:
        """All-gathers bytes: each process sends its own and receives those of all.

        Args:
          name: the same in all processes; it may be used again.
          payload: this process's bytes.
          timeout: seconds.
          processes: the processes that take part; None for all.

        Returns:
          The bytes in the order of the processes' numbers.

        Raises:
          DistributedError: a process did not arrive in time or never will; the
            message and `DistributedError.processes` name it.
        """
        among = sorted(range(self.num_processes) if processes is None else processes)
        shown = name if processes is None else f"{name}@{','.join(map(str, among))}"
        count = self._counts[shown] = self._counts.get(shown, -1) + 1
        try:
            meet = protocol.Meet(
                f"{shown}#{count}", None if processes is None else among
            )
            answer, together = self.request(meet, payload, timeout=timeout)
        except TimeoutError as error:
            absent: list[int] = error.processes  # type: ignore[attr-defined]
            raise DistributedError(
                f"{name}: {listing(absent)} of {self.num_processes} did not arrive "
                f"within {timeout:g} s{self._shown(absent)}",
                absent,
                timeout,
            ) from None
        if answer.get("error") == "unreachable":
            lost = answer["processes"]
            raise DistributedError(
                f"{name}: {listing(lost)} will not arrive: {answer['why']}"
                f"{self._shown(lost)}",
                lost,
            )
        result, start = [], 0
        for size in answer["sizes"]:
            result.append(bytes(together[start : start + size]))
            start += size
        return result

    def barrier(
        self,
        name: str,
        timeout: float = _DEFAULT_TIMEOUT,
        processes: Sequence[int] | None = None,
    ) -> None:
        """Waits until all processes have reached the barrier of this name.

        Args:
          name: the same in all processes; it may be used again.
          timeout: seconds.
          processes: the processes that take part; None for all.

        Raises:
          DistributedError: a process did not arrive in time or never will; the
            message and `DistributedError.processes` name it.
        """
        self.exchange(f"barrier {name!r}", b"", timeout, processes)

    def _shown(self, processes: Sequence[int]) -> str:
        names = [self.names[p] for p in processes if p < len(self.names)]
        return f" ({', '.join(names)})" if names else ""

    def waiting(self) -> list[int]:
        """Returns the processes that have reported that they wait in a collective."""
        answer, _ = self.request(protocol.ListWaiting())
        return list(answer["processes"])

    def close(self, graceful: bool = True) -> None:
        """Leaves.

        Args:
          graceful: whether to sign off; otherwise this process counts as lost.
        """
        self.connection.close(graceful)
