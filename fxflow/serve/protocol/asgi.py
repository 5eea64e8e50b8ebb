"""HTTP requests, replies and connections on plain ASGI.

A framework's routing, request and response take several times as long as a small model.
So this module routes predictions, and all handlers use plain ASGI.

Connections limit the time and the size of a request's head, which uvicorn does not: a
client could send headers forever, slowly or quickly. `http` limits bodies where it
reads them. An `_Intake` limits how much is read before finished replies are sent, which
uvicorn does not limit either.
"""

from __future__ import annotations

import asyncio
import functools
import http
import logging
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractContextManager, aclosing, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote

from fxflow.errors import ServeError
from fxflow.serve.errors import ClientDisconnect

if TYPE_CHECKING:
    from fxflow.serve.protocol.front import RequestReport

_log = logging.getLogger("fxflow.serve")
_UNCORKED: AbstractContextManager[None] = nullcontext()
_MODELS, _PREDICT = "/v2/models/", "/predict/"
_KINDS = ("infer", "generate", "generate_stream")
#: Kind of prediction → its route, without a version.
PREDICTION_ROUTES = {kind: f"{_MODELS}{{model}}/{kind}" for kind in _KINDS} | {
    "predict": f"{_PREDICT}{{model}}"
}


@dataclass(slots=True, eq=False)
class HttpRequest:
    """An HTTP request.

    Attributes:
      scope: the ASGI scope.
      receive: returns parts of the body.
      send: sends parts of the reply.
      path_params: the parameters in the route's path.
      target: the model that it names, or the error that refuses it unread.
      held: bytes of its body that count as in flight.
      method: the method, such as ``POST``.
      path: the URL's path.
      headers: headers by lower-case name; the first of several with one name.
      report: the report for its log line, span and metrics.
    """

    scope: dict[str, Any]
    receive: Callable[[], Awaitable[Any]]
    send: Callable[[Any], Awaitable[None]]
    path_params: dict[str, str]
    target: Any = None
    held: int = 0
    method: str = field(init=False)
    path: str = field(init=False)
    headers: dict[str, str] = field(init=False)
    report: RequestReport = field(init=False)

    def __post_init__(self) -> None:
        self.method, self.path = self.scope["method"], self.scope["path"]
        self.headers = {
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in reversed(self.scope["headers"])
        }

    @property
    def query_params(self) -> dict[str, str]:
        """The query's parameters by name; the last of several with one name."""
        text = self.scope["query_string"]
        return dict(parse_qsl(text.decode("latin-1"))) if text else {}


@dataclass(slots=True, eq=False)
class Reply:
    """A reply with a complete body.

    Attributes:
      body: its bytes.
      media_type: type of the body.
      headers: headers other than the type and the length; may be extended until the
        reply is sent.
      status: HTTP status.
    """

    body: bytes
    media_type: str
    headers: dict[str, str] = field(default_factory=dict)
    status: int = 200

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Sends the reply."""
        own = {"content-type": self.media_type, "content-length": str(len(self.body))}
        with scope.get("fxflow.corked", _UNCORKED):
            await send(_start(self.status, own | self.headers))
            await send({"type": "http.response.body", "body": self.body})

    def to_bytes(self, head: bytes) -> bytes:
        """Returns the reply as it is sent.

        Args:
          head: lines of other headers.

        Raises:
          ValueError: a header has a line break.
        """
        lines = [
            f"content-type: {self.media_type}\r\ncontent-length: {len(self.body)}\r\n",
            *[f"{_lower(name)}: {value}\r\n" for name, value in self.headers.items()],
            "\r\n",
        ]
        text = "".join(lines)
        if text.count("\n") != len(lines) + 1 or text.count("\r") != len(lines) + 1:
            raise ValueError("a header of the reply has a line break")
        return b"".join(
            (_status_line(self.status), head, text.encode("latin-1"), self.body)
        )


@functools.cache
def _status_line(status: int) -> bytes:
    phrase = http.HTTPStatus(status).phrase
    return f"HTTP/1.1 {status} {phrase}\r\n".encode()


@functools.lru_cache(maxsize=64)
def _lower(name: str) -> str:
    """Returns a header's name in lower case; there are only a few."""
    return name.lower()


def _start(status: int, headers: dict[str, str]) -> dict[str, Any]:
    encoded = [
        (_lower(name).encode("latin-1"), value.encode("latin-1"))
        for name, value in headers.items()
    ]
    return {"type": "http.response.start", "status": status, "headers": encoded}


