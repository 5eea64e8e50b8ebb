"""Polyak's step size, compared with optax."""

import pytest

import fxflow.numpy as fnp
from fxflow import optim
from fxflow.errors import ArgumentError
from fxflow.optim import polyak
from tests.optim import suite


@pytest.mark.parametrize("name", suite.runs(polyak))
def test_numbers_match_optax(name: str) -> None:
    suite.matches_optax_on_a_loss(name)


def test_a_missing_loss_is_refused() -> None:
    tx = optim.polyak_sgd()
    with pytest.raises(ArgumentError, match=r"needs value: call update\(updates"):
        tx.update(1.0, tx.init(1.0), 1.0)
    with pytest.raises(ArgumentError, match="variant must be"):
        optim.scale_by_polyak(variant="sgd")


def test_a_gradient_of_zero_gives_a_step_of_zero() -> None:
    tx = optim.scale_by_polyak()
    assert float(tx.update(fnp.zeros(()), tx.init(0.0), value=1.0)[0]) == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("make", [lambda: optim.polyak_sgd()])
def test_steps_compile_and_keep_types(make) -> None:
    suite.compiles_and_keeps_types(make())
