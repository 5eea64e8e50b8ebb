"""HTTP requests and replies on plain ASGI, without a framework's.

The routing, request and response of a framework take several times as long as a small
model. So the routes of predictions are found here, and all handlers work with what ASGI
itself provides.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractContextManager, aclosing, nullcontext
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

if TYPE_CHECKING:
    from fxflow.serve.protocol.front import Report

_UNJOINED: AbstractContextManager[None] = nullcontext()
_MODELS, _PREDICT = "/v2/models/", "/predict/"
_KINDS = ("infer", "generate", "generate_stream")
#: Kind of prediction → its route, without a version.
PREDICTION_ROUTES = {kind: f"{_MODELS}{{model}}/{kind}" for kind in _KINDS} | {
    "predict": f"{_PREDICT}{{model}}"
}


class ClientDisconnect(Exception):
    """The client disconnected before its request or its reply was complete."""


class Exchange:
    """A request.

    Args:
      scope: ASGI's.
      receive: returns parts of the body.
      send: sends parts of the reply.
      path_params: the parameters in the route's path.
      target: the model that it asks, or the error that refuses it unread.

    Attributes:
      scope, receive, send, path_params, target: as above.
      method: such as ``POST``.
      path: of the URL.
      headers: by name in lower case; the first of several with one name.
      held: bytes of its body that count as in flight.
      report: of what becomes of it.
    """

    headers: dict[str, str]
    held: int
    method: str
    path: str
    path_params: dict[str, str]
    receive: Callable[[], Awaitable[Any]]
    report: Report
    scope: dict[str, Any]
    send: Callable[[Any], Awaitable[None]]
    target: Any

    # fmt: off
    __slots__ = (
        "headers", "held", "method", "path", "path_params", "receive", "report",
        "scope", "send", "target",
    )
    # fmt: on

    def __init__(
        self,
        scope: dict[str, Any],
        receive: Callable[[], Awaitable[Any]],
        send: Callable[[Any], Awaitable[None]],
        path_params: dict[str, str],
        target: Any = None,
    ) -> None:
        self.target = target
        self.scope, self.receive, self.send = scope, receive, send
        self.method, self.path = scope["method"], scope["path"]
        self.path_params = path_params
        self.held = 0
        self.headers = {
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in reversed(scope["headers"])
        }

    @property
    def query_params(self) -> dict[str, str]:
        """The query's parameters by name; the last of several with one name."""
        text = self.scope["query_string"]
        return dict(parse_qsl(text.decode("latin-1"))) if text else {}


class Reply:
    """A reply whose body is complete.

    Args:
      body: its bytes.
      media_type: of the body.
      headers: in addition to the type and the length.
      status: HTTP's.

    Attributes:
      status: as above.
      headers: may be extended until it is sent.
    """

    headers: dict[str, str]
    status: int

    __slots__ = ("_body", "_media_type", "headers", "status")

    def __init__(
        self,
        body: bytes,
        media_type: str,
        headers: dict[str, str] | None = None,
        status: int = 200,
    ) -> None:
        self.status = status
        self.headers = {} if headers is None else headers
        self._body = body
        self._media_type = media_type

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Sends it."""
        own = {"content-type": self._media_type, "content-length": str(len(self._body))}
        with scope.get("fxflow.joined", _UNJOINED):
            await send(_start(self.status, own | self.headers))
            await send({"type": "http.response.body", "body": self._body})


@functools.lru_cache(maxsize=64)
def _name(text: str) -> bytes:
    """A header's name as bytes; there are few."""
    return text.lower().encode("latin-1")


def _start(status: int, headers: dict[str, str]) -> dict[str, Any]:
    encoded = [
        (_name(name), value.encode("latin-1")) for name, value in headers.items()
    ]
    return {"type": "http.response.start", "status": status, "headers": encoded}


class Events:
    """A reply of server-sent events, each sent as soon as it is available.

    Args:
      request: that it answers, whose body was read.
      parts: texts of events; if the first raises instead, nothing is sent.
      patience: seconds within which the client must read an event.

    Attributes:
      status: HTTP's; after a failure that of the error, although 200 was sent.
      error: what failed after the status was sent; empty: nothing.
      headers: may be extended until there is a first event.
    """

    def __init__(
        self, request: Exchange, parts: AsyncGenerator[bytes, None], patience: float
    ) -> None:
        self.status = 200
        self.error = ""
        self.headers = {
            "Content-Type": "text/event-stream; charset=utf-8",
            "Cache-Control": "no-store",
        }
        self._request, self._parts, self._patience = request, parts, patience
        self._begun = False

    async def run(self) -> None:
        """Sends them; ends early, and closes `parts`, if the client disconnects."""
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
            self.error = f"the client did not read within {self._patience:g} s"

    async def _put(self, part: bytes, *, more: bool) -> None:
        send = self._request.send
        with Within(self._patience):
            if not self._begun:
                self._begun = True
                await send(_start(200, self.headers))
            body = {"type": "http.response.body", "body": part}
            await send({**body, "more_body": more})


class _Connected:
    """Ends a block when the client disconnects.

    Args:
      receive: of a request whose body was read.

    Raises:
      ClientDisconnect: it disconnected.
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
    """Bounds the time of a block, at half the cost of `asyncio.timeout`.

    Args:
      seconds: after which the task is cancelled.

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
        # A cancellation that came from elsewhere as well must not be swallowed.
        if self._over and not self._task.uncancel() and kind is asyncio.CancelledError:
            raise TimeoutError from error


def prediction_route(path: str) -> tuple[str, dict[str, str]] | None:
    """Returns which prediction a path asks for.

    Args:
      path: of a request.

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
