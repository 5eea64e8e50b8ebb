"""Descriptions of a server: OpenAPI, web pages, Triton's extensions. Pure functions.

`/` lists models and routes. `/status` shows live statistics: a static, self-contained
page that requests its data from `/status.json`, and prompts for an API key if needed.

The configuration and the statistics of a model are dicts with the field names of
Triton's messages; HTTP sends them as JSON, gRPC as messages.

Source: OpenAPI 3.1; Triton Inference Server,
`docs/protocol/extension_model_configuration.md` and `extension_statistics.md`;
`model_config.proto`.
"""

from __future__ import annotations

import html
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fxflow.serve.metrics import Metrics, Tally
from fxflow.serve.repository import Repository
from fxflow.serve.service import ModelService
from fxflow.serve.signatures import ModelSignature, TensorSpec

#: Path → method and summary.
ROUTES = {
    "/v2": ("get", "The server's name, version and extensions"),
    "/v2/health/live": ("get", "Whether the server is running"),
    "/v2/health/ready": ("get", "Whether all models are ready"),
    "/v2/models/{model}": ("get", "Names and types of a model's inputs and outputs"),
    "/v2/models/{model}/config": ("get", "A model's configuration in Triton's format"),
    "/v2/models/{model}/stats": ("get", "A model's statistics in Triton's format"),
    "/v2/models/stats": ("get", "The statistics of all models"),
    "/v2/models/{model}/ready": ("get", "Whether a model is ready"),
    "/v2/models/{model}/infer": ("post", "Predict from JSON or binary tensors"),
    "/v2/models/{model}/generate": ("post", "Predict from inputs by name"),
    "/v2/models/{model}/generate_stream": (
        "post",
        "Predict, with each result as a server-sent event",
    ),
    "/v2/repository/index": ("post", "All models and their states"),
    "/predict/{model}": ("post", "Predict from plain lists"),
    "/feedback/{model}": ("post", "Give feedback on a prediction of a selector"),
    "/groups/{model}": ("get", "The state of a selector or a rollout"),
    "/metrics": ("get", "Metrics in Prometheus's text format"),
    "/status": ("get", "A page with live statistics"),
    "/status.json": ("get", "The data of that page"),
}

#: Each event's data is an object of outputs, or an object with only `error`.
_STREAM = {"text/event-stream": {"schema": {"type": "string"}}}


def _schema(spec: TensorSpec) -> dict[str, Any]:
    kind = {"b": "boolean", "i": "integer", "u": "integer", "O": "string"}
    schema: dict[str, Any] = {"type": kind.get(spec.dtype.kind, "number")}
    for size in reversed(spec.shape):
        schema = {"type": "array", "items": schema}
        if isinstance(size, int):
            schema |= {"minItems": size, "maxItems": size}
    return schema | {"description": str(spec)}


def openapi(models: Mapping[str, ModelSignature], version: str) -> dict[str, Any]:
    """Returns the OpenAPI document of a server.

    Args:
      models: signatures by name.
      version: the server's version.

    Returns:
      A JSON object.
    """
    paths: dict[str, Any] = {}
    for path, (method, summary) in ROUTES.items():
        operation: dict[str, Any] = {
            "operationId": _identifier(path),
            "summary": summary,
            "responses": {"200": {"description": "Success"}},
        }
        if "{model}" in path:
            operation["parameters"] = [
                {
                    "name": "model",
                    "in": "path",
                    "required": True,
                    "schema": {"type": "string", "enum": sorted(models)},
                }
            ]
            operation["responses"]["404"] = {"description": "Unknown model"}
        if method == "post" and "{model}" in path:
            if path.endswith("_stream"):
                operation["responses"]["200"]["content"] = _STREAM
            kind = {"application/json": {"schema": {"type": "object"}}}
            operation["requestBody"] = {"required": True, "content": kind}
            operation["responses"] |= {
                "400": {"description": "The request does not match the model"},
                "503": {"description": "The answer would be late; see Retry-After"},
            }
        paths[path] = {method: operation}
    for name, signature in models.items():
        # The plain route for each model, with the model's types.
        paths[f"/predict/{name}"] = {
            "post": {
                "operationId": _identifier(f"/predict/{name}"),
                "summary": f"Predict with {name}",
                "requestBody": {"content": _content(signature.inputs)},
                "responses": {
                    "200": {
                        "description": "The outputs",
                        "content": _STREAM
                        if signature.streamed
                        else _content(signature.outputs),
                    }
                },
            }
        }
    return {
        "openapi": "3.1.0",
        "info": {"title": "fxflow serve", "version": version},
        "paths": paths,
    }


