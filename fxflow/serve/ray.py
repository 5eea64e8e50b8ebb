"""Models on a cluster of Ray: `fxflow serve serving.toml --ray auto` (extra `ray`).

The same configuration makes an application of Ray Serve: for each model a deployment,
whose replicas Ray puts on its machines and starts again, and one in front of them all
that speaks the protocol over HTTP. In a replica there is what there is without Ray: a
queue, batches within the objective, and the model in a process of its own. Between the
two Ray carries arrays in its own way, within the cluster; of a generator's stream Ray
holds what its client has not read yet.

Ray's own tools can run it as well::

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
    RequestOrigin,
    allowed,
    check_single,
)
from fxflow.serve.signatures import ModelSignature
from fxflow.serve.telemetry import Tracing, exporting

#: Requests in flight that Ray allows: the model's own queue batches and refuses.
_ONGOING = 10_000


def _serve() -> Any:
    try:
        from ray import serve
    except ImportError:
        raise ServeError("Ray Serve is missing: pip install 'fxflow[ray]'") from None
    return serve


class _RayMetrics(MetricsSink):
    """Tells Ray's metrics of batches; requests are counted in front."""

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
    """What Ray runs for a model: its queue, and its process.

    Args:
      config: of the model; as many of these as it has replicas are run.
    """

    def __init__(self, config: ModelConfig) -> None:
        one = dataclasses.replace(config, replicas=1)
        self._service = ModelService(one, _RayMetrics())
        self._started: asyncio.Task[None] | None = None

    async def _ready(self) -> None:
        if self._started is None:
            self._started = asyncio.create_task(self._service.start())
        await asyncio.shield(self._started)

    async def signature(self) -> dict[str, Any]:
        """Returns what the model takes and gives, once it is loaded."""
        await self._ready()
        return self._service.signature.to_json()

    async def submit(
        self, inputs: dict[str, Any], rows: int, priority: int, timeout: float
    ) -> tuple[Any, ...]:
        """Answers one request.

        Args:
          inputs, rows, priority, timeout: as of `ModelService.submit`.

        Returns:
          The parts of a `Prediction`, or those of a `ServeError`: an exception would
          carry Ray's traceback.
        """
        try:
            await self._ready()
            return tuple(
                await self._service.submit(
                    inputs, rows, priority=priority, timeout=timeout
                )
            )
        except ServeError as error:
            return str(error), error.status, error.retry_after

    async def stream(
        self, inputs: dict[str, Any], rows: int, priority: int, timeout: float
    ) -> AsyncGenerator[tuple[Any, ...], None]:
        """Answers one request by the results of a generator.

        Args:
          inputs, rows, priority, timeout: as of `ModelService.stream`.

        Yields:
          As `submit` returns; an error is the last.
        """
        try:
            await self._ready()
            results = self._service.stream(
                inputs, rows, priority=priority, timeout=timeout
            )
            async with aclosing(results):
                async for answer in results:
                    yield tuple(answer)
        except ServeError as error:
            yield str(error), error.status, error.retry_after

    async def check_health(self) -> None:
        """Loads the model, if that has not begun; Ray restarts it if this raises."""
        await self._ready()

    async def __del__(self) -> None:
        """Answers what it has, and ends the process."""
        await self._service.drain()


class _Remote:
    """A model as the protocol sees it, whose replicas are elsewhere."""

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
        self.ready = False  # the replicas end by themselves

    def stats(self) -> dict[str, float]:
        return {}  # Ray counts its replicas and their queues itself

    async def submit(
        self,
        inputs: Mapping[str, Any],
        rows: int,
        *,
        priority: int = 0,
        timeout: float = 0.0,
        origin: RequestOrigin | None = None,
    ) -> Prediction:
        check_single(self.config.name, self.signature)
        limit = allowed(timeout, self.deadline)
        reply = self._handle.submit.remote(dict(inputs), rows, priority, timeout)
        return _answer(await self._reply(reply, limit, reply.cancel))

    async def stream(
        self,
        inputs: Mapping[str, Any],
        rows: int,
        *,
        priority: int = 0,
        timeout: float = 0.0,
        origin: RequestOrigin | None = None,
    ) -> AsyncGenerator[Prediction, None]:
        limit = allowed(timeout, self.deadline)
        handle = self._handle.options(stream=True)
        results = handle.stream.remote(dict(inputs), rows, priority, timeout)
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
            # A replica that ended, with its machine perhaps, answers nothing.
            async with asyncio.timeout(limit + 1.0):
                return await reply
        except TimeoutError:
            cancel()
            raise ServeError("no replica answered by the deadline", 504, 1.0) from None
        except Exception as error:  # Ray's: the replica ended, or was never there
            words = str(error).strip().rpartition("\n")[2]
            raise ServeError(f"Ray has no answer: {words}", 503, 1.0) from None


