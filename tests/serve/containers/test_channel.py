"""Control messages."""

import asyncio
import socket

import pytest

from fxflow.serve.containers import channel


def test_there_and_back() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        for message in ({}, {"call": 1, "text": "é" * 1000}):
            ours.sendall(channel.pack(message))
            assert channel.receive(theirs) == message
        ours.close()
        with pytest.raises(EOFError):
            channel.receive(theirs)


@pytest.mark.parametrize(
    "data", [b"\xff\xff\xff\x7f", b"\x02\0\0\0[]", b"\x02\0\0\0xx", b"\x01\0\0\0\xff"]
)
def test_no_message(data: bytes) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(data)
        with pytest.raises(ValueError):
            channel.receive(theirs)

    async def main() -> None:
        reader = asyncio.StreamReader()
        reader.feed_data(data)
        with pytest.raises(ValueError):
            await channel.read(reader)

    asyncio.run(main())


def test_too_long() -> None:
    with pytest.raises(ValueError, match="are allowed"):
        channel.pack({"text": "x" * channel.MOST})
