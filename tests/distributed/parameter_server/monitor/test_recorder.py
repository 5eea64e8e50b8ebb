import time

import numpy as np
import pytest

from fxflow.distributed.parameter_server.monitor.recorder import (
    Recorder,
    TraceSpan,
    pack,
    unpack,
)

SPANS = [
    TraceSpan(1, 5, "push", 1 << 61, 7, 0),
    TraceSpan(2, 3, "apply"),
    TraceSpan(6, 6, "push"),
]


def test_nothing_is_kept_while_it_is_off() -> None:
    recorder = Recorder()
    with recorder.span("push"):
        recorder.add(SPANS[0])
    assert recorder.drain() == []


def test_spans_nest_and_the_oldest_are_forgotten() -> None:
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


def test_a_message_and_back() -> None:
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
def test_what_is_no_trace(kinds: object, rows: object) -> None:
    with pytest.raises(ValueError, match="no spans"):
        unpack(kinds, rows)
