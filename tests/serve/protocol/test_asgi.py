"""Plain ASGI requests and replies behave like those of a framework."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from fxflow.serve.protocol import asgi
from fxflow.serve.protocol.asgi import (
    CorkedTransport,
    HttpRequest,
    Reply,
    Within,
    _Intake,
    bounded_protocol,
    prediction_route,
)


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/predict/", "/predict/a/b", "/predict", "/v2/models//infer"),
        *("/v2/models/infer", "/v2/models/m/versions/infer", "/v2/models/m/infer/"),
        *("/v2/models/m/versions//infer", "/v2/models/m/other/1/infer"),
    ],
)
def test_other_paths_are_not_predictions(path: str) -> None:
    assert prediction_route(path) is None


async def never(*messages: Any) -> Any:
    raise AssertionError


def exchange() -> HttpRequest:
    scope = {
        "method": "POST",
        "path": "/",
        "query_string": b"id=a%20b&context=%C3%A9&id=c",
        "headers": [(b"accept", b"first"), (b"accept", b"second"), (b"x-a", b"\xe9")],
    }
    return HttpRequest(scope, never, never, {})


def test_requests() -> None:
    assert exchange().headers == {"accept": "first", "x-a": "é"}


def test_answers() -> None:
    sent = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    reply = Reply(b"{}", "application/json", {"X-One": "1"})
    reply.headers["X-Two"] = "2"
    asyncio.run(reply({}, None, send))
    assert sent[0]["status"] == reply.status == 200
    assert dict(sent[0]["headers"]) == {
        b"content-type": b"application/json",
        b"content-length": b"2",
        b"x-one": b"1",
        b"x-two": b"2",
    }
    assert sent[1] == {"type": "http.response.body", "body": b"{}"}


def test_query_parameters_are_read() -> None:
    assert exchange().query_params == {"id": "c", "context": "é"}


def test_within_raises_after_its_seconds() -> None:
    async def body() -> None:
        with Within(5.0):
            await asyncio.sleep(0)
        with pytest.raises(TimeoutError), Within(0.01):
            await asyncio.sleep(5)
        with pytest.raises(KeyError), Within(5.0):
            raise KeyError
        task = asyncio.create_task(cancelled())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    async def cancelled() -> None:
        with Within(5.0):
            await asyncio.sleep(5)

    asyncio.run(body())


uvicorn = pytest.importorskip("uvicorn", reason="pip install 'fxflow[serve]'")
pytest.importorskip("httptools", reason="pip install 'fxflow[serve]'")
HEAD = b"POST / HTTP/1.1\r\nHost: x\r\n"


async def app(scope: Any, receive: Any, send: Any) -> None:
    at_once = scope.get("fxflow.body")
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            break
    text = str(len(body)).encode()
    headers = [(b"content-length", str(len(text)).encode())]
    if at_once is not None:
        headers.append((b"at-once", b"yes" if at_once == body else b"wrong"))
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": text})


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with serving() as found:
        yield found


@contextlib.contextmanager
def serving(**options: Any) -> Iterator[int]:
    """A server of the application in a thread; yields its port."""
    config = uvicorn.Config(
        app,
        port=0,
        lifespan="off",
        log_config=None,
        http=bounded_protocol(head_bytes=2000, head_seconds=0.5, **options),
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
    """Reads until the connection closes."""
    parts = []
    with contextlib.suppress(ConnectionResetError):
        while part := connection.recv(4096):
            parts.append(part)
    return b"".join(parts)


def answered(connection: socket.socket, size: int) -> bytes:
    reply = b""
    while not reply.endswith(b"\r\n\r\n%d" % size):
        part = connection.recv(4096)
        assert part, reply
        reply += part
    assert reply.startswith(b"HTTP/1.1 200")
    return reply


def test_bodies_that_arrive_at_once(port: int) -> None:
    with connected(port) as connection:
        for body in (b"", b"abc", b"d" * 20_000):
            connection.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
            # A large body may arrive in several chunks.
            reply = answered(connection, len(body))
            assert b"at-once: yes" in reply or (body and b"at-once" not in reply)
        connection.sendall(HEAD + b"Content-Length: 4\r\n\r\nab")
        time.sleep(0.1)
        connection.sendall(b"cd")
        assert b"at-once" not in answered(connection, 4)


def at_once(scope: dict[str, Any]) -> Reply | None:
    """Replies at once to the paths that say so."""
    path, query = scope["path"], scope["query_string"].decode()
    if path == "/fails":
        raise KeyError(path)
    if path == "/broken":
        return Reply(b"", "text/plain", {"X-A": "1\r\nX-B: 2"})
    if path != "/now é":
        return None
    body = scope["method"].encode() + b" " + scope["fxflow.body"]
    return Reply(body, "text/plain", {"X-Query": query}, 201)


@pytest.fixture(scope="module")
def immediate_port() -> Iterator[int]:
    with serving(immediate=at_once) as port:
        yield port


def request(path: bytes, body: bytes, *lines: bytes) -> bytes:
    head = [b"POST %b HTTP/1.1" % path, b"Host: x", *lines]
    head += [b"Content-Length: %d" % len(body), b"", b""]
    return b"\r\n".join(head) + body


def replies(connection: socket.socket, count: int) -> list[tuple[int, Any, bytes]]:
    """Reads replies that have a length: their status, headers and body."""
    found: list[tuple[int, Any, bytes]] = []
    with connection.makefile("rb") as file:
        for _ in range(count):
            status = int(file.readline().split()[1])
            headers = {}
            while line := file.readline().strip():
                name, _, value = line.decode("latin-1").partition(": ")
                assert name not in headers
                headers[name] = value
            found.append((status, headers, file.read(int(headers["content-length"]))))
    return found


NOW = b"/now%20%C3%A9"


def test_replies_that_need_no_waiting(immediate_port: int) -> None:
    with connected(immediate_port) as connection:
        for body in (b"", b"abc"):
            connection.sendall(request(NOW + b"?a=1", body))
            ((status, headers, text),) = replies(connection, 1)
            assert (status, text) == (201, b"POST " + body)
            assert headers["x-query"] == "a=1" and "GMT" in headers["date"]
            assert headers["content-type"] == "text/plain"
            connection.sendall(request(b"/other", body))  # the application's turn
            assert replies(connection, 1)[0][::2] == (200, b"%d" % len(body))
        # The rest of a body that arrives later, and other methods, are for tasks.
        connection.sendall(request(NOW, b"abcd")[:-2])
        time.sleep(0.1)
        connection.sendall(b"cd")
        assert replies(connection, 1)[0][::2] == (200, b"4")
        connection.sendall(request(NOW, b"ab").replace(b"POST", b"PUT"))
        assert replies(connection, 1)[0][::2] == (200, b"2")


def test_replies_keep_the_order_of_requests(immediate_port: int) -> None:
    with connected(immediate_port) as connection:
        parts = [request(NOW, b"1"), request(b"/", b"22"), request(NOW, b"333")]
        connection.sendall(b"".join([*parts, parts[0]]))
        found = replies(connection, 4)
        assert [text for *_, text in found] == [b"POST 1", b"2", b"3", b"1"]


def test_connections_close_when_clients_say_so(immediate_port: int) -> None:
    with connected(immediate_port) as connection:
        connection.sendall(request(NOW, b"abc", b"Connection: close"))
        assert b"connection: close" in rest(connection)


@pytest.mark.parametrize("path", [b"/fails", b"/broken"])
def test_replies_that_fail(
    immediate_port: int, path: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with connected(immediate_port) as connection:
        connection.sendall(request(path, b""))
        assert replies(connection, 1)[0][0] == 500
        connection.sendall(request(NOW, b""))
        assert replies(connection, 1)[0][0] == 201
    assert "a request failed" in caplog.text


def test_endless_headers_are_refused(port: int) -> None:
    """In one header, in many headers, and in the request line."""
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
            assert rest(connection).startswith(b"HTTP/1.1 431 the head exceeds 2000")


@pytest.mark.parametrize("text", [b"", b"P", HEAD], ids=["nothing", "byte", "part"])
def test_heads_that_do_not_arrive_are_refused(port: int, text: bytes) -> None:
    begun = time.monotonic()
    with connected(port) as connection:
        connection.sendall(text)
        assert rest(connection).startswith(b"HTTP/1.1 408 ")
    assert 0.3 < time.monotonic() - begun < 20


def test_slow_heads_are_refused(port: int) -> None:
    begun = time.monotonic()
    with connected(port) as connection, contextlib.suppress(OSError):
        while time.monotonic() - begun < 20:
            connection.sendall(b"P" if time.monotonic() == begun else b"O")
            time.sleep(0.05)
            connection.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                if b" 4" in connection.recv(100):
                    break
            connection.setblocking(True)
    assert time.monotonic() - begun < 15


def test_valid_requests_are_unaffected(port: int) -> None:
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
        # Two requests at once.
        connection.sendall((HEAD + b"\r\n") * 2)
        reply = b""
        while reply.count(b"HTTP/1.1 200") < 2:
            reply += connection.recv(4096)


def test_a_second_head_that_does_not_arrive_is_refused(port: int) -> None:
    with connected(port) as connection:
        connection.sendall(HEAD + b"\r\n")
        answered(connection, 0)
        connection.sendall(HEAD)
        assert rest(connection).startswith(b"HTTP/1.1 408 ")


class Turns:
    """An event loop with manual iterations and a manual clock."""

    def __init__(self) -> None:
        self.time = 100.0
        self.soon: list[Any] = []

    def monotonic(self) -> float:
        return self.time

    def call_soon(self, call: Any, *args: Any) -> None:
        self.soon.append((call, args))

    def turn(self) -> None:
        soon, self.soon = self.soon, []
        for call, args in soon:
            call(*args)


class Connection:
    """A connection that records the data that it takes, and when."""

    def __init__(self, loop: Turns, log: list[Any], name: str) -> None:
        self.loop, self.log, self.name = loop, log, name
        self.transport = self
        self.held = b""
        self.paused = self.closing = False

    def hold(self, data: bytes) -> None:
        self.held += data
        self.paused = True

    def is_closing(self) -> bool:
        return self.closing

    def take(self, data: bytes, waited: float = 0.0) -> None:
        self.log.append((self.name + data.decode(), round(waited, 3)))


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> Turns:
    turns = Turns()
    monkeypatch.setattr(asgi, "time", turns)
    return turns


def test_few_chunks_are_read_per_iteration(turns: Turns) -> None:
    intake, log = _Intake(2), []  # type: ignore[var-annotated]
    a, b, c, d, e = (Connection(turns, log, name) for name in "abcde")
    for connection in (a, b, c, d, e):
        intake.enter(connection, b"1")
    assert log == [("a1", 0.0), ("b1", 0.0)]
    assert [x.paused for x in (a, b, c, d, e)] == [False, False, True, True, True]
    intake.enter(d, b"2")  # appended to d's pending data
    turns.time += 0.002
    d.closing = False
    c.closing = True
    turns.turn()
    assert log[2:] == [("d12", 0.002), ("e1", 0.002)]  # c is closed
    turns.turn()
    intake.enter(a, b"3")
    assert log[4:] == [("a3", 0.0)]
    turns.turn()
    turns.turn()
    assert not turns.soon  # an idle loop schedules nothing


def test_under_overload_the_newest_goes_first_and_all_are_read(turns: Turns) -> None:
    intake, log = _Intake(1), []  # type: ignore[var-annotated]
    many = [Connection(turns, log, f"{k}:") for k in range(100)]
    for connection in many:
        intake.enter(connection, b"x")
        turns.time += 0.001
    for _ in range(50):
        turns.turn()
    taken = [int(name.split(":")[0]) for name, _ in log]
    newest = [k for k in taken[1:] if k > 30]
    assert newest == sorted(newest, reverse=True) and len(newest) >= 40
    oldest = [k for k in taken[1:] if k <= 30]
    assert oldest == sorted(oldest) and len(oldest) >= 5
    for _ in range(60):
        turns.turn()
    assert len(log) == 100 and {name.split(":")[0] for name, _ in log} == {
        str(k) for k in range(100)
    }


def test_hundreds_of_connections(port: int) -> None:
    """Each gets its own answer, in whatever order they are read."""
    with contextlib.ExitStack() as stack:
        many = [stack.enter_context(connected(port)) for _ in range(200)]
        for turn in range(2):
            for k, connection in enumerate(many):
                size = 1000 * turn + k
                head = HEAD + b"Content-Length: %d\r\n\r\n" % size
                connection.sendall(head + b"x" * size)
            for k, connection in enumerate(many):
                answered(connection, 1000 * turn + k)


class Written:
    """A transport that records its writes."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def is_closing(self) -> bool:
        return "closed" in self.told

    def write(self, data: bytes) -> None:
        self.told.append(data)

    def close(self) -> None:
        self.told.append("closed")


def test_parts_of_an_answer_are_sent_together() -> None:
    joined = CorkedTransport(under := Written())
    joined.write(b"a")
    with joined:
        joined.write(b"b")
        joined.write(b"c")
        assert under.told == [b"a"]
    joined.write(b"d")
    with joined:
        pass
    with joined:
        joined.write(b"e")
        joined.close()  # what is written before is sent before
    assert under.told == [b"a", b"bc", b"d", b"e", "closed"] and joined.is_closing()
