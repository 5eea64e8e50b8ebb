"""The normal distribution of matrices beside SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

import fxflow
from fxflow.errors import ShapeError
from fxflow.scipy.stats import matrix_normal

RNG = np.random.default_rng(0)
ROWS, COLUMNS = (
    a @ a.T + np.eye(len(a)) for a in map(np.diag, ([1.0, 2, 3], [2.0, 1]))
)
ROWS[0, 1] = ROWS[1, 0] = 0.7
MEAN, X = RNG.normal(size=(3, 2)), RNG.normal(size=(4, 3, 2))


def test_functions_agree_with_scipy() -> None:
    with fxflow.config.override(x64=True):
        for name in ("logpdf", "pdf"):
            want = getattr(scipy.stats.matrix_normal, name)(X, MEAN, ROWS, COLUMNS)
            found = getattr(matrix_normal, name)(X, MEAN, ROWS, COLUMNS)
            np.testing.assert_allclose(found, want, 1e-9)
        want = scipy.stats.matrix_normal.entropy(ROWS, COLUMNS)
        found = matrix_normal.entropy(MEAN, ROWS, COLUMNS)
        np.testing.assert_allclose(found, want, 1e-9)


@pytest.mark.slow
def test_samples_have_the_covariance() -> None:
    key = fxflow.random.key(0)
    drawn = np.asarray(matrix_normal.rvs(key, MEAN, ROWS, COLUMNS, shape=(6000,)))
    flat = drawn.reshape(6000, -1)
    np.testing.assert_allclose(np.cov(flat.T), np.kron(ROWS, COLUMNS), atol=2.5)
    np.testing.assert_allclose(flat.mean(0), MEAN.ravel(), atol=0.5)


def test_what_is_refused() -> None:
    with pytest.raises(ShapeError, match=r"matrix_normal\.logpdf: the mean \(and x\)"):
        matrix_normal.logpdf(X, MEAN, COLUMNS, ROWS)
