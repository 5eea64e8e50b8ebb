from collections.abc import Callable

import numpy as np
import pytest

import fxflow.numpy as fnp
from fxflow.distributed import multihost

from .conftest import Run

PROGRAM = """
import time
import numpy as np
import fxflow, fxflow.numpy as fnp
from fxflow import distributed
from fxflow.distributed import DistributedError, multihost

distributed.initialize()
me, count = fxflow.process_index(), fxflow.process_count()

def error_of(kind, f, *arguments):
    try:
        f(*arguments)
    except kind as error:
        return str(error)
    raise AssertionError("no error")

# -- broadcast -------------------------------------------------------------------------
tree = {"a": fnp.arange(3) + 10 * me, "k": fxflow.random.key(me), "n": 5 + me}
found = multihost.broadcast_one_to_all(tree)
assert found["a"].tolist() == [0, 1, 2] and found["n"] == 5
assert fxflow.random.key_data(found["k"]).tolist() == [0, 0]
found = multihost.broadcast_one_to_all(tree, is_source=me == 1)
assert found["a"].tolist() == [10, 11, 12]
text = error_of(DistributedError, multihost.broadcast_one_to_all, tree, True)
assert "needs one source, got processes 0, 1" in text, text
other = {"a": 1} if me else {"a": 1, "b": 2}
if me:
    text = error_of(TypeError, multihost.broadcast_one_to_all, other)
    assert "process 0 gives a tree of structure" in text, text
else:
    multihost.broadcast_one_to_all(other)

# -- gather ----------------------------------------------------------------------------
found = multihost.process_allgather({"x": fnp.ones((2, 3)) * me, "s": me})
assert found["x"].shape == (count, 2, 3) and found["s"].tolist() == [0, 1]
assert (found["x"] == np.arange(count)[:, None, None]).all()
found = multihost.process_allgather(fnp.arange(2 + me), tiled=True)
assert found.tolist() == [0, 1, 0, 1, 2]
text = error_of(TypeError, multihost.process_allgather, fnp.arange(2 + me))
assert "process 1 gives int32[3]" in text, text
mesh = fxflow.make_mesh((count,), ("x",))
where = fxflow.NamedSharding(mesh, fxflow.P("x"))
parts = fxflow.make_array_from_callback(
    (4,), where, lambda index: np.arange(4, dtype=np.float32)[index]
)
assert not parts.is_fully_addressable
assert multihost.process_allgather(parts).tolist() == [0, 1, 2, 3]

# -- equal -----------------------------------------------------------------------------
multihost.assert_equal({"x": fnp.ones(3)})
text = error_of(AssertionError, multihost.assert_equal, {"x": [1, me]}, "weights")
assert text.startswith("weights: leaf ['x'][1] differs: process 0 has int32"), text
text = error_of(AssertionError, multihost.assert_equal, {"x": 1} if me else [1])
assert "the trees differ" in text, text

# -- programs --------------------------------------------------------------------------
multihost.check_same_program("f", "0123")
check = multihost.check_same_program
text = error_of(DistributedError, check, f"f{me}", str(me) * 9)
assert "process 0: 'f0' (00000000); process 1: 'f1' (11111111)" in text, text
text = error_of(DistributedError, check, "f", str(me) * 9)
assert "The function is the same but its program differs" in text, text

# -- waiting ---------------------------------------------------------------------------
multihost.sync_global_devices("here")
if me:
    text = error_of(DistributedError, check, "train", "0", 0.3)
    assert "about to run 'train' together with others" in text, text
    assert "process 0 of 2 did not arrive within 0.3 s" in text, text
    text = error_of(DistributedError, multihost.sync_global_devices, "end", 0.2)
    assert "barrier 'end': process 0 of 2 did not arrive" in text, text
else:
    time.sleep(1)
print("FINE", flush=True)
"""

PREEMPTION = """
import os, signal, time
import fxflow
from fxflow import distributed
from fxflow.distributed import multihost

distributed.initialize()
step = 0
while not multihost.reached_preemption_sync_point(step):
    if step == 3 and fxflow.process_index() == 1:
        os.kill(os.getpid(), signal.SIGTERM)
    step += 1
    time.sleep(0.02)
    assert step < 1000
print("AGREED", step, flush=True)
"""


def test_two_processes_exchange_values(
    launch: Callable[..., Run], write: Callable[..., str]
) -> None:
    run = launch("-n", "2", write(PROGRAM))
    assert run.end(60) == 0, run.text
    fine = sorted(line for line in run.out if "FINE" in line)
    assert fine == ["[0] FINE", "[1] FINE"], run.text


def agreed(run: Run) -> list[int]:
    found = [line.partition("AGREED")[2] for line in run.out if "AGREED" in line]
    assert len(set(found)) == 1, run.text
    return [int(step) for step in found]


def test_all_processes_reach_one_preemption_sync_point(
    launch: Callable[..., Run], write: Callable[..., str]
) -> None:
    run = launch("-n", "2", write(PREEMPTION))
    assert run.end(60) == 0, run.text
    (step, again) = agreed(run)
    assert 4 <= step == again < 1000


def test_a_sigterm_from_the_launcher_stops_all_at_one_step(
    launch: Callable[..., Run], write: Callable[..., str]
) -> None:
    """All processes receive it at the same time, in different steps."""
    code = PREEMPTION.replace("step == 3 and fxflow.process_index() == 1", "False")
    code = code.replace("sleep(0.02)", "sleep(0.01 * (1 + fxflow.process_index()))")
    code = code.replace("    step += 1", "    step += 1\n    if step == 9: print('on')")
    run = launch("-n", "3", write(code))
    for process in range(3):
        run.wait_for(rf"\[{process}\] on")
    run.process.terminate()
    assert run.end(60) == 143, run.text
    assert len(agreed(run)) == 3, run.text


# -- one process -----------------------------------------------------------------------


def test_a_process_alone_gets_its_own_values() -> None:
    multihost.sync_global_devices("x")
    multihost.assert_equal({"x": 1})
    multihost.check_same_program("f", "0")
    assert not multihost.reached_preemption_sync_point(0)
    found = multihost.broadcast_one_to_all({"a": fnp.arange(3)})
    assert isinstance(found["a"], np.ndarray)
    gathered = multihost.process_allgather([fnp.arange(3), 2])
    assert gathered[0].tolist() == [[0, 1, 2]]
    assert gathered[1].tolist() == [2]
    assert multihost.process_allgather(fnp.arange(3), tiled=True).shape == (3,)
    with pytest.raises(TypeError, match="needs arrays with an axis"):
        multihost.process_allgather(3, tiled=True)
