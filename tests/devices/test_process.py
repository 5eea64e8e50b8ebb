"""Interrupts, forks and the end of processes that use the runtime."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest

from fxflow.devices import process
from tests.sweeps.sampling import sample

from .conftest import ROOT
from .endings import KINDS


def run_module(name: str, *arguments: object, seconds: float = 120) -> tuple[int, str]:
    """Returns the exit status of a program of these tests, and its output."""
    env = {k: v for k, v in os.environ.items() if k != "XLA_FLAGS"}
    done = subprocess.run(
        [sys.executable, "-m", f"tests.devices.{name}", *map(str, arguments)],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=seconds,
        cwd=ROOT,
    )
    return done.returncode, done.stdout


# -- interrupts ------------------------------------------------------------------------


def test_shielded_calls_return_and_raise() -> None:
    def fail() -> None:
        raise ValueError("as it is")

    callers = []

    def call(x: int) -> int:
        callers.append(threading.get_ident())
        return x + 1

    assert process.shielded(call, 2) == 3
    with pytest.raises(ValueError, match="as it is"):
        process.shielded(fail)
    other = threading.Thread(target=process.shielded, args=(call, 5))
    other.start()
    other.join()
    assert callers[0] != threading.get_ident()  # signals reach this thread
    assert callers[1] == other.ident  # and none of the others


def test_shielded_calls_continue_after_an_interrupt() -> None:
    begun, let_go, ended = threading.Event(), threading.Event(), threading.Event()

    def call() -> None:
        begun.set()
        let_go.wait(60)
        ended.set()

    def interrupt() -> None:
        begun.wait(60)
        os.kill(os.getpid(), 2)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        process.shielded(call)
        time.sleep(60)  # the interrupt may come just before
    assert not ended.is_set()
    let_go.set()
    assert ended.wait(60)


def test_rounds_of_interrupts() -> None:
    status, text = run_module("interrupts", 14, 1)
    assert status == 0 and "interrupted" in text, text


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10))
def test_many_rounds_of_interrupts(seed: int) -> None:
    status, text = run_module("interrupts", 50, seed, seconds=1200)
    assert status == 0 and "interrupted" in text, text


# -- shutdown --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", sample([*KINDS], 4, of="endings"))
def test_a_process_with_pending_work_ends_quietly(kind: str) -> None:
    assert run_module("endings", kind, 1, 3) == (3, "end\n")


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
def test_ends_quietly_each_time(kind: str) -> None:
    for seed in range(100):
        status = seed % 3
        assert run_module("endings", kind, seed, status) == (status, "end\n"), seed


ALONE = """
import sys, threading, time
from fxflow.devices import process

before = sys.getswitchinterval()
assert process._wait_for_threads(time.monotonic() + 10)
assert sys.getswitchinterval() == before  # no thread is held off, so none is awaited
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
assert process._wait_for_threads(time.monotonic() + 10)
assert sys.getswitchinterval() > 1e3
"""


def test_the_end_waits_for_threads_only_if_there_are_others(
    run_python: Callable[..., str],
) -> None:
    run_python(ALONE)


# -- forks -----------------------------------------------------------------------------

FORK = """
import os, sys, warnings
import numpy as np
import fxflow as fx
import fxflow.numpy as fnp
from fxflow import lax, random
from fxflow.devices import ForkedError

x = fnp.arange(8.0)
known = fx.jit(lambda x: x * 2)
y = known(x).block_until_ready()
compiled = fx.jit(lambda x: x + 1).lower(x).compile()
key = random.key(0)
long = fx.jit(lambda x: lax.fori_loop(0, 10**7, lambda i, x: fnp.tanh(x @ x), x))
pending = long.lower(fnp.ones((32, 32))).compile()(fnp.ones((32, 32)))

uses = {
    "eager": lambda: x + 1,
    "function": lambda: fnp.sin(x),
    "known": lambda: known(x),
    "new": lambda: fx.jit(lambda x: x - 3)(x),
    "compiled": lambda: compiled(x),
    "compile": lambda: fx.jit(lambda x: x - 5).lower(x).compile(),
    "device_put": lambda: fx.device_put(np.ones(3)),
    "array": lambda: fnp.array([1, 2]),
    "devices": lambda: fx.devices(),
    "random": lambda: random.normal(key, (3,)),
    "grad": lambda: fx.grad(lambda x: (x ** 2).sum())(x),
    "vmap": lambda: fx.vmap(fnp.sin)(x),
    "pmap": lambda: fx.pmap(fnp.sin)(x[None]),
    "pending": lambda: np.asarray(pending),
    "waiting": lambda: pending.block_until_ready(),
}

def child(use):
    try:
        use()
    except ForkedError as error:
        assert "spawn" in str(error)
        return 10
    return 20

for name, use in uses.items():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        number = os.fork()
    if not number:
        sys.exit(child(use))
    # Python 3.12 and later also issue a DeprecationWarning for a fork with threads.
    (warning,) = [w for w in caught if w.category is not DeprecationWarning]
    assert warning.category is RuntimeWarning and "os.fork" in str(warning.message)
    status = os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])
    assert status == 10, (name, status)

# Results that are ready can be read.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    number = os.fork()
if not number:
    os._exit(int(np.asarray(y).sum()))
assert os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]) == 56
del pending
os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_forked_process_raises_instead_of_waiting(
    run_python: Callable[..., str],
) -> None:
    run_python(FORK)


NO_ALARM = """
import os, subprocess, sys
import fxflow.numpy as fnp

number = os.fork()  # before the first use: the child is as good as this process
if not number:
    assert (fnp.ones(2) + 1).sum() == 4
    sys.exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]) == 0
assert (fnp.ones(2) + 1).sum() == 4
# None of these runs Python in the forked process.
true = [sys.executable, "-S", "-c", ""]
subprocess.run(true, check=True)
subprocess.run(true, check=True, preexec_fn=os.getpid)
assert os.spawnv(os.P_WAIT, sys.executable, true) == 0
assert os.system("true") == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_forks_that_execute_programs_do_not_warn(
    run_python: Callable[..., str],
) -> None:
    run_python(NO_ALARM)


# -- memory ----------------------------------------------------------------------------

FAULTS = """
import resource, sys
import numpy as np
from fxflow.devices.process import keep_freed_memory

assert keep_freed_memory()
np.ones(1 << 20, np.float32)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    np.ones(1 << 20, np.float32)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="mallopt is glibc's")
def test_freed_memory_is_kept() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FAULTS], capture_output=True, text=True, cwd=ROOT
    )
    # Each array has 1,024 pages.
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 1024
