"""Quantiles against NumPy."""

import pickle
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, DtypeError, ShapeError
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
def test_methods_agree_with_numpy(name: str, method: str) -> None:
    for x in (X[:, 0], np.arange(8.0, dtype=np.float32).reshape(1, 8)):
        for q in (0.25, 0.5, 0.625, Q):
            check(name, x, q, axis=1, method=method, compiled=False, tol=1e-4)


@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
def test_axes_and_keepdims_agree_with_numpy(name: str) -> None:
    for axis in (None, 1, (0, 2)):
        # NumPy 2.4's nanquantile mixes up the axes of q, if there are several.
        check(name, X, Q[0], axis=axis, tol=1e-5)
        check(name, X, 0.3, axis=axis, keepdims=True, tol=1e-5)
        check(name, N, 0.3, axis=axis, tol=1e-5)
    check("nanpercentile", N, 30.0, axis=0, tol=1e-5)
    check("percentile", X, np.array([30.0, 99.0]), axis=0, tol=1e-5)
    check("percentile", X, 30, tol=1e-5)


# Some weights are zero, and no row has only such.
W = np.random.default_rng(1).integers(0, 4, X.shape).astype(np.float32) + 0.25
W[W < 1] = 0
W[:, :, 0] = 1


@pytest.mark.parametrize("axis", [None, 0, (0, 2), -1])
@pytest.mark.parametrize("keepdims", [False, True])
def test_weights(axis: Any, keepdims: bool) -> None:
    q = np.array([0.0, 0.1, 0.35, 0.5, 1.0], np.float32)
    how = {"axis": axis, "method": "inverted_cdf", "keepdims": keepdims}
    check("quantile", X, q, weights=W, **how)
    check("percentile", X, 30.0, weights=W, **how)
    holed = np.where(X > 1, np.nan, X)
    some = np.where(W == 0, np.float32(0.5), W)
    check("nanquantile", holed, q, weights=some, **how)
    check("nanpercentile", holed, 30.0, weights=some, **how)
    check("quantile", holed, 0.5, weights=W, **how)


def test_weights_of_some_axes() -> None:
    w = np.array([1.0, 2.0, 0.0, 1.0], np.float32)
    how = {"method": "inverted_cdf"}
    check("quantile", X, 0.4, axis=1, weights=w, **how)
    check("quantile", X, 0.4, axis=(2, 1), weights=np.outer(np.arange(1, 6), w), **how)
    counts = np.repeat(X[0, :, 0], w.astype(int))
    want = np.quantile(counts, 0.6, method="inverted_cdf")
    assert same(want, fnp.quantile(X[0, :, 0], 0.6, weights=w, **how))
    for bad in ([-1, 1, 1, 1], [np.nan, 1, 1, 1], [np.inf, 1, 1, 1], [0, 0, 0, 0]):
        got = fnp.quantile(X[0, :, 0], 0.5, weights=np.array(bad, np.float32), **how)
        assert np.isnan(got), bad
    slope = fxflow.grad(lambda x: fnp.quantile(x, 0.6, weights=w, **how))(X[0, :, 0])
    assert float(slope.sum()) == 1


def test_medians_of_infinities_nans_and_halves() -> None:
    assert float(fnp.median(np.array([np.inf, np.inf]))) == np.inf
    assert np.isnan(fnp.median(np.array([1.0, np.nan])))
    assert np.isnan(fnp.median(np.zeros(0)))
    assert np.isnan(fnp.nanmedian(np.full(3, np.nan)))
    assert fnp.median(np.array([1, 2], np.float16)).dtype == np.float16
    big = np.arange(3000, dtype=np.float16)
    # 1499.5 is halfway between two numbers of float16, and 1500 is the even one.
    assert float(fnp.quantile(big, 0.5)) == float(fnp.median(big)) == 1500


def test_the_gradient_of_the_median_and_vmap_of_quantile() -> None:
    x = np.array([3.0, 1.0, 2.0, 5.0], np.float32)
    assert same(np.array([0.5, 0, 0.5, 0]), fxflow.grad(fnp.median)(x))
    got = fxflow.vmap(lambda r: fnp.quantile(r, 0.4))(X[0])
    assert same(np.quantile(X[0], 0.4, axis=1), got, 1e-5)


def test_invalid_methods_dtypes_and_weights_are_refused() -> None:
    with pytest.raises(ArgumentError, match="method"):
        fnp.quantile(X, 0.5, method="middle")
    with pytest.raises(DtypeError, match="order"):
        fnp.quantile(X * 1j, 0.5)
    with pytest.raises(ArgumentError, match="immutable"):
        fnp.median(X, overwrite_input=True)
    with pytest.raises(ArgumentError, match="inverted_cdf"):
        fnp.quantile(X, 0.5, weights=W)
    with pytest.raises(ShapeError, match="weights"):
        fnp.quantile(X, 0.5, axis=0, weights=W[0, 0], method="inverted_cdf")
    with pytest.raises(ShapeError, match="weights"):
        fnp.quantile(X, 0.5, weights=W[0], method="inverted_cdf")


def test_declared_functions_look_like_written_ones() -> None:
    assert fnp.nanquantile.__name__ == "nanquantile"
    assert pickle.loads(pickle.dumps(fnp.percentile)) is fnp.percentile
    assert "percentages" in (fnp.percentile.__doc__ or "")


@pytest.mark.parametrize("how", [lambda f: f, fxflow.jit])
def test_shares_keep_64_bits(how: Any) -> None:
    x = np.random.default_rng(0).normal(size=20)
    given = fnp.asarray(x, "float64")
    for name, q in (("quantile", 0.1), ("percentile", 17.3)):
        function = getattr(fnp, name)
        out = how(lambda a, f=function, q=q: f(a, q))(given)
        assert out.dtype == "float64"
        np.testing.assert_allclose(out, getattr(np, name)(x, q), rtol=1e-14)


def test_equal_neighbours_share_the_slope() -> None:
    assert fxflow.grad(fnp.median)(np.zeros(4, np.float32)).tolist() == [0, 0.5, 0.5, 0]
    slope = fxflow.grad(lambda x: fnp.quantile(x, np.float32(0.25)))
    assert slope(np.zeros(4, np.float32)).tolist() == [0.25, 0.75, 0, 0]
    x = np.float32([np.inf, np.inf, 1, -np.inf])
    assert float(fnp.quantile(x, 0.9)) == np.inf


@pytest.mark.parametrize("method", ["lower", "higher", "midpoint", "nearest"])
def test_probabilities_of_elements_are_not_between_them(method: str) -> None:
    # 0.2 of 6 elements is one of them, which rounding must not miss.
    for n in range(2, 30):
        x = np.arange(n, dtype=np.float32)
        q = np.arange(n, dtype=np.float32) / np.float32(n - 1)
        want = np.quantile(x, q, method=method)
        np.testing.assert_array_equal(fnp.quantile(x, q, method=method), want)