def _answer(found: tuple[Any, ...]) -> Prediction:
    """What a replica's method has returned; its error is raised."""
    if isinstance(found[0], str):
        raise ServeError(*found)
    return Prediction(*found)


class Ingress:
    """The deployment in front of the models: the protocol over HTTP.

    Args:
      config: how it listens is Ray's matter; the rest is as without Ray.
      keys: client → API key.
      handles: of the models' deployments.
    """

    def __init__(
        self, config: ServerConfig, keys: Mapping[str, str], handles: Mapping[str, Any]
    ) -> None:
        self._config, self._keys, self._handles = config, keys, handles
        self._app: asyncio.Task[Any] | None = None

    async def _made(self) -> Any:
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
        """Waits for the models, once; Ray then sends requests."""
        if self._app is None:
            self._app = asyncio.create_task(self._made())
        await asyncio.shield(self._app)

    async def __call__(self, request: Any) -> Any:
        """Answers a request.

        Args:
          request: Starlette's, of Ray's proxy.

        Returns:
          A response of Starlette's, which is sent as it comes.
        """
        await self.check_health()
        assert self._app is not None
        return self._app.result()


def _response(app: Any) -> Any:
    """An ASGI application as a response of Starlette's, which sends what it sends."""
    from starlette.responses import Response

    class Whole(Response):
        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            async def pass_on(message: dict[str, Any]) -> None:
                if message["type"] == "http.response.start":
                    # Ray's proxy adds the number of the request itself.
                    headers = message["headers"]
                    kept = [h for h in headers if h[0] != b"x-request-id"]
                    message = {**message, "headers": kept}
                await send(message)

            await app(scope, receive, pass_on)

    return Whole()


def ray_application(config: ServerConfig) -> Any:
    """Returns a configuration as an application of Ray Serve.

    A model's table ``ray`` has options of its deployment, such as
    ``ray_actor_options = {num_gpus = 1}`` or an ``autoscaling_config``, which takes the
    place of ``replicas``.

    Args:
      config: as `fxflow serve` has it.

    Returns:
      What `ray.serve.run` takes.

    Raises:
      ServeError: Ray Serve is not installed, or does not know an option of a model.
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
    """Returns the application of a file, for Ray's own ``serve run`` and ``deploy``.

    Args:
      arguments: ``config``, the path of the file.

    Returns:
      What `ray.serve.run` takes.

    Raises:
      ServeError: there is no such file, or it is not a configuration.
    """
    if set(arguments) != {"config"}:
        raise ServeError(f"say config=serving.toml, and nothing else; got {arguments}")
    return ray_application(server_config(read_config(Path(arguments["config"]))))


def run_on_ray(config: ServerConfig, address: str, stop: Callable[[], None]) -> None:
    """Serves on a cluster of Ray until `stop` returns.

    Args:
      config: what and how.
      address: of Ray's head, ``auto`` for the one of this machine, or ``local`` for
        one that is begun for this and ends with it.
      stop: called when all models serve; returns when serving ends.

    Raises:
      ServeError: Ray is not installed or not reached, or a model cannot be loaded.
    """
    if config.grpc_port is not None or config.tls_cert or config.control:
        raise ServeError(
            "on Ray there is HTTP alone, without TLS and without loading by requests: "
            "put a proxy in front, and deploy again"
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
        raise ServeError(f"no cluster of Ray at {address!r}: {error}") from None
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
