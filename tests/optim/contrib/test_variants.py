"""Later kin of Adam, against optax."""

import pytest

import fxflow.numpy as fnp
from fxflow import optim
from fxflow.optim.contrib import variants
from tests.optim import suite


@pytest.mark.parametrize("name", suite.runs(variants))
def test_as_optax(name: str) -> None:
    suite.as_optax_on_a_loss(name)


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
def test_step_is_compiled(make) -> None:
    suite.step_is_compiled(make())


def test_a_length_of_zero_stays() -> None:
    tx, zero = optim.contrib.normalize(), fnp.zeros(2)
    assert tx.update(zero, ())[0].tolist() == [0.0, 0.0]
    up = optim.chain(tx, optim.sgd(0.5))
    sam = optim.contrib.sam(optim.sgd(0.1), up)
    state = sam.init(zero)
    for _ in range(2):
        updates, state = sam.update(zero, state, zero)
        assert updates.tolist() == [0.0, 0.0]
