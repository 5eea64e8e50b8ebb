"""Tasks that are killed or stopped: an error with a name, no hang, no wrong number."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import dataflow
from fxflow.dataflow import on
from fxflow.errors import DistributedError, TaskLostError
from tests.sweeps import sampling

SEEDS = range(100) if sampling.whole else range(sampling.seed, sampling.seed + 2)
#: The longest that an error may take: the deadline, the questions after it, a busy
#: machine.
LONGEST = 30.0


def ring(x: Any, w: Any) -> Any:
    """Goes twice through three tasks, with small and large values."""
    for i in range(6):
        with on(f"/task:{i % 3}"):
            x = fnp.tanh(x @ w) if i % 2 else fnp.sin(x)
    return x, fnp.mean(x)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_a_task_in_trouble_is_named(seed: int) -> None:
    rng = random.Random(seed)
    size = rng.choice([8, 150])
    x, w = fnp.ones((size, size)), fnp.ones((size, size)) / size
    expected = fxflow.jit(ring)
    with dataflow.local_cluster(3, deadline=2.0) as made:
        step = dataflow.jit(ring, devices=made)
        got, want = step(x, w), expected(x, w)
        got, want = step(got[0], w), expected(want[0], w)
        np.testing.assert_allclose(got[1], want[1], rtol=1e-5)
        victim, how = rng.randrange(3), rng.choice([signal.SIGKILL, signal.SIGSTOP])
        pids = made._children.pids
        timer = threading.Timer(rng.uniform(0, 0.1), lambda: os.kill(pids[victim], how))
        timer.start()
        begun = time.monotonic()
        with pytest.raises(DistributedError, match=f"task:{victim}") as found:
            while time.monotonic() < begun + LONGEST:
                got, want = step(got[0], w), expected(want[0], w)
                if rng.random() < 0.5:
                    np.testing.assert_allclose(got[1], want[1], rtol=1e-5)
        assert time.monotonic() < begun + LONGEST
        if how == signal.SIGKILL:
            assert isinstance(found.value, TaskLostError)
            assert found.value.task == victim
        timer.join()
    assert not any(alive(pid) for pid in pids)


def test_an_interrupt_leaves_nothing_running(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import fxflow.numpy as fnp\n"
        "from fxflow import dataflow, lax\n"
        "from fxflow.dataflow import on\n"
        "def f(x):\n"
        "    with on('/task:0'):\n"
        "        x = lax.fori_loop(0, 10**9, lambda i, c: fnp.sin(c), x)\n"
        "    return x\n"
        "if __name__ == '__main__':\n"
        "    with dataflow.local_cluster(2) as made:\n"
        "        x = dataflow.jit(f, devices=made)(fnp.ones(1000))\n"
        "        print(*made._children.pids, flush=True)\n"
        "        x.fetch()\n"
    )
    process = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    pids = list(map(int, process.stdout.readline().split()))
    assert len(pids) == 2
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=LONGEST)
    assert b"KeyboardInterrupt" in errors
    assert not any(alive(pid) for pid in pids)
