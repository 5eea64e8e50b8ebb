"""Serves models on a Ray cluster: `fxflow serve serving.toml --ray auto` (extra `ray`).

The configuration becomes a Ray Serve application: one deployment per model, whose
replicas Ray places and restarts, and an ingress deployment that speaks the protocol
over HTTP. A replica works as without Ray: it has a queue, batches within the objective,
and runs the model in a separate process. Ray transfers the arrays between ingress and
replicas, and buffers the results of a stream that the client has not read.

Ray's own tools can run it too::

    serve run fxflow.serve.ray:build config=serving.toml
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

from fxflow.errors import ServeError
from fxflow.serve.config import ServerConfig, read_config, read_keys, server_config
from fxflow.serve.metrics import ROWS, SECONDS, Metrics
from fxflow.serve.protocol.front import Front
from fxflow.serve.protocol.http import application
from fxflow.serve.repository import Repository
from fxflow.serve.service import (
    MetricsSink,
    ModelConfig,
    ModelService,
    Prediction,
    PredictionRequest,
    allowed,
    check_single,
)
from fxflow.serve.signatures import ModelSignature
from fxflow.serve.telemetry import Tracing, exporting

#: Requests in flight that Ray allows: high, because `ModelService` limits its queue.
_ONGOING = 10_000


def _serve() -> Any:
    try:
        from ray import serve
    except ImportError:
        raise ServeError("Ray Serve is missing: pip install 'fxflow[ray]'") from None
    return serve


class _RayMetrics(MetricsSink):
    """Reports batches to Ray's metrics; the ingress counts requests."""

    def __init__(self) -> None:
        from ray.util import metrics

        self._rows = metrics.Histogram(
            "fxflow_serve_batch_rows", boundaries=list(ROWS), tag_keys=("model",)
        )
        self._seconds = metrics.Histogram(
            "fxflow_serve_batch_seconds", boundaries=list(SECONDS), tag_keys=("model",)
        )

    def batch(
        self, model: str, rows: int, seconds: float, requests: int, queued: float
    ) -> None:
        self._rows.observe(rows, {"model": model})
        self._seconds.observe(seconds, {"model": model})


class ModelReplica:
    """The deployment of a model: a queue and one process in each Ray replica.

    Args:
      config: the model's configuration; Ray runs the replicas that it asks for.
    """

    def __init__(self, config: ModelConfig) -> None:
        one = dataclasses.replace(config, replicas=1, feedback=None, inline=False)
        self._service = ModelService(one, _RayMetrics())
        self._started: asyncio.Task[None] | None = None

    async def _ready(self) -> None:
        if self._started is None:
            self._started = asyncio.create_task(self._service.start())
        await asyncio.shield(self._started)

    async def signature(self) -> dict[str, Any]:
        """Returns the model's signature once it is loaded."""
        await self._ready()
        return self._service.signature.to_json()

    async def submit(self, request: PredictionRequest) -> tuple[Any, ...]:
        """Answers one request.

        Args:
          request: the request.

        Returns:
          The fields of a `Prediction`, or of a `ServeError`: a raised exception would
          carry Ray's traceback.
        """
        try:
            await self._ready()
            return tuple(await self._service.submit(request))
        except ServeError as error:
            return str(error), error.status, error.retry_after

    async def stream(
        self, request: PredictionRequest
    ) -> AsyncGenerator[tuple[Any, ...], None]:
        """Answers one request with a generator's results.

        Args:
          request: the request.

        Yields:
          What `submit` returns; an error ends the stream.
        """
        try:
            await self._ready()
            results = self._service.stream(request)
            async with aclosing(results):
                async for answer in results:
                    yield tuple(answer)
        except ServeError as error:
            yield str(error), error.status, error.retry_after

    async def check_health(self) -> None:
        """Loads the model unless it is loading; Ray restarts the replica on errors."""
        await self._ready()

    async def __del__(self) -> None:
        """Answers the accepted requests, and stops the process."""
        await self._service.drain()


class _Remote:
    """Stands in for a `ModelService` whose replicas run on Ray."""

    signature: ModelSignature

    def __init__(self, config: ModelConfig, handle: Any) -> None:
        self.config, self._handle = config, handle
        self.deadline = config.deadline or 5 * config.slo
        self.versions = (config.version,)
        self.ready = False

    async def start(self) -> None:
        self.signature = ModelSignature.from_json(await self._handle.signature.remote())
        self.ready = True

    async def drain(self) -> None:
        self.ready = False  # Ray stops the replicas

    def stats(self) -> dict[str, float]:
        return {}  # Ray has metrics of its replicas and their queues

    async def submit(self, request: PredictionRequest) -> Prediction:
        check_single(self.config.name, self.signature)
        limit = allowed(request.timeout, self.deadline)
        reply = self._handle.submit.remote(request)
        return _answer(await self._reply(reply, limit, reply.cancel))

    async def feedback(self, **given: Any) -> Any:
        raise ServeError(f"{self.config.name!r} takes no feedback on Ray", 400)

    async def stream(
        self, request: PredictionRequest
    ) -> AsyncGenerator[Prediction, None]:
        limit = allowed(request.timeout, self.deadline)
        handle = self._handle.options(stream=True)
        results = handle.stream.remote(request)
        cancel = results.cancel
        try:
            while found := await self._reply(anext(results, None), limit, cancel):
                yield _answer(found)
                limit = self.deadline
        finally:
            cancel()

    async def _reply(
        self, reply: Awaitable[Any], limit: float, cancel: Callable[[], None]
    ) -> Any:
        try:
            # A replica that exited, perhaps with its machine, sends no reply.
            async with asyncio.timeout(limit + 1.0):
                return await reply
        except TimeoutError:
            cancel()
            raise ServeError("no replica answered by the deadline", 504, 1.0) from None
        except Exception as error:  # Ray's: the replica exited or never started
            words = str(error).strip().rpartition("\n")[2]
            raise ServeError(f"Ray did not answer: {words}", 503, 1.0) from None


