"""Messages over ZeroMQ: listening sockets, connecting sockets, and one event loop.

Only one thread at a time may use a `Hub` and what it makes: a `Listener` (a server's
socket, with many peers) and a `Dialer` (a client's socket, which reconnects by itself).
Other threads may only call `Hub.wake`.

No call blocks on a peer. Sending to a peer that does not read, or has ended, fails at
once and is counted; bytes that are not a message are dropped and counted; peers that
are not authenticated are not read. Callers resend messages that must not be lost
(`ledger`).

A connection that other machines could make needs keys (`keys`): without keys, only
loopback, ``ipc://`` and ``inproc://`` addresses are used.
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
from fxflow.distributed.messages.traffic import Traffic, Waiting
from fxflow.errors import DistributedError, MessageError

#: The most messages that wait at the sender, and at the receiver, to be read.
_MOST_UNSENT = 1024
_MOST_UNREAD = 64
#: The most bytes that may wait for one peer, in frames that are sent without a copy.
_MOST_WAITING = 1 << 30
#: The most bytes in a frame; a longer frame closes its connection unread.
_MOST_FRAME = 4 << 20
#: Frames of at least this many bytes are sent without a copy; tracking one costs 20 µs.
_UNCOPIED = 64 << 10
#: Seconds between keepalive probes of a silent machine, and the number of unanswered
#: probes after which its connections are closed. Kernels send and answer the probes, so
#: computations cannot delay them. ZeroMQ's own heartbeats fail an assertion, and so
#: crash the process, when a peer with unread messages ends (libzmq 4.3.5, its #4767).
_PROBE, _PROBES = 5, 3
#: Seconds for a handshake.
_HANDSHAKE = 10.0
#: Seconds between attempts to connect: the shortest and the longest delay.
_RETRY, _LONGEST_RETRY = 0.02, 1.0
#: Seconds between two inspections of the memory that is shared with peers.
_SWEEP = 1.0
#: Seconds for which `Hub.wait` may return messages without a look at its other sockets.
_UNSEEN = 0.01
#: The most messages that one call of `receive` returns, so that no end starves.
_MOST_AT_ONCE = 64

_NO_ANSWER = "no process answers there yet"
# ZMQ_DONTWAIT, _SNDMORE, _EVENTS, _POLLIN of zmq.h: pyzmq's enumerations are slow.
_NOBLOCK, _SNDMORE, _EVENTS, _POLLIN = 1, 2, 15, 1
_ZAP = "inproc://zeromq.zap.01"  # RFC 27 of ZeroMQ
_DOMAIN = b"fxflow"


# -- ends ------------------------------------------------------------------------------


class _End:
    """A socket that sends and receives messages."""

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
            # Only if needed: it would turn 127.0.0.1 into ::ffff:127.0.0.1.
            ("IPV6", int("[" in address)),
            ("HANDSHAKE_IVL", int(_HANDSHAKE * 1000)),
            ("TCP_KEEPALIVE", 1),
            ("TCP_KEEPALIVE_IDLE", _PROBE),
            ("TCP_KEEPALIVE_INTVL", _PROBE),
            ("TCP_KEEPALIVE_CNT", _PROBES),
            ("TCP_MAXRT", _PROBE * (_PROBES + 1) * 1000),
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
        """Closes the connections; further calls do nothing.

        Args:
          linger: seconds during which sent messages may still go out in the background;
            `Hub.close` waits for them.
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
        """Yields the socket's events since the last call, each with its value."""
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
                    block, places = placed
                    if not self._put(peer, [places, bytes(whole[0])]):
                        block.free()
                        return False
                    self.traffic.shared_bytes[message.kind] += size
                    self.traffic.count_sent(message.kind, len(whole[0]) + size)
                    return True
        frames = encode(message, limits=self._limits)
        sizes = [len(frame) for frame in frames]
        large = any(size >= _UNCOPIED for size in sizes)
        if large and waiting.size() + sum(sizes) > _MOST_WAITING and waiting:
            self.traffic.dropped["slow"] += 1
            return False
        if not self._put(peer, frames, waiting):
            return False
        self.traffic.count_sent(message.kind, sum(sizes))
        return True

    def _put(
        self, peer: bytes, frames: list[Any], waiting: Waiting | None = None
    ) -> bool:
        """Passes frames to ZeroMQ; `waiting` tracks large ones, if given."""
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
                    # Frames are sent in order: this one is the last large frame.
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

    def _is_readable(self) -> bool:
        return bool(self._socket.getsockopt(_EVENTS) & _POLLIN)

    def _frames(self) -> list[Any] | None:
        """Returns the frames of the next message; None if there is none."""
        # This check costs half as much as the error.
        if not self._is_readable():
            return None
        receive = self._socket.recv
        try:
            frames = [receive(_NOBLOCK, copy=False)]
        except self._zmq.Again:  # its peer has just ended
            return None
        while frames[-1].more:
            frames.append(receive(_NOBLOCK, copy=False))
        return frames

    def _decode(self, peer: bytes, received: list[Any]) -> Message | None:
        """Returns a message; None for a frame of the transport itself."""
        frames = [frame.buffer for frame in received]
        shared = False
        if frames and is_hello(frames[0]):
            self._memories.meet(peer, frames[0])
            return None
        if len(frames) == 2 and is_place(frames[0]):
            frames = [frames[1], *self._memories.find(peer, frames[0])]
            shared = True
        message = decode(frames, limits=self._limits)
        size = sum(map(len, frames))
        self.traffic.count_received(message.kind, size)
        if shared:
            self.traffic.shared_bytes[message.kind] += size - len(frames[0])
        return message


