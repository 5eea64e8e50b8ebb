"""Routes: each request is admitted, handled and reported, or refused unread.

`Application` is the ASGI application. It routes predictions, and prepares what answers
those with equal heads (`Prepared`), which `connections` runs without a task.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from fxflow.errors import ServeError
from fxflow.serve.errors import ClientDisconnect
from fxflow.serve.inline import InlineService
from fxflow.serve.protocol.asgi import (
    Events,
    HttpRequest,
    RepeatedReply,
    Reply,
    headers_of,
    prediction_route,
)
from fxflow.serve.protocol.connections import Later
from fxflow.serve.protocol.front import (
    DISCONNECTED,
    FAILED,
    Front,
    RequestReport,
    is_logged,
    retry_after,
)
from fxflow.serve.protocol.tensors import dumps
from fxflow.serve.service import ModelService

_log = logging.getLogger("fxflow.serve")
#: Paths that need no API key: health, and a page that asks for the key itself.
_OPEN = ("/v2/health/live", "/v2/health/ready", "/status")
#: Content types of JSON and tensors, including those that browsers and curl send by
#: default for any body.
_BODIES = frozenset(
    {
        *("", "application/json", "application/octet-stream", "text/json"),
        *("text/plain", "application/x-www-form-urlencoded"),
    }
)
JSON = "application/json"
#: Share of its deadline after which a request that waits for an overloaded model is
#: refused: an answer would hardly be in time.
_PATIENCE = 0.9

Handler = Callable[[HttpRequest], Coroutine[Any, Any, Reply | Events]]


def json_reply(
    value: Any, code: int = 200, headers: dict[str, str] | None = None
) -> Reply:
    """Returns a reply of JSON.

    Args:
      value: what JSON can represent.
      code: HTTP status.
      headers: headers other than the type and the length.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return Reply(text.encode(), JSON, headers or {}, code)


def _refusal(error: ServeError) -> Reply:
    headers = {}
    if error.status in (429, 503):
        headers["Retry-After"] = retry_after(error)
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    # Under overload most requests are refused, so this must be cheap.
    return Reply(dumps({"error": str(error)}), JSON, headers, error.status)


