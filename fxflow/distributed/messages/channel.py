"""Messages over TCP: a small dictionary as JSON, and bytes.

No pickle: what arrives is data, never code. A connection begins with a proof that
its maker knows the run's secret (`admission` reads it). Frames follow: a mark, the two
lengths, the JSON and the bytes. The first frame says what the connection is for.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import queue
import secrets
import select
import socket
import struct
import threading
import time
from typing import Any

from fxflow.distributed.addresses import Address, external_address, is_loopback
from fxflow.errors import DistributedError

Message = dict[str, Any]

_MARK = b"fxf1"
_FRAME = struct.Struct("!4sIQ")
_MOST_JSON = 64 << 20
_MOST_BYTES = 1 << 40
#: Seconds in which the rest of a message must go on coming.
_STALLED = 60.0


def new_token() -> str:
    """Returns a secret that the processes of one run share."""
    return secrets.token_hex(16)


def proof(token: str) -> bytes:
    """Returns what a connection begins with: the same length for all secrets."""
    return b"fxf2" + hashlib.sha256(b"fxflow token " + token.encode()).digest()


class Line:
    """One end of a connection that carries messages.

    Sending is safe from several threads; receiving belongs to one.

    Args:
      connection: to the other end.
      own_host: this machine's address; empty if it is the connection's.
    """

    def __init__(self, connection: socket.socket, own_host: str = "") -> None:
        self._own_host = own_host
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = connection
        self._lock = threading.Lock()
        self._outbox: queue.SimpleQueue[tuple[Message, Any] | None] | None = None

    def send(self, message: Message, payload: Any = b"") -> None:
        """Sends one message; waits while the other end does not read.

        Raises:
          OSError: the connection is broken.
        """
        text = json.dumps(message).encode()
        body = memoryview(payload).cast("B")
        head = _FRAME.pack(_MARK, len(text), body.nbytes) + text
        with self._lock:
            if body.nbytes < 1 << 16:
                self.socket.sendall(head + bytes(body))
            else:
                self.socket.sendall(head)
                self.socket.sendall(body)

    def post(self, message: Message, payload: Any = b"") -> None:
        """Sends from a thread of this line: never waits, never fails."""
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

    def receive(self, most: int = _MOST_BYTES) -> tuple[Message, bytearray]:
        """Returns the next message and its bytes; waits for it.

        Once it has begun to come it must not stop for a minute.

        Args:
          most: how many bytes there may be.

        Raises:
          EOFError: the other end is gone.
          ValueError: what came is not a message.
        """
        start = self._read(1, None)
        head = start + self._read(_FRAME.size - 1)
        mark, text, body = _FRAME.unpack(head)
        if mark != _MARK or text > _MOST_JSON or body > most:
            raise ValueError("what came is not a message of fxflow")
        try:
            message = json.loads(bytes(self._read(text)))
        except RecursionError:
            raise ValueError("a message is nested too deeply") from None
        if not isinstance(message, dict):
            raise ValueError("a message must be an object")
        return message, self._read(body)

    def _read(self, count: int, pause: float | None = _STALLED) -> bytearray:
        data = bytearray(count)
        view = memoryview(data)
        while view:
            if pause is not None and not self.readable(pause):
                raise EOFError(f"the rest of a message did not come in {pause:g} s")
            try:
                got = self.socket.recv_into(view)
            except OSError as error:
                raise EOFError(str(error)) from None
            if not got:
                raise EOFError("the connection was closed")
            view = view[got:]
        return data

    def readable(self, seconds: float) -> bool:
        """Returns whether something has come, waiting at most so long.

        Raises:
          EOFError: this end is closed.
        """
        try:
            poll = select.poll()
            poll.register(self.socket, select.POLLIN)
            return bool(poll.poll(seconds * 1000))
        except (OSError, ValueError) as error:
            raise EOFError(str(error)) from None

    def close(self) -> None:
        """Ends the connection; a thread that receives wakes up."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()

    def finish(self) -> None:
        """Sends what is posted, then ends the connection."""
        if self._outbox is not None:
            self._outbox.put(None)

    @property
    def own_host(self) -> str:
        """The address of this machine that other machines see."""
        return self._own_host or str(self.socket.getsockname()[0])


def dial(address: str, seconds: float, token: str, what: str = "coordinator") -> Line:
    """Connects, retrying until the port is open.

    Args:
      address: ``host:port``.
      seconds: for how long.
      token: the run's secret; empty if it has none.
      what: for the message.

    Raises:
      DistributedError: it was not open in time.
    """
    host, port = Address.parse(address, what="a coordinator address")
    end = time.monotonic() + seconds
    pause = 0.01
    while True:
        left = end - time.monotonic()
        try:
            connection = socket.create_connection((host, port), max(0.1, left))
            if connection.getsockname() == connection.getpeername():
                # A TCP self-connection: the kernel chose the target as source port.
                connection.close()
                raise ConnectionRefusedError("connection refused")
            connection.settimeout(None)
            connection.sendall(proof(token))
            own = connection.getsockname()[0]
            # A machine may know its own name as 127.0.1.1 (Debian); the others do not.
            apart = is_loopback(own) and not is_loopback(host)
            return Line(connection, external_address() if apart else "")
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
