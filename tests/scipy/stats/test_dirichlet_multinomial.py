"""Multinomial counts of random probabilities beside SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

import fxflow
from fxflow.errors import DtypeError, ShapeError
from fxflow.scipy.stats import dirichlet_multinomial

ALPHA = np.array([0.7, 2.0, 3.5])
X = np.array([[1, 2, 3], [0, 6, 0], [2, 2, 1], [-1, 4, 3]])


def test_functions_agree_with_scipy() -> None:
    oracle = scipy.stats.dirichlet_multinomial
    with fxflow.config.override(x64=True):
        for name in ("logpmf", "pmf"):
            want = [getattr(oracle, name)(x, ALPHA, 6) for x in X[:3]]
            found = getattr(dirichlet_multinomial, name)(X, ALPHA, 6)
            np.testing.assert_allclose(found[:3], want, 1e-9)
            assert found[3] == (0 if name == "pmf" else -np.inf)
        for name in ("mean", "var", "cov"):
            want = getattr(oracle, name)(ALPHA, 6)
            found = getattr(dirichlet_multinomial, name)(ALPHA, 6)
            np.testing.assert_allclose(found, want, 1e-9)
        assert np.isnan(dirichlet_multinomial.logpmf(X[0], -ALPHA, 6))


def test_what_is_refused() -> None:
    with pytest.raises(DtypeError, match="x must be integers, got f32"):
        dirichlet_multinomial.logpmf(np.ones(3, np.float32), ALPHA, 3)
    with pytest.raises(ShapeError, match="one number for each result"):
        dirichlet_multinomial.logpmf(X[0, :2], ALPHA, 3)
