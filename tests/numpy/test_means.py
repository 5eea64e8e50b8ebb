"""Means and variances against NumPy."""

import numpy as np
import pytest

import fxflow.numpy as fnp
from fxflow.core.errors import ArgumentError, DtypeError, ShapeError
from tests.numpy.oracle import check, same

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 4, 5)).astype(np.float32)


def test_mean_where_nothing_counts_is_nan() -> None:
    assert np.isnan(fnp.mean(np.ones(3), where=np.zeros(3, bool)))
    assert np.isnan(fnp.var(np.ones(2), ddof=2))
    assert np.isnan(fnp.mean(np.ones(0)))


@pytest.mark.parametrize("name", ["var", "std"])
def test_corrections(name: str) -> None:
    check(name, X, ddof=1, axis=0, tol=1e-5)
    check(name, X, correction=1, axis=0, tol=1e-5)
    with pytest.raises(ArgumentError, match="not both"):
        getattr(fnp, name)(X, ddof=1, correction=1)


def test_average() -> None:
    w = RNG.random((3, 4, 5)).astype(np.float32)
    check("average", X, tol=1e-5)
    check("average", X, axis=1, tol=1e-5)
    check("average", X, axis=(0, 1), weights=w, tol=1e-5)
    check("average", X, axis=1, weights=w[0, :, 0], returned=True, tol=1e-5)
    check("average", X, axis=2, weights=w, returned=True, keepdims=True, tol=1e-5)
    check("average", X, axis=1, returned=True, tol=1e-5)
    check("average", X, axis=(2, 0), weights=w[:, 0, :].T, tol=1e-5)
    with pytest.raises(ShapeError, match="weights"):
        fnp.average(X, weights=w[0])
    with pytest.raises(ShapeError, match="weights"):
        fnp.average(X, weights=w[0, 0, :3], axis=2)


@pytest.mark.parametrize("name", ["var", "std", "nanvar", "nanstd"])
def test_known_mean(name: str) -> None:
    x = X.copy()
    if name.startswith("nan"):
        x[0, 1] = np.nan
    for mean in (x.mean(0, keepdims=True) * 0 + 0.5, np.float32(0.25)):
        check(name, x, axis=0, mean=mean, tol=1e-5)
        check(name, x, axis=0, mean=mean, ddof=1, keepdims=True, tol=1e-5)
    function = getattr(fnp, name)
    center = fnp.nanmean(x, axis=1, keepdims=True)
    assert same(function(x, axis=1), function(x, axis=1, mean=center), 1e-6)
    with pytest.raises(ShapeError, match="keepdims"):
        function(x, axis=1, mean=np.zeros((2, 3, 4, 5), np.float32))
    with pytest.raises(DtypeError, match="complex"):
        function(x, mean=1j)