class Endpoint:
    """A route: admits, handles and reports its requests."""

    def __init__(
        self,
        front: Front,
        handler: Handler,
        method: str,
        route: str,
        *,
        predicts: bool = False,
    ) -> None:
        self._front, self._handler = front, handler
        self._title, self._route = f"{method} {route}", route
        self._predicts = predicts

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answers a request that Starlette has routed."""
        reply = await self.handle(
            HttpRequest(scope, receive, send, scope["path_params"])
        )
        if isinstance(reply, Reply):  # `handle` sends events itself
            await reply(scope, receive, send)

    async def handle(self, request: HttpRequest) -> Reply | Events:
        """Reports a request and returns its reply."""
        front = self._front
        report = request.report = RequestReport(
            front.request_id(request.headers.get("x-request-id", "")),
            request.method,
            request.path_params.get("model", ""),
            request.path,
        )
        if waited := request.scope.get("fxflow.waited", 0.0):
            report.waited = waited
            report.begun -= waited
        if front.tracing.recording:
            with front.tracing.request(
                self._title,
                request.headers,
                http__request__method=request.method,
                http__route=self._route,
                url__path=request.path,
                fxflow__request_id=report.id,
            ) as report.span:
                reply = await self._reply(request, report)
                report.span.set(http__response__status_code=reply.status)
                front.report(report, predicts=self._predicts)
        else:
            reply = await self._reply(request, report)
            front.report(report, predicts=self._predicts)
        reply.headers["X-Request-Id"] = report.id
        return reply

    async def _reply(
        self, request: HttpRequest, report: RequestReport
    ) -> Reply | Events:
        """Returns the reply of the handler, or of its error, and reports its status."""
        reply: Reply | Events
        try:
            if request.path not in _OPEN:
                address, _ = request.scope.get("client") or ("unknown", 0)
                report.client = self._front.admit(address, request.headers)
            reply = await self._handler(request)
            if isinstance(reply, Events):
                reply.headers["X-Request-Id"] = report.id
                await reply.run()
                report.error = reply.error
        except ServeError as error:
            report.error = str(error)
            reply = _refusal(error)
        except ClientDisconnect:
            report.error = DISCONNECTED
            reply = Reply(b"", JSON, status=499)
        except Exception:
            _log.exception("a request failed")
            report.error = FAILED
            reply = json_reply({"error": FAILED}, 500)
        finally:
            self._front.hold(-request.held)
        report.status = reply.status
        return reply


class Application:
    """The ASGI application: routes predictions itself, other requests by Starlette.

    Args:
      front: the server's models and limits.
      predictions: endpoints by the kind that `prediction_route` returns.
      others: the Starlette application.

    Attributes:
      front: as above.
    """

    def __init__(
        self, front: Front, predictions: Mapping[str, Endpoint], others: Any
    ) -> None:
        self.front, self._predictions, self._others = front, predictions, others
        #: The last error that refused a request unread, and its reply.
        self._repeated: tuple[ServeError | None, RepeatedReply] = (
            None,
            RepeatedReply(json_reply({})),
        )

    def prepare(self, scope: dict[str, Any]) -> Prepared | None:
        """Returns what answers a prediction without a task, or None.

        Args:
          scope: that of a request that has arrived whole.
        """
        route = prediction_route(scope["path"])
        if route is None or route[0] == "generate_stream":
            return None
        kind, names = route
        return Prepared(self, self._predictions[kind], names, scope)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answers a request."""
        route = None
        if scope["type"] == "http" and scope["method"] == "POST":
            route = prediction_route(scope["path"])
        if route is None:
            await self._others(scope, receive, send)
            return
        kind, names = route
        waited = scope.get("fxflow.waited", 0.0)
        target = self.target(names, scope.get("fxflow.body"), waited)
        reply: Reply | Events | None = None
        if isinstance(target, ServeError) and self.refuses_unread(target):
            reply = _refusal(target)
            id = self.refused(names["model"], headers_of(scope), waited)
            reply.headers["X-Request-Id"] = id
        if reply is None:
            request = HttpRequest(scope, receive, send, names, target)
            reply = await self._predictions[kind].handle(request)
        if isinstance(reply, Reply):  # `handle` sends events itself
            await reply(scope, receive, send)

    def target(
        self, names: Mapping[str, str], body: bytes | bytearray | None, waited: float
    ) -> Any:
        """Returns the model for a prediction, or the error that refuses it unread.

        Args:
          names: the model's name and version in the path.
          body: the body, if it has arrived whole.
          waited: seconds that the request waited until it was read.
        """
        served = self.served(names)
        if isinstance(served, ServeError):
            return served
        return _late(served, waited) or _refused(served, body, waited) or served

    def served(self, names: Mapping[str, str]) -> Any:
        """Returns the model or group of a path, or the error that there is none.

        Args:
          names: the model's name and version in the path.
        """
        try:
            return self.front.repository.get(names["model"], names.get("version", ""))
        except ServeError as error:
            return error

    def refuses_unread(self, error: ServeError) -> bool:
        """Returns whether no log line, span or client needs more than a cheap refusal.

        Under overload most requests are refused, and each refusal takes time from the
        requests that are answered.

        Args:
          error: the result of `target`.
        """
        front = self.front
        return error.status == 503 and front.is_anonymous and not is_logged(503)

    def refused(self, model: str, headers: Mapping[str, str], waited: float) -> str:
        """Counts a request that is refused unread, and returns its id.

        Args:
          model: name of the model.
          headers: headers by lower-case name.
          waited: as for `target`.
        """
        self.front.metrics.request(model, 503, waited)
        return self.front.request_id(headers.get("x-request-id", ""))

    def repeated(self, error: ServeError) -> RepeatedReply:
        """Returns the reply to requests that an error refuses, made once.

        Args:
          error: the error.
        """
        before, reply = self._repeated
        if error is not before:
            reply = RepeatedReply(_refusal(error))
            self._repeated = error, reply
        return reply


