"""Recent variants of Adam, compared with optax."""

import pytest

import fxflow.numpy as fnp
from fxflow import optim
from fxflow.optim.contrib import variants
from tests.optim import suite


@pytest.mark.parametrize("name", suite.runs(variants))
def test_numbers_match_optax(name: str) -> None:
    suite.matches_optax_on_a_loss(name)


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        lambda: optim.contrib.adopt(0.1),
        lambda: optim.contrib.acprop(0.1),
        lambda: optim.contrib.ademamix(0.1),
        lambda: optim.contrib.simplified_ademamix(0.1),
        lambda: optim.contrib.madgrad(0.1),
    ],
)
def test_steps_compile_and_keep_types(make) -> None:
    suite.compiles_and_keeps_types(make())


def test_gradients_of_norm_zero_stay_zero() -> None:
    tx, zero = optim.contrib.normalize(), fnp.zeros(2)
    assert tx.update(zero, ())[0].tolist() == [0.0, 0.0]
    up = optim.chain(tx, optim.sgd(0.5))
    sam = optim.contrib.sam(optim.sgd(0.1), up)
    state = sam.init(zero)
    for _ in range(2):
        updates, state = sam.update(zero, state, zero)
        assert updates.tolist() == [0.0, 0.0]
