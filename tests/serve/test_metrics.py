"""Metrics in Prometheus's format."""

from __future__ import annotations

import pytest

from fxflow.serve.metrics import _EVENTS, _GAUGES, _GROUP_GAUGES, Metrics
from fxflow.serve.repository import Repository
from fxflow.serve.versions import RolloutPlan, Versions, VersionsConfig


def counted() -> tuple[str, str]:
    """Returns the exposition of a server with every metric counted."""
    metrics = Metrics()
    metrics.request("m", 200, 0.003)
    metrics.request("m", 503, 0.001)
    metrics.batch("m", 8, 0.002, 2, 0.001)
    metrics.result("m", 0, 0.02)
    metrics.result("m", 1, 0.01)
    for name in _EVENTS:
        metrics.event(name, "g", "a", 0.5)
    repository = Repository([])
    config = VersionsConfig("g", "a", "b", RolloutPlan(shares=(0.5,)))
    repository.groups["g"] = Versions(config, repository.member)
    text, kind = metrics.exposition(repository)
    return text.decode(), kind


def test_requests_batches_and_events_are_counted() -> None:
    text, kind = counted()
    lines = text.splitlines()
    assert 'fxflow_serve_requests_total{model="m",status="200"} 1' in lines
    assert 'fxflow_serve_request_seconds_bucket{model="m",le="0.002"} 1' in lines
    assert 'fxflow_serve_batch_rows_sum{model="m"} 8' in lines
    for name in _EVENTS:
        assert any(
            line.startswith(f"fxflow_serve_group_{name}_total{{") for line in lines
        )
    assert 'fxflow_serve_group_share{group="g",model="b"} 0.5' in lines
    assert kind.startswith("text/plain; version=0.0.4")


def test_servers_in_one_process_count_separately() -> None:
    first, second = Metrics(), Metrics()
    first.request("m", 200, 0.003)
    assert first.tally("m").successes == 1 and second.tally("m").successes == 0
    assert 'model="m"' not in second.exposition(Repository([]))[0].decode()


def test_the_client_library_of_prometheus_reads_it() -> None:
    parser = pytest.importorskip("prometheus_client.parser")
    families = {
        family.name: family
        for family in parser.text_string_to_metric_families(counted()[0])
    }
    kinds = {name: family.type for name, family in families.items()}
    prefix = "fxflow_serve_"
    assert kinds == {
        **dict.fromkeys((f"{prefix}requests", f"{prefix}results"), "counter"),
        **{
            f"{prefix}{name}": "histogram"
            for name in (
                "table_age_seconds",
                *("request_seconds", "batch_seconds", "batch_rows"),
                *("first_result_seconds", "next_result_seconds"),
            )
        },
        **{f"{prefix}{name}": "gauge" for name in _GAUGES},
        **{f"{prefix}group_{name}": "counter" for name in _EVENTS},
        **{f"{prefix}group_{name}": "gauge" for name in _GROUP_GAUGES},
    }
    (requests,) = (
        s for s in families[f"{prefix}requests"].samples if s.labels["status"] == "503"
    )
    assert (requests.name, requests.labels, requests.value) == (
        f"{prefix}requests_total",
        {"model": "m", "status": "503"},
        1.0,
    )
    rows = families[f"{prefix}batch_rows"].samples
    buckets = {s.labels["le"]: s.value for s in rows if s.name.endswith("_bucket")}
    assert (buckets["4"], buckets["8"], buckets["+Inf"]) == (0, 1, 1)
