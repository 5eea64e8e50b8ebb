"""Covariances by their parts, in the functions of normal vectors, beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.stats

import fxflow
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import stats

_RNG = np.random.default_rng(3)
_ROOT = _RNG.normal(size=(3, 3))
S = _ROOT @ _ROOT.T + np.eye(3)
W, V = np.linalg.eigh(S)
POINTS, MEAN = _RNG.normal(size=(5, 3)), np.array([0.1, 0.2, 0])
PARTS: dict[str, Any] = {
    "from_diagonal": np.array([1.0, 2.0, 0.0]),
    "from_cholesky": np.linalg.cholesky(S),
    "from_precision": np.linalg.inv(S),
    "from_eigendecomposition": (W, V),
}


@pytest.mark.parametrize("name", PARTS)
def test_parts_give_scipy_s_numbers(name: str) -> None:
    want = getattr(scipy.stats.Covariance, name)(PARTS[name])
    points = POINTS * [1, 1, 0] if name == "from_diagonal" else POINTS
    with fxflow.config.override(x64=True):
        got = getattr(stats.Covariance, name)(PARTS[name])
        assert got.shape == want.shape
        np.testing.assert_allclose(got.covariance, want.covariance, 1e-10, 1e-12)
        np.testing.assert_allclose(got.log_pdet, want.log_pdet, 1e-12)
        assert int(got.rank) == want.rank
        white = np.asarray(got.whiten(points))
        np.testing.assert_allclose(got.colorize(white), points, 1e-9, 1e-12)
        of, law = stats.multivariate_normal, scipy.stats.multivariate_normal
        density = fxflow.jit(of.logpdf)(points + MEAN, MEAN, got)
        want_density = law.logpdf(points + MEAN, MEAN, want)
        np.testing.assert_allclose(density, want_density, 1e-10)
        np.testing.assert_allclose(of.entropy(MEAN, got), law.entropy(MEAN, want))
        drawn = of.rvs(fxflow.random.key(0), MEAN, got, (4000,))
        np.testing.assert_allclose(
            np.cov(np.asarray(drawn).T), got.covariance, 0.1, 0.3
        )


def test_singular_ones_have_densities_in_their_space() -> None:
    values = np.array([0.0, 1.0, 2.0])
    inner = POINTS @ V[:, 1:] @ V[:, 1:].T
    want = scipy.stats.Covariance.from_eigendecomposition((values, V))
    with fxflow.config.override(x64=True):
        got = stats.Covariance.from_eigendecomposition((values, V))
        of, zero = stats.multivariate_normal, np.zeros(3)
        there = scipy.stats.multivariate_normal.logpdf(inner, zero, want)
        np.testing.assert_allclose(of.logpdf(inner, zero, got), there, 1e-10)
        assert (np.asarray(of.logpdf(POINTS, zero, got)) == -np.inf).all()


def test_derivatives_are_covariances() -> None:
    cov = stats.Covariance.from_cholesky(np.linalg.cholesky(S).astype(np.float32))
    of = lambda cov: stats.multivariate_normal.logpdf(POINTS[0], MEAN, cov)
    slope = fxflow.grad(of)(cov)
    assert isinstance(slope, stats.Covariance) and slope.shape == (3, 3)
    known = stats.Covariance.from_precision(np.linalg.inv(S), S)
    np.testing.assert_allclose(known.covariance, S, 1e-6)


def test_what_is_refused() -> None:
    of = stats.Covariance
    with pytest.raises(ArgumentError, match="is made by from_diagonal"):
        of()
    with pytest.raises(ShapeError, match=r"diagonal must be \[..., n\]"):
        of.from_diagonal(2.0)
    with pytest.raises(ShapeError, match=r"takes a matrix \[..., n, n\]"):
        of.from_cholesky(np.zeros((2, 3)))
    with pytest.raises(ShapeError, match="covariance must be like precision"):
        of.from_precision(np.eye(2), np.eye(3))
    with pytest.raises(ShapeError, match="a value for each vector"):
        of.from_eigendecomposition((np.ones(2), np.eye(3)))
    with pytest.raises(ShapeError, match=r"x must be \[..., 2\]"):
        of.from_diagonal(np.ones(2)).whiten(np.ones(3))
