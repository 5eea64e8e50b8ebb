"""Row-wise AdaGrad: against its formula, and AdaGrad."""

from __future__ import annotations

import numpy as np

import fxflow.numpy as fnp
from fxflow import optim, tree
from tests.optim import suite

RNG = np.random.default_rng(0)


def test_rowwise_adagrad_has_one_number_for_each_row() -> None:
    tx = optim.rowwise_adagrad(0.5, 0.2, eps=1e-3)
    params = RNG.normal(size=(4, 6))
    gradients = RNG.normal(size=(2, 4, 6))
    state, found = tx.init(fnp.asarray(params, "f8")), fnp.asarray(params, "f8")
    assert [leaf.shape for leaf in tree.leaves(state)] == [(4, 1)]
    sums = np.full((4, 1), 0.2)
    for g in gradients:
        updates, state = tx.update(fnp.asarray(g, "f8"), state, found)
        found = optim.apply_updates(found, updates)
        sums = sums + (g**2).mean(-1, keepdims=True)
        params = params - 0.5 * g / np.sqrt(sums + 1e-3)
    np.testing.assert_allclose(found, params, 1e-12)


def test_rowwise_adagrad_of_one_column_is_adagrad() -> None:
    first, second = optim.rowwise_adagrad(0.1), optim.adagrad(0.1)
    params = fnp.ones((5, 1))
    gradient = fnp.asarray(RNG.normal(size=(5, 1)), "f4")
    one, _ = first.update(gradient, first.init(params), params)
    two, _ = second.update(gradient, second.init(params), params)
    np.testing.assert_array_equal(one, two)
    scalar, _ = first.update(fnp.ones(()), first.init(fnp.ones(())))
    assert scalar.shape == ()


def test_rowwise_adagrad_finds_minima_and_keeps_types() -> None:
    suite.finds_the_minimum(optim.rowwise_adagrad(0.5))
    for dtype in suite.DTYPES:
        suite.preserves_types(optim.rowwise_adagrad(0.1), dtype)
    zero = optim.rowwise_adagrad(0.1, 0.0, 0.0)
    updates, _ = zero.update(fnp.zeros((2, 3)), zero.init(fnp.ones((2, 3))))
    np.testing.assert_array_equal(updates, np.zeros((2, 3)))
