"""Control messages between the server and a model's process.

JSON behind its length, over a pair of sockets that nobody else can reach. Tensors are
not in them: they lie in shared memory, and messages say where.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from typing import Any

_LENGTH = struct.Struct("<I")
#: No message has more: types and places of tensors, or a traceback.
MOST = 1 << 20


def pack(message: dict[str, Any]) -> bytes:
    """Returns a message as bytes.

    Args:
      message: values that JSON has.

    Returns:
      Its length and its text.

    Raises:
      ValueError: it is longer than a message may be.
    """
    text = json.dumps(message, separators=(",", ":")).encode()
    if len(text) > MOST:
        raise ValueError(f"a message has {len(text)} bytes, and {MOST} are allowed")
    return _LENGTH.pack(len(text)) + text


def _exactly(sock: socket.socket, count: int) -> bytes:
    parts = b""
    while len(parts) < count:
        part = sock.recv(count - len(parts))
        if not part:
            raise EOFError("the other side is gone")
        parts += part
    return parts


def receive(sock: socket.socket) -> dict[str, Any]:
    """Returns the next message, and waits for it.

    Args:
      sock: a connected socket.

    Returns:
      The message.

    Raises:
      EOFError: the other side is gone.
      ValueError: what comes is no message.
    """
    (length,) = _LENGTH.unpack(_exactly(sock, _LENGTH.size))
    return _message(_exactly(sock, _checked(length)))


async def read(reader: asyncio.StreamReader) -> dict[str, Any]:
    """Returns the next message, as `receive` does, in an event loop.

    Args:
      reader: of a connected socket.

    Returns:
      The message.

    Raises:
      EOFError: the other side is gone.
      ValueError: what comes is no message.
    """
    (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    return _message(await reader.readexactly(_checked(length)))


def _checked(length: int) -> int:
    if length > MOST:
        raise ValueError(f"a message of {length} bytes: {MOST} are allowed")
    return length


def _message(text: bytes) -> dict[str, Any]:
    message = json.loads(text)
    if not isinstance(message, dict):
        raise ValueError(f"a message must be an object, got {message!r}")
    return message
