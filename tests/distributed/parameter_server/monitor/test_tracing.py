import time

import pytest

from fxflow.distributed.parameter_server import messages
from fxflow.distributed.parameter_server.monitor import tracing
from fxflow.distributed.parameter_server.monitor.recorder import unpack
from fxflow.distributed.parameter_server.monitor.tracing import (
    Offset,
    ServerTracing,
    WorkerTracing,
)
from fxflow.errors import DistributedError

ON = messages.Trace(on=True)
OFF = messages.Trace(on=False, last=True)


def beat(worker: WorkerTracing, server: ServerTracing) -> None:
    fields, arrays = worker.heartbeat(0, "w")
    found = server.heartbeat(5, fields, arrays)
    worker.answered(0, messages.Pong(1, [], [], "", *found))


def test_spans_of_workers_come_with_heartbeats() -> None:
    server, worker = ServerTracing(), WorkerTracing()
    beat(worker, server)
    assert not worker.recorder.on
    server.asked(b"me", ON)
    beat(worker, server)
    assert worker.recorder.on and server.recorder.on
    with worker.recorder.span("step", sequence=1), server.recorder.span("push", 5, 1):
        pass
    beat(worker, server)
    traces, arrays = server.asked(b"me", OFF)
    (own,) = unpack(traces.own, arrays["own"])
    (told,) = unpack(traces.told, arrays["told"])
    assert (own.kind, own.worker, told.kind, told.worker) == ("push", 5, "step", 5)
    assert traces.ahead == {"5": 0}  # one clock
    beat(worker, server)
    assert not worker.recorder.on and not server.recorder.on


def test_one_at_a_time_and_who_is_gone_does_not_matter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server, worker = ServerTracing(), WorkerTracing()
    server.asked(b"me", ON)
    with pytest.raises(DistributedError, match="somebody else traces"):
        server.asked(b"you", ON)
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + tracing.LEASE + 1)
    beat(worker, server)
    assert not server.recorder.on
    server.asked(b"you", ON)


def test_the_fastest_answer_tells_the_clock_best() -> None:
    offset = Offset()
    assert offset.nanoseconds == 0
    offset.note(1_000, 9_000_900, 2_000)
    assert offset.nanoseconds == 9_000_900 - 1_500
    offset.note(3_000, 9_003_050, 3_100)  # faster
    offset.note(5_000, 9_010_000, 9_000)
    assert offset.nanoseconds == 9_003_050 - 3_050
    assert offset.heard == 9_000


def test_within_a_reading_clocks_may_be_the_same() -> None:
    offset = Offset()
    offset.note(1_000, 1_900, 2_000)
    assert offset.nanoseconds == 0
