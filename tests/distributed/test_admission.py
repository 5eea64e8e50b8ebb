"""Unauthenticated peers get nothing, and no process waits for them."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import resource
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fxflow.distributed import admission
from fxflow.distributed.coordination import Coordination
from fxflow.distributed.coordinator import Coordinator
from fxflow.distributed.membership import Membership
from fxflow.distributed.messages import codec
from fxflow.distributed.messages.channel import Channel, dial, proof
from fxflow.distributed.snapshots import StateServer
from fxflow.errors import DistributedError

SECRET = "secret"


def resident() -> int:
    """Returns this process's resident memory in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def _nothing(*_: object) -> None:
    raise KeyError


@pytest.fixture(params=["coordinator", "membership", "state"])
def port(request: pytest.FixtureRequest) -> Iterator[int]:
    if request.param == "state":
        states = StateServer("127.0.0.1", SECRET, _nothing)  # type: ignore[arg-type]
        yield int(states.address.rpartition(":")[2])
        states.close()
        return
    if request.param == "coordinator":
        server = Coordinator("127.0.0.1:0", 2, token=SECRET)
    else:
        server = Membership("127.0.0.1:0", 2, 2, token=SECRET)
    yield server.port
    server.stop()


def stranger(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), 10)
    connection.settimeout(30)
    return connection


def closed(connection: socket.socket) -> bytes:
    """Returns what arrived until the other end closed the connection."""
    found = b""
    try:
        while data := connection.recv(1 << 16):
            found += data
    except ConnectionError:
        pass
    return found


def frame(text: bytes) -> bytes:
    """Returns a message to a coordinator; its text may be invalid."""
    number = codec.KINDS.index("control") + 1
    head = struct.pack("!4sBBQQQI", b"fxfm", codec.VERSION, number, 0, 0, 0, len(text))
    return head + text


def join(body: int) -> bytes:
    """Returns a request to join that announces a payload."""
    fields = {"op": "Join", "process": 0, "processes": 2, "token": ""}
    return json.dumps([fields, [["payload", "uint8", [body]]]]).encode()


@pytest.mark.parametrize(
    "said",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        bytes(1000),
        frame(join(2 << 30)),
        frame(b""),
        frame(b"[" * 100_000),
        proof(SECRET)[:4] + os.urandom(1000),
        proof("")[:36] + frame(join(2 << 30)),
    ],
    ids=["http", "zeros", "announced", "empty", "nested", "guessed", "no secret"],
)
def test_unauthenticated_peers_are_disconnected(port: int, said: bytes) -> None:
    before, threads = resident(), set(threading.enumerate())
    crowd = [stranger(port) for _ in range(20)]
    for connection in crowd:
        with contextlib.suppress(OSError):  # they may already be disconnected
            connection.sendall(said)
            connection.sendall(bytes(1 << 16))
    assert set(threading.enumerate()) <= threads  # none is made
    for connection in crowd:
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_WR)
        answer = closed(connection)
        assert answer == b"" or b"another run's token" in answer
        connection.close()
    assert resident() - before < 32 << 20


def test_a_closed_port_admits_no_connection() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    listener.close()
    assert list(admission.admitted(listener, SECRET)) == []


def test_beyond_the_limit_the_oldest_peer_is_disconnected(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "_MOST", 16)
    threads = set(threading.enumerate())
    crowd = [stranger(port) for _ in range(60)]
    # Each new peer disconnects the oldest one.
    for connection in crowd[:30]:
        assert closed(connection) == b""
    assert set(threading.enumerate()) <= threads  # none is made
    with_secret(port)
    for connection in crowd:
        connection.close()


def with_secret(port: int) -> None:
    """Checks that a client with the secret gets an answer."""
    line = dial(f"127.0.0.1:{port}", 10, SECRET)
    line.send({"op": "Join", "process": 7, "processes": 9, "step": 0, "kind": ""})
    if line.readable(10):  # an answer, or the end of the connection
        try:
            message, _ = line.receive()
            assert "error" in message
        except EOFError:
            pass
    else:
        pytest.fail("no answer")
    line.close()


def test_sending_a_byte_at_a_time_does_not_keep_a_connection_open(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deadline is for the whole proof."""
    monkeypatch.setattr(admission, "_SECONDS", 0.3)
    connection = stranger(port)
    end = time.monotonic() + 30
    with pytest.raises(OSError):
        for byte in proof(SECRET)[:-1] * 100:
            connection.sendall(bytes([byte]))
            time.sleep(0.05)
            assert time.monotonic() < end
    connection.close()
    with_secret(port)


def test_silent_connections_receive_nothing(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "_SECONDS", 0.2)
    with stranger(port) as connection:
        assert closed(connection) == b""


class Failing(socket.socket):
    """A listener whose first calls of `accept` fail."""

    errors = (errno.EMFILE, errno.ENFILE, errno.ECONNABORTED, errno.ENOBUFS)

    def accept(self) -> tuple[socket.socket, object]:
        if self.errors:
            number, *self.errors = self.errors  # type: ignore[assignment]
            raise OSError(number, os.strerror(number))
        return super().accept()


def test_accepting_continues_after_errors() -> None:
    listener = Failing()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    come: list[socket.socket] = []
    thread = threading.Thread(
        target=lambda: come.extend(admission.admitted(listener, SECRET))
    )
    thread.start()
    line = dial(f"127.0.0.1:{listener.getsockname()[1]}", 10, SECRET)
    line.send({"op": "hello"})
    end = time.monotonic() + 30
    while not come and time.monotonic() < end:
        time.sleep(0.01)
    assert Channel(come[0]).receive() == ({"op": "hello"}, b"")
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join(30)
    assert not thread.is_alive()
    line.close()
    come[0].close()


def test_invalid_messages_of_authenticated_clients_are_refused() -> None:
    server = Coordinator("127.0.0.1:0", 2, token=SECRET)
    try:
        for said in (frame(join(1)), frame(b"[" * 100_000), frame(b"[]")):
            line = dial(f"127.0.0.1:{server.port}", 10, SECRET)
            line.socket.sendall(said)
            line.socket.settimeout(30)
            assert closed(line.socket) == b""
            line.close()
        address = f"127.0.0.1:{server.port}"
        with pytest.raises(DistributedError, match="another run's token"):
            Coordination.join(address, 0, 2, timeout=10, token="another")
    finally:
        server.stop()


@pytest.mark.parametrize(
    "listen",
    [
        lambda: Coordinator("0.0.0.0:0", 1),
        lambda: Membership("0.0.0.0:0", 1, 1),
        lambda: StateServer("0.0.0.0", "", _nothing),  # type: ignore[arg-type]
    ],
)
def test_reachable_addresses_need_a_secret(
    listen: Callable[[], object],
) -> None:
    with pytest.raises(DistributedError, match="FXFLOW_TOKEN"):
        listen()