def _identifier(path: str) -> str:
    """Returns the name of a route's operation, after which clients name a function."""
    return re.sub(r"\W+", "_", path).strip("_")


def _content(specs: tuple[TensorSpec, ...]) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {spec.name: _schema(spec) for spec in specs},
        "required": [spec.name for spec in specs],
    }
    return {"application/json": {"schema": schema}}


def index(models: Mapping[str, ModelSignature], version: str) -> str:
    """Returns the page that lists models and routes.

    Args:
      models: signatures by name.
      version: the server's version.

    Returns:
      Self-contained HTML.
    """
    rows = []
    for name, signature in models.items():
        inputs, outputs = (
            ", ".join(f"{spec.name}: {spec}" for spec in specs)
            for specs in (signature.inputs, signature.outputs)
        )
        cells = (name, inputs, outputs)
        rows.append("".join(f"<td>{html.escape(cell)}</td>" for cell in cells))
    routes = "".join(
        f"<tr><td>{method.upper()}</td><td><code>{path}</code></td><td>{summary}</td>"
        for path, (method, summary) in ROUTES.items()
    )
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><title>fxflow serve</title>"
        "<style>body{font:16px sans-serif;margin:2em}td,th{padding:.3em 1em .3em 0;"
        "text-align:left}</style>"
        f"<h1>fxflow serve {html.escape(version)}</h1><h2>Models</h2>"
        "<table><tr><th>name<th>inputs<th>outputs"
        f"{''.join(f'<tr>{row}' for row in rows)}</table>"
        f"<h2>Routes</h2><table>{routes}</table>"
        "<p>See also <a href=status>status</a> and "
        "<a href=openapi.json>openapi.json</a>."
    )


STATUS = Path(__file__).with_name("status.html").read_text(encoding="utf-8")
#: Forbid external resources, framing by other sites, and referrers.
STATUS_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'; connect-src 'self'; frame-ancestors 'none'; "
    "base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
#: Statistics of groups that are the share of a model.
_WEIGHTS = ("weight", "share")


def status(repository: Repository, metrics: Metrics, version: str) -> dict[str, Any]:
    """Returns the data of the status page.

    Args:
      repository: the models.
      metrics: the server's metrics.
      version: the server's version.

    Returns:
      A JSON object with each model's state, configuration, statistics, and the
      histograms of `Metrics.histograms`.
    """
    counted = metrics.histograms()
    services = {service.config.name: service for service in repository}
    models = []
    for entry in repository.index():
        name = entry["name"]
        if name in repository.groups:
            stats = repository.groups[name].stats()
            weights = {m: w for (kind, m), w in stats.items() if kind in _WEIGHTS}
            more = counted.get(name, {"statuses": {}})
            models.append({**entry, "weights": weights, **more})
            continue
        config = repository.configs[name]
        service = services.get(name)
        models.append(
            {
                **entry,
                "slo": config.slo,
                "batching": config.batching,
                "max_batch": config.source.max_batch,
                "replicas": config.replicas,
                "cache": config.cache,
                "stats": service.stats() if service else {},
                **counted.get(name, {"statuses": {}}),
            }
        )
    return {"version": version, "time": time.time(), "models": models}


# -- Triton's extensions ---------------------------------------------------------------

_NS = 1_000_000_000


