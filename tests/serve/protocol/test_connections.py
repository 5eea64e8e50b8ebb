"""Connections: limits of heads, replies without a task, the order of reading."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest

from fxflow.serve.protocol import connections
from fxflow.serve.protocol.asgi import Reply
from fxflow.serve.protocol.connections import (
    CorkedTransport,
    Later,
    _Gathered,
    _Heads,
    _Intake,
    bounded_protocol,
)

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


@pytest.fixture(scope="module")
def hasty_port() -> Iterator[int]:
    """A server that waits half a second for a head."""
    with serving(head_seconds=0.5) as found:
        yield found


@contextlib.contextmanager
def serving(**options: Any) -> Iterator[int]:
    """A server of the application in a thread; yields its port."""
    with running(**options) as server:
        yield server.servers[0].sockets[0].getsockname()[1]


@contextlib.contextmanager
def running(config: dict[str, Any] | None = None, **options: Any) -> Iterator[Any]:
    """The same; yields uvicorn's server."""
    made = uvicorn.Config(
        app,
        port=0,
        lifespan="off",
        log_config=None,
        http=bounded_protocol(**{"head_bytes": 2000, "head_seconds": 60.0} | options),
        **(config or {}),
    )
    server = uvicorn.Server(made)
    server.capture_signals = contextlib.nullcontext
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()))
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield server
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


class Prepared:
    """Answers the paths that say how; other paths are the application's."""

    #: Paths of the requests whose heads were parsed.
    parsed: ClassVar[list[str]] = []
    #: Futures that requests to ``/waits`` wait for.
    waiting: ClassVar[list[asyncio.Future[None]]] = []
    #: Whether requests to ``/busy`` are to wait unread, and for how long.
    patience: ClassVar[float] = 0.0

    def __init__(self, scope: dict[str, Any]) -> None:
        self.parsed.append(scope["path"])
        assert scope["method"] == "POST"
        self.path, self.query = scope["path"], scope["query_string"].decode()

    def answer(
        self, body: bytes, waited: float, client: Any, *, patient: bool = False
    ) -> Any:
        assert client[0] == "127.0.0.1"
        if self.path == "/busy":
            if patient and waited < self.patience:
                return Later(self.path, self.patience)
            return Reply(body, "text/plain", {}, 503 if self.patience else 200)
        if self.path == "/fails":
            raise KeyError(self.path)
        if self.path == "/broken":
            return Reply(b"", "text/plain", {"X-A": "1\r\nX-B: 2"})
        if self.path in ("/waits", "/waits-and-fails"):
            return self.later(body)
        if self.path != "/now é":
            return None
        return Reply(b"POST " + body, "text/plain", {"X-Query": self.query}, 201)

    async def later(self, body: bytes) -> Reply:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(0)
        future = loop.create_future()
        self.waiting.append(future)
        await future
        if self.path == "/waits-and-fails":
            raise KeyError(self.path)
        return Reply(b"late " + body, "text/plain")

    @classmethod
    def release(cls) -> None:
        """Lets the oldest request go on, as soon as it waits."""
        while not cls.waiting:
            time.sleep(0.001)
        future = cls.waiting.pop(0)
        future.get_loop().call_soon_threadsafe(future.set_result, None)


@pytest.fixture(scope="module")
def immediate() -> Iterator[Any]:
    with running(prepare=Prepared) as server:
        yield server


@pytest.fixture(scope="module")
def immediate_port(immediate: Any) -> int:
    port: int = immediate.servers[0].sockets[0].getsockname()[1]
    return port


def wait_for_a_part(
    server: Any, connection: socket.socket, *, task: bool = False
) -> Any:
    """Returns the server's end when it has read a part of the body of a request.

    Args:
      server: uvicorn's server.
      connection: the client's end.
      task: whether to wait until a task waits for the rest.
    """
    while True:
        for c in tuple(server.server_state.connections):
            if c.client != connection.getsockname():
                continue
            if c._rest_timer is not None and not task:
                return c
            if c.cycle is not None and not c.cycle.response_complete:
                return c
        time.sleep(0.001)


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


