"""Optimizers with complex arrays as pairs of real ones, compared with optax 0.2.8."""

import numpy as np

import fxflow
from fxflow import optim


def test_numbers_match_optax() -> None:
    tx = optim.contrib.split_real_and_imaginary(optim.adam(0.1))
    params = {"a": np.complex64([1 + 2j, 3 - 1j]), "b": np.ones(2, np.float32)}
    updates, state = fxflow.jit(tx.update)(params, tx.init(params), params)
    np.testing.assert_allclose(updates["a"], [-0.1 - 0.1j, -0.1 + 0.1j], rtol=1e-5)
    np.testing.assert_allclose(updates["b"], [-0.1, -0.1], rtol=1e-5)
    mu = state.inner_state[0].mu
    np.testing.assert_allclose(mu["a"].imaginary, [0.2, -0.1], rtol=1e-5)
    assert updates["a"].dtype == "complex64"
    assert updates["b"].dtype == "float32"
