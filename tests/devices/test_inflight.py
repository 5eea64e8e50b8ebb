"""Repeated calls of a program with collectives, without waiting."""

import subprocess
import sys

from fxflow.devices import inflight

MANY = """
import fxflow, numpy as np
from fxflow import lax
f = fxflow.pmap(lambda x: lax.ppermute(lax.psum(x, "i"), "i", [(0, 1), (1, 0)]), "i")
x = np.ones((8, 3), np.float32)
first = f(x)
for _ in range(400):
    last = f(first)
last.block_until_ready()
print("done", last[0][0])
"""


def test_hundreds_of_collectives_finish() -> None:
    """With the runtime alone this deadlocks, and the process aborts after 40 s."""
    done = subprocess.run(
        [sys.executable, "-c", MANY], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.startswith("done")


def test_collectives_are_recognized() -> None:
    assert inflight.has_collectives("%a = f32[2] all-reduce(f32[2] %b), channel_id=1")
    assert inflight.has_collectives("%a = (f32[2]) collective-permute-start(%b)")
    assert not inflight.has_collectives("%all-reduce.3 = f32[2] add(%a, %b)")


WAITING = """
import numpy as np
import fxflow
from fxflow import lax
from fxflow.devices import inflight

def many(x):
    return lax.fori_loop(0, 20_000, lambda i, a: lax.psum(a, "i") / 2, x)

assert not inflight.waiting()
f = fxflow.pmap(many, "i")
x = np.ones((2, 3), np.float32)
f(x).block_until_ready()
y = f(x)
assert inflight.waiting(0.01)
y.block_until_ready()
assert not inflight.waiting(5)
print("done")
"""


def test_running_collectives_are_waited_for() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WAITING], capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "done\n", done.stderr[-2000:]
