"""The protocol over HTTP: routes under starlette, which uvicorn runs.

Every error is JSON, ``{"error": words}``. What may come in is bounded before it is
read: the body of one request, all bodies together, and how long one may take.
"""

from __future__ import annotations

import hashlib
import hmac
import itertools
import json
import logging
import math
import re
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fxflow._version import __version__
from fxflow.errors import ServeError
from fxflow.serve.limits import ClientLimits
from fxflow.serve.metrics import Metrics
from fxflow.serve.protocol import openapi, status, triton
from fxflow.serve.protocol.exchange import (
    Events,
    Exchange,
    Reply,
    Within,
    _Gone,
    found,
)
from fxflow.serve.protocol.tensors import (
    InferRequest,
    bad,
    dumps,
    parse_feedback,
    parse_generate,
    parse_infer,
    parse_plain,
    provenance_parameters,
    write_generate,
    write_infer,
    write_plain,
)
from fxflow.serve.repository import Repository
from fxflow.serve.selector import Selector
from fxflow.serve.service import Answer, Origin, Service, allowed, answers
from fxflow.serve.signatures import Signature
from fxflow.serve.telemetry import Tracing
from fxflow.serve.versions import Versions

_log = logging.getLogger("fxflow.serve")
#: A line for each request; those that are answered as they should be are INFO.
_requests = logging.getLogger("fxflow.serve.requests")
#: Who only asks whether the server lives need not say who it is; nor who gets a page
#: that is the same for all, and asks for the key itself.
_OPEN = ("/v2/health/live", "/v2/health/ready", "/status")
_FAILED = "the server failed; its log says how"
_ID = re.compile(r"[\w.:/+=-]{1,128}", re.ASCII)
#: Types of bodies: those that they have, and what browsers and curl say of all.
_BODIES = frozenset(
    {
        *("", "application/json", "application/octet-stream", "text/json"),
        *("text/plain", "application/x-www-form-urlencoded"),
    }
)
EXTENSIONS = [
    *("binary_tensor_data", "generate", "model_configuration", "model_repository"),
    "statistics",
]


@dataclass
class Limits:
    """What a server takes in.

    Attributes:
      max_body: bytes of one request.
      max_bodies: bytes of all requests that are in hand.
      body_timeout: seconds in which a body has to come, and a result of a stream to be
        read.
      clients: how often each client may ask.
    """

    max_body: int = 64 << 20
    max_bodies: int = 512 << 20
    body_timeout: float = 10.0
    clients: ClientLimits = field(default_factory=ClientLimits)


def key_checker(keys: Mapping[str, str]) -> Callable[[str], str | None]:
    """Returns what finds the client of an API key.

    All keys are compared, each in constant time, so that the time tells nothing.

    Args:
      keys: client → key.

    Returns:
      A function of the key that gives the client, or None.

    Example:
      >>> check = key_checker({"alice": "secret"})
      >>> check("secret"), check("guess")
      ('alice', None)
    """
    digests = {
        name: hashlib.sha256(key.encode()).digest() for name, key in keys.items()
    }

    def check(key: str) -> str | None:
        given = hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()
        found = None
        for name, digest in digests.items():
            if hmac.compare_digest(given, digest):
                found = name
        return found

    return check


#: Refusals of a server that has too much to do. The metrics count them; a warning for
#: each would cost more than the refusal.
_REFUSED = frozenset({429, 503})


def _level(status: int) -> int:
    good = status < 400 or status in _REFUSED
    return logging.INFO if good else logging.WARNING


def is_logged(status: int) -> bool:
    """Returns whether requests of a status have a line in the log.

    Args:
      status: of HTTP.

    Returns:
      Whether; to gather what is in one takes as long as a tenth of a request.
    """
    return _requests.isEnabledFor(_level(status))


def log_request(details: Mapping[str, Any], status: int) -> None:
    """Writes a line of the log for a request.

    Args:
      details: what is known of it; what is empty is left out.
      status: of HTTP; that of an error is a warning, unless it is a refusal.
    """
    if is_logged(status):
        known = {name: value for name, value in details.items() if value != ""}
        _requests.log(_level(status), "request", extra={"details": known})


