"""Traces are checked against the rules of Chrome's trace event format."""

import dataclasses
import gzip
import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("zmq")

from fxflow import optim
from fxflow.distributed.parameter_server import (
    LocalServers,
    monitor,
    parameter_server,
    ssp,
)
from fxflow.distributed.parameter_server.monitor.timeline import (
    ProcessSpan,
    trace_events,
)
from fxflow.distributed.parameter_server.monitor.tracing import TraceSpan
from fxflow.errors import DistributedError


def checked(trace: dict[str, Any]) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Returns the spans by process and track; fails if an event is invalid."""
    events = trace["traceEvents"]
    processes: dict[int, str] = {}
    tracks: dict[tuple[int, int], str] = {}
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for event in events:
        assert {"ph", "ts", "pid", "tid", "name"} <= set(event)
        if event["ph"] == "M" and event["name"] == "process_name":
            processes[event["pid"]] = event["args"]["name"]
        elif event["ph"] == "M":
            tracks[event["pid"], event["tid"]] = event["args"]["name"]
    for event in events:
        if event["ph"] == "X":
            assert event["dur"] >= 0 and event["ts"] >= 0
            track = tracks[event["pid"], event["tid"]]
            found.setdefault((processes[event["pid"]], track), []).append(event)
    for spans in found.values():
        open_until: list[float] = []
        for span in sorted(spans, key=lambda s: (s["ts"], -s["dur"])):
            while open_until and open_until[-1] <= span["ts"]:
                open_until.pop()
            end = span["ts"] + span["dur"]
            assert not open_until or end <= open_until[-1] + 1e-3
            open_until.append(end)
    starts = {e["id"]: e for e in events if e["ph"] == "s"}
    ends = {e["id"]: e for e in events if e["ph"] == "f"}
    assert set(starts) == set(ends)
    assert all(starts[i]["ts"] <= ends[i]["ts"] for i in starts)
    return found


def test_spans_have_tracks_and_pushes_have_arrows() -> None:
    spans = [
        ProcessSpan("server 0", 0, TraceSpan(2_000, 9_000, "push", 5, 1), "worker 1"),
        ProcessSpan(
            "server 0", 0, TraceSpan(3_000, 4_000, "apply", 5, 1, 0), "worker 1"
        ),
        ProcessSpan("worker 1", 5, TraceSpan(1_500, 1_700, "send", 5, 1), "worker 1"),
        ProcessSpan("worker 1", 5, TraceSpan(1_000, 8_000, "step", 5, 1), "worker 1"),
    ]
    trace = trace_events(spans).to_json()
    found = checked(trace)
    assert {key: [s["name"] for s in spans] for key, spans in found.items()} == {
        ("worker 1", "steps"): ["step"],
        ("worker 1", "connection"): ["send"],
        ("server 0", "answers"): ["push", "apply"],
    }
    (apply,) = [s for s in found["server 0", "answers"] if s["name"] == "apply"]
    assert (apply["ts"], apply["dur"]) == (2.0, 1.0)
    assert apply["args"] == {"worker": "worker 1", "sequence": 1, "shard": 0}
    assert sum(event["ph"] == "s" for event in trace["traceEvents"]) == 1
    assert checked(trace_events([]).to_json()) == {}


def test_a_restarted_worker_is_another_process() -> None:
    spans = [
        ProcessSpan("worker 1", number, TraceSpan(1_000, 9_000 - number, "step"), "")
        for number in (5, 6)
    ]
    events = trace_events(spans).to_json()["traceEvents"]
    assert len({event["pid"] for event in events}) == 2


def test_the_trace_of_a_run_has_spans_of_all_processes(tmp_path: Path) -> None:
    local = LocalServers(2)
    path = tmp_path / "run.json.gz"

    def work(index: int) -> Any:
        server = parameter_server(
            lambda params, batch: params["a"].sum() * batch + params["b"].sum(),
            optim.sgd(0.1),
            consistency=ssp(0),
            cluster=dataclasses.replace(local.cluster, index=index),
        )
        state = server.init({n: np.ones(8, np.float32) for n in "ab"})
        return server, state

    def steps(server: Any, state: Any) -> None:
        while not ends.is_set():
            state, _ = server.step(state, np.float32(1))
        server.close()

    ends = threading.Event()
    workers = [work(0), work(1)]
    threads = [threading.Thread(target=steps, args=worker) for worker in workers]
    with workers[0][0].trace(path):
        for thread in threads:
            thread.start()
        threading.Event().wait(0.9)
    ends.set()
    for thread in threads:
        thread.join()
    assert not any(server.tracing.recorder.on for server in local.servers)
    local.close()
    assert [p.name for p in tmp_path.iterdir()] == ["run.json.gz"]
    found = checked(json.loads(gzip.decompress(path.read_bytes())))
    for server in ("server 0", "server 1"):
        kinds = {span["name"] for span in found[server, "answers"]}
        assert {"push", "apply", "parameters", "heartbeat"} <= kinds
        waits = found[server, "worker 0 waits for shard " + server[-1]]
        assert {span["name"] for span in waits} == {"wait"}
    for worker in ("worker 0", "worker 1"):
        kinds = {span["name"] for span in found[worker, "steps"]}
        assert kinds == {"step", "pull", "gradient", "push"}


def test_a_trace_without_servers_writes_no_file(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    with (
        pytest.raises(DistributedError, match="no server can be traced: server 0"),
        monitor.trace(path, ["ipc:///tmp/fxflow-no-server-there"]),
    ):
        pass
    assert not path.exists()
