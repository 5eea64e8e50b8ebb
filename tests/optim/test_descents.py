"""Gradient descent, compared with optax."""

import numpy as np
import pytest

from fxflow import optim, tree
from fxflow.optim import descents
from tests.optim import suite
from tests.optim.golden import GRADIENTS, PARAMS

MAKERS = {
    "sgd": lambda: optim.sgd(0.1, 0.9),
    "momentum": lambda: optim.momentum(0.1),
    "nesterov": lambda: optim.nesterov(0.1),
    "lion": lambda: optim.lion(0.02),
    "lars": lambda: optim.lars(20.0),
    "sign_sgd": lambda: optim.sign_sgd(0.02),
    "noisy_sgd": lambda: optim.noisy_sgd(0.1, 1e-4, seed=0),
    "adagrad": lambda: optim.adagrad(0.5),
    "rmsprop": lambda: optim.rmsprop(0.05),
    "adadelta": lambda: optim.adadelta(20.0),
}


@pytest.mark.parametrize("name", suite.recorded(descents))
def test_numbers_match_optax(name: str) -> None:
    suite.matches_optax(name)


@pytest.mark.parametrize("name", MAKERS)
def test_finds_the_minimum(name: str) -> None:
    suite.finds_the_minimum(MAKERS[name]())


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("dtype", suite.DTYPES)
def test_types_are_preserved(name: str, dtype: str) -> None:
    suite.preserves_types(MAKERS[name](), dtype)


def test_momentum_and_nesterov_are_forms_of_sgd() -> None:
    pairs = [
        (optim.momentum(0.1, 0.8), optim.sgd(0.1, 0.8)),
        (optim.nesterov(0.1, 0.8), optim.sgd(0.1, 0.8, True)),
    ]
    for first, second in pairs:
        states = first.init(PARAMS), second.init(PARAMS)
        for _ in range(2):
            a, one = first.update(PARAMS, states[0])
            b, two = second.update(PARAMS, states[1])
            states = one, two
        tree.map(np.testing.assert_array_equal, a, b)


def test_momentum_in_another_dtype() -> None:
    for tx in (
        optim.lion(0.1, mu_dtype="bfloat16"),
        optim.sgd(0.1, 0.9, accumulator_dtype="bfloat16"),
    ):
        state = tx.init(PARAMS)
        updates, state = tx.update(GRADIENTS[0], state, PARAMS)
        dtypes = {leaf.dtype.name for leaf in tree.leaves(state)}
        assert "bfloat16" in dtypes
        assert updates["w"].dtype == "float32"


def test_complex_gradients_count_by_magnitude() -> None:
    params = np.array([1 + 1j, -2j], np.complex64)
    for tx in (
        optim.rmsprop(0.1),
        optim.adagrad(0.1),
    ):
        updates, _ = tx.update(params, tx.init(params), params)
        assert updates.dtype == "complex64"
        # Second moments use the magnitude of a complex gradient, not its square.
        direction = np.asarray(updates) / params
        np.testing.assert_allclose(direction.imag, 0, atol=1e-6)
