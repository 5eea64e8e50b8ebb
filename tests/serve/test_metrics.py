"""What Prometheus reads."""

import pytest

from fxflow.serve.metrics import _EVENTS, Metrics
from fxflow.serve.repository import Repository
from fxflow.serve.selection.rollouts import Plan
from fxflow.serve.versions import Versions, VersionsConfig

pytest.importorskip("prometheus_client", reason="pip install 'fxflow[serve]'")


def test_counts() -> None:
    metrics = Metrics()
    metrics.request("m", 200, 0.003)
    metrics.request("m", 503, 0.001)
    metrics.batch("m", 8, 0.002, 2, 0.001)
    for name in _EVENTS:
        metrics.event(name, "g", "a", 0.5)
    repository = Repository([])
    config = VersionsConfig("g", "a", "b", Plan(shares=(0.5,)))
    repository.groups["g"] = Versions(config, repository.member)
    text, kind = metrics.exposition(repository)
    lines = text.decode().splitlines()
    assert 'fxflow_serve_requests_total{model="m",status="200"} 1.0' in lines
    assert 'fxflow_serve_request_seconds_bucket{le="0.002",model="m"} 1.0' in lines
    assert 'fxflow_serve_batch_rows_sum{model="m"} 8.0' in lines
    for name in _EVENTS:
        assert any(
            line.startswith(f"fxflow_serve_group_{name}_total{{") for line in lines
        )
    assert 'fxflow_serve_group_share{group="g",model="b"} 0.5' in lines
    assert kind.startswith("text/plain")
    Metrics()  # a second server in a process counts for itself