def _answer(found: tuple[Any, ...]) -> Prediction:
    """Returns the prediction that a replica returned, or raises its error."""
    if isinstance(found[0], str):
        raise ServeError(*found)
    return Prediction(*found)


class Ingress:
    """The deployment that speaks the protocol over HTTP for all models.

    Args:
      config: the server's configuration, except for addresses, which Ray manages.
      keys: client → API key.
      handles: model → handle of its deployment.
    """

    def __init__(
        self, config: ServerConfig, keys: Mapping[str, str], handles: Mapping[str, Any]
    ) -> None:
        self._config, self._keys, self._handles = config, keys, handles
        self._app: asyncio.Task[Any] | None = None

    async def _make_app(self) -> Any:
        config = self._config

        def remote(model: ModelConfig, meter: MetricsSink) -> Any:
            return _Remote(model, self._handles[model.name])

        metrics = Metrics()
        repository = Repository(config.models, metrics, remote)
        if faults := await repository.configure(config.models, config.groups):
            raise ServeError("; ".join(faults))
        front = Front(
            repository,
            metrics,
            limits=config.request_limits(),
            keys=self._keys,
            tracing=Tracing(exporting(config.traces)[1] if config.traces else None),
        )
        return _response(application(front, config.static))

    async def check_health(self) -> None:
        """Waits until the models are loaded; Ray then sends requests."""
        if self._app is None:
            self._app = asyncio.create_task(self._make_app())
        await asyncio.shield(self._app)

    async def __call__(self, request: Any) -> Any:
        """Answers a request.

        Args:
          request: the Starlette request from Ray's proxy.

        Returns:
          A Starlette response, which streams.
        """
        await self.check_health()
        assert self._app is not None
        return self._app.result()


def _response(app: Any) -> Any:
    """Wraps an ASGI application in a Starlette response."""
    from starlette.responses import Response

    class AppResponse(Response):
        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            async def forward(message: dict[str, Any]) -> None:
                if message["type"] == "http.response.start":
                    # Ray's proxy adds its own x-request-id.
                    headers = message["headers"]
                    kept = [h for h in headers if h[0] != b"x-request-id"]
                    message = {**message, "headers": kept}
                await send(message)

            await app(scope, receive, forward)

    return AppResponse()


def ray_application(config: ServerConfig) -> Any:
    """Returns a Ray Serve application for a configuration.

    A model's table ``ray`` has options of its deployment, such as
    ``ray_actor_options = {num_gpus = 1}`` or an ``autoscaling_config``, which replaces
    ``replicas``.

    Args:
      config: the server's configuration.

    Returns:
      The argument for `ray.serve.run`.

    Raises:
      ServeError: Ray Serve is not installed, or rejects an option of a model.
    """
    serve = _serve()
    handles = {}
    for model in config.models:
        options: dict[str, Any] = {"max_ongoing_requests": _ONGOING}
        if "autoscaling_config" not in model.ray:
            options["num_replicas"] = model.replicas
        try:
            deployment = serve.deployment(ModelReplica).options(
                **{"name": model.name, **options, **model.ray}
            )
        except (TypeError, ValueError) as error:
            raise ServeError(f"models.{model.name}.ray: {error}") from None
        handles[model.name] = deployment.bind(model)
    ingress = serve.deployment(Ingress).options(
        name="fxflow", max_ongoing_requests=_ONGOING
    )
    return ingress.bind(config, read_keys(config.keys), handles)


def build(arguments: Mapping[str, str]) -> Any:
    """Returns the application for a file, for Ray's own ``serve run`` and ``deploy``.

    Args:
      arguments: ``config``, the path of the file.

    Returns:
      The argument for `ray.serve.run`.

    Raises:
      ServeError: the file cannot be read or is not a valid configuration.
    """
    if set(arguments) != {"config"}:
        raise ServeError(f"give only config=serving.toml, got {arguments}")
    return ray_application(server_config(read_config(Path(arguments["config"]))))


def run_on_ray(config: ServerConfig, address: str, stop: Callable[[], None]) -> None:
    """Serves on a Ray cluster until `stop` returns.

    Args:
      config: the server's configuration.
      address: address of the Ray head, ``auto`` for the one of this machine, or
        ``local`` for a cluster that starts and stops with the server.
      stop: called when all models are ready; returns when serving should end.

    Raises:
      ServeError: Ray is not installed or not reachable, or a model cannot be loaded.
    """
    if config.grpc_port is not None or config.tls_cert or config.control:
        raise ServeError(
            "on Ray, fxflow serves plain HTTP only, without gRPC, TLS or control: use "
            "a proxy for TLS, and deploy again to load models"
        )
    serve = _serve()
    import ray

    application = ray_application(config)
    options: dict[str, Any] = {"include_dashboard": False}
    if address != "local":
        options = {"address": address}
    try:
        ray.init(log_to_driver=address == "local", **options)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise ServeError(f"no Ray cluster at {address!r}: {error}") from None
    try:
        serve.start(http_options={"host": config.host, "port": config.port})
        try:
            serve.run(application, name="fxflow", route_prefix="/")
        except RuntimeError as error:
            raise ServeError(f"Ray cannot serve the models: {error}") from None
        stop()
    finally:
        serve.delete("fxflow")
        if address == "local":
            serve.shutdown()
        ray.shutdown()
