"""Dirichlet's distribution beside SciPy's."""

import numpy as np
import pytest
import scipy.stats

import fxflow
from fxflow.errors import ShapeError
from fxflow.scipy.stats import dirichlet

X = np.array([[0.2, 0.5], [0.3, 0.1], [0.5, 0.4]])
ALPHA = np.array([1.0, 2.0, 0.5])


def test_dirichlet() -> None:
    with fxflow.config.override(x64=True):
        for x in (X, X[:2], X[:, 0], X[:2, 0]):
            for name in ("logpdf", "pdf"):
                want = getattr(scipy.stats.dirichlet, name)(x, ALPHA)
                got = getattr(dirichlet, name)(x, ALPHA)
                np.testing.assert_allclose(got, want, 1e-10)
        slope = fxflow.grad(lambda a: dirichlet.logpdf(X[:, 0], a))(ALPHA)
        psi = scipy.special.digamma
        want = np.log(X[:, 0]) - psi(ALPHA) + psi(ALPHA.sum())
        np.testing.assert_allclose(slope, want, 1e-9)


def test_points_outside_the_simplex_and_on_its_border() -> None:
    assert dirichlet.logpdf(np.array([0.2, 0.3, 0.6]), ALPHA) == -np.inf
    assert dirichlet.pdf(np.array([-0.2, 0.6, 0.6]), ALPHA) == 0
    assert np.isfinite(dirichlet.logpdf(np.array([0.0, 0.4, 0.6]), ALPHA))
    assert np.isnan(dirichlet.logpdf(np.array([np.nan, 0.4, 0.6]), ALPHA))
    for x, alpha in [(X, ALPHA[:, None]), (X[:1], ALPHA), (X[:, 0], np.float32(1))]:
        with pytest.raises(ShapeError):
            dirichlet.logpdf(x, alpha)


@pytest.mark.slow
def test_moments_and_samples() -> None:
    alpha = np.array([0.5, 2.0, 3.5])
    with fxflow.config.override(x64=True):
        for name in ("mean", "var", "cov", "entropy"):
            want = getattr(scipy.stats.dirichlet, name)(alpha)
            np.testing.assert_allclose(getattr(dirichlet, name)(alpha), want, 1e-9)
            bad = getattr(dirichlet, name)(-alpha)
            assert np.isnan(bad).all(), name
    drawn = np.asarray(dirichlet.rvs(fxflow.random.key(0), alpha, shape=(2000,)))
    np.testing.assert_allclose(drawn.mean(0), alpha / 6, atol=0.03)
    with pytest.raises(ShapeError, match=r"dirichlet\.mean: alpha must be a vector"):
        dirichlet.mean(alpha[None])
