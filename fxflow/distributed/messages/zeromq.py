"""Messages over ZeroMQ: ends that listen, ends that dial, and one wait for all of them.

A `Hub` belongs to one thread, and so does all that it makes: `Listener` (a server's
end, many peers) and `Dialer` (one end of a connection that restores itself). Other
threads may call `Hub.wake`, nothing else.

Nothing here waits for a peer. Sending to a peer that does not read, or has ended, fails
at once and is counted; bytes that are not a message are dropped and counted; strangers
are not even read. The callers send again what must not be lost (`ledger`).

A connection that other machines could make needs keys (`keys`): without them only the
loopback, ``ipc://`` and ``inproc://`` are used.
"""

from __future__ import annotations

import contextlib
import hmac
import itertools
import math
import os
import socket
import struct
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator
from typing import Any

from fxflow.distributed.addresses import endpoint
from fxflow.distributed.messages.codec import (
    LIMITS,
    Limits,
    Message,
    decode,
    encode,
)
from fxflow.distributed.messages.keys import Keys, zmq
from fxflow.distributed.messages.shared_memory import (
    LEAST,
    Memories,
    is_hello,
    is_place,
)
from fxflow.errors import DistributedError, MessageError

#: Messages that wait for a peer to read them: at the sender, at the receiver.
_MOST_UNSENT = 1024
_MOST_UNREAD = 64
#: Bytes that may wait for one peer: those of frames that are sent without a copy.
_MOST_WAITING = 1 << 30
#: Bytes of a frame; a longer one ends its connection before memory is taken for it.
_MOST_FRAME = 4 << 20
#: Bytes from which a frame is sent without a copy, which costs 20 µs to keep track of.
_UNCOPIED = 64 << 10
#: Seconds between probes of a silent machine, and probes without an answer after which
#: its connections are given up. The kernels ask and answer, so a long computation does
#: no harm. ZeroMQ's own heartbeats end the process with an assertion if a peer ends
#: whose messages wait to be read (libzmq 4.3.5, its #4767).
_ASK, _ASKS = 5, 3
#: Seconds for a handshake, and between attempts to connect (first and longest).
_HANDSHAKE = 10.0
_RETRY, _LONGEST_RETRY = 0.02, 1.0
#: Seconds between two inspections of the memory that is shared with peers.
_SWEEP = 1.0
#: Messages that one call of `receive` returns, so that the others get their turn.
_MOST_AT_ONCE = 64

_NOBODY = "no process answers there yet"
# ZMQ_DONTWAIT, _SNDMORE, _EVENTS, _POLLIN of zmq.h: pyzmq's enumerations are slow.
_NOBLOCK, _SNDMORE, _EVENTS, _POLLIN = 1, 2, 15, 1
_ZAP = "inproc://zeromq.zap.01"  # RFC 27 of ZeroMQ
_DOMAIN = b"fxflow"


# -- traffic ---------------------------------------------------------------------------


class Traffic:
    """Counts of what passed an end; may be read from any thread.

    Attributes:
      sent: messages by kind.
      sent_bytes: bytes by kind.
      received: messages by kind.
      received_bytes: bytes by kind.
      shared_bytes: those of both whose arrays went by memory, by kind.
      dropped: messages that were not sent or not taken, by reason: ``"slow"`` (the
        peer does not read), ``"gone"`` (it is not connected), the reasons of
        `MessageError`; and connections: ``"stranger"`` (no handshake succeeded).
    """

    def __init__(self) -> None:
        self.sent: Counter[str] = Counter()
        self.sent_bytes: Counter[str] = Counter()
        self.received: Counter[str] = Counter()
        self.received_bytes: Counter[str] = Counter()
        self.shared_bytes: Counter[str] = Counter()
        self.dropped: Counter[str] = Counter()

    def to_dict(self) -> dict[str, dict[str, int]]:
        """Returns all counts by name, as JSON can say them."""
        return {name: dict(counts) for name, counts in vars(self).items()}


class Waiting:
    """Bytes of large frames that ZeroMQ still holds for one peer."""

    def __init__(self) -> None:
        self._sent: deque[tuple[Any, int]] = deque()
        self._size = 0

    def __bool__(self) -> bool:
        return bool(self._sent)

    def add(self, tracker: Any, size: int) -> None:
        """Notes `size` bytes, which are sent when ZeroMQ's tracker says so."""
        self._sent.append((tracker, size))
        self._size += size

    def size(self) -> int:
        """Returns how many are not sent yet."""
        while self._sent and self._sent[0][0].done:
            self._size -= self._sent.popleft()[1]
        return self._size


