"""An independent parser, by the rules of Prometheus's format, reads the text."""

import re
import socket
import urllib.error
import urllib.request
from typing import Any

import pytest

pytest.importorskip("zmq")

from fxflow.distributed.parameter_server import LocalServers
from fxflow.distributed.parameter_server.monitor import (
    Exporter,
    Figures,
    ServerFigures,
    WorkerFigures,
    exposition,
)
from fxflow.errors import DistributedError

SAMPLE = re.compile(
    r"(?P<name>[a-zA-Z_:][\w:]*)\{(?P<labels>.*)\} (?P<value>-?[\d.e+-]+)"
)
LABEL = re.compile(r'([a-z_]\w*)="((?:[^"\\]|\\.)*)",?')


def read(text: str) -> dict[str, dict[frozenset[tuple[str, str]], float]]:
    """Returns the samples by name and labels; fails if the text is malformed."""
    assert text.endswith("\n")
    found: dict[str, dict[frozenset[tuple[str, str]], float]] = {}
    types: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("# HELP "):
            continue
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in types  # a metric's lines are together
            types[name] = kind
            assert (kind == "counter") == name.endswith("_total")
            continue
        match = SAMPLE.fullmatch(line)
        assert match, line
        base = re.sub("_(bucket|sum|count)$", "", match["name"])
        family = base if types.get(base) == "histogram" else match["name"]
        assert list(types)[-1] == family
        labels = LABEL.findall(match["labels"])
        assert LABEL.sub("", match["labels"]) == ""
        series = found.setdefault(match["name"], {})
        assert frozenset(labels) not in series
        series[frozenset(labels)] = float(match["value"])
    return found


def labelled(**labels: Any) -> frozenset[tuple[str, str]]:
    return frozenset((key, str(value)) for key, value in labels.items())


def test_the_exposition_of_figures() -> None:
    shard = {"serves": True, "version": 7, "bytes": 40}
    counts = {
        ("pushes", ""): 2.0**60,
        ("dropped", "stale"): 3.0,
        ("staleness", "0"): 5.0,
        ("staleness", "3"): 2.0,
        ("staleness", "500"): 1.0,
        ("push", 'by_group({"\\": int8}, f32)'): 8.0,
        ("busy", "push"): 0.125,
    }
    stats = {"shards": {"4": shard}, "waiting": 1, "epoch": 2}
    servers = [
        ServerFigures(0, "a:1", "", counts, {}, stats),
        ServerFigures(1, "b:1", "gone", {}, {}, {}),
    ]
    workers = [WorkerFigures("worker 0", 9, 0.0, 0.25)]
    found = read(exposition(Figures(0.0, servers, workers)))
    assert found["fxflow_ps_up"] == {labelled(server=0): 1, labelled(server=1): 0}
    assert found["fxflow_ps_pushes_total"] == {labelled(server=0): 2.0**60}
    stale = labelled(server=0, reason="stale")
    assert found["fxflow_ps_dropped_pushes_total"] == {stale: 3}
    (code,) = found["fxflow_ps_pushed_bytes_total"]
    assert dict(code)["filter"] == r"by_group({\"\\\": int8}, f32)"
    assert found["fxflow_ps_busy_seconds_total"][labelled(server=0, kind="push")] == (
        0.125
    )
    assert found["fxflow_ps_version"] == {labelled(server=0, shard=4): 7}
    assert found["fxflow_ps_worker_silence_seconds"][labelled(worker="worker 0")] == (
        0.25
    )
    buckets = {
        dict(labels)["le"]: value
        for labels, value in found["fxflow_ps_staleness_bucket"].items()
    }
    assert [buckets[end] for end in ("0", "2", "4", "128", "+Inf")] == [5, 5, 7, 7, 8]
    assert list(buckets.values()) == sorted(buckets.values())
    assert found["fxflow_ps_staleness_count"] == {labelled(server=0): 8}
    assert found["fxflow_ps_staleness_sum"] == {labelled(server=0): 506}


def test_an_exporter_serves_metrics_until_it_is_closed() -> None:
    local = LocalServers(1)
    with Exporter(0, {3: local.cluster.servers[0]}) as exporter:
        at = f"http://127.0.0.1:{exporter.port}"
        with urllib.request.urlopen(f"{at}/metrics", timeout=10) as answer:
            assert answer.headers["Content-Type"].startswith(
                "text/plain; version=0.0.4"
            )
            found = read(answer.read().decode())
        assert found["fxflow_ps_up"] == {labelled(server=3): 1}
        assert labelled(server=3) in found["fxflow_ps_cpu_seconds_total"]
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"{at}/", timeout=10)
        with pytest.raises(DistributedError, match="metrics cannot be served at"):
            Exporter(exporter.port, local.cluster.servers)
    local.close()
    with pytest.raises(OSError), socket.create_connection(("127.0.0.1", exporter.port)):
        pass