def test_replies_that_need_no_waiting(immediate: Any, immediate_port: int) -> None:
    with connected(immediate_port) as connection:
        for body in (b"", b"abc"):
            connection.sendall(request(NOW + b"?a=1", body))
            ((status, headers, text),) = replies(connection, 1)
            assert (status, text) == (201, b"POST " + body)
            assert headers["x-query"] == "a=1" and "GMT" in headers["date"]
            assert headers["content-type"] == "text/plain"
            connection.sendall(request(b"/other", body))  # the application's turn
            assert replies(connection, 1)[0][::2] == (200, b"%d" % len(body))
        # The rest of a body may arrive later. Other methods are for tasks.
        connection.sendall(request(NOW, b"abcd")[:-2])
        wait_for_a_part(immediate, connection)
        connection.sendall(b"cd")
        assert replies(connection, 1)[0][::2] == (201, b"POST abcd")
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


@pytest.mark.parametrize("path", [b"/fails", b"/broken", b"/waits-and-fails"])
def test_replies_that_fail(
    immediate_port: int, path: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with connected(immediate_port) as connection:
        for _ in range(2):  # parsed, and known
            connection.sendall(request(path, b""))
            if path == b"/waits-and-fails":
                Prepared.release()
            assert replies(connection, 1)[0][0] == 500
        connection.sendall(request(NOW, b""))
        assert replies(connection, 1)[0][0] == 201
    assert "a request failed" in caplog.text


@pytest.mark.parametrize("limit", ["MOST", "ALL", "SECONDS"])
def test_bodies_beyond_the_limits_of_gathering_are_for_tasks(
    immediate: Any,
    immediate_port: int,
    limit: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_Gathered, limit, 0.01 if limit == "SECONDS" else 6)
    for body in (b"a" * 12, b"b" * 1000):
        with connected(immediate_port) as connection:
            connection.sendall(request(NOW, body)[:-2])
            ours = wait_for_a_part(immediate, connection, task=True)
            assert (ours._parts, ours.gathered.bytes, ours._rest_timer) == (
                None,
                0,
                None,
            )
            connection.sendall(body[-2:])
            assert replies(connection, 1)[0][::2] == (200, b"%d" % len(body))


def test_bodies_whose_rest_does_not_arrive(immediate: Any, immediate_port: int) -> None:
    """Clients that disconnect, and a server that stops, which waits for the rest."""
    with connected(immediate_port) as connection:
        connection.sendall(request(NOW, b"abcd")[:-2])
        ours = wait_for_a_part(immediate, connection)
        assert (ours.gathered.bytes, ours._size) == (2, 2)
    while ours in immediate.server_state.connections:
        time.sleep(0.001)
    assert (ours._parts, ours.gathered.bytes, ours._rest_timer) == (None, 0, None)
    with running(prepare=Prepared) as server:
        port = server.servers[0].sockets[0].getsockname()[1]
        with connected(port) as connection:
            connection.sendall(request(NOW, b"abcd")[:-2])
            wait_for_a_part(server, connection)
            server.should_exit = True
            wait_for_a_part(server, connection, task=True)
            connection.sendall(b"cd")
            assert rest(connection).endswith(b"\r\n\r\n4")


def test_requests_that_wait_for_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Prepared, "patience", 0.0)
    with running(prepare=Prepared) as server:
        port = server.servers[0].sockets[0].getsockname()[1]

        def wait_unread(connection: socket.socket, text: bytes) -> None:
            connection.sendall(text)
            while not any(c.held for c in tuple(server.server_state.connections)):
                time.sleep(0.001)

        with connected(port) as connection, connected(port) as other:
            for turn in range(3):  # parsed, and known
                connection.sendall(request(b"/busy", b"%d" % turn))
                assert replies(connection, 1)[0][::2] == (200, b"%d" % turn)
            monkeypatch.setattr(Prepared, "patience", 1e9)
            wait_unread(connection, request(b"/busy", b"3"))
            other.sendall(request(NOW, b"5"))  # others need not
            assert replies(other, 1)[0][2] == b"POST 5"
            monkeypatch.setattr(Prepared, "patience", 0.0)
            assert replies(connection, 1)[0][::2] == (200, b"3")
            # A request that follows on the connection does not wait.
            monkeypatch.setattr(Prepared, "patience", 1e9)
            wait_unread(connection, request(b"/busy", b"6"))
            connection.sendall(request(NOW, b"7"))
            found = replies(connection, 2)
            assert [one[::2] for one in found] == [(503, b"6"), (201, b"POST 7")]
            # Nor does one that is too long, or too old.
            long = b"8" * connections._HELD
            connection.sendall(request(b"/busy", long))
            assert replies(connection, 1)[0][::2] == (503, long)
            monkeypatch.setattr(Prepared, "patience", 0.01)
            connection.sendall(request(b"/busy", b"9"))
            assert replies(connection, 1)[0][::2] == (503, b"9")
            monkeypatch.setattr(Prepared, "patience", 1e9)
            wait_unread(connection, request(b"/busy", b"0"))
            with connected(port) as gone:
                wait_unread(gone, request(b"/busy", b"1"))
            server.should_exit = True
            text = rest(connection)
            assert text.startswith(b"HTTP/1.1 503 ") and text.endswith(b"\r\n\r\n0")