# -- ends ------------------------------------------------------------------------------


class _End:
    """A socket, and what goes in and out of it."""

    def __init__(self, hub: Hub, kind: int, address: str, limits: Limits) -> None:
        self.traffic: Traffic = Traffic()
        self._memories = Memories(lambda peer, frame: self._put(peer, [frame]))
        self._hub = hub
        self._limits = limits
        self._zmq = zmq()
        self._address = address
        self._local = address.startswith("inproc:")
        context = hub._take_context(self._local)
        self._socket = context.socket(kind)
        options = (
            ("LINGER", 0),
            ("SNDHWM", _MOST_UNSENT),
            ("RCVHWM", _MOST_UNREAD),
            ("MAXMSGSIZE", _MOST_FRAME),
            # Not always: it would turn 127.0.0.1 into ::ffff:127.0.0.1.
            ("IPV6", int("[" in address)),
            ("HANDSHAKE_IVL", int(_HANDSHAKE * 1000)),
            ("TCP_KEEPALIVE", 1),
            ("TCP_KEEPALIVE_IDLE", _ASK),
            ("TCP_KEEPALIVE_INTVL", _ASK),
            ("TCP_KEEPALIVE_CNT", _ASKS),
            ("TCP_MAXRT", _ASK * (_ASKS + 1) * 1000),
        )
        for name, value in options:
            self._socket.setsockopt(getattr(self._zmq, name), value)
        self._monitor: Any = None
        if not self._local:
            self._monitor = self._watch(context)

    def _watch(self, context: Any) -> Any:
        zmq = self._zmq
        name = f"inproc://monitor-{next(_monitors)}"
        self._socket.monitor(
            name,
            zmq.EVENT_ACCEPTED
            | zmq.EVENT_HANDSHAKE_SUCCEEDED
            | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
            | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
            | zmq.EVENT_HANDSHAKE_FAILED_AUTH
            | zmq.EVENT_DISCONNECTED,
        )
        monitor = context.socket(zmq.PAIR)
        monitor.setsockopt(zmq.LINGER, 0)
        monitor.connect(name)
        return monitor

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return bool(self._socket.closed)

    def close(self, linger: float = 0.0) -> None:
        """Ends the connections; may be repeated.

        Args:
          linger: for how many seconds what is sent already may still go out, behind;
            `Hub.close` waits for it.
        """
        if self.closed:
            return
        self._hub._forget(self)
        if linger and self._memories.is_unread:
            self._hub._lingering.append((self._memories, time.monotonic() + linger))
        else:
            self._memories.close()
        if self._monitor is not None:
            self._socket.monitor(None, 0)
            self._monitor.close()
        self._socket.close(int(linger * 1000))

    # -- what the hub calls ------------------------------------------------------------

    def _events(self) -> Iterator[tuple[int, int]]:
        """Yields what happened to connections since the last call, and a number."""
        while True:
            try:
                event, _address = self._monitor.recv_multipart(self._zmq.NOBLOCK)
            except self._zmq.Again:
                return
            yield _EVENT.unpack(event)

    def _note(self) -> None:
        raise NotImplementedError

    # -- frames ------------------------------------------------------------------------

    def _send(self, peer: bytes, message: Message, waiting: Waiting) -> bool:
        size = sum(array.nbytes for array in message.arrays.values())
        if size >= LEAST and not self._local:
            memory = self._memories.ask(peer)
            if memory is not None:
                whole = encode(message, limits=self._limits, chunk=size)
                placed = memory.place(whole[1:])
                if placed is not None:
                    block, told = placed
                    if not self._put(peer, [told, bytes(whole[0])]):
                        block.free()
                        return False
                    self.traffic.shared_bytes[message.kind] += size
                    self._count(message.kind, len(whole[0]) + size)
                    return True
        frames = encode(message, limits=self._limits)
        sizes = [len(frame) for frame in frames]
        large = any(size >= _UNCOPIED for size in sizes)
        if large and waiting.size() + sum(sizes) > _MOST_WAITING and waiting:
            self.traffic.dropped["slow"] += 1
            return False
        if not self._put(peer, frames, waiting):
            return False
        self._count(message.kind, sum(sizes))
        return True

    def _count(self, kind: str, size: int) -> None:
        self.traffic.sent[kind] += 1
        self.traffic.sent_bytes[kind] += size

    def _put(
        self, peer: bytes, frames: list[Any], waiting: Waiting | None = None
    ) -> bool:
        """Hands frames to ZeroMQ; those that are large need `waiting`."""
        zmq = self._zmq
        sizes = [len(frame) for frame in frames]
        large = [i for i, size in enumerate(sizes) if size >= _UNCOPIED]
        flags = _NOBLOCK | _SNDMORE
        last = len(frames) - 1
        try:
            if peer:
                self._socket.send(peer, flags)
            for i, frame in enumerate(frames):
                more = flags if i < last else _NOBLOCK
                if waiting is None or sizes[i] < _UNCOPIED:
                    self._socket.send(frame, more)
                elif i == large[-1]:
                    # Frames go in order: once this one is out, so are the others.
                    tracker = self._socket.send(frame, more, copy=False, track=True)
                    waiting.add(tracker, sum(sizes))
                else:
                    self._socket.send(frame, more, copy=False)
        except zmq.Again:
            self.traffic.dropped["slow"] += 1
            return False
        except zmq.ZMQError as error:
            if error.errno != zmq.EHOSTUNREACH:
                raise
            self.traffic.dropped["gone"] += 1
            self._memories.drop(peer)
            return False
        return True

    def _frames(self) -> list[Any] | None:
        """Returns the frames of what came, or None if nothing did."""
        # Asking first costs half as much as its error.
        if not self._socket.getsockopt(_EVENTS) & _POLLIN:
            return None
        receive = self._socket.recv
        try:
            frames = [receive(_NOBLOCK, copy=False)]
        except self._zmq.Again:  # its peer has just ended
            return None
        while frames[-1].more:
            frames.append(receive(_NOBLOCK, copy=False))
        return frames

    def _decode(self, peer: bytes, came: list[Any]) -> Message | None:
        """Returns a message; None if it was the transport's own."""
        frames = [frame.buffer for frame in came]
        shared = False
        if frames and is_hello(frames[0]):
            self._memories.meet(peer, frames[0])
            return None
        if len(frames) == 2 and is_place(frames[0]):
            frames = [frames[1], *self._memories.find(peer, frames[0])]
            shared = True
        message = decode(frames, limits=self._limits)
        size = sum(map(len, frames))
        self.traffic.received[message.kind] += 1
        self.traffic.received_bytes[message.kind] += size
        if shared:
            self.traffic.shared_bytes[message.kind] += size - len(frames[0])
        return message


