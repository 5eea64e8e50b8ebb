"""FTRL-Proximal, compared with the paper's algorithm and with its closed form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow.numpy as fnp
from fxflow import optim, tree
from fxflow.errors import ArgumentError
from tests.optim import suite

RNG = np.random.default_rng(0)


def trained(tx: Any, params: Any, gradients: Any) -> tuple[Any, Any]:
    """Returns parameters and state after updates in float64."""
    params = fnp.asarray(params, "f8")
    state = tx.init(params)
    for gradient in gradients:
        updates, state = tx.update(fnp.asarray(gradient, "f8"), state, params)
        params = optim.apply_updates(params, updates)
    return np.asarray(params), state


def algorithm_1(gradients: Any, alpha: float, beta: float, l1: float, l2: float) -> Any:
    """Algorithm 1 of McMahan et al. 2013: weights made from z before each gradient."""

    def weights(z: Any, n: Any) -> Any:
        scale = (beta + np.sqrt(n)) / alpha + l2
        return np.where(abs(z) <= l1, 0, -(z - np.sign(z) * l1) / scale)

    z, n = np.zeros((2, gradients.shape[1]))
    for g in gradients:
        w = weights(z, n)
        sigma = (np.sqrt(n + g * g) - np.sqrt(n)) / alpha
        z, n = z + g - sigma * w, n + g * g
    return weights(z, n)


@pytest.mark.parametrize("l1", [0.0, 1.5])
@pytest.mark.parametrize("l2", [0.0, 0.3])
def test_it_is_the_algorithm_of_the_paper(l1: float, l2: float) -> None:
    gradients = RNG.normal(size=(20, 30)) + RNG.normal(size=30)
    found, _ = trained(optim.ftrl(0.2, l1, l2, 0.7), np.zeros(30), gradients)
    np.testing.assert_allclose(
        found, algorithm_1(gradients, 0.2, 0.7, l1, l2), 1e-10, 1e-12
    )
    assert (found == 0).any() == (l1 > 0)


def test_without_regularization_it_is_a_gradient_step() -> None:
    params, gradients = RNG.normal(size=6), RNG.normal(size=(5, 6))
    tx = optim.ftrl(0.3, beta=0.5, initial_accumulator_value=0.1)
    found, _ = trained(tx, params, gradients)
    n = np.full(6, 0.1)
    for g in gradients:
        n = n + g * g
        params = params - 0.3 * g / (0.5 + np.sqrt(n))
    np.testing.assert_allclose(found, params, 1e-12)


def test_parameters_without_a_gradient_stay() -> None:
    params = RNG.normal(size=8)
    found, _ = trained(optim.ftrl(0.3, 0.2, 0.1), params, np.zeros((3, 8)))
    np.testing.assert_allclose(found, params, 1e-12)


def test_minima_types_and_arguments() -> None:
    suite.finds_the_minimum(optim.ftrl(0.5))
    for dtype in suite.DTYPES:
        suite.preserves_types(optim.ftrl(0.1, 0.1, 0.1), dtype)
    with pytest.raises(ArgumentError, match="learning_rate must be a number, such"):
        optim.ftrl(optim.linear_schedule(1.0, 0.0, 5))
    with pytest.raises(ArgumentError, match="needs the parameters"):
        tx = optim.ftrl(0.1)
        tx.update(fnp.ones(2), tx.init(fnp.ones(2)))
    state = optim.ftrl(0.1, initial_accumulator_value=2.0).init({"a": fnp.zeros(3)})
    np.testing.assert_array_equal(state.sum_of_squares["a"], [2, 2, 2])
    assert all(leaf.shape == (3,) for leaf in tree.leaves(state))


def test_no_root_of_zero_divides() -> None:
    tx = optim.ftrl(0.1, beta=0.0)
    params = fnp.ones(3)
    updates, _ = tx.update(fnp.array([0.0, 1.0, -1.0]), tx.init(params), params)
    assert np.isfinite(np.asarray(updates)).all()
