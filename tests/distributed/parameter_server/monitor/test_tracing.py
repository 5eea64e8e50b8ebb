import dataclasses
import gzip
import json
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fxflow import optim
from fxflow.distributed.parameter_server import (
    LocalServers,
    messages,
    monitor,
    parameter_server,
    ssp,
)
from fxflow.distributed.parameter_server.monitor import tracing
from fxflow.distributed.parameter_server.monitor.tracing import (
    Meter,
    Offset,
    ProcessSpan,
    Recorder,
    ServerTracing,
    TraceSpan,
    WorkerTracing,
    pack,
    trace_events,
    unpack,
)
from fxflow.errors import DistributedError

SPANS = [
    TraceSpan(1, 5, "push", 1 << 61, 7, 0),
    TraceSpan(2, 3, "apply"),
    TraceSpan(6, 6, "push"),
]


def test_a_recorder_that_is_off_records_nothing() -> None:
    recorder = Recorder()
    with recorder.span("push"):
        recorder.add(SPANS[0])
    assert recorder.drain() == []


def test_spans_nest_and_the_oldest_are_dropped() -> None:
    recorder = Recorder(most=3)
    recorder.on = True
    for number in range(4):
        with recorder.span("outer", sequence=number), recorder.span("inner"):
            time.sleep(0.001)
    spans = recorder.drain()
    assert [span.kind for span in spans] == ["outer", "inner", "outer"]
    _, inner, outer = spans
    assert outer.begun <= inner.begun < inner.ended <= outer.ended
    assert outer.sequence == 3
    assert recorder.drain() == []


def test_unpack_inverts_pack() -> None:
    assert unpack(*pack(SPANS)) == SPANS
    assert unpack(*pack([])) == []


@pytest.mark.parametrize(
    ("kinds", "rows"),
    [
        (None, np.zeros((1, 6), np.int64)),
        (["a"], None),
        (["a"], np.zeros((1, 5), np.int64)),
        (["a"], np.zeros((1, 6), np.int32)),
        ([], np.zeros((1, 6), np.int64)),
        ([1], np.zeros((1, 6), np.int64)),
        (["a"], np.array([[0, 0, -1, 0, 0, 0]])),
        (["a"], np.array([[1, 0, 0, 0, 0, 0]])),
    ],
)
def test_invalid_spans_are_refused(kinds: object, rows: object) -> None:
    with pytest.raises(ValueError, match="not spans"):
        unpack(kinds, rows)


# -- between processes -----------------------------------------------------------------

ON = messages.Trace(on=True)
OFF = messages.Trace(on=False, last=True)


def beat(worker: WorkerTracing, server: ServerTracing) -> None:
    fields, arrays = worker.heartbeat(0, "w")
    found = server.heartbeat(5, fields, arrays)
    worker.answered(0, messages.Pong(1, [], [], "", *found))


def test_heartbeats_bring_the_spans_of_workers() -> None:
    server, worker = ServerTracing(), WorkerTracing()
    beat(worker, server)
    assert not worker.recorder.on
    server.collect(b"me", ON)
    beat(worker, server)
    assert worker.recorder.on and server.recorder.on
    with worker.recorder.span("step", sequence=1), server.recorder.span("push", 5, 1):
        pass
    beat(worker, server)
    traces, arrays = server.collect(b"me", OFF)
    (own,) = unpack(traces.own, arrays["own"])
    (told,) = unpack(traces.told, arrays["told"])
    assert (own.kind, own.worker, told.kind, told.worker) == ("push", 5, "step", 5)
    assert traces.ahead == {"5": 0}  # one clock
    beat(worker, server)
    assert not worker.recorder.on and not server.recorder.on


def test_a_second_client_traces_once_the_lease_of_the_first_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server, worker = ServerTracing(), WorkerTracing()
    server.collect(b"me", ON)
    with pytest.raises(DistributedError, match="another process traces"):
        server.collect(b"you", ON)
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + tracing.LEASE + 1)
    beat(worker, server)
    assert not server.recorder.on
    server.collect(b"you", ON)


def test_the_fastest_answer_gives_the_offset() -> None:
    offset = Offset()
    assert offset.nanoseconds == 0
    offset.note(1_000, 9_000_900, 2_000)
    assert offset.nanoseconds == 9_000_900 - 1_500
    offset.note(3_000, 9_003_050, 3_100)  # faster
    offset.note(5_000, 9_010_000, 9_000)
    assert offset.nanoseconds == 9_003_050 - 3_050
    assert offset.heard == 9_000


def test_the_offset_is_0_if_the_clocks_may_be_the_same() -> None:
    offset = Offset()
    offset.note(1_000, 1_900, 2_000)
    assert offset.nanoseconds == 0


# -- counts ----------------------------------------------------------------------------


def test_bytes_are_counted_by_filter_and_as_rows() -> None:
    meter = Meter()
    arrays = {"0": np.zeros(3, np.float32), "rows/t": np.zeros(5, np.float32)}
    meter.moved("push", {"int8(256)": 8, "f32": 4}, arrays, tables=True)
    meter.moved("push", {"int8(256)": 8}, {"0": np.zeros(2, np.float32)})
    meter.moved("push", {"int8(256)": 8}, {})  # a step without a gradient
    found = meter.to_dict()["filters"]
    assert found == {"push": {"int8(256)": 16, "f32": 4, "rows": 20}, "pull": {}}


def test_time_is_counted_by_kind() -> None:
    meter = Meter()
    meter.handled("push", time.monotonic_ns() - 2_000_000, 3)
    meter.handled("push", time.monotonic_ns() - 1_000_000, None)
    assert meter.to_dict()["busy"]["push"] == pytest.approx(0.003, rel=0.1)
    assert meter.loads.load(3, time.monotonic()) > 0


# -- timeline --------------------------------------------------------------------------


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
