"""The protocol over HTTP: an ASGI application, which uvicorn runs.

Every error is JSON, ``{"error": text}``. Before and while a body is read, its size, the
size of all bodies in flight, and its time are limited. Starlette routes all requests
except predictions, which `endpoints` routes.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fxflow._version import __version__
from fxflow.errors import ServeError
from fxflow.serve.errors import ClientDisconnect
from fxflow.serve.protocol import descriptions
from fxflow.serve.protocol.asgi import (
    PREDICTION_ROUTES,
    Events,
    HttpRequest,
    Reply,
    Within,
)
from fxflow.serve.protocol.endpoints import (
    JSON,
    Application,
    Endpoint,
    Handler,
    check_head,
    json_reply,
)
from fxflow.serve.protocol.front import (
    FAILED,
    Front,
)
from fxflow.serve.protocol.tensors import (
    InferRequest,
    answer_parameters,
    bad,
    dumps,
    parse_feedback,
    parse_generate,
    parse_infer,
    parse_json,
    parse_plain,
    write_generate,
    write_infer,
    write_plain,
)
from fxflow.serve.selector import Selector
from fxflow.serve.service import Prediction
from fxflow.serve.signatures import ModelSignature
from fxflow.serve.versions import Versions

_log = logging.getLogger("fxflow.serve")
_BINARY = "application/octet-stream"
_HTML = "text/html; charset=utf-8"


def application(front: Front, static: str | None = None) -> Any:
    """Returns the ASGI application of a server.

    Args:
      front: the server's models and limits.
      static: folder to serve without a key under ``/app/``; None: no folder.

    Returns:
      An application for uvicorn or another ASGI server.

    Raises:
      ServeError: starlette is not installed, or the folder does not exist.
    """
    try:
        from starlette.applications import Starlette
        from starlette.exceptions import HTTPException
        from starlette.routing import Mount, Route
        from starlette.staticfiles import StaticFiles
    except ImportError:
        raise ServeError(
            "serving needs starlette: pip install 'fxflow[serve]'"
        ) from None
    if static is not None and not Path(static).is_dir():
        raise ServeError(f"static: there is no folder {static!r}")
    predictions, others = _Predictions(front), _Others(front)
    endpoints = {
        (method, path): Endpoint(
            front, handler, method, path, predicts=table is predictions.post
        )
        for method, table in (
            ("GET", others.get),
            ("POST", others.post),
            ("POST", predictions.post),
        )
        for path, handler in table.items()
    }
    routes: list[Any] = [
        Route(path, endpoint, methods=[method])
        for (method, path), endpoint in endpoints.items()
    ]
    if static is not None:
        routes.append(Mount("/app", StaticFiles(directory=static, html=True)))

    async def not_a_route(request: Any, error: Exception) -> Reply:
        code = error.status_code if isinstance(error, HTTPException) else 500
        text, more = "the request cannot be answered", {}
        if code == 404:
            text = "there is no such route; GET / lists the routes"
            more = {"routes": [f"{method} {path}" for method, path in endpoints]}
        elif code == 405:
            allow = (getattr(error, "headers", None) or {}).get("Allow", "another")
            text = f"method {request.method} is not allowed, use {allow}"
        return json_reply({"error": f"{request.url.path}: {text}", **more}, code)

    app = Starlette(routes=routes, exception_handlers={HTTPException: not_a_route})
    kinds = {kind: endpoints["POST", path] for kind, path in PREDICTION_ROUTES.items()}
    return Application(front, kinds, app)


class _Bodies:
    """Reads the bodies of requests within the limits."""

    def __init__(self, front: Front) -> None:
        self._front = front

    async def body(self, request: HttpRequest) -> bytes:
        """Returns a body, which counts as in flight until the request finishes."""
        if request.known is None:
            check_head(request.headers)
        whole = request.scope.get("fxflow.body")
        if whole is None:
            declared = request.headers.get("content-length", "0")
            size = int(declared) if declared.isdigit() else 0
            whole = await self._read(request, size)
        else:
            self._front.check_size(len(whole))
        request.held = len(whole)
        self._front.hold(request.held)
        return bytes(whole)

    async def _read(self, request: HttpRequest, size: int) -> bytes:
        parts: list[bytes] = []
        total, more = 0, True
        timeout = self._front.limits.body_timeout
        try:
            with Within(timeout):
                while True:
                    self._front.check_size(size)
                    if not more:
                        return b"".join(parts)
                    message = await request.receive()
                    if message["type"] != "http.request":
                        raise ClientDisconnect
                    parts.append(message.get("body", b""))
                    total += len(parts[-1])
                    size = max(size, total)
                    more = message.get("more_body", False)
        except TimeoutError:
            raise ServeError(
                f"the body did not arrive within {timeout:g} s", 408
            ) from None


class _Predictions(_Bodies):
    """The routes for predictions."""

    def __init__(self, front: Front) -> None:
        super().__init__(front)
        self.post: dict[str, Handler] = {"/predict/{model}": self.predict}
        for place in ("/v2/models/{model}", "/v2/models/{model}/versions/{version}"):
            self.post[f"{place}/infer"] = self.infer
            self.post[f"{place}/generate"] = self.generate
            self.post[f"{place}/generate_stream"] = self.generate

    async def infer(self, request: HttpRequest) -> Reply:
        served = _target_of(request)
        length = request.headers.get("inference-header-content-length")
        if length is not None and not (length.isascii() and length.isdigit()):
            raise ServeError(
                f"Inference-Header-Content-Length must be a number, got {length!r}", 400
            )
        body = await self.body(request)
        header = None if length is None else int(length[:20])
        parsed = parse_infer(body, header, served.signature)
        answer = await self._front.answer(served, parsed, request.report)
        of = answer.provenance
        text, size = write_infer(
            parsed if of is None else replace(parsed, id=of.id),
            answer.outputs,
            served.signature,
            served.config.name,
            served.versions[0] if of is None else of.version,
            answer_parameters(answer),
        )
        headers = _explained(answer)
        if size is None:
            return Reply(text, JSON, headers)
        headers["Inference-Header-Content-Length"] = str(size)
        return Reply(text, _BINARY, headers)

    async def predict(self, request: HttpRequest) -> Reply | Events:
        served = _target_of(request)
        parsed = parse_plain(await self.body(request), served.signature)
        query = request.query_params
        parsed.id, parsed.context = query.get("id", ""), query.get("context", "")

        def write(answer: Prediction) -> bytes:
            return dumps(write_plain(answer.outputs, served.signature))

        if served.signature.streamed:
            return self._events(request, served, parsed, write)
        return await self._single(request, served, parsed, write)

    async def generate(self, request: HttpRequest) -> Reply | Events:
        served = _target_of(request)
        parsed = parse_generate(await self.body(request), served.signature)

        def write(answer: Prediction) -> bytes:
            of = answer.provenance
            result = write_generate(
                answer.outputs,
                served.signature,
                served.config.name,
                served.versions[0] if of is None else of.version,
                parsed.id if of is None else of.id,
            )
            return dumps(result)

        if request.path.endswith("_stream"):
            return self._events(request, served, parsed, write)
        return await self._single(request, served, parsed, write)

    async def _single(
        self,
        request: HttpRequest,
        served: Any,
        parsed: InferRequest,
        write: Callable[[Prediction], bytes],
    ) -> Reply:
        answer = await self._front.answer(served, parsed, request.report)
        return Reply(write(answer), JSON, _explained(answer))

    def _events(
        self,
        request: HttpRequest,
        served: Any,
        parsed: InferRequest,
        write: Callable[[Prediction], bytes],
    ) -> Events:
        async def parts() -> AsyncGenerator[bytes, None]:
            sent = False
            results = self._front.answers(served, parsed, request.report)
            try:
                async with aclosing(results):
                    async for answer in results:
                        text = write(answer)
                        if not sent:
                            reply.headers |= _explained(answer)
                        sent = True
                        yield b"data: %b\n\n" % text
            except Exception as error:
                if not sent:  # the status can still report it
                    raise
                reply.status, reply.error = 500, FAILED
                if isinstance(error, ServeError):
                    reply.status, reply.error = error.status, str(error)
                else:
                    _log.exception("a stream failed")
                yield b"data: %b\n\n" % dumps({"error": reply.error})

        reply = Events(request, parts(), self._front.limits.body_timeout)
        return reply


def _target_of(request: HttpRequest) -> Any:
    """Returns the model for a prediction, or raises its refusal."""
    target = request.target
    if isinstance(target, ServeError):  # which may be raised again: a copy
        raise ServeError(str(target), target.status, target.retry_after)
    return target


def _explained(answer: Prediction) -> dict[str, str]:
    """Returns headers with the timing and the models of an answer."""
    headers = {
        "Server-Timing": f"queue;dur={answer.queued * 1e3:.3f}, "
        f"batch;dur={answer.ran * 1e3:.3f}, rows;dur={answer.rows}"
    }
    if answer.age is not None:
        headers["Table-Age"] = f"{answer.age:.3f}"
    if (of := answer.provenance) is not None:
        headers["Request-Id"] = quote(of.id, safe=" !#$&'()*+,/:;=?@[]~")
        headers["Models"] = ", ".join(of.models)
        if of.late:
            headers["Late-Models"] = ", ".join(of.late)
        if of.confidence is not None:
            shares = (f"{share:.6g}" for share in of.confidence)
            headers["Confidence"] = ", ".join(shares)
    return headers


class _Others(_Bodies):
    """All routes except predictions."""

    def __init__(self, front: Front) -> None:
        super().__init__(front)
        self._repository = front.repository
        self.get: dict[str, Handler] = {
            "/": self.page,
            "/openapi.json": self.openapi,
            "/metrics": self.metrics,
            "/status": self.status_page,
            "/status.json": self.status,
            "/v2": self.server,
            "/v2/health/live": self.live,
            "/v2/health/ready": self.ready,
            "/v2/models/stats": self.statistics,
            "/groups/{model}": self.group,
        }
        self.post: dict[str, Handler] = {
            "/v2/repository/index": self.index,
            "/v2/repository/models/{model}/load": self.load,
            "/v2/repository/models/{model}/unload": self.unload,
            "/feedback/{model}": self.feedback,
            "/groups/{model}/forward": self.move,
            "/groups/{model}/back": self.move,
        }
        for place in ("/v2/models/{model}", "/v2/models/{model}/versions/{version}"):
            self.get |= {place: self.model, f"{place}/ready": self.model_ready}
            self.get |= {
                f"{place}/config": self.config,
                f"{place}/stats": self.statistics,
            }

    # -- the protocol's routes ---------------------------------------------------------

    async def live(self, request: HttpRequest) -> Reply:
        return json_reply({"live": True})

    async def ready(self, request: HttpRequest) -> Reply:
        up = self._repository.ready
        return json_reply({"ready": up}, 200 if up else 503)

    async def server(self, request: HttpRequest) -> Reply:
        return json_reply(self._front.describe())

    async def model(self, request: HttpRequest) -> Reply:
        return json_reply(self._front.describe_model(*_named(request)))

    async def model_ready(self, request: HttpRequest) -> Reply:
        up = self._repository.get(*_named(request)).ready
        return json_reply({"ready": up}, 200 if up else 503)

    async def config(self, request: HttpRequest) -> Reply:
        return json_reply(descriptions.model_config(self._repository, *_named(request)))

    async def statistics(self, request: HttpRequest) -> Reply:
        metrics = self._front.metrics
        return json_reply(
            descriptions.statistics(self._repository, metrics, *_named(request))
        )

    async def index(self, request: HttpRequest) -> Reply:
        body = await self.body(request)
        wanted = parse_json(body) if body.strip() else {}
        ready = isinstance(wanted, dict) and wanted.get("ready") is True
        return json_reply(self._front.index(ready=ready))

    async def load(self, request: HttpRequest) -> Reply:
        self._check_control(request)
        await self._repository.load(request.path_params["model"])
        return json_reply({})

    async def unload(self, request: HttpRequest) -> Reply:
        self._check_control(request)
        await self._repository.unload(request.path_params["model"])
        return json_reply({})

    def _check_control(self, request: HttpRequest) -> None:
        self._front.check_control()
        # Without keys, any web page could send requests from its visitors' browsers.
        origin, host = map(request.headers.get, ("origin", "host"))
        other = origin and origin.partition("://")[2] != host
        if other and not self._front.authenticates:
            raise ServeError(
                f"requests from pages of {origin!r} are not allowed without API keys",
                403,
            )

    # -- groups of models --------------------------------------------------------------

    async def feedback(self, request: HttpRequest) -> Reply:
        served = self._repository.get(*_named(request))
        body = await self.body(request)
        feedback = parse_feedback(body, served.signature)
        joined = await served.feedback(**feedback)
        return json_reply(joined._asdict())

    async def group(self, request: HttpRequest) -> Reply:
        group = self._group_of(request)
        if isinstance(group, Selector):
            return json_reply(group.describe(request.query_params.get("context", "")))
        return json_reply(group.describe())

    async def move(self, request: HttpRequest) -> Reply:
        self._check_control(request)
        versions = self._group_of(request)
        if not isinstance(versions, Versions):
            bad(f"{_named(request)[0]!r} is a selector, not a rollout")
        if request.path.endswith("/forward"):
            versions.forward()
        else:
            versions.back()
        return json_reply(versions.describe())

    def _group_of(self, request: HttpRequest) -> Selector | Versions:
        group = self._repository.get(*_named(request))
        if not isinstance(group, Selector | Versions):
            bad(f"{_named(request)[0]!r} is a model, not a group of models")
        return group

    # -- descriptions and statistics ---------------------------------------------------

    def _signatures(self) -> dict[str, ModelSignature]:
        served = (*self._repository, *self._repository.groups.values())
        return {s.config.name: s.signature for s in served if s.ready}

    async def openapi(self, request: HttpRequest) -> Reply:
        return json_reply(descriptions.openapi(self._signatures(), __version__))

    async def page(self, request: HttpRequest) -> Reply:
        return Reply(
            descriptions.index(self._signatures(), __version__).encode(), _HTML
        )

    async def metrics(self, request: HttpRequest) -> Reply:
        return Reply(*self._front.metrics.exposition(self._repository))

    async def status_page(self, request: HttpRequest) -> Reply:
        return Reply(
            descriptions.STATUS.encode(), _HTML, dict(descriptions.STATUS_HEADERS)
        )

    async def status(self, request: HttpRequest) -> Reply:
        return json_reply(
            descriptions.status(self._repository, self._front.metrics, __version__),
            headers={"Cache-Control": "no-store"},
        )


def _named(request: HttpRequest) -> tuple[str, str]:
    """Returns the model and the version in the path."""
    names = request.path_params
    return names.get("model", ""), names.get("version", "")