def application(
    repository: Repository,
    metrics: Metrics,
    *,
    limits: Limits | None = None,
    keys: Mapping[str, str] | None = None,
    control: bool = False,
    tracing: Tracing | None = None,
    static: str = "",
) -> Any:
    """Returns the ASGI application of a server.

    Args:
      repository: its models.
      metrics: what is counted.
      limits: what it takes in.
      keys: client → API key; empty: anybody may ask.
      control: whether models can be loaded and unloaded by requests.
      tracing: makes the spans of requests.
      static: folder whose files anybody may get, under ``/app/``; empty: none.

    Returns:
      An application for uvicorn or another server of ASGI.

    Raises:
      ServeError: starlette is not installed, or the folder is not there.
    """
    try:
        from starlette.applications import Starlette
        from starlette.exceptions import HTTPException
        from starlette.requests import Request
        from starlette.responses import HTMLResponse, JSONResponse, Response
        from starlette.routing import Mount, Route
        from starlette.staticfiles import StaticFiles
    except ImportError:
        raise ServeError(
            "serving needs starlette: pip install 'fxflow[serve]'"
        ) from None
    bounds = limits or Limits()
    client_of = key_checker(keys or {})
    spans = tracing or Tracing()
    # Requests without a number of their own get one; servers' differ by the first half.
    run, series = secrets.token_hex(4), itertools.count(1)
    in_hand = 0
    if static and not Path(static).is_dir():
        raise ServeError(f"there is no folder {static!r} of files to be served")

    def id_of(given: str) -> str:
        if given and _ID.fullmatch(given):
            return given
        return f"{run}-{next(series):x}"

    def refusal(error: ServeError) -> Reply:
        headers = {}
        if error.status in (429, 503):
            headers["Retry-After"] = str(max(1, math.ceil(error.retry_after)))
        if error.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        # Under overload most requests are refused, so that must cost little.
        reply = Reply(dumps({"error": str(error)}), "application/json", headers)
        reply.status_code = error.status
        return reply

    def admitted(request: Any) -> str:
        """The client, who may ask now."""
        client, _ = request.scope.get("client") or ("unknown", 0)
        if keys:
            given = request.headers.get("x-api-key", "")
            kind, _, token = request.headers.get("authorization", "").partition(" ")
            if kind.lower() == "bearer":
                given = token.strip()
            name = client_of(given)
            if name is None:
                raise ServeError("an API key is needed: Authorization: Bearer KEY", 401)
            client = name
        wait = bounds.clients.ask(client, time.monotonic())
        if wait:
            raise ServeError(
                f"client {client!r} may ask {bounds.clients.rate:g} times a second",
                429,
                wait,
            )
        return client

    def check_size(size: int) -> None:
        if size > bounds.max_body:
            raise ServeError(
                f"a body may have {bounds.max_body} bytes, got {size}", 413
            )
        if in_hand + size > bounds.max_bodies:
            raise ServeError("too many bytes of requests are in hand", 503, 1.0)

    async def body_of(request: Any) -> bytes:
        declared = request.headers.get("content-length", "0")
        size = int(declared) if declared.isdigit() else 0
        encoding = request.headers.get("content-encoding", "identity")
        if encoding != "identity":
            raise ServeError(f"bodies with encoding {encoding!r} are not taken", 415)
        given = request.headers.get("content-type", "")
        kind = given.partition(";")[0].strip().lower()
        if kind not in _BODIES and not kind.endswith("+json"):
            raise ServeError(
                f"a body is application/json, or application/octet-stream with tensors "
                f"behind it, not {given!r}",
                415,
            )
        whole = request.scope.get("fxflow.body")
        if whole is not None:
            check_size(len(whole))
            return bytes(whole)
        parts: list[bytes] = []
        total, more = 0, True
        try:
            with Within(bounds.body_timeout):
                while True:
                    check_size(size)
                    if not more:
                        return b"".join(parts)
                    message = await request.receive()
                    if message["type"] != "http.request":
                        raise _Gone
                    parts.append(message.get("body", b""))
                    total += len(parts[-1])
                    size = max(size, total)
                    more = message.get("more_body", False)
        except TimeoutError:
            raise ServeError(
                f"the body did not come within {bounds.body_timeout:g} s", 408
            ) from None

    # Requests are Starlette's, or an Exchange.
    Handler = Callable[[Any], Awaitable[Any]]

    def guarded(handler: Handler, method: str, route: str) -> Handler:
        title = f"{method} {route}"
        # Whoever asks whether a model is ready does not ask for a prediction.
        predicts = handler in (infer, predict, generate)

        async def handle(request: Any) -> Any:
            begun = time.monotonic() - request.scope.get("fxflow.waited", 0.0)
            name = id_of(request.headers.get("x-request-id", ""))
            client = words = ""
            with spans.request(
                title,
                request.headers,
                http__request__method=request.method,
                http__route=route,
                url__path=request.scope["path"],
                fxflow__request_id=name,
            ) as span:
                request.state.span = span
                try:
                    if request.scope["path"] not in _OPEN:
                        client = request.state.client = admitted(request)
                    response = await handler(request)
                    if isinstance(response, Events):
                        response.headers["X-Request-Id"] = name
                        await response.run()
                        words = response.words
                except ServeError as error:
                    words = str(error)
                    response = refusal(error)
                except _Gone:
                    words = "the client went away"
                    response = Response(status_code=499)
                except Exception:
                    _log.exception("a request failed")
                    words = _FAILED
                    response = JSONResponse({"error": words}, 500)
                code = response.status_code
                seconds = time.monotonic() - begun
                # Only names of models that there are: labels are kept for ever.
                model = request.path_params.get("model", "")
                version = ""
                if model in repository:
                    if predicts:
                        metrics.request(model, code, seconds)
                    version = repository.version(model)
                    span.set(fxflow__model=model, fxflow__version=version)
                span.set(http__response__status_code=code)
                if words:
                    span.failed(code, words)
            response.headers["X-Request-Id"] = name
            if is_logged(code):
                log_request(
                    {
                        "id": name,
                        "method": request.method,
                        "path": request.scope["path"],
                        "status": code,
                        "seconds": round(seconds, 6),
                        "client": client,
                        "model": model if version else "",
                        "version": version,
                        "trace": span.trace,
                        "error": words,
                    },
                    code,
                )
            return response

        return handle

    def explained(answer: Answer) -> dict[str, str]:
        """Why a request took as long as it did, and which models it is from."""
        headers = {
            "Server-Timing": f"queue;dur={answer.queued * 1e3:.3f}, "
            f"batch;dur={answer.ran * 1e3:.3f}, rows;dur={answer.rows}"
        }
        if (of := answer.provenance) is not None:
            headers["Request-Id"] = quote(of.id, safe=" !#$&'()*+,/:;=?@[]~")
            headers["Models"] = ", ".join(of.models)
            if of.late:
                headers["Late-Models"] = ", ".join(of.late)
            if of.confidence is not None:
                shares = (f"{share:.6g}" for share in of.confidence)
                headers["Confidence"] = ", ".join(shares)
        return headers

    # -- routes ------------------------------------------------------------------------

    async def live(request: Request) -> Response:
        return JSONResponse({"live": True})

    async def ready(request: Request) -> Response:
        up = repository.ready
        return JSONResponse({"ready": up}, 200 if up else 503)

    async def server(request: Request) -> Response:
        return JSONResponse(
            {"name": "fxflow", "version": __version__, "extensions": EXTENSIONS}
        )

    def asked(request: Any) -> Any:
        return repository.get(
            request.path_params["model"], request.path_params.get("version", "")
        )

    def sought(names: Mapping[str, str], scope: Mapping[str, Any]) -> Any:
        """What is asked for a prediction, or the error that refuses it unread."""
        try:
            service = repository.get(names["model"], names.get("version", ""))
            return refused_unread(service, scope) or service
        except ServeError as error:
            return error

    def refused_unread(service: Any, scope: Mapping[str, Any]) -> ServeError | None:
        """Why there is no time for a request, as far as that is known without it."""
        waited = scope.get("fxflow.waited", 0.0)
        if waited and waited >= service.deadline:
            return ServeError(
                f"it cannot be answered in time: it waited {waited:.3f} s until it was "
                "read",
                503,
                waited,
            )
        body = scope.get("fxflow.body")
        if body is None or not isinstance(service, Service):
            return None
        error = service.refusal(waited)
        # What is urgent may be answered where others are not: that is in the body.
        if error and (b"priority" in body or b"timeout" in body):
            return None
        return error

    # Where nobody has to be known, and nothing is told of a request but its status.
    anonymous = not keys and not bounds.clients.rate and not spans.recording

    def turned_away(
        error: ServeError, names: Mapping[str, str], scope: Mapping[str, Any]
    ) -> Reply | None:
        """The answer to a request that is refused unread, if no more is to be done.

        Under a flood most are, and each takes time from those that are answered.
        """
        if error.status != 503 or not anonymous or is_logged(503):
            return None
        reply = refusal(error)
        given = (v for name, v in scope["headers"] if name == b"x-request-id")
        reply.headers["X-Request-Id"] = id_of(next(given, b"").decode("latin-1"))
        metrics.request(names["model"], 503, scope.get("fxflow.waited", 0.0))
        return reply

    def timely(request: Exchange) -> Any:
        """What is asked for a prediction, if there is time for it still."""
        if isinstance(request.sought, ServeError):
            raise request.sought
        return request.sought

    async def model_ready(request: Request) -> Response:
        up = asked(request).ready
        return JSONResponse({"ready": up}, 200 if up else 503)

    async def model(request: Request) -> Response:
        service = asked(request)
        signature: Signature = service.signature
        return JSONResponse(
            {
                "name": service.config.name,
                "versions": list(service.versions),
                "platform": "fxflow",
                "inputs": [spec.metadata() for spec in signature.inputs],
                "outputs": [spec.metadata() for spec in signature.outputs],
            }
        )

    async def config(request: Request) -> Response:
        return JSONResponse(triton.model_config(repository, *named(request)))

    async def statistics(request: Request) -> Response:
        return JSONResponse(triton.statistics(repository, metrics, *named(request)))

    def named(request: Request) -> tuple[str, str]:
        names = request.path_params
        return names.get("model", ""), names.get("version", "")

    async def infer(request: Exchange) -> Reply:
        nonlocal in_hand
        service = timely(request)
        length = request.headers.get("inference-header-content-length")
        if length is not None and not (length.isascii() and length.isdigit()):
            raise ServeError(
                f"Inference-Header-Content-Length must be a number, got {length!r}", 400
            )
        body = await body_of(request)
        in_hand += len(body)
        try:
            header = None if length is None else int(length[:20])
            parsed = parse_infer(body, header, service.signature)
            answer = await service.submit(
                parsed.inputs, parsed.rows, **options(request, service, parsed)
            )
            request.state.span.answered(answer)
        finally:
            in_hand -= len(body)
        of = answer.provenance
        text, size = write_infer(
            parsed if of is None else replace(parsed, id=of.id),
            answer.outputs,
            service.signature,
            service.config.name,
            service.versions[0] if of is None else of.version,
            None if of is None else provenance_parameters(of),
        )
        headers = explained(answer)
        if size is None:
            return Reply(text, "application/json", headers)
        headers["Inference-Header-Content-Length"] = str(size)
        return Reply(text, "application/octet-stream", headers)

    async def predict(request: Exchange) -> Reply | Events:
        service = timely(request)
        body = await body_of(request)
        parsed = parse_plain(body, service.signature)
        query = request.query_params
        parsed.id, parsed.context = query.get("id", ""), query.get("context", "")

        def written(answer: Answer) -> bytes:
            return dumps(write_plain(answer.outputs, service.signature))

        if service.signature.streamed:
            return events(request, service, parsed, len(body), written)
        return await single(request, service, parsed, len(body), written)

    async def generate(request: Exchange) -> Reply | Events:
        service = timely(request)
        body = await body_of(request)
        parsed = parse_generate(body, service.signature)

        def written(answer: Answer) -> bytes:
            of = answer.provenance
            found = write_generate(
                answer.outputs,
                service.signature,
                service.config.name,
                service.versions[0] if of is None else of.version,
                parsed.id if of is None else of.id,
            )
            return dumps(found)

        if request.scope["path"].endswith("_stream"):
            return events(request, service, parsed, len(body), written)
        return await single(request, service, parsed, len(body), written)

    async def single(
        request: Exchange,
        service: Any,
        parsed: InferRequest,
        size: int,
        written: Callable[[Answer], bytes],
    ) -> Reply:
        nonlocal in_hand
        in_hand += size
        try:
            answer = await service.submit(
                parsed.inputs, parsed.rows, **options(request, service, parsed)
            )
            request.state.span.answered(answer)
        finally:
            in_hand -= size
        return Reply(written(answer), "application/json", explained(answer))

    def events(
        request: Exchange,
        service: Any,
        parsed: InferRequest,
        size: int,
        written: Callable[[Answer], bytes],
    ) -> Events:
        async def parts() -> AsyncGenerator[bytes, None]:
            nonlocal in_hand
            in_hand += size
            count = 0
            results = answers(
                service, parsed.inputs, parsed.rows, **options(request, service, parsed)
            )
            try:
                async with aclosing(results):
                    async for answer in results:
                        text = written(answer)
                        if not count:
                            reply.headers |= explained(answer)
                        count += 1
                        yield b"data: %b\n\n" % text
            except Exception as error:
                if not count:  # it can still be said by the status
                    raise
                reply.status_code, reply.words = 500, _FAILED
                if isinstance(error, ServeError):
                    reply.status_code, reply.words = error.status, str(error)
                else:
                    _log.exception("a stream failed")
                yield b"data: %b\n\n" % dumps({"error": reply.words})
            finally:
                in_hand -= size
                if count:
                    request.state.span.answered(answer)
                    request.state.span.set(fxflow__results=count)

        reply = Events(request, parts(), bounds.body_timeout)
        return reply

    def options(
        request: Exchange, service: Any, parsed: InferRequest
    ) -> dict[str, Any]:
        """What a request says of itself, for `submit`."""
        timeout = parsed.timeout
        if waited := request.scope.get("fxflow.waited", 0.0):
            timeout = max(allowed(timeout, service.deadline) - waited, 1e-6)
        return {
            "priority": parsed.priority,
            "timeout": timeout,
            "origin": Origin(parsed.id, request.state.client, parsed.context),
        }

    async def feedback(request: Request) -> Response:
        nonlocal in_hand
        group = asked(request)
        if not isinstance(group, Selector):
            bad(f"{request.path_params['model']!r} is no selector: nothing is learned")
        body = await body_of(request)
        in_hand += len(body)
        try:
            joined = await group.feedback(**parse_feedback(body, group.signature))
        finally:
            in_hand -= len(body)
        return JSONResponse(joined._asdict())

    def group_of(request: Request) -> Selector | Versions:
        group = asked(request)
        if not isinstance(group, Selector | Versions):
            bad(f"{request.path_params['model']!r} is a model, not a group of them")
        return group

    async def group(request: Request) -> Response:
        asked_for = group_of(request)
        if isinstance(asked_for, Selector):
            context = request.query_params.get("context", "")
            return JSONResponse(asked_for.describe(context))
        return JSONResponse(asked_for.describe())

    async def move(request: Request) -> Response:
        controlled(request)
        versions = group_of(request)
        if not isinstance(versions, Versions):
            bad(
                f"{request.path_params['model']!r} is a selector: nothing is rolled out"
            )
        if request.url.path.endswith("/forward"):
            versions.forward()
        else:
            versions.back()
        return JSONResponse(versions.describe())

    async def index(request: Request) -> Response:
        body = await body_of(request)
        try:
            wanted = json.loads(body) if body.strip() else {}
        except ValueError as error:
            raise ServeError(f"the body is no JSON: {error}", 400) from None
        only = isinstance(wanted, dict) and wanted.get("ready") is True
        found = repository.index()
        return JSONResponse([m for m in found if m["state"] == "READY" or not only])

    async def load(request: Request) -> Response:
        await repository.load(controlled(request))
        return JSONResponse({})

    async def unload(request: Request) -> Response:
        await repository.unload(controlled(request))
        return JSONResponse({})

    def controlled(request: Request) -> str:
        if not control:
            raise ServeError("this server's models are not loaded by requests", 403)
        # Without keys a page of any other site could have its visitors' browsers ask.
        origin, host = map(request.headers.get, ("origin", "host"))
        if not keys and origin and origin.partition("://")[2] != host:
            raise ServeError(f"not for pages of {origin!r}: they would need a key", 403)
        name: str = request.path_params["model"]
        return name

    def signatures() -> dict[str, Signature]:
        served = (*repository, *repository.groups.values())
        return {s.config.name: s.signature for s in served if s.ready}

    async def description(request: Request) -> Response:
        return JSONResponse(openapi.document(signatures(), __version__))

    async def page(request: Request) -> Response:
        return HTMLResponse(openapi.page(signatures(), __version__))

    async def numbers(request: Request) -> Response:
        text, kind = metrics.exposition(repository)
        return Response(text, headers={"Content-Type": kind})

    async def status_page(request: Request) -> Response:
        return HTMLResponse(status.PAGE, headers=status.HEADERS)

    async def figures(request: Request) -> Response:
        return JSONResponse(
            status.figures(repository, metrics, __version__),
            headers={"Cache-Control": "no-store"},
        )

    async def not_a_route(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        text, known = "the request cannot be answered", {}
        if status == 404:
            text = "there is no such route; GET / lists those that there are"
            known = {"routes": [f"{how} {path}" for how, path in served]}
        elif status == 405:
            headers = getattr(error, "headers", None) or {}
            text = f"not by {request.method}, but by {headers.get('Allow', 'another')}"
        found = {"error": f"{request.url.path}: {text}", **known}
        return JSONResponse(found, status)

    get = {
        "/": page,
        "/openapi.json": description,
        "/metrics": numbers,
        "/status": status_page,
        "/status.json": figures,
        "/v2": server,
        "/v2/health/live": live,
        "/v2/health/ready": ready,
        "/v2/models/stats": statistics,
        "/groups/{model}": group,
    }
    post: dict[str, Handler] = {
        "/v2/repository/index": index,
        "/predict/{model}": predict,
        "/feedback/{model}": feedback,
        "/groups/{model}/forward": move,
        "/groups/{model}/back": move,
    }
    for place in ("/v2/models/{model}", "/v2/models/{model}/versions/{version}"):
        get |= {place: model, f"{place}/ready": model_ready}
        get |= {f"{place}/config": config, f"{place}/stats": statistics}
        post[f"{place}/infer"] = infer
        post[f"{place}/generate"] = post[f"{place}/generate_stream"] = generate
    for action, handler in (("load", load), ("unload", unload)):
        post[f"/v2/repository/models/{{model}}/{action}"] = handler
    served = {
        (method, path): guarded(handler, method, path)
        for method, table in (("GET", get), ("POST", post))
        for path, handler in table.items()
    }
    routes: list[Any] = [
        Route(path, handler, methods=[method])
        for (method, path), handler in served.items()
    ]
    if static:
        routes.append(Mount("/app", StaticFiles(directory=static, html=True)))
    predictions = {
        "infer": guarded(infer, "POST", "/v2/models/{model}/infer"),
        "generate": guarded(generate, "POST", "/v2/models/{model}/generate"),
        "generate_stream": guarded(
            generate, "POST", "/v2/models/{model}/generate_stream"
        ),
        "predict": guarded(predict, "POST", "/predict/{model}"),
    }
    others = Starlette(routes=routes, exception_handlers={HTTPException: not_a_route})

    async def app(scope: Any, receive: Any, send: Any) -> None:
        route = None
        if scope["type"] == "http" and scope["method"] == "POST":
            route = found(scope["path"])
        if route is None:
            await others(scope, receive, send)
            return
        kind, names = route
        service = sought(names, scope)
        response = None
        if isinstance(service, ServeError):
            response = turned_away(service, names, scope)
        if response is None:
            exchange = Exchange(scope, receive, send, names, service)
            response = await predictions[kind](exchange)
        if not isinstance(response, Events):  # which are sent as they come
            await response(scope, receive, send)

    return app
