"""Sharpness-aware minimization, compared with optax."""

import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import optim
from fxflow.errors import ArgumentError
from fxflow.optim.contrib import sharpness
from tests.optim import suite


@pytest.mark.parametrize("name", suite.runs(sharpness))
def test_numbers_match_optax(name: str) -> None:
    suite.matches_optax_on_a_loss(name)


@pytest.mark.slow
@pytest.mark.parametrize(
    "make", [lambda: optim.contrib.sam(optim.sgd(0.1), optim.sgd(0.1))]
)
def test_steps_compile_and_keep_types(make) -> None:
    suite.compiles_and_keeps_types(make())


def test_an_opaque_update_is_a_whole_period() -> None:
    grad = fxflow.grad(lambda p: (p**2).sum())
    up = optim.chain(optim.contrib.normalize(), optim.sgd(0.05))
    tx = optim.contrib.sam(optim.sgd(0.1), up, opaque_mode=True)
    p = fnp.array([1.0, 2.0])
    u, _ = tx.update(grad(p), tx.init(p), p, grad_fn=lambda q, i: grad(q))
    # optax's result.
    assert u.tolist() == pytest.approx([-0.20447214, -0.40894428], rel=1e-6)
    with pytest.raises(ArgumentError, match="sam: needs grad_fn"):
        tx.update(p, tx.init(p), p)
    with pytest.raises(ArgumentError, match="sync_period must be at least 2, got 1"):
        optim.contrib.sam(up, up, 1)
