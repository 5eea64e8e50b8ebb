import socket
import struct
import threading
import time

import pytest

from fxflow.distributed.messages import channel
from fxflow.distributed.messages.channel import (
    Line,
    dial,
    new_token,
)
from fxflow.errors import DistributedError


@pytest.fixture
def pair() -> tuple[Line, Line]:
    listener = socket.create_server(("127.0.0.1", 0))
    left = socket.create_connection(listener.getsockname())
    right, _ = listener.accept()
    listener.close()
    return Line(left), Line(right)


def test_messages(pair: tuple[Line, Line]) -> None:
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


def test_what_is_no_message(pair: tuple[Line, Line]) -> None:
    left, right = pair
    left.socket.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    with pytest.raises(ValueError, match="not a message of fxflow"):
        right.receive()
    left.close()
    right.close()


def test_posting_to_nobody_does_not_fail(pair: tuple[Line, Line]) -> None:
    left, right = pair
    right.close()
    for _ in range(50):
        left.post({"op": "a"}, b"x" * 10000)
    left.close()


def test_nobody_answers(free_port: int) -> None:
    started = time.monotonic()
    with pytest.raises(DistributedError, match="no coordinator answers at") as caught:
        dial(f"127.0.0.1:{free_port}", 0.3, "")
    assert time.monotonic() - started < 2
    assert caught.value.seconds == 0.3


def test_somebody_answers_late(free_port: int) -> None:
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


def test_own_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine's own name may be 127.0.1.1 to itself, and must not be to others."""
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


def test_the_rest_of_a_message_must_come(
    pair: tuple[Line, Line], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Line._read, "__defaults__", (0.1,))
    left, right = pair
    left.socket.sendall(b"fxf1")
    with pytest.raises(EOFError, match="the rest of a message"):
        right.receive()
    left.close()
    right.close()


def test_nested_too_deeply(pair: tuple[Line, Line]) -> None:
    left, right = pair
    text = b"[" * 100_000
    left.socket.sendall(struct.pack("!4sIQ", b"fxf1", len(text), 0) + text)
    with pytest.raises(ValueError, match="nested too deeply"):
        right.receive()
    left.close()
    right.close()