_monitors = itertools.count()
#: What a monitor tells: the event, and of some the socket's file descriptor.
_EVENT = struct.Struct("=HI")


class Listener(_End):
    """An end that peers dial. Made by `Hub.listen`.

    Attributes:
      address: where peers dial, with the port that was found.
      traffic: what went through.
    """

    def __init__(
        self, hub: Hub, address: str, keys: Keys | None, limits: Limits
    ) -> None:
        module = zmq()
        super().__init__(hub, module.ROUTER, address, limits)
        self._waiting: dict[bytes, Waiting] = {}
        # Connections whose handshake goes on, and how many of them ended it well.
        self._strangers: set[int] = set()
        self._known = 0
        self._file: tuple[str, int] | None = None
        set_option = self._socket.setsockopt
        # Sending to a peer that has ended or does not read is an error, not a silence.
        set_option(module.ROUTER_MANDATORY, 1)
        # A peer that comes back replaces its old connection, if that is still open.
        set_option(module.ROUTER_HANDOVER, 1)
        if not self._local:
            # A domain makes ZeroMQ ask `Hub._admit`, and refuse its own old protocols.
            set_option(module.ZAP_DOMAIN, _DOMAIN)
        if keys is not None and not self._local:
            if not keys.server_secret:
                self.close()
                raise DistributedError(
                    f"listening at {address} needs the servers' secret key, and this "
                    "process has those of a worker (Keys.for_clients)"
                )
            set_option(module.CURVE_SERVER, 1)
            set_option(module.CURVE_PUBLICKEY, keys.server_public.encode())
            set_option(module.CURVE_SECRETKEY, keys.server_secret.encode())
        try:
            self._socket.bind(address)
        except module.ZMQError as error:
            self.close()
            raise DistributedError(
                f"{address} cannot be listened at: {error.strerror}"
            ) from None
        found = self._socket.getsockopt(module.LAST_ENDPOINT)
        self.address: str = found.rstrip(b"\0").decode()
        path = self.address.removeprefix("ipc://")
        if path != self.address and os.path.exists(path):
            self._file = path, os.stat(path).st_ino

    def send(self, peer: bytes, message: Message) -> bool:
        """Sends a message, if the peer is there and reads; never waits.

        Args:
          peer: as `receive` returned it.
          message: its large arrays must stay as they are until they are sent.

        Returns:
          Whether it was taken; if not, `traffic.dropped` says why. Taken is not
          arrived.

        Raises:
          MessageError: no frames can say it.
        """
        waiting = self._waiting.get(peer)
        if waiting is None:
            waiting = Waiting()
        sent = self._send(peer, message, waiting)
        if waiting and peer not in self._waiting:
            # Peers that left are forgotten when others come.
            self._waiting = {p: w for p, w in self._waiting.items() if w.size()}
            self._waiting[peer] = waiting
        return sent

    def receive(self, most: int = _MOST_AT_ONCE) -> list[tuple[bytes, Message]]:
        """Returns the messages that arrived, and their peers; never waits.

        Args:
          most: how many messages; what is left makes the next `Hub.wait` return at
            once.
        """
        came = []
        for _ in range(most):
            frames = self._frames()
            if frames is None:
                break
            peer = frames[0].bytes
            try:
                message = self._decode(peer, frames[1:])
                if message is not None:
                    came.append((peer, message))
            except MessageError as error:
                self.traffic.dropped[error.reason] += 1
                if error.reason == "version":
                    # In our version: the other end's own error will name both.
                    self.send(peer, Message("ping"))
        return came

    def close(self, linger: float = 0.0) -> None:
        """See `_End.close`; the file of an ``ipc://`` address goes, too."""
        super().close(linger)
        if self._file is not None:
            path, made = self._file
            with contextlib.suppress(OSError):
                if os.stat(path).st_ino == made:  # not that of a later listener
                    os.unlink(path)

    def _note(self) -> None:
        zmq = self._zmq
        for event, number in self._events():
            if event == zmq.EVENT_ACCEPTED:
                self._strangers.add(number)
            elif event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
                self._known += 1
            elif event == zmq.EVENT_DISCONNECTED and number in self._strangers:
                # ZeroMQ does not say which of two simultaneous handshakes succeeded:
                # then the first connection to end counts.
                self._strangers.remove(number)
                self.traffic.dropped["stranger"] += 1
            if self._known >= len(self._strangers):
                self._strangers.clear()
                self._known = 0


