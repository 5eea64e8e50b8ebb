"""Barnard's and Boschloo's tests beside SciPy's."""

import numpy as np
import pytest
import scipy.stats

import fxflow
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import stats
from tests.scipy.stats.beside import same

RNG = np.random.default_rng(40)


def tables() -> list[np.ndarray]:
    return [RNG.integers(0, 12, (2, 2)) + 1 for _ in range(4)]


@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
def test_boschloo_agrees_with_scipy(alternative: str) -> None:
    for table in tables():
        same("boschloo_exact", table, alternative=alternative, tolerance=1e-6)


@pytest.mark.parametrize("pooled", [True, False])
def test_barnard_is_the_greatest_probability(pooled: bool) -> None:
    for table in tables():
        options = {"pooled": pooled}
        want = scipy.stats.barnard_exact(table, **options)
        with fxflow.config.override(x64=True):
            found = stats.barnard_exact(table, **options)
        np.testing.assert_allclose(found.statistic, want.statistic, 1e-12)
        # SciPy's search stops earlier, and ties are lost in roundings there.
        n1, n2 = table.sum(0)
        x, y = np.arange(n1 + 1)[:, None], np.arange(n2 + 1)[None, :]
        p, q = x / n1, y / n2
        middle = (x + y) / (n1 + n2)
        square = middle * (1 - middle) * (1 / n1 + 1 / n2)
        if not pooled:
            square = p * (1 - p) / n1 + q * (1 - q) / n2
        with np.errstate(all="ignore"):
            wald = np.where(x * n2 == y * n1, 0, (p - q) / np.sqrt(square))
        extreme = abs(wald) >= abs(want.statistic) * (1 - 1e-9)
        chances = [
            (
                scipy.stats.binom.pmf(x, n1, r)
                * scipy.stats.binom.pmf(y, n2, r)
                * extreme
            ).sum()
            for r in np.linspace(0.001, 0.999, 999)
        ]
        np.testing.assert_allclose(found.pvalue, max(chances), 1e-4)
        assert float(found.pvalue) >= max(chances) - 1e-12


def test_an_empty_column_says_nothing() -> None:
    found = stats.barnard_exact([[0, 3], [0, 4]])
    assert np.isnan(found.statistic) and float(found.pvalue) == 1
    assert np.isnan(stats.boschloo_exact([[0, 3], [0, 4]]).pvalue)


def test_wrong_tables_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"barnard_exact: table must have 2 rows"):
        stats.barnard_exact([[1, 2, 3], [4, 5, 6]])
    with pytest.raises(ArgumentError, match=r"boschloo_exact: table must not have neg"):
        stats.boschloo_exact([[1, -2], [4, 5]])
    with pytest.raises(ArgumentError, match=r"table must have integers"):
        stats.boschloo_exact([[1, 0.5], [4, 5]])
    with pytest.raises(ArgumentError, match=r"n must be positive, got 0"):
        stats.barnard_exact([[1, 2], [4, 5]], n=0)
    with pytest.raises(ArgumentError, match=r"counts that are known.*outside of jit"):
        fxflow.jit(stats.barnard_exact)(np.ones((2, 2)))
