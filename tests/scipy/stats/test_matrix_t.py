"""Student's t distribution of matrices beside SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

import fxflow
from fxflow.scipy.stats import matrix_t

RNG = np.random.default_rng(0)
ROWS, COLUMNS = np.diag([1.0, 2.0, 3.0]) + 0.3, np.diag([2.0, 1.0]) - 0.2
MEAN, X = RNG.normal(size=(3, 2)), RNG.normal(size=(4, 3, 2))


def test_densities_agree_with_scipy() -> None:
    with fxflow.config.override(x64=True):
        for name in ("logpdf", "pdf"):
            want = getattr(scipy.stats.matrix_t, name)(X, MEAN, ROWS, COLUMNS, 3.5)
            found = getattr(matrix_t, name)(X, MEAN, ROWS, COLUMNS, 3.5)
            np.testing.assert_allclose(found, want, 1e-9)
        assert np.isnan(matrix_t.logpdf(X, MEAN, ROWS, COLUMNS, 0.0)).all()


@pytest.mark.slow
def test_samples_have_the_covariance() -> None:
    key = fxflow.random.key(0)
    drawn = np.asarray(matrix_t.rvs(key, MEAN, ROWS, COLUMNS, 12.0, shape=(8000,)))
    flat = drawn.reshape(8000, -1)
    np.testing.assert_allclose(np.cov(flat.T), np.kron(ROWS, COLUMNS) / 10, atol=0.06)
    np.testing.assert_allclose(flat.mean(0), MEAN.ravel(), atol=0.05)
