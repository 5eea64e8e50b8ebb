"""HTTP requests and replies on plain ASGI.

A framework's routing, request and response take several times as long as a small model.
So this module routes predictions, and all handlers use plain ASGI.
"""

from __future__ import annotations

import asyncio
import functools
import http
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, aclosing, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from fxflow.serve.errors import ClientDisconnect

if TYPE_CHECKING:
    from fxflow.serve.protocol.front import RequestReport

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
      known: headers by lower-case name, if they are known to be those of a prediction:
        its types are checked; None: they are read from the scope.
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
    known: dict[str, str] | None = None
    held: int = 0
    method: str = field(init=False)
    path: str = field(init=False)
    headers: dict[str, str] = field(init=False)
    report: RequestReport = field(init=False)

    def __post_init__(self) -> None:
        self.method, self.path = self.scope["method"], self.scope["path"]
        known = self.known
        self.headers = headers_of(self.scope) if known is None else known

    @property
    def query_params(self) -> dict[str, str]:
        """The query's parameters by name; the last of several with one name."""
        text = self.scope["query_string"]
        return dict(parse_qsl(text.decode("latin-1"))) if text else {}


def headers_of(scope: Mapping[str, Any]) -> dict[str, str]:
    """Returns headers by lower-case name; the first of several with one name.

    Args:
      scope: the ASGI scope of a request.
    """
    return {
        name.decode("latin-1"): value.decode("latin-1")
        for name, value in reversed(scope["headers"])
    }


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


class RepeatedReply(Reply):
    """A reply that is sent again and again, each time with another request's id.

    Args:
      reply: the reply, without the id.

    Attributes:
      id: the request's id, in ASCII; to be set before the reply is sent.
    """

    __slots__ = ("_first", "_rest", "id")

    id: str

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.body, reply.media_type, reply.headers, reply.status)
        self._first, self.id = _status_line(reply.status), ""
        self._rest = reply.to_bytes(b"")[len(self._first) :]

    def to_bytes(self, head: bytes) -> bytes:
        """Returns the reply as it is sent.

        Args:
          head: lines of other headers.
        """
        line = f"x-request-id: {self.id}\r\n".encode()
        return b"".join((self._first, head, line, self._rest))


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
