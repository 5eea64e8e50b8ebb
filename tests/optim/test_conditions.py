"""Transformations that act at some steps, and gradients to skip."""

import functools

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import optim

ONE = fnp.ones(2)


def passed(tx, count: int, **extra) -> list[float]:
    state = tx.init(ONE)
    update = fxflow.jit(tx.update)
    found = []
    for _ in range(count):
        out, state = update(ONE, state, ONE, **extra)
        found.append(float(out[0]))
    return found


@pytest.mark.parametrize(
    ("make", "otherwise"),
    [(optim.conditionally_transform, 1.0), (optim.conditionally_mask, 0.0)],
)
def test_transformations_act_at_some_steps(make, otherwise: float) -> None:
    tx = make(optim.chain(optim.trace(1.0), optim.scale(2.0)), lambda t: t % 2 == 0)
    # The state of the inner transformation changes only at these steps.
    assert passed(tx, 5) == [2.0, otherwise, 4.0, otherwise, 6.0]
    by_loss = make(optim.scale(2.0), lambda t, value: value > 1, True)
    assert passed(by_loss, 1, value=0.5) == [otherwise]
    assert passed(by_loss, 1, value=1.5) == [2.0]


def test_apply_every_returns_sums() -> None:
    assert passed(optim.apply_every(3), 7) == [0, 0, 3, 0, 0, 3, 0]


@pytest.mark.parametrize(
    "skip",
    [
        optim.skip_not_finite,
        functools.partial(optim.skip_large_updates, max_squared_norm=10.0),
    ],
)
def test_bad_gradients_are_not_counted(skip) -> None:
    tx = optim.MultiSteps(optim.sgd(1.0), 2, should_skip_update_fn=skip)
    state = tx.init(ONE)
    update = fxflow.jit(tx.update)
    for factor in (1.0, np.nan, np.inf):
        out, state = update(factor * ONE, state, ONE)
    assert bool(state.skip_state["should_skip"])
    assert int(state.mini_step) == 1
    out, state = update(2 * ONE, state, ONE)
    assert out.tolist() == [-1.5, -1.5]
    assert not bool(state.skip_state["should_skip"])