class Dialer(_End):
    """An end that dials a listener, and dials again when it is lost.

    What is sent before the connection is there waits. Made by `Hub.dial`.

    Attributes:
      address: that of the listener.
      traffic: what went through.
      connected: whether the connection is there, as far as `Hub.wait` has seen; always
        true of ``inproc://``.
      problem: why it is not; empty if it is.
    """

    connected: bool

    def __init__(
        self,
        hub: Hub,
        address: str,
        keys: Keys | None,
        identity: bytes,
        limits: Limits,
    ) -> None:
        module = zmq()
        super().__init__(hub, module.DEALER, address, limits)
        self._waiting = Waiting()
        self.address = address
        self.connected = self._local
        self.problem = "" if self._local else _NOBODY
        set_option = self._socket.setsockopt
        if identity:
            set_option(module.ROUTING_ID, identity)
        set_option(module.RECONNECT_IVL, int(_RETRY * 1000))
        set_option(module.RECONNECT_IVL_MAX, int(_LONGEST_RETRY * 1000))
        if keys is not None and not self._local:
            set_option(module.CURVE_SERVERKEY, keys.server_public.encode())
            set_option(module.CURVE_PUBLICKEY, keys.client_public.encode())
            set_option(module.CURVE_SECRETKEY, keys.client_secret.encode())
        try:
            self._socket.connect(address)
        except module.ZMQError as error:
            self.close()
            raise DistributedError(
                f"{address} cannot be dialled: {error.strerror}"
            ) from None

    def send(self, message: Message) -> bool:
        """Sends a message, now or when the connection is there; never waits.

        Args:
          message: its large arrays must stay as they are until they are sent.

        Returns:
          Whether it was taken: False if too much waits already. Taken is not arrived.

        Raises:
          MessageError: no frames can say it.
        """
        return self._send(b"", message, self._waiting)

    def receive(self, most: int = _MOST_AT_ONCE) -> list[Message]:
        """Returns the messages that arrived; never waits.

        Args:
          most: how many messages; what is left makes the next `Hub.wait` return at
            once.

        Raises:
          DistributedError: the listener speaks another version of the format.
        """
        came = []
        for _ in range(most):
            frames = self._frames()
            if frames is None:
                break
            try:
                message = self._decode(b"", frames)
                if message is not None:
                    came.append(message)
            except MessageError as error:
                self.traffic.dropped[error.reason] += 1
                if error.reason == "version":
                    raise DistributedError(f"{self.address}: {error}") from None
        return came

    def _note(self) -> None:
        zmq = self._zmq
        for event, _ in self._events():
            lost = self.connected
            self.connected = event == zmq.EVENT_HANDSHAKE_SUCCEEDED
            if self.connected:
                self.problem = ""
                self._memories.renew(b"")
            elif lost:
                self.problem = "the connection was lost"
                # What was on its way is lost, and blocks with it.
                self._memories.drop(b"")
            elif event == zmq.EVENT_HANDSHAKE_FAILED_AUTH:
                self.problem = "it does not let these client keys in"
            elif event == zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL:
                self.problem = (
                    "the handshake fails: one end has keys and the other has not, or "
                    "they are of two runs"
                )
            elif event != zmq.EVENT_DISCONNECTED or self.problem == _NOBODY:
                self.problem = (
                    "it ends the handshake: the keys are another run's, or it is not a "
                    "parameter server"
                )


