"""Descriptions of a server: OpenAPI 3.1 for programs, and two pages for people.

`/` lists models and routes. `/status` shows what the server is doing: one file that
loads nothing from elsewhere and is the same for all clients; it requests the numbers
that it draws, and asks for an API key if they need one.
"""

from __future__ import annotations

import html
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fxflow.serve.metrics import Metrics
from fxflow.serve.repository import Repository
from fxflow.serve.signatures import ModelSignature, TensorSpec

#: Path → what a POST (with a body) or GET does there.
ROUTES = {
    "/v2": ("get", "The server's name, version and extensions"),
    "/v2/health/live": ("get", "Whether the server runs"),
    "/v2/health/ready": ("get", "Whether all models can be called"),
    "/v2/models/{model}": ("get", "Names and types of a model's inputs and outputs"),
    "/v2/models/{model}/config": ("get", "How a model is served, as Triton says it"),
    "/v2/models/{model}/stats": ("get", "What was counted of it, as Triton says it"),
    "/v2/models/stats": ("get", "The same of all models"),
    "/v2/models/{model}/ready": ("get", "Whether a model can be called"),
    "/v2/models/{model}/infer": ("post", "A prediction, as JSON or binary tensors"),
    "/v2/models/{model}/generate": ("post", "A prediction, inputs by name as JSON"),
    "/v2/models/{model}/generate_stream": (
        "post",
        "The same, and of a generator each result as a server-sent event",
    ),
    "/v2/repository/index": ("post", "All models and their states"),
    "/predict/{model}": ("post", "A prediction, plain lists in and out"),
    "/feedback/{model}": ("post", "How good a prediction of a group of models was"),
    "/groups/{model}": ("get", "What a group of models knows, or how far a version is"),
    "/metrics": ("get", "Numbers for Prometheus"),
    "/status": ("get", "A page that shows what the server is doing"),
    "/status.json": ("get", "What that page shows"),
}

#: Each event's data is an object of outputs, or of `error` alone.
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
      version: of the server.

    Returns:
      Values that JSON has.
    """
    paths: dict[str, Any] = {}
    for path, (method, summary) in ROUTES.items():
        operation: dict[str, Any] = {
            "summary": summary,
            "responses": {"200": {"description": "As asked"}},
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
            operation["responses"]["404"] = {"description": "There is no such model"}
        if method == "post" and "{model}" in path:
            if path.endswith("_stream"):
                operation["responses"]["200"]["content"] = _STREAM
            kind = {"application/json": {"schema": {"type": "object"}}}
            operation["requestBody"] = {"required": True, "content": kind}
            operation["responses"] |= {
                "400": {"description": "The request does not fit the model; says why"},
                "503": {"description": "It would be late; Retry-After says when not"},
            }
        paths[path] = {method: operation}
    for name, signature in models.items():
        # The plain route again for each model, with its own types.
        paths[f"/predict/{name}"] = {
            "post": {
                "summary": f"A prediction of {name}",
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


def _content(specs: tuple[TensorSpec, ...]) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {spec.name: _schema(spec) for spec in specs},
        "required": [spec.name for spec in specs],
    }
    return {"application/json": {"schema": schema}}


def index(models: Mapping[str, ModelSignature], version: str) -> str:
    """Returns the page that lists models and routes for people.

    Args:
      models: signatures by name.
      version: of the server.

    Returns:
      HTML, which loads nothing from elsewhere.
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
        f"<tr><td>{method.upper()}</td><td><code>{path}</code></td><td>{words}</td>"
        for path, (method, words) in ROUTES.items()
    )
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><title>fxflow serve</title>"
        "<style>body{font:16px sans-serif;margin:2em}td,th{padding:.3em 1em .3em 0;"
        "text-align:left}</style>"
        f"<h1>fxflow serve {html.escape(version)}</h1><h2>Models</h2>"
        "<table><tr><th>name<th>inputs<th>outputs"
        f"{''.join(f'<tr>{row}' for row in rows)}</table>"
        f"<h2>Routes</h2><table>{routes}</table>"
        "<p>What it is doing: <a href=status>status</a>. "
        "For programs: <a href=openapi.json>openapi.json</a>"
    )


STATUS = Path(__file__).with_name("status.html").read_text(encoding="utf-8")
#: Nothing of others is loaded, shown in another's frame, or told where it was.
STATUS_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'; connect-src 'self'; frame-ancestors 'none'; "
    "base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
#: What groups of models call the share of each.
_WEIGHTS = ("weight", "share")


def status(repository: Repository, metrics: Metrics, version: str) -> dict[str, Any]:
    """Returns what the page shows.

    Args:
      repository: the models.
      metrics: what was counted.
      version: of the server.

    Returns:
      Values that JSON has: of each model its state, configuration, stats, and the
      histograms of `Metrics.histograms`.
    """
    counted = metrics.histograms()
    services = {service.config.name: service for service in repository}
    models = []
    for entry in repository.index():
        name = entry["name"]
        if name in repository.groups:
            told = repository.groups[name].stats()
            weights = {m: w for (kind, m), w in told.items() if kind in _WEIGHTS}
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