def model_config(repository: Repository, name: str, version: str = "") -> Any:
    """Returns the configuration of a model in Triton's format.

    Args:
      repository: the models.
      name: name of a model or a group of models.
      version: version to require; empty: any.

    Returns:
      Fields of Triton's `ModelConfig`. For a batched model `max_batch_size` is above 0,
      and `dims` leaves out the batch axis. Open sizes are -1.

    Raises:
      ServeError: status 404 if there is no such model, 503 if it is not ready.
    """
    served = repository.get(name, version)
    signature = served.signature
    group = repository.groups.get(name)
    members = (name,) if group is None else group.config.models
    configs = [repository.configs[m] for m in members if m in repository.configs]
    most = min(config.source.max_batch for config in configs)
    if signature.sizes:
        most = min(most, signature.sizes[-1])

    def tensor(spec: TensorSpec) -> dict[str, Any]:
        sizes = spec.metadata()["shape"]
        kind = "STRING" if spec.datatype == "BYTES" else spec.datatype
        return {
            "name": spec.name,
            "data_type": f"TYPE_{kind}",
            "dims": sizes[1:] if signature.batched else sizes,
        }

    found: dict[str, Any] = {
        "name": name,
        "platform": "fxflow",
        "backend": "fxflow",
        "max_batch_size": most if signature.batched else 0,
        "input": [{**tensor(s), "optional": False} for s in signature.inputs],
        "output": [tensor(spec) for spec in signature.outputs],
        "instance_group": [
            {
                "name": config.name,
                "kind": _kind(config.devices),
                "count": config.replicas,
            }
            for config in configs
        ],
        "model_transaction_policy": {"decoupled": signature.streamed},
        "response_cache": {"enable": any(config.cache for config in configs)},
    }
    if signature.batched and not signature.streamed:
        found["dynamic_batching"] = {
            "preferred_batch_size": list(signature.sizes),
            "max_queue_delay_microseconds": round(configs[0].delay * 1e6),
        }
    return found


def _kind(devices: tuple[str, ...]) -> str:
    kinds = {device.partition(":")[0] for device in devices}
    known = {"cuda": "KIND_GPU", "gpu": "KIND_GPU", "cpu": "KIND_CPU"}
    return known.get(kinds.pop(), "KIND_AUTO") if len(kinds) == 1 else "KIND_AUTO"


def statistics(
    repository: Repository, metrics: Metrics, name: str = "", version: str = ""
) -> dict[str, Any]:
    """Returns the statistics of models in Triton's format.

    A model's process reports only the total time of a batch, so `compute_infer` is the
    total, and `compute_input` and `compute_output` are 0. A stream counts as a batch
    that lasts until its first result.

    Args:
      repository: the models.
      metrics: counts since the server started.
      name: name of a model or a group of models; empty: all loaded models and groups.
      version: version to require; empty: any.

    Returns:
      Fields of Triton's `ModelStatisticsResponse`.

    Raises:
      ServeError: status 404 if there is no such model, 503 if it is not loaded.
    """
    if name:
        served = [(name, repository.get(name, version))]
    else:
        served = [(service.config.name, service) for service in repository]
        served += repository.groups.items()
    return {
        "model_stats": [
            {
                "name": name,
                "version": version or repository.version(name),
                **_statistics(metrics.tally(name), service),
            }
            for name, service in served
        ]
    }


def _duration(count: float, seconds: float = 0.0) -> dict[str, int]:
    return {"count": int(count), "ns": round(seconds * _NS)}


def _statistics(tally: Tally, service: Any) -> dict[str, Any]:
    nothing = _duration(0)
    stats = service.stats() if isinstance(service, ModelService) else {}
    return {
        "last_inference": round(tally.last * 1e3),
        "inference_count": tally.rows,
        "execution_count": sum(count for count, _ in tally.batches.values()),
        "inference_stats": {
            "success": _duration(tally.successes, tally.success_seconds),
            "fail": _duration(tally.failures, tally.failure_seconds),
            "queue": _duration(tally.requests, tally.queued),
            "compute_input": nothing,
            "compute_infer": _duration(tally.requests, tally.computed),
            "compute_output": nothing,
            "cache_hit": _duration(stats.get("cache_hits", 0)),
            "cache_miss": _duration(stats.get("cache_misses", 0)),
        },
        "batch_stats": [
            {
                "batch_size": rows,
                "compute_input": nothing,
                "compute_infer": _duration(*tally.batches[rows]),
                "compute_output": nothing,
            }
            for rows in sorted(tally.batches)
        ],
    }
