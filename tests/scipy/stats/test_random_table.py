"""Random tables beside SciPy's."""

import numpy as np
import pytest
import scipy.stats

import fxflow
from fxflow.errors import ShapeError
from fxflow.scipy.stats import random_table as ours

theirs = scipy.stats.random_table
ROW, COL = np.array([3, 5, 2]), np.array([4, 6])
TABLES = np.array([[[1, 2], [2, 3], [1, 1]], [[3, 0], [1, 4], [0, 2]]])


def test_numbers() -> None:
    with fxflow.config.override(x64=True):
        want = [theirs.logpmf(t, ROW, COL) for t in TABLES]
        np.testing.assert_allclose(ours.logpmf(TABLES, ROW, COL), want, 1e-12)
        np.testing.assert_allclose(ours.mean(ROW, COL), theirs.mean(ROW, COL), 1e-12)
        law = ours(ROW, COL)
        np.testing.assert_allclose(law.pmf(TABLES), np.exp(want), 1e-12)
    assert (np.asarray(ours.pmf(TABLES + 1, ROW, COL)) == 0).all()
    assert np.isnan(ours.pmf(TABLES, ROW + 1, COL)).all()


@pytest.mark.slow
def test_samples() -> None:
    drawn = np.asarray(ours.rvs(fxflow.random.key(0), ROW, COL, (2000,)))
    assert (drawn.sum(-1) == ROW).all() and (drawn.sum(-2) == COL).all()
    share = (drawn == TABLES[0]).all((1, 2)).mean()
    np.testing.assert_allclose(share, theirs.pmf(TABLES[0], ROW, COL), 0.25)


def test_what_is_refused() -> None:
    with pytest.raises(ShapeError, match=r"x must be \[..., 3, 2\]"):
        ours.logpmf(TABLES[:, :2], ROW, COL)
