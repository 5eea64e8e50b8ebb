"""An interrupt at each place where Python handles one leaves fxflow as it was."""

from __future__ import annotations

import _imp
import gc
from typing import Any

import numpy as np
import pytest

import fxflow as fx
import fxflow.numpy as fnp
from fxflow import P, lax
from fxflow.core.ir.trace import state
from fxflow.core.runtime.eager import EVAL
from tests.sweeps import sampling
from tests.sweeps.interrupting import Interrupter

#: How many of some 25,000 places there is time for in CI.
COUNT = 40
X, W = np.full((2, 3, 3), 0.1, "f"), np.eye(3, dtype="f")
MESH = fx.make_mesh((2,), ("i",))


def _loops(x: Any, w: Any) -> Any:
    step = fx.checkpoint(lambda c, t: (fnp.tanh(c @ w + t), c.sum()))
    c, ys = lax.scan(step, x, fnp.arange(3.0))
    c = lax.cond(ys.sum() > 0, lambda c: c * 2, lambda c: c - 1, c)
    return c.sum() + ys.sum()


def _turns(x: Any) -> Any:
    def turn(state: Any) -> Any:
        return state[0] + 1, state[1] * 0.5

    return lax.while_loop(lambda s: s[0] < 3, turn, (0, _loops(x, W)))[1]


def work() -> list[np.ndarray[Any, Any]]:
    """Traces, differentiates, maps, partitions, compiles and runs functions anew."""
    gradient = fx.vmap(fx.value_and_grad(_loops), in_axes=(0, None), axis_name="b")
    parts = fx.shard_map(
        lambda x: lax.psum(fnp.sin(x).sum(), "i"),
        mesh=MESH,
        in_specs=P("i"),
        out_specs=P(),
    )
    results = (
        fx.jit(gradient)(X, W),
        fx.jit(parts)(X),
        fx.grad(lambda x: parts(x) ** 2)(X),
        fx.pmap(lambda x: lax.psum(x, "i"), axis_name="i")(X),
        fx.vmap(lambda x: lax.psum(x, "j") * x, axis_name="j")(X),
        fx.hessian(lambda x: (x**3).sum())(fnp.ones(3)),
        fnp.einsum("ij,jk->ik", W, W) + fnp.linspace(0, 1, 3),
        fx.jit(lambda x: fx.jvp(_turns, (x,), (x,)))(X[0]),
    )
    return [np.asarray(leaf) for leaf in fx.tree.leaves(results)]


# An interrupt in a destructor or the callback of a weak reference is Python's to drop.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_interrupts() -> None:
    work()
    expected = work()
    counter = Interrupter()
    counter.call(work)
    for at in sampling.sample(range(1, counter.events), COUNT, "interrupts"):
        interrupter = Interrupter(at)
        interrupter.call(work)
        where = f"after an interrupt at event {at}, {interrupter.place}"
        assert state.trace is EVAL, where
        left = (state.axes, state.tracked, state.spmd, state.scope)
        assert left == ((), frozenset(), (), ()), where
        assert gc.isenabled() and not _imp.lock_held(), where
        for value, right in zip(work(), expected, strict=True):
            np.testing.assert_array_equal(value, right, where)
