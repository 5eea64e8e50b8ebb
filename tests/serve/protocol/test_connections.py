"""Heads of requests that are too large, too slow, or never come."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from fxflow.serve.protocol.connections import bounded_protocol

uvicorn = pytest.importorskip("uvicorn", reason="pip install 'fxflow[serve]'")
pytest.importorskip("httptools", reason="pip install 'fxflow[serve]'")
HEAD = b"POST / HTTP/1.1\r\nHost: x\r\n"


async def app(scope: Any, receive: Any, send: Any) -> None:
    size = 0
    while True:
        message = await receive()
        size += len(message.get("body", b""))
        if not message.get("more_body"):
            break
    text = str(size).encode()
    headers = [(b"content-length", str(len(text)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": text})


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    config = uvicorn.Config(
        app,
        port=0,
        lifespan="off",
        log_config=None,
        http=bounded_protocol(head_bytes=2000, head_seconds=0.5),
    )
    server = uvicorn.Server(config)
    server.capture_signals = contextlib.nullcontext
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()))
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    thread.join()


@contextlib.contextmanager
def connected(port: int) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), 10) as connection:
        yield connection


def rest(connection: socket.socket) -> bytes:
    """All that comes until the connection is closed."""
    parts = []
    with contextlib.suppress(ConnectionResetError):
        while part := connection.recv(4096):
            parts.append(part)
    return b"".join(parts)


def answered(connection: socket.socket, size: int) -> None:
    reply = b""
    while not reply.endswith(b"\r\n\r\n%d" % size):
        part = connection.recv(4096)
        assert part, reply
        reply += part
    assert reply.startswith(b"HTTP/1.1 200")


def test_headers_without_end(port: int) -> None:
    """In one header, in many, and where only the line has none."""
    for begin, more in (
        (HEAD + b"X: ", b"a" * 500),
        (HEAD, b"X-Header: value\r\n" * 30),
        (b"POST /", b"a" * 500),
    ):
        with connected(port) as connection, contextlib.suppress(OSError):
            connection.sendall(begin)
            for _ in range(10_000):
                connection.sendall(more)
            raise AssertionError("it takes headers for ever")
        with connected(port) as connection:
            connection.sendall(begin + more * 5)
            assert rest(connection).startswith(b"HTTP/1.1 431 a head may have 2000")


@pytest.mark.parametrize("text", [b"", b"P", HEAD], ids=["nothing", "byte", "part"])
def test_heads_that_do_not_come(port: int, text: bytes) -> None:
    begun = time.monotonic()
    with connected(port) as connection:
        connection.sendall(text)
        assert rest(connection).startswith(b"HTTP/1.1 408 ")
    assert 0.3 < time.monotonic() - begun < 5


def test_heads_that_trickle(port: int) -> None:
    begun = time.monotonic()
    with connected(port) as connection, contextlib.suppress(OSError):
        while time.monotonic() - begun < 5:
            connection.sendall(b"P" if time.monotonic() == begun else b"O")
            time.sleep(0.05)
            connection.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                if b" 4" in connection.recv(100):
                    break
            connection.setblocking(True)
    assert time.monotonic() - begun < 4


def test_requests_as_usual(port: int) -> None:
    """Large bodies, slow ones, and several requests on a connection."""
    with connected(port) as connection:
        for size in (0, 10, 100_000, 5):
            connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % size)
            time.sleep(0.2)
            connection.sendall(b"x" * size)
            answered(connection, size)
        # A body may take longer than a head.
        connection.sendall(HEAD + b"Content-Length: 3\r\n\r\n")
        for _ in range(3):
            time.sleep(0.3)
            connection.sendall(b"x")
        answered(connection, 3)
        # Two at once.
        connection.sendall((HEAD + b"\r\n") * 2)
        reply = b""
        while reply.count(b"HTTP/1.1 200") < 2:
            reply += connection.recv(4096)


def test_a_second_head_that_does_not_come(port: int) -> None:
    with connected(port) as connection:
        connection.sendall(HEAD + b"\r\n")
        answered(connection, 0)
        connection.sendall(HEAD)
        assert rest(connection).startswith(b"HTTP/1.1 408 ")
