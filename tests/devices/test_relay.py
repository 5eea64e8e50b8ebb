import contextlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from fxflow.devices.relay import Relay, splice


@pytest.fixture
def echo() -> Iterator[tuple[socket.socket, list[socket.socket]]]:
    """An echo server, and its connections."""
    listener = socket.create_server(("127.0.0.1", 0))
    connections: list[socket.socket] = []

    def serve(connection: socket.socket) -> None:
        try:
            while data := connection.recv(1 << 16):
                connection.sendall(data)
        except OSError:
            return

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connections.append(connection)
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    yield listener, connections
    for one in [listener, *connections]:
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()
    thread.join(5)


def receive(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        data += connection.recv(count - len(data))
    return data


def test_bytes_are_carried_both_ways(
    echo: tuple[socket.socket, list[socket.socket]],
) -> None:
    listener, _ = echo
    lost: list[str] = []
    relay = Relay(lambda: socket.create_connection(listener.getsockname()), lost.append)
    host, port = relay.address.split(":")
    payload = bytes(range(256)) * 1000
    for _ in range(2):
        with socket.create_connection((host, int(port))) as client:
            client.sendall(payload)
            assert receive(client, len(payload)) == payload
    time.sleep(0.05)
    relay.close()
    assert lost == []
    with pytest.raises(OSError):
        socket.create_connection((host, int(port)), 1)


def test_the_client_does_not_notice_a_lost_peer(
    echo: tuple[socket.socket, list[socket.socket]],
) -> None:
    listener, connections = echo
    told = threading.Event()
    relay = Relay(
        lambda: socket.create_connection(listener.getsockname()), lambda _: told.set()
    )
    host, port = relay.address.split(":")
    with socket.create_connection((host, int(port))) as client:
        client.sendall(b"a")
        assert receive(client, 1) == b"a"
        connections[0].shutdown(socket.SHUT_RDWR)
        assert told.wait(5)
        client.settimeout(0.2)
        with pytest.raises(TimeoutError):
            client.recv(1)
        relay.close()
        client.settimeout(5)
        assert client.recv(1) == b""


def test_a_failing_connect_is_reported() -> None:
    told: list[str] = []

    def connect() -> socket.socket:
        raise OSError("unreachable")

    relay = Relay(connect, told.append)
    host, port = relay.address.split(":")
    with socket.create_connection((host, int(port))):
        end = time.monotonic() + 5
        while not told and time.monotonic() < end:
            time.sleep(0.01)
    assert told == ["unreachable"]
    relay.close()


def test_splice(echo: tuple[socket.socket, list[socket.socket]]) -> None:
    listener, _ = echo
    left, right = socket.socketpair()
    far = socket.create_connection(listener.getsockname())
    thread = threading.Thread(target=splice, args=(right, far))
    thread.start()
    left.sendall(b"hello")
    assert receive(left, 5) == b"hello"
    left.close()
    thread.join(5)
    assert not thread.is_alive()


def test_other_processes_are_refused(
    echo: tuple[socket.socket, list[socket.socket]],
) -> None:
    listener, reached = echo
    relay = Relay(lambda: socket.create_connection(listener.getsockname()), print)
    code = (
        "import socket, sys\n"
        "with socket.create_connection(('127.0.0.1', int(sys.argv[1]))) as c:\n"
        "    try: c.sendall(b'hello'); print(c.recv(9))\n"
        "    except ConnectionError: print(b'')\n"
    )
    port = relay.address.partition(":")[2]
    said = subprocess.run(
        [sys.executable, "-S", "-c", code, port], capture_output=True, timeout=60
    )
    assert said.stdout == b"b''\n", said.stderr
    assert not reached
    relay.close()
