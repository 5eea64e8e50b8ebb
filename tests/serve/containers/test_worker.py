"""The model's process: one call at a time, in this process."""

from __future__ import annotations

import socket
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from fxflow.distributed.messages.channel import Channel
from fxflow.errors import ServeError
from fxflow.serve.containers.loading import load_model
from fxflow.serve.containers.regions import Region
from fxflow.serve.containers.replica import ModelSource
from fxflow.serve.containers.worker import run_call


def test_results_follow_the_inputs() -> None:
    model = load_model("tests.serve.zoo:negative", inputs={"x": "f32[b]"})
    model.prepare(4)
    region = Region(limit=1 << 16)
    region.view(12)[:] = np.arange(3, dtype=np.float32).tobytes()
    call = {"call": 7, "rows": 3, "tensors": [["FP32", [3], 0, 12]]}
    answer = run_call(model, region, call)
    assert answer["done"] == 7 and answer["seconds"] >= 0
    assert answer["tensors"] == [[[3], 64, 12]]
    found = np.frombuffer(region.view(76)[64:], np.float32)
    assert found.tolist() == [0, -1, -2]
    region.close()


def test_results_above_the_limit_are_refused() -> None:
    model = load_model("tests.serve.zoo:negative", inputs={"x": "f32[b]"})
    model.prepare(4)
    region = Region(limit=70)
    with pytest.raises(ServeError, match="the limit is 70"):
        run_call(
            model, region, {"call": 1, "rows": 3, "tensors": [["FP32", [3], 0, 12]]}
        )
    region.close()


@pytest.mark.parametrize("streamed", [False, True])
def test_a_worker_exits_with_the_server_during_any_call(streamed: bool) -> None:
    ours, theirs = socket.socketpair()
    region = Region(limit=1 << 16)
    source = ModelSource("tests.serve.zoo:act", inputs={"x": "f32[b,2]"})
    rows = [3.0, 0.0]  # sleeps for a minute
    call: dict[str, Any] = {"call": 1, "rows": 1}
    if streamed:
        source = ModelSource("tests.serve.zoo:counter", factory=True)
        rows = [1.0, 0.0, 60.0, 0.0]
        call = {"stream": 1, "slot": 0, "rows": 1}
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "fxflow.serve.containers.worker"),
            *(str(theirs.fileno()), str(region.fd), str(1 << 16)),
        ],
        pass_fds=(theirs.fileno(), region.fd),
    )
    try:
        with ours:
            with theirs:
                channel = Channel(ours)
                channel.send(source.load_message())
            assert "ready" in channel.receive()[0]
            data = np.array(rows, np.float32).tobytes()
            region.view(len(data))[:] = data
            call["tensors"] = [["FP32", [1, len(rows)], 0, len(data)]]
            channel.send(call)
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.2)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
        region.close()


CODE = """
import gc, weakref
from fxflow.serve.containers.worker import freeze_heap

class Loaded:
    pass

def cyclic():
    one = Loaded()
    one.itself = one
    return one

loaded = cyclic()
freeze_heap()
assert gc.get_freeze_count() > 10_000 and gc.get_threshold()[0] == 10_000
assert not any(kept is loaded for kept in gc.get_objects())
seen = weakref.ref(loaded)
del loaded
gc.collect()
assert seen() is not None  # the collector skips it
freeze_heap()
assert seen() is None  # and frees it after a reload
later = weakref.ref(cyclic())
gc.collect()
assert later() is None
"""


def test_the_collector_skips_loaded_objects() -> None:
    subprocess.run([sys.executable, "-c", CODE], check=True, timeout=60)
