"""A request for a prediction and its answer, without a framework between.

Routing, request and response of a framework take several times what a small model does.
So the routes of predictions are found here and handled with what ASGI itself gives; to
a handler an `Exchange` looks as Starlette's request does, a `Reply` as its response.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractContextManager, aclosing, nullcontext
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl

_APART: AbstractContextManager[None] = nullcontext()
_MODELS, _PREDICT = "/v2/models/", "/predict/"
_KINDS = frozenset({"infer", "generate", "generate_stream"})


class _Gone(Exception):
    """The client went away before its request or its answer was complete."""


class Exchange:
    """A request.

    Args:
      scope: as ASGI has it.
      receive: gives parts of the body.
      send: takes parts of the answer.
      path_params: what the route's path names.
      sought: what answers to it, or the error that refuses it.

    Attributes:
      scope, receive, send, sought: as above.
      method: such as ``POST``.
      headers: by name in lower case; of several of one name the first.
      path_params: what the route's path names.
      state: for handlers.
    """

    headers: dict[str, str]
    path_params: dict[str, str]
    receive: Callable[[], Awaitable[Any]]
    scope: dict[str, Any]
    send: Callable[[Any], Awaitable[None]]
    sought: Any
    state: SimpleNamespace

    # fmt: off
    __slots__ = (
        "headers", "method", "path_params", "receive", "scope", "send", "sought",
        "state",
    )
    # fmt: on

    def __init__(
        self,
        scope: dict[str, Any],
        receive: Callable[[], Awaitable[Any]],
        send: Callable[[Any], Awaitable[None]],
        path_params: dict[str, str],
        sought: Any = None,
    ) -> None:
        self.sought = sought
        self.scope, self.receive, self.send = scope, receive, send
        self.method: str = scope["method"]
        self.path_params = path_params
        self.state = SimpleNamespace()
        self.headers = {
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in reversed(scope["headers"])
        }

    @property
    def query_params(self) -> dict[str, str]:
        """What follows the path, by name; of several of one name the last."""
        text = self.scope["query_string"]
        return dict(parse_qsl(text.decode("latin-1"))) if text else {}


class Reply:
    """An answer with a body that is complete.

    Args:
      body: its bytes.
      media_type: of the body.
      headers: more of them.

    Attributes:
      status_code: of HTTP.
      headers: may be added to until it is sent.
    """

    headers: dict[str, str]
    status_code: int

    __slots__ = ("_body", "_media_type", "headers", "status_code")

    def __init__(self, body: bytes, media_type: str, headers: dict[str, str]) -> None:
        self.status_code = 200
        self.headers = headers
        self._body = body
        self._media_type = media_type

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Sends it."""
        own = {"content-type": self._media_type, "content-length": str(len(self._body))}
        with scope.get("fxflow.joined", _APART):
            await send(_start(self.status_code, own | self.headers))
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
    """An answer of server-sent events, each sent when it is there.

    Args:
      request: that it answers, whose body was read.
      parts: texts of events; the first may raise instead, then nothing is sent.
      patience: seconds in which the client has to read an event.

    Attributes:
      status_code: of HTTP, or what went wrong after it was sent.
      words: what that was; empty: nothing.
      headers: may be added to until there is a first event.
    """

    def __init__(
        self, request: Exchange, parts: AsyncGenerator[bytes, None], patience: float
    ) -> None:
        self.status_code = 200
        self.words = ""
        self.headers = {
            "Content-Type": "text/event-stream; charset=utf-8",
            "Cache-Control": "no-store",
        }
        self._request, self._parts, self._patience = request, parts, patience
        self._begun = False

    async def run(self) -> None:
        """Sends them; ends early, and closes `parts`, if the client goes away."""
        try:
            with _Attended(self._request.receive):
                async with aclosing(self._parts) as parts:
                    async for part in parts:
                        await self._put(part, more=True)
            await self._put(b"", more=False)
        except _Gone:
            self.status_code, self.words = 499, "the client went away"
        except TimeoutError:
            self.status_code = 408
            self.words = f"the client did not read within {self._patience:g} s"

    async def _put(self, part: bytes, *, more: bool) -> None:
        send = self._request.send
        with Within(self._patience):
            if not self._begun:
                self._begun = True
                await send(_start(200, self.headers))
            body = {"type": "http.response.body", "body": part}
            await send({**body, "more_body": more})


class _Attended:
    """Ends a block when the client goes away.

    Args:
      receive: of a request whose body was read.

    Raises:
      _Gone: it went away.
    """

    def __init__(self, receive: Callable[[], Awaitable[Any]]) -> None:
        self._receive = receive
        self._gone = False

    def __enter__(self) -> None:
        self._task: Any = asyncio.current_task()
        self._watch = asyncio.get_running_loop().create_task(self._look())

    async def _look(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._gone = True
        self._task.cancel()

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        self._watch.cancel()
        if self._gone and not self._task.uncancel() and kind is asyncio.CancelledError:
            raise _Gone from error


class Within:
    """Bounds what a block may take, as `asyncio.timeout` does in twice the time.

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
        # Somebody else may have cancelled the task as well, who is not to be denied.
        if self._over and not self._task.uncancel() and kind is asyncio.CancelledError:
            raise TimeoutError from error


def found(path: str) -> tuple[str, dict[str, str]] | None:
    """Returns which prediction a path asks for.

    Args:
      path: of a request.

    Returns:
      ``infer``, ``generate``, ``generate_stream`` or ``predict``, with the model's
      name, and its version if the path has one; None for other routes.

    Example:
      >>> found("/v2/models/digits/versions/1/infer")
      ('infer', {'model': 'digits', 'version': '1'})
      >>> found("/predict/digits"), found("/v2/models/digits")
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
