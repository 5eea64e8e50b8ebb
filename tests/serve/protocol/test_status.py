"""The status page's numbers; test_http.py looks at the page in a real browser."""

from __future__ import annotations

import re

from fxflow.serve.containers.replica import Source
from fxflow.serve.metrics import Metrics
from fxflow.serve.protocol import status
from fxflow.serve.repository import Repository
from fxflow.serve.service import ModelConfig


def test_stats_of_the_status_page() -> None:
    config = ModelConfig("m", Source("a:b", max_batch=8), slo=0.02)
    metrics = Metrics()
    for seconds in (0.003, 0.0035, 0.04, 60):
        metrics.request("m", 200, seconds)
    metrics.request("m", 503, 0.001)
    metrics.batch("m", 8, 0.002, 2, 0.001)
    found = status.stats(Repository([config]), metrics, "1.2")
    (model,) = found["models"]
    assert (found["version"], model["name"], model["state"]) == (
        "1.2",
        "m",
        "UNAVAILABLE",
    )
    assert model["statuses"] == {"200": 4, "503": 1}
    counts = {bound: count for bound, count in model["seconds"] if count}
    assert counts == {0.001: 1, 0.005: 2, 0.05: 1, None: 1}
    assert {b: c for b, c in model["rows"] if c} == {8: 1}
    assert (model["slo"], model["max_batch"], model["stats"]) == (0.02, 8, {})


def test_the_page_loads_nothing_from_elsewhere() -> None:
    assert not re.search(
        r"(?:src|href)\s*=|https?://(?!www\.w3\.org/2000/svg)|@import", status.PAGE
    )
    assert "default-src 'none'" in status.HEADERS["Content-Security-Policy"]
    # What names say is text, not markup.
    assert "innerHTML" not in status.PAGE
