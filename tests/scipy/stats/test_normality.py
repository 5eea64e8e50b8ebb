"""Tests of normality beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.stats

import fxflow
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import stats
from tests.scipy.stats.beside import same
from tests.scipy.stats.samples import HOLED, POLICIES, SIDES, X


def test_scores() -> None:
    for side in SIDES:
        same("skewtest", X, axis=1, alternative=side)
        same("kurtosistest", X, axis=1, alternative=side)
    for policy in POLICIES:
        same("normaltest", HOLED, axis=1, nan_policy=policy)
        same("jarque_bera", HOLED, axis=1, nan_policy=policy)
    assert np.isnan(stats.skewtest(X[0, :7]).pvalue)
    # A symmetric sample has no skewness, and none is what the score says.
    assert float(stats.skewtest(np.arange(-5.0, 6.0)).statistic) == 0


@pytest.mark.parametrize("n", [3, 4, 5, 6, 11, 12, 300])
def test_shapiro(n: int) -> None:
    same("shapiro", np.random.default_rng(n).gamma(3.0, size=n), tolerance=1e-6)


def test_shapiro_of_rows() -> None:
    same("shapiro", X, axis=1, tolerance=1e-6)
    assert float(stats.shapiro(np.ones(5)).pvalue) == 1
    with pytest.raises(ShapeError, match="at least 3"):
        stats.shapiro(np.ones(2))
    with pytest.raises(ArgumentError, match="nan_policy"):
        stats.shapiro(X, nan_policy="omit")
    many = fxflow.jit(fxflow.vmap(lambda x: stats.shapiro(x).statistic))(X)
    want: Any = [scipy.stats.shapiro(x).statistic for x in X]
    np.testing.assert_allclose(many, want, 1e-5)
