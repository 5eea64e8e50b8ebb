"""Optimizers that adapt to the loss, compared with optax."""

import pytest

import fxflow.numpy as fnp
from fxflow import optim
from fxflow.errors import ArgumentError
from fxflow.optim.contrib import by_value
from tests.optim import suite


@pytest.mark.parametrize("name", suite.runs(by_value))
def test_numbers_match_optax(name: str) -> None:
    suite.matches_optax_on_a_loss(name)


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        lambda: optim.contrib.momo(),
        lambda: optim.contrib.momo_adam(),
        lambda: optim.contrib.cocob(),
        lambda: optim.contrib.reduce_on_plateau(),
    ],
)
def test_steps_compile_and_keep_types(make) -> None:
    suite.compiles_and_keeps_types(make())


def test_the_scale_is_reduced_on_plateaus_except_in_cooldown() -> None:
    tx = optim.contrib.reduce_on_plateau(0.5, patience=2, cooldown=2)
    state = tx.init(fnp.ones(1))
    scales = []
    for value in (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0):
        _, state = tx.update(fnp.ones(1), state, value=value)
        scales.append(float(state.scale))
    assert scales == [1.0, 1.0, 0.5, 0.5, 0.5, 0.5, 0.25]


def test_invalid_options_and_a_missing_value_are_refused() -> None:
    with pytest.raises(ArgumentError, match="factor must be between 0 and 1, got 2"):
        optim.contrib.reduce_on_plateau(2.0)
    with pytest.raises(ArgumentError, match="nor both be 0"):
        optim.contrib.reduce_on_plateau(rtol=0.0)
    tx = optim.contrib.momo()
    with pytest.raises(ArgumentError, match="momo: needs value: call update"):
        tx.update(fnp.ones(1), tx.init(fnp.ones(1)), fnp.ones(1))
