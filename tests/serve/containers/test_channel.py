"""Control messages."""

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from fxflow.serve.containers import channel

MESSAGES: list[dict[str, Any]] = [{}, {"call": 1, "text": "é" * 1000}, {"x": [1, None]}]


@contextlib.contextmanager
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def test_there_and_back() -> None:
    with pair() as (ours, theirs):
        inbox = channel.Inbox(theirs)
        ours.sendall(b"".join(map(channel.pack, MESSAGES)))
        assert [inbox.get() for _ in MESSAGES] == MESSAGES
        ours.close()
        with pytest.raises(EOFError):
            inbox.get()


@pytest.mark.parametrize("size", [1, 3, 700])
def test_pieces_of_any_size(size: int) -> None:
    text = b"".join(map(channel.pack, MESSAGES))
    pieces, found = channel.Pieces(), []
    for at in range(0, len(text), size):
        found += pieces.feed(text[at : at + size])
    assert found == MESSAGES


def test_in_an_event_loop() -> None:
    async def main() -> None:
        found: list[Any] = []
        with pair() as (ours, theirs):
            connection = channel.Connection(found.append)
            await connection.open(theirs)
            ours.sendall(b"".join(map(channel.pack, MESSAGES)))
            while len(found) < len(MESSAGES):
                await asyncio.sleep(0)
            assert found == MESSAGES and not connection.over.done()
            connection.send({"a": 1})
            assert channel.Inbox(ours).get() == {"a": 1}
            ours.close()
            await asyncio.wait_for(connection.over, 10)
            connection.send({"a": 1})  # to nobody
            connection.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    "data", [b"\xff\xff\xff\x7f", b"\x02\0\0\0[]", b"\x02\0\0\0xx", b"\x01\0\0\0\xff"]
)
def test_no_message(data: bytes) -> None:
    with pair() as (ours, theirs):
        ours.sendall(data)
        with pytest.raises(ValueError):
            channel.Inbox(theirs).get()

    async def main() -> None:
        with pair() as (ours, theirs):
            connection = channel.Connection(print)
            await connection.open(theirs)
            ours.sendall(data)
            await asyncio.wait_for(connection.over, 10)

    asyncio.run(main())


def test_too_long() -> None:
    with pytest.raises(ValueError, match="are allowed"):
        channel.pack({"text": "x" * channel.MOST})
