"""Adafactor and SM3, compared with optax."""

import pytest

import fxflow.numpy as fnp
from fxflow import optim
from fxflow.optim import factored
from tests.optim import suite


@pytest.mark.parametrize("name", suite.runs(factored))
def test_numbers_match_optax(name: str) -> None:
    suite.matches_optax_on_a_loss(name)


def test_states_are_small() -> None:
    params = {"w": fnp.ones((256, 128)), "n": fnp.ones(3)}
    state = optim.adafactor(0.1).init(params)
    assert optim.tree.size(state) < 256 + 128 + 16
    covers = optim.sm3(0.1).init(params)[0].mu
    assert [x.shape for x in covers["w"]] == [(256,), (128,)]


def test_sm3_of_a_scalar() -> None:
    tx = optim.scale_by_sm3(b1=0.0)
    out, _ = tx.update(fnp.asarray(-3.0), tx.init(fnp.asarray(0.0)))
    assert round(float(out), 4) == -1.0


@pytest.mark.slow
@pytest.mark.parametrize(
    "make", [lambda: optim.adafactor(0.1, 2), lambda: optim.sm3(0.1)]
)
def test_steps_compile_and_keep_types(make) -> None:
    suite.compiles_and_keeps_types(make())
