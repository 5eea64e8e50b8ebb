"""Quantiles against NumPy."""

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.core.errors import ArgumentError, DtypeError
from fxflow.numpy.quantiles import METHODS
from tests.numpy.oracle import check, same

X = np.random.default_rng(0).normal(size=(3, 4, 5)).astype(np.float32)
N = np.where(X > 1, np.nan, X)
Q = np.array([[0.0, 0.13], [0.5, 1.0]], np.float32)


@pytest.mark.parametrize("name", ["median", "nanmedian"])
@pytest.mark.parametrize("axis", [None, 0, (0, 2)])
def test_medians(name: str, axis: Any) -> None:
    check(name, X, axis=axis)
    check(name, X, axis=axis, keepdims=True)
    check(name, N, axis=axis)
    check(name, np.array([[3, 1, 2, 9]]))


@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
@pytest.mark.parametrize("method", METHODS)
def test_methods(name: str, method: str) -> None:
    for x in (X[:, 0], np.arange(8.0, dtype=np.float32).reshape(1, 8)):
        for q in (0.25, 0.5, 0.625, Q):
            check(name, x, q, axis=1, method=method, compiled=False, tol=1e-4)


@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
def test_axes(name: str) -> None:
    for axis in (None, 1, (0, 2)):
        # NumPy 2.4's nanquantile mixes up the axes of q, if there are several.
        check(name, X, Q[0], axis=axis, tol=1e-5)
        check(name, X, 0.3, axis=axis, keepdims=True, tol=1e-5)
        check(name, N, 0.3, axis=axis, tol=1e-5)
    check("nanpercentile", N, 30.0, axis=0, tol=1e-5)
    check("percentile", X, np.array([30.0, 99.0]), axis=0, tol=1e-5)
    check("percentile", X, 30, tol=1e-5)


def test_edges() -> None:
    assert float(fnp.median(np.array([np.inf, np.inf]))) == np.inf
    assert np.isnan(fnp.median(np.array([1.0, np.nan])))
    assert np.isnan(fnp.median(np.zeros(0)))
    assert np.isnan(fnp.nanmedian(np.full(3, np.nan)))
    assert fnp.median(np.array([1, 2], np.float16)).dtype == np.float16
    big = np.arange(3000, dtype=np.float16)
    assert float(fnp.quantile(big, 0.5)) == 1499.5 or float(fnp.median(big)) == 1500


def test_gradient() -> None:
    x = np.array([3.0, 1.0, 2.0, 5.0], np.float32)
    assert same(np.array([0.5, 0, 0.5, 0]), fxflow.grad(fnp.median)(x))
    got = fxflow.vmap(lambda r: fnp.quantile(r, 0.4))(X[0])
    assert same(np.quantile(X[0], 0.4, axis=1), got, 1e-5)


def test_mistakes() -> None:
    with pytest.raises(ArgumentError, match="method"):
        fnp.quantile(X, 0.5, method="middle")
    with pytest.raises(DtypeError, match="order"):
        fnp.quantile(X * 1j, 0.5)
    with pytest.raises(ArgumentError, match="immutable"):
        fnp.median(X, overwrite_input=True)
