"""Triton's extensions for clients: the configuration and statistics of models.

Both are dicts with the field names of Triton's messages; HTTP sends them as JSON, gRPC
as messages.

Source: Triton Inference Server, `docs/protocol/extension_model_configuration.md` and
`extension_statistics.md`; `model_config.proto`.
"""

from __future__ import annotations

from typing import Any

from fxflow.serve.metrics import Metrics, Tally
from fxflow.serve.repository import Repository
from fxflow.serve.service import ModelService
from fxflow.serve.signatures import TensorSpec

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
