"""Messages over a connected socket: a JSON dictionary and a payload of bytes.

`Channel` is for threads, `AsyncChannel` for an event loop. Over TCP, the connecting
process first proves that it knows the run's secret (`admission` checks the proof), and
its first message says what the connection is for.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import queue
import secrets
import select
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow.distributed.addresses import Address, external_address, is_loopback
from fxflow.distributed.messages import codec
from fxflow.distributed.processes import require_posix
from fxflow.errors import DistributedError, MessageError

Message = dict[str, Any]

#: The description of all pieces of a large state takes megabytes.
_LIMITS = codec.Limits(text=64 << 20, size=1 << 40)
#: Seconds without a byte after which an incomplete message counts as lost.
_STALLED = 60.0
#: The parts of smaller messages are joined before they are sent.
_JOINED = 1 << 16


def readable(connection: socket.socket, seconds: float) -> bool:
    """Waits at most `seconds` for something to read; returns whether there is."""
    require_posix("messages between processes")
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def new_token() -> str:
    """Returns a new secret for the processes of one run."""
    return secrets.token_hex(16)


def proof(token: str) -> bytes:
    """Returns the bytes that prove knowledge of `token`; their length is fixed."""
    return b"fxf2" + hashlib.sha256(b"fxflow token " + token.encode()).digest()


def pack(message: Message, payload: Any = b"") -> list[bytes | memoryview]:
    """Returns the bytes of a message, in parts.

    Args:
      message: a dictionary of JSON values.
      payload: bytes to send with it.

    Raises:
      MessageError: JSON cannot represent the message, or it is too large.
    """
    body = np.frombuffer(payload, np.uint8) if len(payload) else None
    arrays = {} if body is None else {"payload": body}
    return codec.encode(
        codec.Message("control", fields=message, arrays=arrays), limits=_LIMITS
    )


def unpack(message: codec.Message) -> tuple[Message, memoryview]:
    """Returns the dictionary and the payload that `pack` was called with.

    Raises:
      MessageError: it is another kind of message.
    """
    if message.kind != "control" or message.arrays.keys() - {"payload"}:
        raise MessageError("kind", f"unexpected message {message.kind!r}")
    payload = message.arrays.get("payload")
    return message.fields, memoryview(b"") if payload is None else payload.data


class Channel:
    """One end of a connection that carries messages.

    Several threads may send; only one may receive.

    Args:
      connection: a connected socket.
      own_host: this machine's address; empty to use the connection's local address.
    """

    def __init__(self, connection: socket.socket, own_host: str = "") -> None:
        self._own_host = own_host
        if connection.family in (socket.AF_INET, socket.AF_INET6):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = connection
        self._lock = threading.Lock()
        self._outbox: queue.SimpleQueue[tuple[Message, Any] | None] | None = None
        require_posix("messages between processes")

    def send(self, message: Message, payload: Any = b"") -> None:
        """Sends one message; blocks while the other end does not read.

        Args:
          message: a dictionary of JSON values.
          payload: bytes to send with it.

        Raises:
          OSError: the connection is broken.
          MessageError: JSON cannot represent the message, or it is too large.
        """
        parts: list[Any] = pack(message, payload)
        if sum(map(len, parts)) < _JOINED:
            parts = [b"".join(parts)]
        with self._lock:
            for part in parts:
                self.socket.sendall(part)

    def post(self, message: Message, payload: Any = b"") -> None:
        """Sends a message from this channel's thread: never blocks, never fails."""
        if self._outbox is None:
            self._outbox = queue.SimpleQueue()
            threading.Thread(
                target=self._drain, name="fxflow-outbox", daemon=True
            ).start()
        self._outbox.put((message, payload))

    def _drain(self) -> None:
        assert self._outbox is not None
        while (item := self._outbox.get()) is not None:
            try:
                self.send(*item)
            except OSError:
                self.close()
                return

    def receive(self, most: int = _LIMITS.size) -> tuple[Message, memoryview]:
        """Waits for the next message; returns its dictionary and its payload.

        Args:
          most: the largest payload, in bytes.

        Raises:
          EOFError: the other end closed the connection, or paused for a minute within
            a message.
          MessageError: the bytes are not a message.
        """
        incoming = codec.Incoming(_LIMITS._replace(size=most))
        pause = None
        while True:
            if pause is not None and not self.readable(pause):
                raise EOFError(
                    f"the rest of a message did not arrive within {pause:g} s"
                )
            try:
                count = self.socket.recv_into(incoming.missing)
            except OSError as error:
                raise EOFError(str(error)) from None
            if not count:
                raise EOFError("the connection was closed")
            message = incoming.advance(count)
            if message is not None:
                return unpack(message)
            pause = _STALLED

    def readable(self, seconds: float) -> bool:
        """Waits at most `seconds` for something to read; returns whether there is.

        Raises:
          EOFError: this end is closed.
        """
        try:
            return readable(self.socket, seconds)
        except (OSError, ValueError) as error:
            raise EOFError(str(error)) from None

    def close(self) -> None:
        """Closes the connection, and wakes a thread that is receiving."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()

    def finish(self) -> None:
        """Ends the thread that `post` uses, after it has sent all posted messages."""
        if self._outbox is not None:
            self._outbox.put(None)

    @property
    def own_host(self) -> str:
        """The address at which other machines see this one."""
        return self._own_host or str(self.socket.getsockname()[0])


class AsyncChannel(asyncio.Protocol):
    """One end of a connection that carries messages, in an event loop.

    Args:
      on_message: called with each message.

    Attributes:
      over: done when the other end has closed the connection, or sent bytes that are
        not a message.
    """

    def __init__(self, on_message: Callable[[Message], None]) -> None:
        self.over: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._on_message = on_message
        self._incoming = codec.Incoming(_LIMITS._replace(size=0))
        self._transport: Any = None

    async def open(self, connection: socket.socket) -> None:
        """Starts to receive messages.

        Args:
          connection: a connected socket, which `close` closes.
        """
        connection.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.create_connection(lambda: self, sock=connection)

    def send(self, message: Message) -> None:
        """Sends a message; drops it if the other end has closed the connection.

        Args:
          message: a dictionary of JSON values.

        Raises:
          MessageError: JSON cannot represent the message, or it is too large.
        """
        parts = pack(message)
        if not self._transport.is_closing():
            self._transport.writelines(parts)

    def close(self) -> None:
        """Closes the connection."""
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: Any) -> None:
        """Called by the event loop."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Called by the event loop."""
        try:
            for message in self._incoming.feed(data):
                self._on_message(unpack(message)[0])
        except ValueError:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the event loop."""
        if not self.over.done():
            self.over.set_result(None)


def dial(
    address: str, seconds: float, token: str, what: str = "coordinator"
) -> Channel:
    """Connects, retrying until the port is open.

    Args:
      address: ``host:port``.
      seconds: how long to retry.
      token: the run's secret; empty if it has none.
      what: what listens there, for the error's message.

    Raises:
      DistributedError: the port did not open in time.
    """
    host, port = Address.parse(address, what="a coordinator address")
    end = time.monotonic() + seconds
    pause = 0.01
    while True:
        left = end - time.monotonic()
        try:
            connection = socket.create_connection((host, port), max(0.1, left))
            if connection.getsockname() == connection.getpeername():
                # A TCP self-connection: the kernel chose the target's port as source.
                connection.close()
                raise ConnectionRefusedError("connection refused")
            connection.settimeout(None)
            connection.sendall(proof(token))
            own = connection.getsockname()[0]
            # A machine may resolve its own name to 127.0.1.1 (Debian).
            resolved = is_loopback(own) and not is_loopback(host)
            return Channel(connection, external_address() if resolved else "")
        except OSError as error:
            if time.monotonic() + pause >= end:
                raise DistributedError(
                    f"no {what} answers at {address} within {seconds:g} s "
                    f"({error.strerror or error}): is process 0 or the launcher "
                    "running there, and is the port open?",
                    seconds=seconds,
                ) from None
        time.sleep(pause)
        pause = min(0.5, pause * 1.5)
