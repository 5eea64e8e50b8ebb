"""Control messages between the server and a model's process.

JSON behind its length, over a pair of sockets that nobody else can reach. Tensors are
not in them: they lie in shared memory, and messages say where.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections import deque
from collections.abc import Callable
from typing import Any

Message = dict[str, Any]
_LENGTH = struct.Struct("<I")
#: No message has more: types and places of tensors, or a traceback.
MOST = 1 << 20
# Made once: `json.dumps` and `loads` take as long for a new one as for a message.
_encode = json.JSONEncoder(separators=(",", ":")).encode
_decode = json.JSONDecoder().decode


def pack(message: Message) -> bytes:
    """Returns a message as bytes.

    Args:
      message: values that JSON has.

    Returns:
      Its length and its text.

    Raises:
      ValueError: it is longer than a message may be.
    """
    text = _encode(message).encode()
    if len(text) > MOST:
        raise ValueError(f"a message has {len(text)} bytes, and {MOST} are allowed")
    return _LENGTH.pack(len(text)) + text


class Pieces:
    """What has come of messages that come in pieces.

    Example:
      >>> pieces, text = Pieces(), pack({"a": 1}) + pack({"b": 2})
      >>> pieces.feed(text[:3]), pieces.feed(text[3:])
      ([], [{'a': 1}, {'b': 2}])
    """

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[Message]:
        """Returns the messages that are complete.

        Args:
          data: what has come.

        Returns:
          Those that end in it.

        Raises:
          ValueError: one is none, or too long.
        """
        rest = self._rest + data if self._rest else data
        found, at = [], 0
        while len(rest) - at >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(rest, at)
            if length > MOST:
                raise ValueError(f"a message of {length} bytes: {MOST} are allowed")
            start, end = at + _LENGTH.size, at + _LENGTH.size + length
            if len(rest) < end:
                break
            message = _decode(rest[start:end].decode())
            if not isinstance(message, dict):
                raise ValueError(f"a message must be an object, got {message!r}")
            found.append(message)
            at = end
        self._rest = rest[at:]
        return found


class Inbox:
    """The messages of a socket, for a thread that has nothing else to do.

    Args:
      sock: connected.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._pieces = Pieces()
        self._messages: deque[Message] = deque()

    def get(self) -> Message:
        """Returns the next message, and waits for it.

        Raises:
          EOFError: the other side is gone.
          ValueError: what comes is no message.
        """
        while not self._messages:
            data = self._socket.recv(1 << 16)
            if not data:
                raise EOFError("the other side is gone")
            self._messages.extend(self._pieces.feed(data))
        return self._messages.popleft()


class Connection(asyncio.Protocol):
    """The messages of a socket, in an event loop.

    Args:
      tell: is called with each.

    Attributes:
      over: done when the other side is gone, or has sent what is no message.
    """

    def __init__(self, tell: Callable[[Message], None]) -> None:
        self.over = asyncio.get_running_loop().create_future()
        self._tell = tell
        self._pieces = Pieces()
        self._transport: Any = None

    async def open(self, sock: socket.socket) -> None:
        """Begins.

        Args:
          sock: connected; it is closed with this.
        """
        sock.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.create_connection(lambda: self, sock=sock)

    def send(self, message: Message) -> None:
        """Sends a message; to nobody, if the other side is gone.

        Args:
          message: values that JSON has.
        """
        self._transport.write(pack(message))

    def close(self) -> None:
        """Ends it."""
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: Any) -> None:
        """Is called by the event loop."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Is called by the event loop."""
        try:
            for message in self._pieces.feed(data):
                self._tell(message)
        except ValueError:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Is called by the event loop."""
        if not self.over.done():
            self.over.set_result(None)