def test_heads_are_parsed_once(immediate: Any, immediate_port: int) -> None:
    """Requests that have the head of an earlier one, in whatever chunks they come."""
    one, two = (request(NOW + b"?of=heads", body) for body in (b"1111", b"2222"))
    Prepared.parsed.clear()
    with connected(immediate_port) as connection:
        for text in (one, two, one):
            connection.sendall(text)
            ((status, headers, body),) = replies(connection, 1)
            assert (status, body) == (201, b"POST " + text[-4:])
            assert headers["x-query"] == "of=heads"
        assert Prepared.parsed == ["/now é"]
        connection.sendall(one + two)  # more than one
        assert [text for *_, text in replies(connection, 2)] == [
            b"POST 1111",
            b"POST 2222",
        ]
        connection.sendall(one[:-2])  # less than one
        wait_for_a_part(immediate, connection)
        connection.sendall(one[-2:])
        assert replies(connection, 1)[0][2] == b"POST 1111"
        # The rest of a head is not the beginning of a request.
        connection.sendall(b"POST /other HTTP/1.1\r\nX-A: ")
        time.sleep(0.1)
        connection.sendall(one)
        assert replies(connection, 1)[0][::2] == (200, b"4")
    with connected(immediate_port) as other:
        Prepared.parsed.clear()
        other.sendall(two)
        assert replies(other, 1)[0][2] == b"POST 2222"
        chunked = request(NOW, b"", b"Transfer-Encoding: chunked")
        chunked = chunked.replace(b"Content-Length: 0\r\n", b"")
        for text in (b"ab", b"cd"):
            other.sendall(chunked + b"2\r\n%b\r\n0\r\n\r\n" % text)
            assert replies(other, 1)[0][2] == b"POST " + text
        # Only what has a length is known by its head.
        assert Prepared.parsed == ["/now é"] * 2


def test_only_the_newest_heads_are_kept() -> None:
    heads, prepared = _Heads(), Prepared.__new__(Prepared)
    made = [request(b"/%d" % k, b"ab") for k in range(heads._MOST + 1)]
    for text in made:
        heads.keep(text, prepared, 2)
    assert heads.find(made[0]) is None
    assert heads.find(made[1]) == heads.find(made[-1]) == (prepared, b"ab")
    assert heads.find(made[1] + b"c") is heads.find(made[1][:-1]) is None
    long = request(b"/" + b"a" * heads._LONGEST, b"ab")
    heads.keep(long, prepared, 2)
    assert heads.find(long) is None


def test_replies_that_wait_keep_the_order_of_requests(immediate_port: int) -> None:
    waits = request(b"/waits", b"1")
    with connected(immediate_port) as connection:
        for _ in range(2):  # parsed, and known
            connection.sendall(waits)
            Prepared.release()
            assert replies(connection, 1)[0][::2] == (200, b"late 1")
        # What follows in the same chunk, or in a later one, waits for it.
        connection.sendall(waits + request(b"/", b"22"))
        connection.sendall(request(NOW, b"333"))
        time.sleep(0.05)
        Prepared.release()
        found = replies(connection, 3)
        assert [text for *_, text in found[:2]] == [b"late 1", b"2"]
        assert found[2][2] in (b"3", b"POST 333")
        connection.sendall(request(NOW, b"4"))
        assert replies(connection, 1)[0][2] == b"POST 4"