class Events:
    """A reply of server-sent events, each sent as soon as it is available.

    Args:
      request: the request, whose body has been read.
      parts: texts of events; if the first one raises, nothing is sent.
      timeout: seconds within which the client must read an event.

    Attributes:
      status: HTTP status; after a failure, the error's status, although 200 was sent.
      error: the failure after the status was sent; empty if there was none.
      headers: may be extended until the first event is sent.
    """

    status: int
    error: str
    headers: dict[str, str]

    def __init__(
        self, request: HttpRequest, parts: AsyncGenerator[bytes, None], timeout: float
    ) -> None:
        self.status = 200
        self.error = ""
        self.headers = {
            "Content-Type": "text/event-stream; charset=utf-8",
            "Cache-Control": "no-store",
        }
        self._request, self._parts, self._timeout = request, parts, timeout
        self._begun = False

    async def run(self) -> None:
        """Sends the events; stops, and closes `parts`, if the client disconnects."""
        try:
            with _Connected(self._request.receive):
                async with aclosing(self._parts) as parts:
                    async for part in parts:
                        await self._put(part, more=True)
            await self._put(b"", more=False)
        except ClientDisconnect:
            self.status, self.error = 499, "the client disconnected"
        except TimeoutError:
            self.status = 408
            self.error = f"the client did not read within {self._timeout:g} s"

    async def _put(self, part: bytes, *, more: bool) -> None:
        send = self._request.send
        with Within(self._timeout):
            if not self._begun:
                self._begun = True
                await send(_start(200, self.headers))
            body = {"type": "http.response.body", "body": part}
            await send({**body, "more_body": more})


class _Connected:
    """Cancels a block when the client disconnects.

    Args:
      receive: that of a request whose body has been read.

    Raises:
      ClientDisconnect: the client disconnected.
    """

    def __init__(self, receive: Callable[[], Awaitable[Any]]) -> None:
        self._receive = receive
        self._disconnected = False

    def __enter__(self) -> None:
        self._task: Any = asyncio.current_task()
        self._watcher = asyncio.get_running_loop().create_task(self._watch())

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._disconnected = True
        self._task.cancel()

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        self._watcher.cancel()
        if (
            self._disconnected
            and not self._task.uncancel()
            and kind is asyncio.CancelledError
        ):
            raise ClientDisconnect from error


class Within:
    """Limits the time of a block, at half the cost of `asyncio.timeout`.

    Args:
      seconds: the limit, after which the task is cancelled.

    Raises:
      TimeoutError: the block took longer.
    """

    __slots__ = ("_over", "_seconds", "_task", "_timer")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._over = False

    def __enter__(self) -> None:
        self._task: Any = asyncio.current_task()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._seconds, self._expire)

    def _expire(self) -> None:
        self._over = True
        self._task.cancel()

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        self._timer.cancel()
        # A concurrent cancellation from elsewhere must not be swallowed.
        if self._over and not self._task.uncancel() and kind is asyncio.CancelledError:
            raise TimeoutError from error


def prediction_route(path: str) -> tuple[str, dict[str, str]] | None:
    """Matches a path against the routes for predictions.

    Args:
      path: the path of a request.

    Returns:
      ``infer``, ``generate``, ``generate_stream`` or ``predict``, with the model's
      name, and its version if the path has one; None for other routes.

    Example:
      >>> prediction_route("/v2/models/digits/versions/1/infer")
      ('infer', {'model': 'digits', 'version': '1'})
      >>> prediction_route("/predict/digits"), prediction_route("/v2/models/digits")
      (('predict', {'model': 'digits'}), None)
    """
    if path.startswith(_MODELS):
        *names, kind = path[len(_MODELS) :].split("/")
        if kind not in _KINDS or not all(names):
            return None
        if len(names) == 1:
            return kind, {"model": names[0]}
        if len(names) == 3 and names[1] == "versions":
            return kind, {"model": names[0], "version": names[2]}
    elif path.startswith(_PREDICT):
        name = path[len(_PREDICT) :]
        if name and "/" not in name:
            return "predict", {"model": name}
    return None


#: Unread bytes of a connection above which it is paused.
_HELD = 1 << 16


# -- connections -----------------------------------------------------------------------


