"""Streams: no send waits, large arrays share memory, and broken ends are noticed."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from fxflow.distributed.messages import shared_memory
from fxflow.distributed.messages.codec import Limits, Message
from fxflow.distributed.messages.stream import Receiver, Stream
from fxflow.errors import MessageError

LARGE = np.arange(300_000, dtype=np.float32)


@contextlib.contextmanager
def pair(blocks: int = 0, **options: Any) -> Iterator[tuple[Stream, Stream]]:
    """Yields both ends of a connection."""
    left, right = socket.socketpair()
    one, other = Stream(left, blocks=blocks, **options), Stream(right, blocks=blocks)
    try:
        yield one, other
    finally:
        one.close()
        other.close()


@contextlib.contextmanager
def receiving(*streams: Stream) -> Iterator[tuple[list[Message], list[str]]]:
    """Yields what a receiver's thread gets of streams: messages, and why they ended."""
    got: list[Message] = []
    ended: list[str] = []
    receiver = Receiver(lambda _, m: got.append(m), lambda _, why: ended.append(why))
    for stream in streams:
        receiver.add(stream)
    thread = threading.Thread(target=receiver.run)
    thread.start()
    try:
        yield got, ended
    finally:
        receiver.stop()
        thread.join()


def until(condition: Any, seconds: float = 20.0) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(1e-3)
    return bool(condition())


def test_messages_arrive_in_order() -> None:
    with pair() as (one, other):
        for i in range(200):
            one.post(Message("ping", sequence=i))
        got = [other.receive(5).sequence for _ in range(200)]
    assert got == list(range(200))


def test_no_send_waits_for_the_reader() -> None:
    with pair() as (one, other):
        for i in range(20):  # more than the kernel holds
            one.post(Message("control", sequence=i, arrays={"x": LARGE}))
        for i in range(20):
            message = other.receive(20)
            assert message.sequence == i
            np.testing.assert_array_equal(message.arrays["x"], LARGE)


def test_a_thread_that_may_wait_sends_by_itself() -> None:
    with pair() as (one, other):
        thread = threading.Thread(
            target=lambda: one.post(
                Message("control", arrays={"x": np.tile(LARGE, 20)}), waits=True
            )
        )
        thread.start()
        assert other.receive(20).arrays["x"].nbytes == 20 * LARGE.nbytes
        thread.join()
        one.flush(1.0)


@pytest.mark.skipif(not shared_memory.available(), reason="needs memfd")
def test_large_arrays_share_memory() -> None:
    with pair(blocks=2) as (one, other), receiving(one, other) as (got, _):
        assert until(lambda: one.shares_memory and other.shares_memory)
        for i in range(3):
            one.post(Message("control", sequence=i, arrays={"x": LARGE + i}))
        assert until(lambda: len(got) == 3)
        # The third one finds both blocks in use, and goes through the socket.
        assert one.shared == 2
        for message in got:
            np.testing.assert_array_equal(message.arrays["x"], LARGE + message.sequence)
        assert not got[0].arrays["x"].flags.writeable


def test_a_receiver_reads_several_streams_and_notices_ends() -> None:
    with pair() as (a, b), pair() as (c, d), receiving(b, d) as (got, ended):
        a.post(Message("ping", sequence=1))
        c.post(Message("ping", sequence=2))
        assert until(lambda: len(got) == 2)
        a.close()
        assert until(lambda: ended == ["the connection was closed"])
        c.post(Message("ping", sequence=3))
        assert until(lambda: len(got) == 3)
        assert b.closed


def test_bytes_that_are_not_a_message_end_the_stream() -> None:
    with pair() as (one, other), receiving(other) as (got, ended):
        one.socket.sendall(b"GET / HTTP/1.1\r\n" + b"x" * 100)
        assert until(lambda: bool(ended))
        assert "are not a message of fxflow" in ended[0]
        assert not got


def test_messages_beyond_the_limits_are_refused() -> None:
    with pair(limits=Limits(size=100)) as (one, other):
        with pytest.raises(MessageError, match="at most 100 are allowed"):
            one.post(Message("control", arrays={"x": LARGE}))
        other.post(Message("control", arrays={"x": LARGE}))
        with pytest.raises(MessageError, match="at most 100 are allowed"):
            one.receive(5)


def test_shared_memory_that_was_not_agreed_on_is_refused() -> None:
    with pair() as (one, other):
        places = np.zeros(8, np.uint8)
        one.post(Message("placed", arrays={"places": places, "message": places}))
        with pytest.raises(MessageError, match="has not shared memory"):
            other.receive(5)


def test_a_wait_for_a_message_ends() -> None:
    with pair() as (one, other):
        with pytest.raises(EOFError, match=r"no answer within 0\.05 s"):
            one.receive(0.05)
        other.end()
        with pytest.raises(EOFError, match="closed"):
            one.receive(5)
        other.post(Message("ping"))  # dropped
        assert other.closed


def test_messages_that_came_together_are_all_read() -> None:
    with pair() as (one, other):
        for i in range(3):
            one.post(Message("ping", sequence=i))
        time.sleep(0.01)
        assert other.receive(5).sequence == 0
        with receiving(other) as (got, _):
            assert until(lambda: [m.sequence for m in got] == [1, 2])
