"""The normal distribution of vectors beside SciPy's."""

import numpy as np
import pytest
import scipy.stats

import fxflow
from fxflow.errors import ShapeError
from fxflow.scipy.stats import multivariate_normal

RNG = np.random.default_rng(0)
ROOT = RNG.normal(size=(3, 3))
COV = ROOT @ ROOT.T + np.eye(3)
MEAN = RNG.normal(size=3)
X = RNG.normal(size=(5, 3))
ORACLE = scipy.stats.multivariate_normal


def test_densities_agree_with_scipy() -> None:
    with fxflow.config.override(x64=True):
        for x in (X, X[0]):
            for cov in (COV, np.diag(COV).copy(), np.float64(2.5)):
                for name in ("logpdf", "pdf"):
                    want = getattr(ORACLE, name)(x, MEAN, cov)
                    got = getattr(multivariate_normal, name)(x, MEAN, cov)
                    np.testing.assert_allclose(got, want, 1e-9)
        got = multivariate_normal.logpdf(X, 0.5, 2.0)
        np.testing.assert_allclose(got, scipy.stats.norm.logpdf(X, 0.5, 2**0.5), 1e-9)
        many = multivariate_normal.logpdf(X, X[::-1].copy(), np.stack([COV] * 5))
        want = [ORACLE.logpdf(a, b, COV) for a, b in zip(X, X[::-1], strict=True)]
        np.testing.assert_allclose(many, want, 1e-9)


def test_derivatives_agree_with_formulas() -> None:
    with fxflow.config.override(x64=True):
        slopes = fxflow.jit(fxflow.grad(multivariate_normal.logpdf, (0, 1, 2)))
        inverse = np.linalg.inv(COV)
        pull = inverse @ (X[0] - MEAN)
        x, mean, cov = slopes(X[0], MEAN, COV)
        np.testing.assert_allclose(x, -pull, 1e-9)
        np.testing.assert_allclose(mean, pull, 1e-9)
        both = np.asarray(cov) + np.asarray(cov).T
        np.testing.assert_allclose(both, np.outer(pull, pull) - inverse, 1e-8)


def test_singular() -> None:
    flat = ROOT[:, :2] @ ROOT[:, :2].T
    inside = X[:, :2] @ ROOT[:, :2].T
    with fxflow.config.override(x64=True):
        want = ORACLE.logpdf(inside, np.zeros(3), flat, allow_singular=True)
        got = multivariate_normal.logpdf(inside, np.zeros(3), flat, True)
        np.testing.assert_allclose(got, want, 1e-8)
        outside = multivariate_normal.logpdf(X, np.zeros(3), flat, True)
        assert (np.asarray(outside) == -np.inf).all()
    for args in [(X, MEAN[:2], COV), (X, MEAN, COV[:2]), (X[:, :2], MEAN, COV)]:
        with pytest.raises(ShapeError):
            multivariate_normal.logpdf(*args)


def test_moments_samples_and_fits() -> None:
    with fxflow.config.override(x64=True):
        want = ORACLE.entropy(MEAN, COV)
        np.testing.assert_allclose(multivariate_normal.entropy(MEAN, COV), want, 1e-12)
        mean, cov = multivariate_normal.marginal((2, 0), MEAN, COV)
        np.testing.assert_array_equal(mean, MEAN[[2, 0]])
        np.testing.assert_array_equal(cov, COV[np.ix_([2, 0], [2, 0])])
        for options in ({}, {"fix_mean": MEAN}, {"fix_cov": COV}):
            found = multivariate_normal.fit(X, **options)
            for a, b in zip(found, ORACLE.fit(X, **options), strict=True):
                np.testing.assert_allclose(a, b, 1e-12)
    drawn = multivariate_normal.rvs(fxflow.random.key(0), MEAN, COV, shape=(4000,))
    np.testing.assert_allclose(np.asarray(drawn).mean(0), MEAN, atol=0.2)
    with pytest.raises(ShapeError, match=r"multivariate_normal\.fit: x must be"):
        multivariate_normal.fit(X[0])


def test_probabilities_of_boxes() -> None:
    with fxflow.config.override(x64=True):
        exact = {"maxpts": 1_000_000, "abseps": 1e-7, "releps": 1e-7}
        want = ORACLE.cdf(X, MEAN, COV, **exact)
        run = fxflow.jit(multivariate_normal.cdf)
        np.testing.assert_allclose(run(X, MEAN, COV), want, atol=3e-5)
        low = X - np.array([0.5, np.inf, 2.0])
        want = ORACLE.cdf(X, MEAN, COV, lower_limit=low, **exact)
        np.testing.assert_allclose(run(X, MEAN, COV, low), want, atol=3e-5)
        # Independent elements, and a single one.
        wide = np.diag([1.0, 4.0, 9.0])
        want = np.prod(scipy.stats.norm.cdf(X, MEAN, [1, 2, 3]), axis=-1)
        found = multivariate_normal.logcdf(X, MEAN, wide)
        np.testing.assert_allclose(found, np.log(want), 1e-9)
        # The derivative by the point is a marginal density times a probability.
        slope = fxflow.grad(lambda x: multivariate_normal.cdf(x, MEAN, wide))(X[0])
        inner = fxflow.grad(lambda c: multivariate_normal.cdf(X[0], MEAN, c))(wide)
        assert np.isfinite(inner).all()
        parts = scipy.stats.norm.cdf(X[0], MEAN, [1, 2, 3])
        density = scipy.stats.norm.pdf(X[0], MEAN, [1, 2, 3])
        np.testing.assert_allclose(slope, want[0] * density / parts, 1e-9)