class _Intake:
    """Limits how many chunks of data are read per iteration of the event loop.

    An answer takes several iterations until it is sent. If each iteration read all
    pending data, answers would wait for hundreds of requests, even for refused ones:
    under overload all answers would be late.

    If the wait is long, the newest chunk goes first, because its request can still be
    answered in time; in order of arrival, all would eventually be late. One of every
    `_OLDEST` is still the oldest, so that every request is read, if only to be refused.

    Args:
      most: chunks per iteration.
    """

    #: Seconds of waiting after which the newest chunk goes first.
    _LONG = 0.04
    #: Even then, one of this many is the oldest.
    _OLDEST = 8

    def __init__(self, most: int) -> None:
        self._most = self._room = most
        self._waiting: deque[tuple[Any, float]] = deque()
        self._counting = False
        self._taken = 0

    def enter(self, connection: Any, data: bytes) -> None:
        """Passes data to the connection's `take`, now or in a later iteration."""
        if self._room > 0 and not self._waiting:
            self._room -= 1
            connection.take(data)
        else:
            if not connection.held:
                self._waiting.append((connection, time.monotonic()))
            connection.hold(data)
        if not self._counting:
            self._counting = True
            connection.loop.call_soon(self._turn, connection.loop)

    def _turn(self, loop: asyncio.AbstractEventLoop) -> None:
        self._room = self._most
        now = time.monotonic()
        while self._waiting and self._room > 0:
            self._taken += 1
            in_order = now - self._waiting[0][1] <= self._LONG
            if in_order or self._taken % self._OLDEST == 0:
                connection, since = self._waiting.popleft()
            else:
                connection, since = self._waiting.pop()
            data, connection.held = connection.held, b""
            if not connection.transport.is_closing():
                self._room -= 1
                connection.take(data, now - since)
        self._counting = self._room < self._most
        if self._counting:
            loop.call_soon(self._turn, loop)


class CorkedTransport:
    """A transport that sends everything written within a ``with`` block at once.

    A reply is written as a head and a body. A separate system call for each, which
    wakes the client, would cost a tenth of the time of a small request.

    Args:
      transport: the event loop's transport.
    """

    __slots__ = ("_kept", "_transport", "is_closing")

    is_closing: Any

    def __init__(self, transport: Any) -> None:
        self._transport = transport
        self._kept: list[bytes] | None = None
        self.is_closing = transport.is_closing

    def __enter__(self) -> None:
        self._kept = []

    def __exit__(self, *error: object) -> None:
        kept, self._kept = self._kept, None
        if kept:
            self._transport.write(b"".join(kept))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Sends data, now or at the end of the block."""
        if self._kept is None:
            self._transport.write(data)
        else:
            self._kept.append(data)

    def close(self) -> None:
        """Closes the connection after sending what was written."""
        if self._kept is not None:
            self.__exit__()
        self._transport.close()


class _DefaultHeaders:
    """The headers that uvicorn adds to all replies, the date, as lines."""

    def __init__(self) -> None:
        self._known: Any = None
        self._lines = b""

    def lines(self, headers: list[tuple[bytes, bytes]]) -> bytes:
        """Returns the lines; uvicorn makes another list every second."""
        if headers is not self._known:
            self._known = headers
            self._lines = b"".join(b"%b: %b\r\n" % pair for pair in headers)
        return self._lines


def _protocol(immediate: Callable[[dict[str, Any]], Reply | None] | None) -> Any:
    """Returns uvicorn's protocol class, with replies that need no task."""
    try:
        import httptools
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
    except ImportError:
        raise ServeError(
            "serving needs uvicorn and httptools: pip install 'fxflow[serve]'"
        ) from None
    if immediate is None:
        return HttpToolsProtocol
    reply_to, defaults = immediate, _DefaultHeaders()

    class Immediate(HttpToolsProtocol):
        #: Parts of the body of a request that no task answers yet, as the rest may be
        #: in the same chunk; None: there is no such request.
        _parts: list[bytes] | None = None

        def on_headers_complete(self) -> None:
            if self._may_be_immediate():
                url = httptools.parse_url(self.url)
                path = url.path.decode("ascii")
                self.scope["path"] = unquote(path) if "%" in path else path
                self.scope["query_string"] = url.query or b""
                self._parts = []
            else:
                super().on_headers_complete()

        def on_body(self, body: bytes) -> None:
            if self._parts is None:
                super().on_body(body)
            else:
                self._parts.append(body)

        def on_message_complete(self) -> None:
            parts, self._parts = self._parts, None
            if parts is not None:
                if self._reply(b"".join(parts)):
                    return
                self._run(parts)
            super().on_message_complete()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            parts, self._parts = self._parts, None
            if parts is not None and not self.transport.is_closing():
                self._run(parts)  # the rest of its body comes later

        def _may_be_immediate(self) -> bool:
            """Whether a reply may be sent at once, as no other reply precedes it."""
            return (
                self.parser.get_method() == b"POST"
                and (self.cycle is None or self.cycle.response_complete)
                and not (self.pipeline or self.flow.write_paused or self.root_path)
                and self.parser.get_http_version() == "1.1"
                and self.parser.should_keep_alive()
                and not (self.parser.should_upgrade() or self.expect_100_continue)
            )

        def _reply(self, body: bytes) -> bool:
            """Sends a reply that needs no waiting; returns whether there is one."""
            self.scope["method"] = "POST"
            self.scope["fxflow.body"] = body
            try:
                reply = reply_to(self.scope)
                if reply is None:
                    return False
                text = reply.to_bytes(defaults.lines(self.server_state.default_headers))
            except Exception:
                _log.exception("a request failed")
                text = Reply(b"{}", "application/json", status=500).to_bytes(b"")
            self.transport.write(text)
            self.on_response_complete()
            return True

        def _run(self, parts: list[bytes]) -> None:
            """Lets the application answer the request; its body begins with `parts`."""
            super().on_headers_complete()
            if parts:
                super().on_body(b"".join(parts))

    return Immediate


