"""Programs over the devices of several processes, and their failures."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.sweeps.sampling import sample

from .conftest import Run

Launch = Callable[..., Run]
Write = Callable[..., str]

HEAD = """
import os, signal
import numpy as np
import fxflow, fxflow.numpy as fnp
from fxflow import NamedSharding, P, lax
fxflow.config.collective_timeout = 3
fxflow.distributed.initialize()
rank, size = fxflow.process_index(), fxflow.process_count()
"""

PROGRAMS = """
n = fxflow.device_count()
local = n // size
mesh = fxflow.make_mesh((n,), ("x",))
whole = np.random.default_rng(0).normal(size=(n * 2, 3)).astype(np.float32)
mine = whole[rank * local * 2 : (rank + 1) * local * 2]

def close(got, want):
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)

split = fxflow.device_put(whole, NamedSharding(mesh, P("x")))
assert not split.is_fully_addressable
same = fxflow.make_array_from_process_local_data(NamedSharding(mesh, P("x")), mine)
close(fxflow.jit(lambda a, b: (a * b).sum(0))(split, same), (whole**2).sum(0))
close(fxflow.device_put(split, NamedSharding(mesh, P())), whole)

f = fxflow.shard_map(
    lambda a: lax.all_gather(lax.psum(fnp.sin(a), "x"), "x", to="invarying")[0],
    mesh=mesh, in_specs=P("x"), out_specs=P(),
)
close(f(split), np.sin(whole).reshape(n, 2, 3).sum(0))
slope = fxflow.jit(fxflow.grad(lambda a: f(a).sum()))(split)
close(fxflow.distributed.multihost.process_allgather(slope, tiled=True), np.cos(whole))

# The mapped axis counts this process's devices, the named one all of them.
rows = whole[:n]
own = rows[rank * local : (rank + 1) * local]
step = fxflow.pmap(lambda x, w: (x / lax.psum(x, "i"), w + lax.axis_index("i")), "i",
                   in_axes=(0, None))
for _ in range(3):
    ratio, place = step(own, 10)
assert ratio.shape == own.shape and ratio.is_fully_addressable
close(ratio, own / rows.sum(0))
assert place.tolist() == [10 + rank * local + i for i in range(local)]
again, _ = step(ratio, 10)
close(again, (own / rows.sum(0)) / (rows / rows.sum(0)).sum(0))
close(ratio[0], own[0] / rows.sum(0))
last = NamedSharding(fxflow.make_mesh((1,), ("x",), devices=fxflow.devices()[-1:]), P())
try:
    absent = fxflow.make_array_from_process_local_data(last, mine)
except fxflow.errors.ArgumentError as error:
    assert "no device of this process" in str(error) and rank < size - 1
    absent = fxflow.make_array_from_process_local_data(last, whole, whole.shape)
assert absent.is_fully_addressable == (rank == size - 1)
try:
    np.asarray(split)
except ValueError as error:
    assert "process_allgather" in str(error)
else:
    raise AssertionError("a part was taken for the whole")
print("FINE", flush=True)
"""


@pytest.mark.parametrize("count", sample([2, 3], 1, of="processes"))
def test_results_equal_those_of_one_process(
    launch: Launch, write: Write, count: int
) -> None:
    run = launch("-n", str(count), "--devices-per-process", "2", write(HEAD + PROGRAMS))
    assert run.end(90) == 0, run.text
    fine = sorted(line for line in run.out if "FINE" in line)
    assert fine == [f"[{i}] FINE" for i in range(count)], run.text


DIFFERENT = """
mesh = fxflow.make_mesh((2,), ("x",))
a = fxflow.device_put(np.ones(4, np.float32), NamedSharding(mesh, P("x")))

def total(x):
    return x.sum() if rank else x.max()

fxflow.jit(total)(a)
"""


def test_different_programs_are_reported(launch: Launch, write: Write) -> None:
    run = launch("-n", "2", write(HEAD + DIFFERENT))
    assert run.end(60) == 1
    assert "about to run different programs together: process 0: 'total'" in run.text
    assert "depend on the process" in run.text


LOST = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the launcher is quicker than the news
f = fxflow.pmap(lambda x: lax.psum(x, "i"), "i")
x = np.ones((1, 4), np.float32)
for i in range(1000):
    if rank == 1 and i == 20:
        os.kill(os.getpid(), signal.{signal})
    try:
        np.asarray(f(x))
    except fxflow.distributed.DistributedError as error:
        print("TOLD", i, error, flush=True)
        raise SystemExit(3)
"""


@pytest.mark.parametrize(
    ("signal", "words"),
    [
        # This process has finished step 19; a slower one may not have.
        ("SIGKILL", "TOLD (19|20) .*process 1 .* is lost"),
        ("SIGSTOP", "TOLD 20 .*did not finish within 3 s .*: process 1 is late"),
    ],
)
def test_the_others_report_a_lost_process(
    launch: Launch, write: Write, signal: str, words: str
) -> None:
    run = launch("-n", "3", write(HEAD + LOST.replace("{signal}", signal)))
    run.wait_for(words, 60)  # three processes must start first
    assert run.end(30) != 0, run.text


APART = """
import time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
f = fxflow.pmap(lambda x: lax.psum(x, "i"), "i")
x = np.ones((1, 4), np.float32)
np.asarray(f(x))
if rank == 1:
    {what}
time.sleep(1.6 * rank)
try:
    np.asarray(f(x))
except fxflow.distributed.DistributedError as error:
    print("TOLD", error, flush=True)
    os._exit(3)
"""


LATE = ["os.kill(os.getpid(), 19)", "time.sleep(60)"]


@pytest.mark.parametrize("what", sample(LATE, 1, of="who is late"))
def test_a_waiting_process_is_not_reported_late(
    launch: Launch, write: Write, what: str
) -> None:
    """Process 2 begins to wait much later than process 0, but is not late."""
    run = launch("-n", "3", write(HEAD + APART.replace("{what}", what)))
    for process in (0, 2):
        run.wait_for(rf"\[{process}\] TOLD .*process 1 is late:", 60)
    assert run.end(30) != 0, run.text
