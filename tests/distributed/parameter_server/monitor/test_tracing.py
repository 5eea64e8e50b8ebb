import time

import numpy as np
import pytest

from fxflow.distributed.parameter_server import messages
from fxflow.distributed.parameter_server.monitor import tracing
from fxflow.distributed.parameter_server.monitor.tracing import (
    Meter,
    Offset,
    Recorder,
    ServerTracing,
    TraceSpan,
    WorkerTracing,
    pack,
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
    meter.handled("push", time.monotonic_ns() - 2_000_000)
    meter.handled("push", time.monotonic_ns() - 1_000_000)
    assert meter.to_dict()["busy"]["push"] == pytest.approx(0.003, rel=0.1)
