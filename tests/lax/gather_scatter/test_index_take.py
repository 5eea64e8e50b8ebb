"""index_take."""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import lax
from fxflow.errors import AxisError, DtypeError, ShapeError

X = np.arange(60, dtype="f4").reshape(3, 4, 5)


def test_agrees_with_numpy_indexing() -> None:
    i, j = np.array([0, -1, 4]), np.array([2, 0, -4])
    got = lax.index_take(X, [i], [0])
    np.testing.assert_array_equal(got, np.take(X, i, 0, mode="wrap"))
    got = fxflow.jit(lambda x, i, j: lax.index_take(x, (i, j), (2, 1)))(X, i, j)
    np.testing.assert_array_equal(got, X[:, j % 4, i % 5].T)
    rows = fxflow.vmap(lambda x, i: lax.index_take(x, [i], [-1]))(X, np.stack([i] * 3))
    np.testing.assert_array_equal(rows[1], X[1][:, i % 5].T)
    slope = fxflow.grad(lambda x: lax.index_take(x, [np.array([1, 1])], [0]).sum())(X)
    assert float(slope[1, 0, 0]) == 2 and float(slope.sum()) == 40


def test_indices_and_axes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"an array \[n\] for each axis of \(0, 1\)"):
        lax.index_take(X, [np.arange(2)], (0, 1))
    with pytest.raises(DtypeError, match="must be integers"):
        lax.index_take(X, [np.ones(2)], [0])
    with pytest.raises(AxisError, match="repeated axis"):
        lax.index_take(X, [np.arange(2)] * 2, (0, 0))
    with pytest.raises(ShapeError, match="is empty"):
        lax.index_take(fnp.ones((0, 2)), [np.arange(2)], [0])
