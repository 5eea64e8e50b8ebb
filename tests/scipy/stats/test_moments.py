"""Moments, means and standard scores beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.stats

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import (
    ArgumentError,
    AxisError,
    ConcretizationError,
    DtypeError,
    ShapeError,
)
from fxflow.scipy import stats
from tests.scipy.stats.beside import same

RNG = np.random.default_rng(27)
X = RNG.gamma(2.0, size=(5, 4, 6))
HOLED = X.copy()
HOLED[0, 1, 2] = HOLED[2, 0, 0] = np.nan
WEIGHTS = RNG.uniform(size=X.shape)

REDUCED = "skew kurtosis gmean hmean gstd variation kstat kstatvar moment"


@pytest.mark.parametrize("policy", ["propagate", "omit"])
@pytest.mark.parametrize("axis", [0, -1, (0, 2), None])
def test_reductions(axis: Any, policy: str) -> None:
    for name in REDUCED.split():
        same(name, HOLED, axis=axis, nan_policy=policy, keepdims=True)
    same("skew", HOLED, axis=axis, bias=False, nan_policy=policy)
    same("kurtosis", HOLED, axis=axis, bias=False, fisher=False, nan_policy=policy)
    same("pmean", HOLED, 2.5, axis=axis, nan_policy=policy)
    same("pmean", HOLED, 0, axis=axis, nan_policy=policy)
    if not isinstance(axis, tuple):
        same("gmean", HOLED, axis=axis, weights=WEIGHTS, nan_policy=policy)
        same("describe", HOLED, axis=axis, nan_policy=policy)
        same("zscore", HOLED, axis=axis, nan_policy=policy, ddof=1)
        same("gzscore", HOLED, axis=axis, nan_policy=policy)


def test_orders_and_small_samples() -> None:
    for n in (1, 2, 3, 4):
        same("kstat", X, n, axis=1)
    same("moment", X, order=[0, 1, 2, 5], axis=1)
    same("moment", X, order=3, axis=1, center=1.5)
    for n in (1, 2, 3, 4):
        for name in ("skew", "kurtosis"):
            same(name, X[0, 0, :n], bias=False)
    same("skew", np.full(5, 3.1))
    same("zscore", np.full(5, 3.0))
    same("zmap", X[0], X[1], axis=1, ddof=1)
    same("hmean", np.array([1.0, 0.0, 2.0]))
    same("gmean", X, axis=1, weights=WEIGHTS)


def test_nan_is_an_error_where_values_are_known() -> None:
    same("skew", X, nan_policy="raise")
    with pytest.raises(ArgumentError, match="skew: the input has nan"):
        stats.skew(HOLED, nan_policy="raise")
    with pytest.raises(ArgumentError, match="skew: the input has nan"):
        stats.skew(HOLED, 0, True, "raise")
    with pytest.raises(ConcretizationError, match="omit"):
        fxflow.jit(lambda x: stats.skew(x, nan_policy="raise"))(X)


def test_bad_arguments() -> None:
    with pytest.raises(ArgumentError, match="nan_policy"):
        stats.skew(X, nan_policy="drop")
    with pytest.raises(AxisError):
        stats.kurtosis(X, axis=3)
    with pytest.raises(DtypeError, match="real"):
        stats.skew(X + 1j)
    with pytest.raises(ArgumentError, match="n must be one of 1, 2, 3, 4"):
        stats.kstat(X, 5)
    with pytest.raises(ArgumentError, match="order"):
        stats.moment(X, order=-1)
    with pytest.raises(ArgumentError, match="order"):
        stats.moment(X, order=1.5)
    with pytest.raises(ArgumentError, match="p must be a number"):
        stats.pmean(X, fnp.ones(3))


def test_derivatives_and_batches() -> None:
    x = fnp.asarray(X[0], "f8")
    for name in ("skew", "kurtosis", "variation", "gmean", "kstatvar"):
        function = getattr(stats, name)
        by_rows = fxflow.vmap(function)(x)
        np.testing.assert_allclose(by_rows, function(x, axis=1), 1e-12)
        slope = fxflow.grad(function)(x[0])
        step = np.zeros(6)
        step[2] = 1e-6
        rise = (function(x[0] + step) - function(x[0] - step)) / 2e-6
        np.testing.assert_allclose(slope[2], rise, 1e-6)
    # Elements that are left out have no derivative, and spoil none.
    part = fxflow.grad(lambda x: stats.skew(x, nan_policy="omit"))(HOLED[0, 1])
    assert float(part[2]) == 0 and np.isfinite(part).all()


def test_sixteen_bits() -> None:
    x = fnp.asarray(X[0, 0], "bfloat16")
    assert stats.kurtosis(x).dtype == fnp.bfloat16


def test_l_moments_agree_with_scipy() -> None:
    x = RNG.normal(size=(3, 9))
    same("lmoment", x, axis=1)
    same("lmoment", np.sort(x, axis=1), [1, 3], axis=1, sorted=True, standardize=False)
    same("lmoment", x, 2, axis=0, keepdims=True)
    with pytest.raises(ArgumentError, match="order must be positive integers, got 0"):
        stats.lmoment(x, 0)


def test_expectiles_agree_with_scipy() -> None:
    x, w = RNG.normal(size=9), RNG.uniform(size=9)
    for alpha in (0.1, 0.5, 0.83):
        same("expectile", x, alpha)
        same("expectile", x, alpha, weights=w)
    with pytest.raises(ShapeError, match="weights must have the shape of a"):
        stats.expectile(x, 0.3, weights=w[1:])


def test_expectiles_along_an_axis() -> None:
    x, w = RNG.normal(size=(3, 9)), RNG.uniform(size=(3, 9))
    want = [scipy.stats.expectile(a, 0.7, weights=b) for a, b in zip(x, w, strict=True)]
    run = lambda x, w, **more: stats.expectile(x, 0.7, weights=w, axis=1, **more)
    np.testing.assert_allclose(run(x, w, keepdims=True)[:, 0], want, rtol=1e-5)
    np.testing.assert_allclose(
        stats.expectile(x.T, 0.7, weights=w.T, axis=0), want, 1e-5
    )
    whole = scipy.stats.expectile(x.ravel(), 0.7)
    np.testing.assert_allclose(stats.expectile(x, 0.7), whole, rtol=1e-5)
    holed = np.concatenate([x, np.full((3, 2), np.nan)], axis=1)
    weights = np.concatenate([w, np.ones((3, 2))], axis=1)
    assert np.isnan(run(holed, weights)).all()
    np.testing.assert_allclose(run(holed, weights, nan_policy="omit"), want, rtol=1e-5)
    slopes = fxflow.jacfwd(lambda x: stats.expectile(x, 0.5, axis=1))(x.astype("f4"))
    np.testing.assert_allclose(slopes[0, 0], np.full(9, 1 / 9), rtol=1e-5)
