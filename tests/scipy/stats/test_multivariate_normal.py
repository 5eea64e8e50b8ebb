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
