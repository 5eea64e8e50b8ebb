"""Adam and its variants, compared with optax."""

import numpy as np
import pytest

import fxflow
from fxflow import optim, tree
from fxflow.optim import adams
from tests.optim import suite
from tests.optim.golden import GRADIENTS, PARAMS

MAKERS = {
    "adam": lambda: optim.adam(0.1),
    "adamw": lambda: optim.adamw(0.1),
    "nadam": lambda: optim.nadam(0.1),
    "nadamw": lambda: optim.nadamw(0.1),
    "adamax": lambda: optim.adamax(0.1),
    "adamaxw": lambda: optim.adamaxw(0.1),
    "amsgrad": lambda: optim.amsgrad(0.1),
    "adabelief": lambda: optim.adabelief(0.1),
    "yogi": lambda: optim.yogi(0.1),
    "radam": lambda: optim.radam(0.1),
    "lamb": lambda: optim.lamb(0.05),
}


@pytest.mark.parametrize("name", suite.recorded(adams))
def test_numbers_match_optax(name: str) -> None:
    suite.matches_optax(name)


@pytest.mark.parametrize("name", MAKERS)
def test_finds_the_minimum(name: str) -> None:
    suite.finds_the_minimum(MAKERS[name]())


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("dtype", suite.DTYPES)
def test_types_are_preserved(name: str, dtype: str) -> None:
    suite.preserves_types(MAKERS[name](), dtype)


def test_steps_can_be_donated() -> None:
    tx = optim.adamw(1e-2)
    params = tree.map(fxflow.numpy.asarray, PARAMS)
    state = tx.init(params)
    step = fxflow.jit(lambda p, s, g: suite.updated(tx, p, s, g), donate_argnums=(0, 1))
    old = params["w"]
    params, state = step(params, state, GRADIENTS[0])
    params, state = step(params, state, GRADIENTS[1])
    assert old.is_deleted()
    assert int(state[0].count) == 2


def test_moments_in_another_dtype() -> None:
    for tx in (
        optim.adam(0.1, mu_dtype="bfloat16"),
        optim.amsgrad(0.1, mu_dtype="bfloat16"),
    ):
        state = tx.init(PARAMS)
        updates, state = tx.update(GRADIENTS[0], state, PARAMS)
        dtypes = {leaf.dtype.name for leaf in tree.leaves(state)}
        assert "bfloat16" in dtypes
        assert updates["w"].dtype == "float32"


def test_complex_gradients_count_by_magnitude() -> None:
    params = np.array([1 + 1j, -2j], np.complex64)
    for tx in (optim.adam(0.1),):
        updates, _ = tx.update(params, tx.init(params), params)
        assert updates.dtype == "complex64"
        # Second moments use the magnitude of a complex gradient, not its square.
        direction = np.asarray(updates) / params
        np.testing.assert_allclose(direction.imag, 0, atol=1e-6)
