"""Polyak's step size, against optax."""

import pytest

import fxflow.numpy as fnp
from fxflow import optim
from fxflow.errors import ArgumentError
from fxflow.optim import polyak
from tests.optim import suite


@pytest.mark.parametrize("name", suite.runs(polyak))
def test_as_optax(name: str) -> None:
    suite.as_optax_on_a_loss(name)


def test_needs_the_loss() -> None:
    tx = optim.polyak_sgd()
    with pytest.raises(ArgumentError, match=r"needs value: call update\(updates"):
        tx.update(1.0, tx.init(1.0), 1.0)
    with pytest.raises(ArgumentError, match="variant is"):
        optim.scale_by_polyak(variant="sgd")


def test_no_step_without_a_slope() -> None:
    tx = optim.scale_by_polyak()
    assert float(tx.update(fnp.zeros(()), tx.init(0.0), value=1.0)[0]) == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("make", [lambda: optim.polyak_sgd()])
def test_step_is_compiled(make) -> None:
    suite.step_is_compiled(make())
