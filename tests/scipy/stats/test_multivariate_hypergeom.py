"""The multivariate hypergeometric distribution beside SciPy's."""

import numpy as np
import pytest
import scipy.stats

import fxflow
from fxflow.errors import DtypeError, ShapeError
from fxflow.scipy.stats import multivariate_hypergeom as ours

theirs = scipy.stats.multivariate_hypergeom
M = np.array([10, 20, 5])
X = np.array([[8, 4, 0], [3, 4, 5], [3, 9, 0], [2, 9, 1], [-1, 9, 4]])


def test_numbers() -> None:
    with fxflow.config.override(x64=True):
        for name in ("logpmf", "pmf"):
            got = getattr(ours, name)(X, M, 12)
            np.testing.assert_allclose(got, getattr(theirs, name)(X, M, 12), 1e-10)
        for name in ("mean", "var", "cov"):
            got = getattr(ours, name)(M, 12)
            np.testing.assert_allclose(got, getattr(theirs, name)(M, 12), 1e-12)
    assert np.isnan(ours.pmf(X, M, 40)).all()


@pytest.mark.slow
def test_samples() -> None:
    drawn = np.asarray(ours.rvs(fxflow.random.key(0), M, 12, (2000,)))
    assert (drawn.sum(-1) == 12).all() and (drawn <= M).all()
    np.testing.assert_allclose(np.cov(drawn.T), theirs.cov(M, 12), 0.15, 0.15)


def test_what_is_refused() -> None:
    with pytest.raises(DtypeError, match="m must be integers"):
        ours.logpmf(X, M * 1.0, 12)
    with pytest.raises(ShapeError, match="one number for each kind"):
        ours.logpmf(X[:, :2], M, 12)
