"""Tests of frequencies beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.stats

import fxflow
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import stats
from tests.scipy.stats.beside import same
from tests.scipy.stats.samples import HOLED, POLICIES, SIDES, TIED, X

RNG = np.random.default_rng(36)

COUNTS = RNG.integers(5, 30, size=(3, 7)).astype(float)
COUNTS[0, 1] = np.nan


@pytest.mark.parametrize("policy", POLICIES)
def test_power_divergence(policy: str) -> None:
    powers = ("log-likelihood", "freeman-tukey", "mod-log-likelihood", "neyman")
    for power in (None, 1.5, *powers, "cressie-read"):
        options: Any = {"axis": 1, "nan_policy": policy, "ddof": 1}
        same("power_divergence", COUNTS, lambda_=power, **options)
    same("chisquare", COUNTS, axis=1, nan_policy=policy)


def test_expected_frequencies() -> None:
    x = np.array([16.0, 18, 16, 14])
    same("chisquare", x, x[::-1].copy())
    same("chisquare", x, x + 1, sum_check=False)
    assert np.isnan(stats.chisquare(x, x + 1).pvalue)


def test_tables() -> None:
    same("chi2_contingency", np.array([[10, 10, 20], [20, 20, 20]]))
    small = np.array([[10, 15], [20, 20]])
    same("chi2_contingency", small)
    same("chi2_contingency", small, False, "log-likelihood")
    same("chi2_contingency", np.random.default_rng(36).integers(3, 9, size=(2, 3, 4)))
    same("chi2_contingency", np.array([[3.0, 4.0]]))
    with pytest.raises(ArgumentError, match="lambda_"):
        stats.chi2_contingency(small, lambda_="other")


@pytest.mark.parametrize("side", SIDES)
def test_fisher(side: str) -> None:
    for table in (
        *([[6, 2], [1, 4]], [[100, 2], [1000, 5]], [[0, 3], [4, 5]]),
        *([[0, 0], [4, 5]], [[30, 20], [20, 30]], [[5, 5], [5, 5]]),
    ):
        same("fisher_exact", np.array(table), side)
    with pytest.raises(ShapeError, match="2 × 2"):
        stats.fisher_exact(np.ones((2, 3)))


def test_medians() -> None:
    x, y, w = (t[0] for t in TIED[:3])
    for ties in ("below", "above", "ignore"):
        same("median_test", x, y, w, ties=ties)
        same("median_test", X[0], HOLED[1], ties=ties, nan_policy="omit")
    got = fxflow.jit(stats.median_test)(x, y)
    want = scipy.stats.median_test(x, y)
    np.testing.assert_allclose(got.pvalue, want.pvalue, 1e-5)
