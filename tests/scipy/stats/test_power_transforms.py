"""Box–Cox and Yeo–Johnson transformations beside SciPy's."""

import numpy as np
import pytest
import scipy.stats

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import stats
from tests.scipy.stats.beside import same

RNG = np.random.default_rng(31)
X = RNG.gamma(2.0, size=25)
Y = RNG.normal(size=25) * 2 + 0.3


def test_given_powers() -> None:
    for power in (-1.0, 0.0, 0.3):
        same("boxcox", X, power)
        same("yeojohnson", Y, power)
        same("boxcox_llf", power, X)
        same("boxcox_llf", power, 1e80 * X)
        same("yeojohnson_llf", power, Y)
    same("yeojohnson", Y, 2.0)
    holed = X.copy()
    holed[3] = np.nan
    same("boxcox_llf", 0.3, holed, nan_policy="omit", keepdims=True)


def test_best_powers() -> None:
    x, y = fnp.asarray(X, "f8"), fnp.asarray(Y, "f8")
    best = scipy.stats.boxcox_normmax(X, method="all")
    np.testing.assert_allclose(stats.boxcox_normmax(x, method="all"), best, 1e-5)
    got, want = stats.boxcox(x, alpha=0.05), scipy.stats.boxcox(X, alpha=0.05)
    np.testing.assert_allclose(got[0], want[0], 1e-5)
    np.testing.assert_allclose(got[1], want[1], 1e-5)
    np.testing.assert_allclose(got[2], want[2], 1e-5)
    found = scipy.stats.yeojohnson_normmax(Y)
    np.testing.assert_allclose(stats.yeojohnson_normmax(y), found, 1e-5)
    # A power with which a sample of great numbers does not exceed a limit.
    great = np.array([2003.0, 1950.0, 1997.0, 2000.0, 2009.0])
    with pytest.warns(UserWarning, match="constrained optimum"):
        want = scipy.stats.boxcox_normmax(great, method="mle", ymax=1e10)
    got = stats.boxcox_normmax(fnp.asarray(great, "f8"), method="mle", ymax=1e10)
    np.testing.assert_allclose(got, want, 1e-6)


def test_derivative_of_the_best_power() -> None:
    x = fnp.asarray(X, "f8")
    slope = fxflow.grad(lambda x: stats.boxcox_normmax(x, method="mle"))(x)
    step = np.zeros(25)
    step[4] = 1e-3
    ends = [scipy.stats.boxcox(X + s)[1] for s in (step, -step)]
    np.testing.assert_allclose(slope[4], (ends[0] - ends[1]) / 2e-3, 1e-3)


def test_bad_arguments() -> None:
    assert np.isnan(stats.boxcox_normmax(np.array([1.0, -2.0, 3.0]), method="mle"))
    for function in (stats.boxcox_normmax, stats.yeojohnson_normmax):
        for wrong in (1.5, (), (1.0,)):
            with pytest.raises(ArgumentError, match="brack must be"):
                function(np.ones(3), wrong)
    with pytest.raises(ArgumentError, match="optimizer must return"):
        stats.boxcox_normmax(np.ones(3), optimizer=lambda fun: None)
    with pytest.raises(ArgumentError, match="method"):
        stats.boxcox_normmax(X, method="best")
    with pytest.raises(ShapeError, match="row"):
        stats.boxcox(X.reshape(5, 5))
    with pytest.raises(ArgumentError, match="alpha"):
        stats.boxcox(X, alpha=2.0)
