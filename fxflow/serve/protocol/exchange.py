"""A request for a prediction and its answer, without a framework between.

Routing, request and response of a framework take several times what a small model does.
So the routes of predictions are found here and handled with what ASGI itself gives; to
a handler an `Exchange` looks as Starlette's request does, a `Reply` as its response.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from types import SimpleNamespace
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

_MODELS, _INFER, _PREDICT = "/v2/models/", "/infer", "/predict/"


class _Gone(Exception):
    """The client went away before its request was complete."""


class Client(NamedTuple):
    """Where a request comes from."""

    host: str
    port: int


class Exchange:
    """A request.

    Args:
      scope: as ASGI has it.
      receive: gives parts of the body.
      path_params: what the route's path names.

    Attributes:
      scope: as ASGI has it.
      method: such as ``POST``.
      headers: by name in lower case; of several of one name the first.
      path_params: what the route's path names.
      state: for handlers.
    """

    headers: dict[str, str]
    path_params: dict[str, str]
    scope: dict[str, Any]
    state: SimpleNamespace

    __slots__ = ("_receive", "headers", "method", "path_params", "scope", "state")

    def __init__(
        self,
        scope: dict[str, Any],
        receive: Callable[[], Awaitable[Any]],
        path_params: dict[str, str],
    ) -> None:
        self.scope = scope
        self._receive = receive
        self.method: str = scope["method"]
        self.path_params = path_params
        self.state = SimpleNamespace()
        self.headers = {
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in reversed(scope["headers"])
        }

    @property
    def client(self) -> Client | None:
        """Where it comes from, if that is known."""
        found = self.scope.get("client")
        return Client(*found) if found else None

    @property
    def query_params(self) -> dict[str, str]:
        """What follows the path, by name; of several of one name the last."""
        text = self.scope["query_string"]
        return dict(parse_qsl(text.decode("latin-1"))) if text else {}

    async def stream(self) -> AsyncIterator[bytes]:
        """The parts of the body, as they come.

        Raises:
          _Gone: the client went away.
        """
        while True:
            message = await self._receive()
            if message["type"] != "http.request":
                raise _Gone
            if body := message.get("body"):
                yield body
            if not message.get("more_body"):
                return


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
        headers = [
            (b"content-type", self._media_type.encode("latin-1")),
            (b"content-length", b"%d" % len(self._body)),
        ]
        headers += [
            (name.lower().encode("latin-1"), value.encode("latin-1"))
            for name, value in self.headers.items()
        ]
        start = {"type": "http.response.start", "status": self.status_code}
        await send({**start, "headers": headers})
        await send({"type": "http.response.body", "body": self._body})


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
      ``infer`` or ``predict``, with the model's name, and its version if the path has
      one; None for other routes.

    Example:
      >>> found("/v2/models/digits/versions/1/infer")
      ('infer', {'model': 'digits', 'version': '1'})
      >>> found("/predict/digits"), found("/v2/models/digits")
      (('predict', {'model': 'digits'}), None)
    """
    if path.startswith(_MODELS) and path.endswith(_INFER):
        name, *rest = path[len(_MODELS) : -len(_INFER)].split("/")
        if name and not rest:
            return "infer", {"model": name}
        if name and len(rest) == 2 and rest[0] == "versions" and rest[1]:
            return "infer", {"model": name, "version": rest[1]}
    elif path.startswith(_PREDICT):
        name = path[len(_PREDICT) :]
        if name and "/" not in name:
            return "predict", {"model": name}
    return None