# -- the hub ---------------------------------------------------------------------------


class Hub:
    """The ends of one thread, and one wait for all of them.

    Everything but `wake` belongs to the thread that uses it.

    Args:
      keys: of the run; None: only peers on this machine.
      limits: how large a message may be.
      io_threads: of ZeroMQ.

    Raises:
      ImportError: pyzmq is missing.

    Example:
      >>> from fxflow.distributed.messages.codec import Message
      >>> with Hub() as hub:
      ...     listener = hub.listen("inproc://example")
      ...     dialer = hub.dial(listener.address, b"worker 1")
      ...     _ = dialer.send(Message("ping"))
      ...     _ = hub.wait(10)
      ...     [(peer, message)] = listener.receive()
      >>> peer, message.kind
      (b'worker 1', 'ping')
    """

    def __init__(
        self,
        keys: Keys | None = None,
        *,
        limits: Limits = LIMITS,
        io_threads: int = 1,
    ) -> None:
        self._zmq = zmq()
        self._keys = keys
        self._limits = limits
        self._io_threads = io_threads
        self._context: Any = None
        self._inproc = False
        self._zap: Any = None
        self._ends: dict[Any, _End] = {}
        self._monitors: dict[Any, _End] = {}
        self._closed = False
        self._lingering: list[tuple[Memories, float]] = []
        self._swept = time.monotonic()
        self._poller = self._zmq.Poller()
        self._woken, self._wake = socket.socketpair()
        self._woken.setblocking(False)
        self._wake.setblocking(False)
        self._poller.register(self._woken, self._zmq.POLLIN)

    def listen(self, address: str) -> Listener:
        """Returns an end that peers dial.

        Args:
          address: see `endpoint`.

        Raises:
          DistributedError: that address needs keys, is taken, or is not one of this
            machine's.
        """
        checked = endpoint(address, bind=True, keys=self._keys)
        self._take_context(checked.startswith("inproc:"))
        self._open_zap()
        listener = Listener(self, checked, self._keys, self._limits)
        self._add(listener)
        return listener

    def dial(self, address: str, identity: bytes = b"") -> Dialer:
        """Returns an end that dials, and dials again; does not wait for it.

        Args:
          address: see `endpoint`.
          identity: by which the listener knows this end when it comes back; at most
            255 bytes, unique among those who dial it. Empty: a new one each time.

        Raises:
          DistributedError: that address needs keys.
        """
        if len(identity) > 255 or identity[:1] == b"\0":
            raise DistributedError(
                "an identity has at most 255 bytes and does not begin with zero; got "
                f"{identity!r:.80}"
            )
        checked = endpoint(address, bind=False, keys=self._keys)
        dialer = Dialer(self, checked, self._keys, identity, self._limits)
        self._add(dialer)
        return dialer

    def wait(self, seconds: float) -> list[Listener | Dialer]:
        """Waits until an end has something to read, `wake` is called, or time is up.

        Strangers are admitted here alone: a server that does not call it admits no
        peer.

        Args:
          seconds: for how long; 0 looks only.

        Returns:
          The ends that have something to read; none if it was woken or time is up.
        """
        end = time.monotonic() + seconds
        while True:
            left = max(0.0, end - time.monotonic())
            ready: list[Any] = []
            woken = False
            for found, _ in self._poller.poll(math.ceil(left * 1000)):
                if (one := self._ends.get(found)) is not None:
                    ready.append(one)
                elif (one := self._monitors.get(found)) is not None:
                    one._note()
                elif found is self._zap:
                    self._admit()
                else:
                    woken = True
                    self._woken.recv(1 << 12)  # what is left wakes the next one
            now = time.monotonic()
            if now >= self._swept + _SWEEP:
                self._swept = now
                for each in self._ends.values():
                    each._memories.sweep()
            if ready or woken or now >= end:
                return ready

    def wake(self) -> None:
        """Makes `wait` return, now or the next time; any thread may call it."""
        with contextlib.suppress(OSError):  # it is full: woken already; or closed
            self._wake.send(b"\0")

    def close(self) -> None:
        """Closes all ends and waits for what lingers; may be repeated."""
        if self._closed:
            return
        self._closed = True
        for end in list(self._ends.values()):
            end.close()
        if self._zap is not None:
            self._zap.close(0)
        if self._context is not None:
            self._context.term()
        for memories, until in self._lingering:
            while memories.is_unread and time.monotonic() < until:
                time.sleep(1e-3)
            memories.close()
        if self._inproc:
            _shared.give_back()
        self._woken.close()
        self._wake.close()

    def __enter__(self) -> Hub:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- for the ends ------------------------------------------------------------------

    def _take_context(self, inproc: bool) -> Any:
        if inproc:
            # Ends of several hubs meet there, so it is the process's.
            if not self._inproc:
                self._inproc = True
                _shared.take()
            return _shared.context
        if self._context is None:
            self._context = self._zmq.Context(self._io_threads)
        return self._context

    def _add(self, end: Listener | Dialer) -> None:
        self._ends[end._socket] = end
        self._poller.register(end._socket, self._zmq.POLLIN)
        if end._monitor is not None:
            self._monitors[end._monitor] = end
            self._poller.register(end._monitor, self._zmq.POLLIN)

    def _forget(self, end: _End) -> None:
        if self._ends.pop(end._socket, None) is not None:
            self._poller.unregister(end._socket)
        if self._monitors.pop(end._monitor, None) is not None:
            self._poller.unregister(end._monitor)

    # -- admission ---------------------------------------------------------------------

    def _open_zap(self) -> None:
        if self._zap is None and self._context is not None:
            self._zap = self._context.socket(self._zmq.REP)
            self._zap.setsockopt(self._zmq.LINGER, 0)
            self._zap.bind(_ZAP)
            self._poller.register(self._zap, self._zmq.POLLIN)

    def _admit(self) -> None:
        """Answers ZeroMQ's question whether to admit a peer."""
        while True:
            try:
                asked = self._zap.recv_multipart(self._zmq.NOBLOCK)
            except self._zmq.Again:
                return
            # version, number, domain, address, identity, mechanism, credentials
            version, number, mechanism = asked[0], asked[1], asked[5]
            if self._keys is None:
                known = mechanism == b"NULL"
            else:
                client = self._zmq.utils.z85.decode(self._keys.client_public)
                known = mechanism == b"CURVE" and hmac.compare_digest(asked[6], client)
            status = (b"200", b"OK") if known else (b"400", b"not of this run")
            self._zap.send_multipart([version, number, *status, b"", b""])


class _Shared:
    """The context of ``inproc://``: made with its first user, ended with the last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self.context: Any = None

    def take(self) -> None:
        with self._lock:
            self._users += 1
            if self.context is None:
                self.context = zmq().Context(1)

    def give_back(self) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                self.context.term()
                self.context = None


_shared = _Shared()