_monitors = itertools.count()
#: A monitor's event, and its value: for some events, the socket's file descriptor.
_EVENT = struct.Struct("=HI")


class Listener(_End):
    """A listening socket, made by `Hub.listen`.

    Attributes:
      address: the address to which peers connect, with the actual port.
      traffic: counts of messages and bytes.
    """

    def __init__(
        self, hub: Hub, address: str, keys: Keys | None, limits: Limits
    ) -> None:
        module = zmq()
        super().__init__(hub, module.ROUTER, address, limits)
        self._waiting: dict[bytes, Waiting] = {}
        # Connections during their handshake, and the number of successful handshakes.
        self._strangers: set[int] = set()
        self._known = 0
        self._file: tuple[str, int] | None = None
        set_option = self._socket.setsockopt
        # Sending to a peer that has ended or does not read raises an error.
        set_option(module.ROUTER_MANDATORY, 1)
        # A peer that reconnects replaces its old connection, if that is still open.
        set_option(module.ROUTER_HANDOVER, 1)
        if not self._local:
            # With a domain, ZeroMQ calls `Hub._admit` and refuses its old protocols.
            set_option(module.ZAP_DOMAIN, _DOMAIN)
        if keys is not None and not self._local:
            if not keys.server_secret:
                self.close()
                raise DistributedError(
                    f"listening at {address} needs the servers' secret key, but this "
                    "process has a worker's keys (Keys.for_clients)"
                )
            set_option(module.CURVE_SERVER, 1)
            set_option(module.CURVE_PUBLICKEY, keys.server_public.encode())
            set_option(module.CURVE_SECRETKEY, keys.server_secret.encode())
        try:
            self._socket.bind(address)
        except module.ZMQError as error:
            self.close()
            raise DistributedError(
                f"cannot listen at {address}: {error.strerror}"
            ) from None
        found = self._socket.getsockopt(module.LAST_ENDPOINT)
        self.address: str = found.rstrip(b"\0").decode()
        path = self.address.removeprefix("ipc://")
        if path != self.address and os.path.exists(path):
            self._file = path, os.stat(path).st_ino

    def send(self, peer: bytes, message: Message) -> bool:
        """Sends a message if the peer is connected and reads; never blocks.

        Args:
          peer: a peer that `receive` returned.
          message: the message. Its large arrays must not change until they are sent.

        Returns:
          Whether it was queued, which does not mean that it arrives; if not,
          `traffic.dropped` counts the reason.

        Raises:
          MessageError: it cannot be encoded.
        """
        waiting = self._waiting.get(peer)
        if waiting is None:
            waiting = Waiting()
        sent = self._send(peer, message, waiting)
        if waiting and peer not in self._waiting:
            # When a peer is added, forget those without waiting bytes.
            self._waiting = {p: w for p, w in self._waiting.items() if w.size()}
            self._waiting[peer] = waiting
        return sent

    def receive(self, most: int = _MOST_AT_ONCE) -> list[tuple[bytes, Message]]:
        """Returns the messages that arrived, with their peers; never blocks.

        Args:
          most: the largest number of messages; if more are left, the next `Hub.wait`
            returns at once.
        """
        messages = []
        for _ in range(most):
            frames = self._frames()
            if frames is None:
                break
            peer = frames[0].bytes
            try:
                message = self._decode(peer, frames[1:])
                if message is not None:
                    messages.append((peer, message))
            except MessageError as error:
                self.traffic.dropped[error.reason] += 1
                if error.reason == "version":
                    # In this version, so that the peer's error names both versions.
                    self.send(peer, Message("ping"))
        return messages

    def close(self, linger: float = 0.0) -> None:
        """Closes the connections, and deletes the file of an ``ipc://`` address."""
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
    """A socket that connects to a listener, and reconnects. Made by `Hub.dial`.

    Messages that are sent before it is connected wait.

    Attributes:
      address: the listener's address.
      traffic: counts of messages and bytes.
      connected: whether it is connected, as of the last `Hub.wait`; always true for
        ``inproc://``.
      problem: why it is not connected; empty if it is.
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
        self.problem = "" if self._local else _NO_ANSWER
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
                f"cannot connect to {address}: {error.strerror}"
            ) from None

    def send(self, message: Message) -> bool:
        """Sends a message, now or once connected; never blocks.

        Args:
          message: the message. Its large arrays must not change until they are sent.

        Returns:
          Whether it was queued, which does not mean that it arrives: False if too much
          is already waiting.

        Raises:
          MessageError: it cannot be encoded.
        """
        return self._send(b"", message, self._waiting)

    def receive(self, most: int = _MOST_AT_ONCE) -> list[Message]:
        """Returns the messages that arrived; never blocks.

        Args:
          most: the largest number of messages; if more are left, the next `Hub.wait`
            returns at once.

        Raises:
          DistributedError: the listener uses another version of the format.
        """
        messages = []
        for _ in range(most):
            frames = self._frames()
            if frames is None:
                break
            try:
                message = self._decode(b"", frames)
                if message is not None:
                    messages.append(message)
            except MessageError as error:
                self.traffic.dropped[error.reason] += 1
                if error.reason == "version":
                    raise DistributedError(f"{self.address}: {error}") from None
        return messages

    def _note(self) -> None:
        zmq = self._zmq
        for event, _ in self._events():
            was_connected = self.connected
            self.connected = event == zmq.EVENT_HANDSHAKE_SUCCEEDED
            if self.connected:
                self.problem = ""
                self._memories.renew(b"")
            elif was_connected:
                self.problem = "the connection was lost"
                # Messages in transit are lost, and blocks with them.
                self._memories.drop(b"")
            elif event == zmq.EVENT_HANDSHAKE_FAILED_AUTH:
                self.problem = "it rejects these client keys"
            elif event == zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL:
                self.problem = (
                    "the handshake fails: only one end has keys, or the keys are of "
                    "different runs"
                )
            elif event != zmq.EVENT_DISCONNECTED or self.problem == _NO_ANSWER:
                self.problem = (
                    "it aborts the handshake: the keys are another run's, or it is not "
                    "a parameter server"
                )


# -- the hub ---------------------------------------------------------------------------


class Hub:
    """Some listeners and dialers, and the wait for all of them.

    Only one thread at a time may use it, except for `wake`.

    Args:
      keys: the run's keys; None allows only peers on this machine.
      limits: the largest message allowed.
      io_threads: the number of ZeroMQ's threads.

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
        #: When `wait` last looked at all sockets.
        self._seen = 0.0
        self._poller = self._zmq.Poller()
        self._woken, self._wake = socket.socketpair()
        self._woken.setblocking(False)
        self._wake.setblocking(False)
        self._poller.register(self._woken, self._zmq.POLLIN)

    def listen(self, address: str) -> Listener:
        """Returns a socket that listens for peers.

        Args:
          address: see `endpoint`.

        Raises:
          DistributedError: the address needs keys, is in use, or is not an address of
            this machine.
        """
        checked = endpoint(address, bind=True, keys=self._keys)
        self._take_context(checked.startswith("inproc:"))
        self._open_zap()
        listener = Listener(self, checked, self._keys, self._limits)
        self._add(listener)
        return listener

    def dial(self, address: str, identity: bytes = b"") -> Dialer:
        """Returns a socket that connects, and reconnects, in the background.

        Args:
          address: see `endpoint`.
          identity: identifies this socket to the listener when it reconnects; at most
            255 bytes, unique among the listener's peers. If empty, each connection gets
            a new identity.

        Raises:
          DistributedError: the address needs keys.
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
        """Waits for something to read, for `wake`, or for a timeout.

        New peers are authenticated only here: a server that does not call it admits no
        peer.

        Args:
          seconds: the timeout; 0 does not wait.

        Returns:
          The listeners and dialers that have something to read.
        """
        now = time.monotonic()
        end = now + seconds
        if now < self._seen + _UNSEEN:
            # To ask one socket takes a tenth of the time of `poll`.
            waiting: list[Any] = [e for e in self._ends.values() if e._is_readable()]
            if waiting:
                return waiting
        while True:
            left = max(0.0, end - now)
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
                    self._woken.recv(1 << 12)  # a rest wakes the next call
            now = self._seen = time.monotonic()
            if now >= self._swept + _SWEEP:
                self._swept = now
                for each in self._ends.values():
                    each._memories.sweep()
            if ready or woken or now >= end:
                return ready

    def wake(self) -> None:
        """Makes `wait` return, now or the next time; any thread may call it."""
        with contextlib.suppress(OSError):  # full, so already woken; or closed
            self._wake.send(b"\0")

    def close(self) -> None:
        """Closes all sockets, and waits for lingering messages; may be repeated."""
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
            _shared.release()
        self._woken.close()
        self._wake.close()

    def __enter__(self) -> Hub:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- for the ends ------------------------------------------------------------------

    def _take_context(self, inproc: bool) -> Any:
        if inproc:
            # Sockets of several hubs connect there, so the process has one context.
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
        """Answers ZeroMQ's requests to authenticate a peer."""
        while True:
            try:
                request = self._zap.recv_multipart(self._zmq.NOBLOCK)
            except self._zmq.Again:
                return
            # version, number, domain, address, identity, mechanism, credentials
            version, number, mechanism = request[0], request[1], request[5]
            if self._keys is None:
                known = mechanism == b"NULL"
            else:
                client = self._zmq.utils.z85.decode(self._keys.client_public)
                known = mechanism == b"CURVE" and hmac.compare_digest(
                    request[6], client
                )
            status = (b"200", b"OK") if known else (b"400", b"not of this run")
            self._zap.send_multipart([version, number, *status, b"", b""])


class _Shared:
    """The context of ``inproc://``: created for its first user, ended with the last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self.context: Any = None

    def take(self) -> None:
        with self._lock:
            self._users += 1
            if self.context is None:
                self.context = zmq().Context(1)

    def release(self) -> None:
        with self._lock:
            self._users -= 1
            if not self._users:
                self.context.term()
                self.context = None


_shared = _Shared()