def test_clients_that_disconnect_before_their_reply(immediate_port: int) -> None:
    with connected(immediate_port) as connection:
        connection.sendall(request(b"/waits", b"1"))
        while not Prepared.waiting:
            time.sleep(0.001)
    Prepared.release()
    with connected(immediate_port) as connection:
        connection.sendall(request(NOW, b"4"))
        assert replies(connection, 1)[0][2] == b"POST 4"


def test_a_server_that_stops_sends_the_reply_and_closes() -> None:
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(running(prepare=Prepared))
        port = server.servers[0].sockets[0].getsockname()[1]
        connection = stack.enter_context(connected(port))
        connection.sendall(request(b"/waits", b"1"))
        while not Prepared.waiting:
            time.sleep(0.001)
        (ours,) = server.server_state.connections
        server.should_exit = True
        while ours.cycle.keep_alive:  # until uvicorn has told the connection
            time.sleep(0.001)
        Prepared.release()
        text = rest(connection)
        assert text.endswith(b"\r\n\r\nlate 1")
        assert b"\r\nconnection: close\r\n" in text


def test_idle_connections_close_after_their_time() -> None:
    with running({"timeout_keep_alive": 600}, prepare=Prepared) as server:
        port = server.servers[0].sockets[0].getsockname()[1]
        with connected(port) as connection:
            connection.sendall(request(b"/waits", b"2"))
            while not Prepared.waiting:
                time.sleep(0.001)
            (ours,) = server.server_state.connections

            def expire(replied: float) -> None:
                ours._replied = replied
                ours.timeout_keep_alive_handler()

            expired = functools.partial(ours.loop.call_soon_threadsafe, expire)
            expired(-1000.0)  # it is not idle while a request waits
            Prepared.release()
            assert replies(connection, 1)[0][2] == b"late 2"
            expired(ours.loop.time() - 1)  # not long enough

            def expire_unread() -> None:
                ours.held = b"POST"  # it has arrived, but was not read yet
                expire(-1000.0)
                ours.held = b""

            ours.loop.call_soon_threadsafe(expire_unread)
            connection.sendall(request(NOW, b"1"))
            assert replies(connection, 1)[0][0] == 201
            expired(ours.loop.time() - 601)
            assert rest(connection) == b""


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
def test_heads_that_do_not_arrive_are_refused(hasty_port: int, text: bytes) -> None:
    begun = time.monotonic()
    with connected(hasty_port) as connection:
        connection.sendall(text)
        assert rest(connection).startswith(b"HTTP/1.1 408 ")
    assert 0.3 < time.monotonic() - begun < 20


def test_slow_heads_are_refused(hasty_port: int) -> None:
    begun = time.monotonic()
    with connected(hasty_port) as connection, contextlib.suppress(OSError):
        while time.monotonic() - begun < 20:
            connection.sendall(b"P" if time.monotonic() == begun else b"O")
            time.sleep(0.05)
            connection.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                if b" 4" in connection.recv(100):
                    break
            connection.setblocking(True)
    assert time.monotonic() - begun < 15


def test_valid_requests_are_unaffected(hasty_port: int) -> None:
    """Large bodies, slow ones, and several requests on a connection."""
    with connected(hasty_port) as connection:
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


def test_a_second_head_that_does_not_arrive_is_refused(hasty_port: int) -> None:
    with connected(hasty_port) as connection:
        connection.sendall(HEAD + b"\r\n")
        answered(connection, 0)
        connection.sendall(HEAD)
        assert rest(connection).startswith(b"HTTP/1.1 408 ")


