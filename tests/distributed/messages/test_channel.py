import asyncio
import socket
import threading
import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fxflow.distributed.messages import channel, codec
from fxflow.distributed.messages.channel import (
    AsyncChannel,
    Channel,
    dial,
    new_token,
)
from fxflow.errors import DistributedError, MessageError


@pytest.fixture
def pair() -> tuple[Channel, Channel]:
    listener = socket.create_server(("127.0.0.1", 0))
    left = socket.create_connection(listener.getsockname())
    right, _ = listener.accept()
    listener.close()
    return Channel(left), Channel(right)


def test_messages_and_bytes_arrive_in_order(pair: tuple[Channel, Channel]) -> None:
    left, right = pair
    big = bytes(range(256)) * 4096
    sender = threading.Thread(
        target=lambda: (left.send({"op": "a"}), left.send({"op": "b"}, big))
    )
    sender.start()
    assert right.receive() == ({"op": "a"}, b"")
    assert right.receive() == ({"op": "b"}, big)
    sender.join()
    for number in range(100):
        right.post({"n": number}, b"x" * number)
    for number in range(100):
        assert left.receive() == ({"n": number}, b"x" * number)
    assert not left.readable(0.01)
    right.finish()
    left.close()
    with pytest.raises(EOFError):
        right.receive()
    with pytest.raises(EOFError):
        left.readable(0.1)
    right.close()


def head(length: int) -> bytes:
    """Returns the header of a dictionary with a text of a length."""
    number = codec.KINDS.index("control") + 1
    return codec._HEAD.pack(codec._MARK, codec.VERSION, number, 0, 0, 0, length)


WRONG = {
    "http": b"GET / HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\n\r\n",
    "deep": head(99) + b"[" * 99,
    "list": head(2) + b"[]",
    "kind": b"".join(codec.encode(codec.Message("ping"))),
    "array": b"".join(
        codec.encode(codec.Message("control", arrays={"x": np.ones(2, np.int8)}))
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_invalid_bytes_end_a_connection(
    pair: tuple[Channel, Channel], name: str
) -> None:
    left, right = pair
    left.socket.sendall(WRONG[name])
    with pytest.raises(MessageError):
        right.receive()
    left.close()
    right.close()

    async def main() -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            connection = AsyncChannel(print)
            await connection.open(theirs)
            ours.sendall(WRONG[name])
            await asyncio.wait_for(connection.over, 10)

    asyncio.run(main())


@given(st.lists(st.binary(min_size=1, max_size=80), min_size=1, max_size=3), st.data())
@settings(max_examples=50, deadline=None)
def test_random_bytes_are_refused(pieces: list[bytes], data: st.DataObject) -> None:
    """Any bytes give a message, a `MessageError`, or the end of the connection."""
    whole = bytearray(b"".join([*codec.encode(codec.Message("control")), *pieces]))
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(whole) - 1))
        whole[at] = data.draw(st.integers(0, 255))
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(whole)
        ours.shutdown(socket.SHUT_WR)
        reader = Channel(theirs)
        try:
            while True:
                message, payload = reader.receive(most=1 << 20)
                assert isinstance(message, dict) and isinstance(payload, memoryview)
        except (EOFError, MessageError):
            pass


def test_a_channel_in_an_event_loop() -> None:
    sent: list[dict[str, Any]] = [{}, {"call": 1, "text": "é" * 1000}, {"x": [1, None]}]

    async def main() -> None:
        found: list[Any] = []
        ours, theirs = socket.socketpair()
        with ours, theirs:
            connection, other = AsyncChannel(found.append), Channel(ours)
            await connection.open(theirs)
            for message in sent:
                other.send(message)
            while len(found) < len(sent):
                await asyncio.sleep(0)
            assert found == sent and not connection.over.done()
            connection.send({"a": 1})
            assert other.receive() == ({"a": 1}, b"")
            ours.close()
            await asyncio.wait_for(connection.over, 10)
            connection.send({"a": 1})  # the other end is closed, so it is dropped
            connection.close()

    asyncio.run(main())


def test_posting_to_a_closed_channel_does_not_fail(
    pair: tuple[Channel, Channel],
) -> None:
    left, right = pair
    right.close()
    for _ in range(50):
        left.post({"op": "a"}, b"x" * 10000)
    left.close()


def test_connecting_times_out_without_an_answer(free_port: int) -> None:
    started = time.monotonic()
    with pytest.raises(DistributedError, match="no coordinator answers at") as caught:
        dial(f"127.0.0.1:{free_port}", 0.3, "")
    assert time.monotonic() - started < 20
    assert caught.value.seconds == 0.3


def test_connecting_waits_for_a_late_listener(free_port: int) -> None:
    accepted = []

    def listen() -> None:
        time.sleep(0.2)
        with socket.create_server(("127.0.0.1", free_port)) as listener:
            accepted.append(listener.accept()[0])

    thread = threading.Thread(target=listen)
    thread.start()
    line = dial(f"127.0.0.1:{free_port}", 10, "")
    thread.join()
    assert line.own_host == "127.0.0.1"
    line.close()
    accepted[0].close()


def test_tokens_differ() -> None:
    assert new_token() != new_token()
    assert len(new_token()) == 32


def test_own_host_is_an_address_that_others_reach(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A machine may resolve its own name to 127.0.1.1, which others cannot reach."""
    monkeypatch.setattr(channel, "external_address", lambda: "192.0.2.7")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        here = dial(f"127.0.0.1:{port}", 5, "")
        assert here.own_host == "127.0.0.1"
        here.close()
        create = socket.create_connection
        monkeypatch.setattr(
            socket, "create_connection", lambda place, t: create(("127.0.0.1", port), t)
        )
        named = dial(f"node1:{port}", 5, "")
        assert named.own_host == "192.0.2.7"
        named.close()


def test_an_incomplete_message_times_out(
    pair: tuple[Channel, Channel], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel, "_STALLED", 0.1)
    left, right = pair
    left.socket.sendall(codec._MARK)
    with pytest.raises(EOFError, match="the rest of a message"):
        right.receive()
    left.close()
    right.close()