def _late(served: Any, waited: float) -> ServeError | None:
    """Returns the error for a request that waited for too long; None: it did not."""
    if not waited or waited < served.deadline:
        return None
    return ServeError(
        f"the request cannot be answered in time: it waited {waited:.3f} s until it "
        "was read",
        503,
        waited,
    )


def _refused(
    served: Any, body: bytes | bytearray | None, waited: float
) -> ServeError | None:
    """Returns why a model's queue refuses a request that has arrived whole, or None."""
    if body is None or not isinstance(served, ModelService):
        return None
    refusal = served.refusal(waited)
    # A body with a priority or timeout may still be answered in time: read it.
    if refusal is None or b"priority" in body or b"timeout" in body:
        return None
    return refusal


class Prepared:
    """Answers predictions whose heads are equal, and that have arrived whole.

    Args:
      application: the application.
      endpoint: that of the route.
      names: the model's name and version in the path.
      scope: the ASGI scope of the first of them.
    """

    def __init__(
        self,
        application: Application,
        endpoint: Endpoint,
        names: dict[str, str],
        scope: dict[str, Any],
    ) -> None:
        self._application, self._endpoint, self._names = application, endpoint, names
        #: The model, group or error of the names, at a revision of the repository.
        self._served: Any = None
        self._revision = -1
        self._headers = headers_of(scope)
        self._scope = {
            name: scope[name] for name in ("method", "path", "query_string", "headers")
        }
        try:
            check_head(self._headers)
            self._known: dict[str, str] | None = self._headers
        except ServeError:  # the handler will say so, to a client that it knows
            self._known = None

    def answer(
        self, body: bytes, waited: float, client: Any, *, patient: bool = False
    ) -> Any:
        """Begins to answer a request; see `connections.Prepared`."""
        application = self._application
        repository = application.front.repository
        if self._revision != repository.revision:
            self._served = application.served(self._names)
            self._revision = repository.revision
        target = self._served
        if not isinstance(target, ModelService):
            return None  # a group's tasks need one of their own; no model: rare
        refusal = _late(target, waited) or _refused(target, body, waited)
        if refusal is not None:
            if not application.refuses_unread(refusal):
                return None
            patience = _PATIENCE * target.deadline
            if patient and waited < patience and target.ready:
                return Later(target, patience)
            reply = application.repeated(refusal)
            model = self._names["model"]
            reply.id = application.refused(model, self._headers, waited)
            return reply
        if target.streamed:
            return None
        if application.front.tracing.recording and not isinstance(
            target, InlineService
        ):
            return None  # a span belongs to the context of a task
        scope = {**self._scope, "client": client, "fxflow.body": body}
        if waited:
            scope["fxflow.waited"] = waited
        request = HttpRequest(
            scope, _nothing, _nothing, self._names, target, self._known
        )
        return self._endpoint.handle(request)


async def _nothing(*message: Any) -> Any:
    """Stands for `receive` and `send` of a request that has arrived whole."""
    raise AssertionError("the request has no connection")


def check_head(headers: Mapping[str, str]) -> None:
    """Checks the types of a request's body.

    Args:
      headers: headers by lower-case name.

    Raises:
      ServeError: status 415; they are not supported.
    """
    encoding = headers.get("content-encoding", "identity")
    if encoding != "identity":
        raise ServeError(f"content encoding {encoding!r} is not supported", 415)
    given = headers.get("content-type", "")
    kind = given.partition(";")[0].strip().lower()
    if kind not in _BODIES and not kind.endswith("+json"):
        raise ServeError(
            "a body must be application/json, or application/octet-stream with "
            f"binary tensors, got {given!r}",
            415,
        )
