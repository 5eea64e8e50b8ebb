"""What a server is doing, for people: a page and the numbers that it draws.

The page is one file and loads nothing from elsewhere. It is the same for all, and asks
for the numbers, and for an API key if they need one.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from fxflow.serve.metrics import Metrics
from fxflow.serve.repository import Repository

PAGE = Path(__file__).with_name("status.html").read_text(encoding="utf-8")
#: Nothing of others is loaded, shown in another's frame, or told where it was.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'; connect-src 'self'; frame-ancestors 'none'; "
    "base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
#: What groups of models call the share of each.
_WEIGHTS = ("weight", "share")


def stats(repository: Repository, metrics: Metrics, version: str) -> dict[str, Any]:
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