class Turns:
    """An event loop with manual iterations and a manual clock."""

    def __init__(self) -> None:
        self.time = 100.0
        self.soon: list[Any] = []
        self.timers: list[Any] = []

    def monotonic(self) -> float:
        return self.time

    def call_soon(self, call: Any, *args: Any) -> None:
        self.soon.append((call, args))

    def call_later(self, seconds: float, call: Any, *args: Any) -> None:
        self.timers.append((self.time + seconds, call, args))

    def turn(self) -> None:
        due = [timer for timer in self.timers if timer[0] <= self.time]
        self.timers = [timer for timer in self.timers if timer[0] > self.time]
        soon, self.soon = self.soon, []
        for call, args in [*soon, *(timer[1:] for timer in due)]:
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

    def close(self) -> None:
        self.closing = True

    def take(self, data: bytes, waited: float = 0.0) -> None:
        self.log.append((self.name + data.decode(), round(waited, 3)))


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> Turns:
    turns = Turns()
    monkeypatch.setattr(connections, "time", turns)
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
    e.take = None  # type: ignore[assignment]
    for connection in (e, a):  # one that fails does not stop the others
        intake.enter(connection, b"4")
    assert e.closing and log[5:] == [("a4", 0.0)]


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


class Model:
    """Something that some requests wait for.

    Args:
      room: requests that it takes; more wait for `patience`, or are refused.
    """

    patience = 0.09

    def __init__(self, room: int = 0) -> None:
        self.room = room
        self.taken: list[str] = []
        self.refused: list[str] = []


class Asking(Connection):
    """A connection whose requests are for a model."""

    def __init__(self, loop: Turns, log: list[Any], name: str, model: Model) -> None:
        super().__init__(loop, log, name)
        self.model = model

    def take(self, data: bytes, waited: float = 0.0) -> Any:
        model = self.model
        if model.room <= 0 and waited < model.patience:
            return Later(model, model.patience)
        super().take(data, waited)
        of = model.taken if model.room > 0 else model.refused
        of.append(self.name)
        model.room -= model.room > 0
        return None


def test_the_newest_request_for_a_busy_model_is_first(turns: Turns) -> None:
    intake, log = _Intake(4), []  # type: ignore[var-annotated]
    busy, idle = Model(), Model(room=100)
    many = [Asking(turns, log, f"{k}", busy) for k in range(10)]
    for connection in many:
        intake.enter(connection, b"!")
        turns.turn()
        turns.time += 0.001
    assert log == [] and all(one.held == b"!" for one in many)
    intake.enter(Asking(turns, log, "a", idle), b"?")
    assert log == [("a?", 0.0)]
    intake.enter(many[5], b".")  # appended to what waits
    busy.room, many[8].closing = 2, True
    for _ in range(3):
        turns.turn()
        turns.time += 0.001
    assert busy.taken == ["9", "7"]
    assert not turns.soon  # nothing but a timer while all wait
    turns.time = 100.0 + busy.patience - 0.0005
    turns.turn()
    assert not busy.refused
    while turns.soon or turns.timers:
        turns.time += 0.001
        turns.turn()
    assert busy.refused == ["0", "1", "2", "3", "4", "5", "6"]
    waits = [waited for _, waited in log[3:]]
    assert all(0.09 <= waited < 0.0925 for waited in waits) and log[-2][0] == "5!."


def test_a_flood_is_refused_when_its_patience_ends(turns: Turns) -> None:
    """A queue has room for 16, one more each ms; 200 clients ask again at once."""
    intake, log, model = _Intake(16), [], Model()  # type: ignore[var-annotated]
    clients = {f"{k}": Asking(turns, log, f"{k}", model) for k in range(200)}
    begun: dict[str, float] = {}
    free, waits, answered, refused = list(clients), [], 0, 0
    for _ in range(1000):
        for name in free:
            begun[name] = turns.time
            intake.enter(clients[name], b"x")
        turns.time += 0.001
        model.room = min(model.room + 1, 16)
        turns.turn()
        free = [*model.taken, *model.refused]
        waits += [turns.time - begun[name] for name in free]
        answered += len(model.taken)
        refused += len(model.refused)
        model.taken.clear()
        model.refused.clear()
    assert answered + model.room == 1000  # the queue never becomes empty
    assert 0 < refused <= 200 * 1.0 / model.patience
    assert max(waits) < model.patience + 0.02 and len(clients) - len(free) == len(
        [one for one in clients.values() if one.held]
    )


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
