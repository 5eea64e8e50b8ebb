"""Fits within bounds, and how good they are, beside SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats

import fxflow
from fxflow import random
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import stats

X = np.random.default_rng(5).gamma(2.0, 1.5, 60)
KEY = random.key(2)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["mle", "mse"])
def test_a_fit_is_that_of_scipy(method: str) -> None:
    bounds = {"loc": (-5.0, 9.0), "scale": (0.1, 9.0)}
    x = np.round(X, 1)  # some of them equal
    want = scipy.stats.fit(scipy.stats.norm, x, bounds, method=method)
    with fxflow.config.override(x64=True):
        found = stats.fit(stats.norm, x, bounds, method=method)
        np.testing.assert_allclose(found.params, want.params, 1e-4)
        np.testing.assert_allclose(found.nllf(), want.nllf(), 1e-6)
        assert bool(found.success) and "as it should" in found.message
        slope = fxflow.grad(lambda x: stats.fit(stats.norm, x, bounds).params.loc)(x)
        np.testing.assert_allclose(slope, 1 / 60, 1e-4)


@pytest.mark.slow
def test_integers_are_fitted() -> None:
    x = np.array([3.0, 1.0, 4.0, 1.0, 5.0, 2.0, 3.0])
    bounds = {"n": (5, 12)}
    want = scipy.stats.fit(scipy.stats.binom, x, bounds)
    with fxflow.config.override(x64=True):
        found = stats.fit(stats.binom, x, bounds, guess={"n": 6, "p": 0.5})
        # The likelihoods of 8 and 9 differ by 9e-4, and SciPy may stop at 9.
        assert float(found.params.n) == 8
        np.testing.assert_allclose(found.params.p, x.mean() / 8, 1e-4)
        assert float(found.nllf()) <= want.nllf() + 1e-9


def test_an_optimizer_of_the_user() -> None:
    def grid(cost: Any, bounds: Any) -> Any:
        at = np.linspace(*bounds[0], 101)
        values = np.asarray(fxflow.vmap(cost)(at[:, None]))
        best = values.argmin()
        return fxflow.scipy.optimize.OptimizeResults(
            at[best : best + 1], True, 0, values[best], None, None, 101, None, 101
        )

    found = stats.fit(stats.expon, X, {"scale": (1.0, 6.0)}, optimizer=grid)
    np.testing.assert_allclose(found.params.scale, X.mean(), atol=0.05)
    assert found.params._fields == ("loc", "scale")
    fixed = stats.fit(stats.expon, X)  # nothing is left to find
    want = -scipy.stats.expon.logpdf(X).sum()
    np.testing.assert_allclose([fixed.fun, fixed.nllf()], want, 1e-5)


def test_bad_fits() -> None:
    with pytest.raises(ArgumentError, match="an entry for a of gamma"):
        stats.fit(stats.gamma, X)
    with pytest.raises(ArgumentError, match="bounds has an entry 'b'"):
        stats.fit(stats.gamma, X, {"b": (0, 1)})
    with pytest.raises(ArgumentError, match="bounds of a must be finite"):
        stats.fit(stats.gamma, X, {"a": (2, 1)})
    with pytest.raises(ArgumentError, match="must have 1 to 3 entries"):
        stats.fit(stats.gamma, X, [(0, 1)] * 4)
    with pytest.raises(ArgumentError, match="dist must be a distribution"):
        stats.fit("norm", X)
    with pytest.raises(ShapeError, match="data must be a row"):
        stats.fit(stats.norm, X[None])
    with pytest.raises(ArgumentError, match="method must be one of"):
        stats.fit(stats.norm, X, method="mm")


@pytest.mark.slow
@pytest.mark.parametrize("statistic", ["ad", "ks", "cvm", "filliben"])
def test_goodness_of_fit(statistic: str) -> None:
    rng = np.random.default_rng(1)
    want = scipy.stats.goodness_of_fit(
        scipy.stats.norm, X, statistic=statistic, n_mc_samples=2000, rng=rng
    )
    with fxflow.config.override(x64=True):
        found = stats.goodness_of_fit(
            stats.norm, X, key=KEY, statistic=statistic, n_mc_samples=4000
        )
        np.testing.assert_allclose(found.statistic, want.statistic, 1e-9)
        np.testing.assert_allclose(found.pvalue, want.pvalue, 0.3, 3e-3)
        assert found.null_distribution.shape == (4000,)
        params = found.fit_result.params
        np.testing.assert_allclose(params, want.fit_result.params, 1e-9)
        known = {"loc": 3.0, "scale": 2.0}
        of = {"known_params": known, "statistic": statistic}
        want = scipy.stats.goodness_of_fit(scipy.stats.norm, X, **of, rng=rng)
        found = stats.goodness_of_fit(stats.norm, X, key=KEY, **of)
        np.testing.assert_allclose(found.statistic, want.statistic, 1e-9)
        np.testing.assert_allclose(found.pvalue, want.pvalue, 0.1, 0.01)


@pytest.mark.slow
def test_goodness_of_a_fit_that_is_searched_for() -> None:
    given: dict[str, Any] = {"known_params": {"loc": 0.0}}
    want = scipy.stats.goodness_of_fit(
        scipy.stats.gamma, X, **given, n_mc_samples=20, rng=np.random.default_rng(1)
    )
    with fxflow.config.override(x64=True):
        found = stats.goodness_of_fit(stats.gamma, X, **given, key=KEY, n_mc_samples=99)
        np.testing.assert_allclose(found.statistic, want.statistic, 1e-5)
        # The sample is of the family.
        assert float(found.pvalue) > 0.05
        mine = lambda law, x, axis: abs(law.mean() - x.mean(axis))
        other = stats.goodness_of_fit(
            stats.gamma, X, **given, statistic=mine, key=KEY, n_mc_samples=9
        )
        np.testing.assert_allclose(other.statistic, 0, atol=1e-5)


def test_bad_hypotheses() -> None:
    with pytest.raises(ArgumentError, match="dist must be a distribution"):
        stats.goodness_of_fit(stats.binom, X, key=KEY)
    with pytest.raises(ArgumentError, match="known_params has an entry 'a'"):
        stats.goodness_of_fit(stats.norm, X, key=KEY, known_params={"a": 1})
    with pytest.raises(ArgumentError, match="statistic must be one of"):
        stats.goodness_of_fit(stats.norm, X, key=KEY, statistic="chi2")
