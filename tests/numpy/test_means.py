"""Means and variances against NumPy."""

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import jit
from fxflow.errors import ArgumentError, DtypeError, ShapeError
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


@pytest.mark.parametrize("ddof", [np.float32(1), np.array(1), 1, 1.5, True])
def test_degrees_of_freedom_may_be_any_number(ddof) -> None:
    x = np.arange(6, dtype="f4").reshape(2, 3)
    want = np.var(x, ddof=float(ddof))
    assert fnp.var(x, ddof=ddof) == pytest.approx(want)
    assert fnp.std(fnp.asarray(x), correction=ddof) == pytest.approx(want**0.5)
    assert fnp.var(x, correction=None, ddof=ddof) == pytest.approx(want)
    assert fnp.var(x, ddof=fnp.asarray(ddof)) == pytest.approx(want)
    assert jit(lambda d: fnp.var(x, ddof=d))(ddof) == pytest.approx(want)


@pytest.mark.parametrize("ddof", [None, 1j, "1", (1,), np.ones(2)])
def test_degrees_of_freedom_must_be_a_real_number(ddof) -> None:
    with pytest.raises(TypeError, match="ddof must be a real number"):
        fnp.var(np.ones(3, "f4"), ddof=ddof)


def test_arrays_of_64_bits_stay() -> None:
    x = fnp.asarray(np.arange(4.0) + 1e-9, "float64")
    for name in ["mean", "std", "var", "nanmean", "nanstd", "nanvar"]:
        out = getattr(fnp, name)(x)
        assert out.dtype == "float64"
        np.testing.assert_allclose(out, getattr(np, name)(np.asarray(x)), rtol=1e-14)
    far = fnp.asarray(np.array([1 << 40, 2]), "int64")
    assert float(fnp.mean(far)) == (1 << 39) + 1
    assert abs(float(fnp.mean(np.full(3, 0.1), dtype="float64")) - 0.1) < 1e-15


def test_average_converts_each_operand_by_itself() -> None:
    weights = np.array([0, 2**32 - 1], np.uint32)
    assert float(fnp.average(np.array([1, 3], np.int32), weights=weights)) == 3


def test_slope_of_a_deviation_of_0() -> None:
    ones = np.ones((2, 3), np.float32)
    for f in (fnp.std, fnp.nanstd):
        run = lambda x, f=f: f(x, axis=1).sum()
        assert not np.any(fxflow.grad(run)(ones))
        assert not np.any(fxflow.jvp(run, (ones,), (X[0, :2, :3],))[1])
    x = np.float32([[1, 1, 1], [1, 2, 4]])
    slope = fxflow.grad(lambda x: fnp.std(x, axis=1).sum())(x)
    want = (x - x.mean(1, keepdims=True))[1] / (3 * x[1].std())
    np.testing.assert_allclose(slope, [[0, 0, 0], want], 1e-6)


@pytest.mark.parametrize("run", [lambda f: f, fxflow.jit], ids=["eager", "jit"])
def test_deviations_do_not_over_or_underflow(run: Any) -> None:
    unit = np.float32([1, 2, 6])
    for options in ({}, {"ddof": 1}, {"where": np.array([True, True, False])}):
        f = lambda x, options=options: fnp.std(x, **options)
        value, slope = fxflow.value_and_grad(f)(unit)
        for size in (1e-25, 1e25):
            got, by_x = run(fxflow.value_and_grad(f))(unit * np.float32(size))
            np.testing.assert_allclose(got / size, value, 1e-5)
            np.testing.assert_allclose(by_x, slope, 1e-5, 1e-6)


@pytest.mark.parametrize("run", [lambda f: f, fxflow.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("name", ["std", "nanstd", "var", "mean", "nanmean"])
def test_moments_of_16_bits_are_taken_in_32(name: str, run: Any) -> None:
    f = getattr(fnp, name)
    for size in (300, 1e-3) if "std" in name else (1,):
        x = np.tile(np.float16([size, 3 * size]), 35_000)
        want = getattr(np, name)(x.astype("f4"))
        assert run(f)(x).dtype == np.float16
        assert float(run(f)(x)) == pytest.approx(want, rel=1e-3)


def test_a_weighted_mean_of_16_bits_is_taken_in_32() -> None:
    x = np.ones(70_000, np.float16)
    assert float(fnp.average(x, weights=x)) == 1