def bounded_protocol(
    head_bytes: int = 1 << 16,
    head_seconds: float = 10.0,
    intake: int = 16,
    immediate: Callable[[dict[str, Any]], Reply | None] | None = None,
) -> Any:
    """Returns a protocol class for uvicorn's ``http`` option.

    It adds keys to the scope of a request: ``fxflow.waited``, the seconds that it
    waited to be read, if any; ``fxflow.body``, the body, if it has arrived whole; and
    ``fxflow.corked``, a context manager that sends the parts of a reply together.

    Args:
      head_bytes: most bytes of the request line and the headers.
      head_seconds: seconds within which they must arrive, after the connection or the
        first byte.
      intake: chunks of data, of all connections, that are read in one iteration of the
        event loop.
      immediate: is called with the scope of a POST request that has arrived whole, with
        its body. Returns the reply if it needs no waiting; None: the application runs,
        in a task, as for all other requests.

    Returns:
      The class.

    Raises:
      ServeError: uvicorn or httptools is not installed.
    """
    shared, base = _Intake(intake), _protocol(immediate)

    class Bounded(base):  # type: ignore[misc,valid-type]
        _bytes = 0
        #: Data that arrived and has not been read.
        held = b""
        _waited = 0.0
        _stopped = False
        _is_head = True
        _others = False
        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(CorkedTransport(transport))
            self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop()
            super().connection_lost(exc)

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self.scope["fxflow.corked"] = self.transport
            self._stop()
            self._bytes, self._is_head = 0, True

        def on_headers_complete(self) -> None:
            if self._waited:
                self.scope["fxflow.waited"] = self._waited
            self._is_head = False
            self._stop()
            super().on_headers_complete()

        def data_received(self, data: bytes) -> None:
            shared.enter(self, data)

        def hold(self, data: bytes) -> None:
            self.held += data
            if len(self.held) > _HELD and not self._stopped:
                self._stopped = True
                self.transport.pause_reading()
            self._unset_keepalive_if_required()  # it is not idle

        def take(self, data: bytes, waited: float = 0.0) -> None:
            self._waited = waited
            if self._stopped:
                self._stopped = False
                if not self.flow.read_paused:
                    self.transport.resume_reading()
            self._others = False
            super().data_received(data)
            if not self._is_head:  # the head is complete, as nearly always
                return
            if self._timer is None:
                self._wait()
            # Do not count data that also includes the end of another request.
            if not self._others:
                self._bytes += len(data)
                if self._bytes > head_bytes:
                    self._refuse(431, f"the head exceeds {head_bytes} bytes")

        def on_message_complete(self) -> None:
            self._others = True
            super().on_message_complete()
            self.scope.setdefault("fxflow.body", self.cycle and self.cycle.body)

        def _wait(self) -> None:
            self._timer = self.loop.call_later(head_seconds, self._late)

        def _stop(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _late(self) -> None:
            self._refuse(408, f"the head did not arrive within {head_seconds:g} s")

        def _refuse(self, status: int, words: str) -> None:
            self._stop()
            if self.transport.is_closing():
                return
            text = f'{{"error":"{words}"}}'
            head = f"HTTP/1.1 {status} {words}\r\nContent-Type: application/json\r\n"
            head += f"Content-Length: {len(text)}\r\nConnection: close\r\n\r\n"
            self.transport.write((head + text).encode())
            self.transport.close()

    return Bounded
