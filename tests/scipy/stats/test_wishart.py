"""Wishart's distribution beside SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

import fxflow
from fxflow.errors import ShapeError
from fxflow.scipy.stats import wishart

RNG = np.random.default_rng(0)
ROOTS = RNG.normal(size=(4, 3, 3))
MATRICES = ROOTS @ ROOTS.transpose(0, 2, 1) + np.eye(3)
SCALE, X = MATRICES[0], MATRICES[1:]


def test_functions_agree_with_scipy() -> None:
    with fxflow.config.override(x64=True):
        for name in ("logpdf", "pdf"):
            want = getattr(scipy.stats.wishart, name)(X.transpose(1, 2, 0), 5.5, SCALE)
            np.testing.assert_allclose(
                getattr(wishart, name)(X, 5.5, SCALE), want, 1e-9
            )
        for name in ("mean", "mode", "var", "entropy"):
            want = getattr(scipy.stats.wishart, name)(5.5, SCALE)
            np.testing.assert_allclose(getattr(wishart, name)(5.5, SCALE), want, 1e-9)
        for df in (1.9, -1.0):
            assert np.isnan(wishart.logpdf(X[0], df, SCALE))
        slope = fxflow.grad(wishart.logpdf, 1)(X[0], 5.5, SCALE)
        near = [float(wishart.logpdf(X[0], 5.5 + h, SCALE)) for h in (1e-5, -1e-5)]
        np.testing.assert_allclose(slope, (near[0] - near[1]) / 2e-5, 1e-6)


@pytest.mark.slow
def test_samples_have_the_moments() -> None:
    drawn = np.asarray(wishart.rvs(fxflow.random.key(0), 6.0, SCALE, shape=(4000,)))
    spread = np.sqrt(scipy.stats.wishart.var(6.0, SCALE))
    mean = scipy.stats.wishart.mean(6.0, SCALE)
    assert (np.abs(drawn.mean(0) - mean) < 5 * spread / 4000**0.5).all()
    np.testing.assert_allclose(drawn.std(0), spread, 0.1)
    assert wishart.rvs(fxflow.random.key(0), np.full(2, 4.0), SCALE).shape == (2, 3, 3)


def test_what_is_refused() -> None:
    with pytest.raises(ShapeError, match=r"wishart\.logpdf: scale must be \[\.\.\., p"):
        wishart.logpdf(X[0], 4.0, SCALE[:2])
    with pytest.raises(ShapeError, match=r"x must be \[\.\.\., 3, 3\], got f32\[2,2\]"):
        wishart.logpdf(np.eye(2, dtype=np.float32), 4.0, SCALE)
    with pytest.raises(ShapeError, match="do not broadcast to"):
        wishart.rvs(fxflow.random.key(0), np.full(2, 4.0), SCALE, shape=(3,))
