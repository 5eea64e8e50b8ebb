"""Closeness and equality against NumPy."""

import numpy as np

import fxflow.numpy as fnp
from tests.numpy.oracle import check, same

X = np.array([0.0, -0.0, 0.5, 1.5, -2.5, 2.7, np.inf, -np.inf, np.nan], np.float32)
I = np.array([-17, 0, 25, 35, 140], np.int32)  # noqa: E741
Z = np.array([1.5 - 2.5j, -1 + 0j, 0.25 + 3j], np.complex64)


def test_closeness() -> None:
    y = X.copy()
    y[4] += 1e-6
    for equal_nan in (False, True):
        check("isclose", X, y, equal_nan=equal_nan)
        check("allclose", X, y, equal_nan=equal_nan, compiled=False)
        check("array_equal", X, X.copy(), equal_nan=equal_nan)
    check("isclose", I, I + 1, compiled=False)
    check("isclose", Z, Z + 1e-7, compiled=False)
    check("isclose", X, 1.0, rtol=0.5, atol=0.1, compiled=False)


def test_equality_of_arrays() -> None:
    assert not fnp.array_equal(X, X[:2])
    assert fnp.array_equiv(np.ones((2, 3)), np.ones(3))
    assert not fnp.array_equiv(np.ones(2), np.ones(3))
    assert same(np.True_, fnp.array_equal(I, I))
