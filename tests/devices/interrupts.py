"""Rounds of work that are interrupted at a random moment.

    python -m tests.devices.interrupts ROUNDS SEED

After each round the process must work: the interpreter, the options, the garbage
collector and the locks are unchanged, and known and new programs give the same results.
"""

from __future__ import annotations

import gc
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import fxflow as fx
import fxflow.numpy as fnp
from fxflow import config, lax
from fxflow.core.ir.trace import state
from fxflow.core.runtime.eager import EVAL

from .endings import large, slow

X = np.ones((32, 32), "f") / 32


def tracing(seed: float) -> Any:
    f = fx.vmap(fx.grad(lambda x: large(seed, 20)(x).sum()), axis_name="i")
    return fx.make_graph(f)(X[None])


def compiling(seed: float) -> Any:
    with config.override(cache=False):
        return fx.jit(large(seed, 20))(X).block_until_ready()


def loading(seed: float) -> Any:
    """Returns a new function whose program is in the disk cache."""
    return fx.jit(lambda x: large(0.5, 4)(x))(X)


def running(seed: float) -> Any:
    return _run(X * seed).block_until_ready()


_run = fx.jit(slow)


def calling(seed: float) -> Any:
    def work(x: Any) -> Any:
        return np.sort(np.sin(x) + sum(range(1000)), axis=0)

    def call(_: Any, x: Any) -> Any:
        return fx.pure_callback(work, fx.ShapeDtypeStruct(X.shape, "float32"), x)

    return fx.jit(lambda x: lax.fori_loop(0, 2000, call, x))(X * seed)


def eager(seed: float) -> Any:
    def step(carry: Any, x: Any) -> Any:
        return fnp.tanh(carry @ X + x), carry.sum()

    return fx.grad(lambda x: lax.scan(step, x, fnp.arange(9.0))[1].sum())(X * seed)


def mapped(seed: float) -> Any:
    f = fx.pmap(lambda x: lax.psum(slow(x), "i"), axis_name="i")
    return f(np.stack([X, X * seed])).block_until_ready()


KINDS = (tracing, compiling, loading, running, calling, eager, mapped)


def known(x: Any) -> Any:
    return fnp.sin(x @ x).sum() + lax.cumsum(x).mean()


_known = fx.jit(known)


def works(expected: float) -> None:
    """Checks that an interrupted call left nothing behind."""
    assert state.trace is EVAL, state.trace
    assert (state.axes, state.tracked, state.spmd, state.scope) == (
        (),
        frozenset(),
        (),
        (),
    )
    assert not config.overridden() and config.cache
    assert gc.isenabled()
    values = [known(X), _known(X), fx.jit(lambda x: known(x))(X)]
    others: list[Any] = []
    thread = threading.Thread(target=lambda: others.append(_known(X)), daemon=True)
    thread.start()
    thread.join(60)
    assert others, "another thread waits for ever"
    np.testing.assert_allclose([float(v) for v in values + others], expected, 1e-5)


def interrupted(work: Callable[[float], Any], seed: float, after: float) -> bool:
    """Returns whether the work was interrupted before it ended."""
    signal.setitimer(signal.ITIMER_REAL, after)
    try:
        try:
            work(seed)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        return True
    return False


def main() -> None:
    rounds, seed = int(sys.argv[1]), int(sys.argv[2])
    config.num_cpu_devices = 2
    chance = random.Random(seed)
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    expected = float(_known(X))
    times = {}
    for work in KINDS:
        work(0.5)
        start = time.monotonic()
        work(0.25)
        times[work] = time.monotonic() - start
    count = 0
    for number in range(rounds):
        work = KINDS[number % len(KINDS)]
        after = max(1e-4, chance.uniform(0, 1.1) * times[work])
        count += interrupted(work, chance.random(), after)
        try:
            works(expected)
        except BaseException as error:
            error.add_note(f"round {number}: {work.__name__} after {after} s")
            raise
    print("interrupted", count)


if __name__ == "__main__":
    main()
