"""Student's t distribution of vectors beside SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

import fxflow
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy.stats import multivariate_t

RNG = np.random.default_rng(0)
ROOT = RNG.normal(size=(3, 3))
SHAPE = ROOT @ ROOT.T + np.eye(3)
LOC = RNG.normal(size=3)
X = RNG.normal(size=(4, 3))
ORACLE = scipy.stats.multivariate_t


def test_densities_agree_with_scipy() -> None:
    with fxflow.config.override(x64=True):
        for name in ("logpdf", "pdf"):  # SciPy's fails at df = inf
            want = getattr(scipy.stats.multivariate_normal, name)(X, LOC, SHAPE)
            found = getattr(multivariate_t, name)(X, LOC, SHAPE, np.inf)
            np.testing.assert_allclose(found, want, 1e-9)
        for df in (0.7, 3.5):
            for name in ("logpdf", "pdf"):
                want = getattr(ORACLE, name)(X, LOC, SHAPE, df)
                found = getattr(multivariate_t, name)(X, LOC, SHAPE, df)
                np.testing.assert_allclose(found, want, 1e-9)
            want = ORACLE.entropy(LOC, SHAPE, df)
            found = multivariate_t.entropy(LOC, SHAPE, df)
            np.testing.assert_allclose(found, want, 1e-9)
        want = scipy.stats.t.logpdf(0.3, 2.5, 1.0, 2**0.5)
        found = multivariate_t.logpdf(np.array([0.3]), 1.0, 2.0, 2.5)
        np.testing.assert_allclose(found, want, 1e-9)
        assert np.isnan(multivariate_t.logpdf(X, LOC, SHAPE, -1.0)).all()
        loc, shape, df = multivariate_t.marginal((2, 0), LOC, SHAPE, 3.5)
        np.testing.assert_array_equal(loc, LOC[[2, 0]])
        np.testing.assert_array_equal(shape, SHAPE[np.ix_([2, 0], [2, 0])])


@pytest.mark.slow
def test_probabilities_of_boxes_agree_with_scipy() -> None:
    with fxflow.config.override(x64=True):
        options = {"maxpts": 300_000, "random_state": 1}
        want = ORACLE.cdf(X, LOC, SHAPE, 3.5, **options)
        found = multivariate_t.cdf(X, LOC, SHAPE, 3.5)
        np.testing.assert_allclose(found, want, atol=5e-5)
        want = scipy.stats.multivariate_normal.cdf(X, LOC, SHAPE)
        found = multivariate_t.cdf(X, LOC, SHAPE, np.inf)
        np.testing.assert_allclose(found, want, atol=5e-5)
        low = X - 1.5
        want = ORACLE.cdf(X, LOC, SHAPE, 3.5, lower_limit=low, **options)
        found = multivariate_t.cdf(X, LOC, SHAPE, 3.5, low)
        np.testing.assert_allclose(found, want, atol=5e-5)


@pytest.mark.slow
def test_samples_have_the_moments() -> None:
    key = fxflow.random.key(0)
    drawn = np.asarray(multivariate_t.rvs(key, LOC, SHAPE, 12.0, size=(8000,)))
    np.testing.assert_allclose(drawn.mean(0), LOC, atol=0.1)
    np.testing.assert_allclose(np.cov(drawn.T), SHAPE * 1.2, atol=0.35)
    normal = np.asarray(multivariate_t.rvs(key, LOC, SHAPE, np.inf, size=(2000,)))
    assert np.isfinite(normal).all()


def test_what_is_refused() -> None:
    with pytest.raises(ShapeError, match=r"multivariate_t\.logpdf: points and loc"):
        multivariate_t.logpdf(X[:, :2], LOC, SHAPE, 3.0)
    with pytest.raises(ArgumentError, match="different integers from -3 to 2, got"):
        multivariate_t.marginal((0, -3), LOC, SHAPE)
    with pytest.raises(ArgumentError, match="maxpts must be positive, got 0"):
        multivariate_t.cdf(X, LOC, SHAPE, 3.0, maxpts=0)
