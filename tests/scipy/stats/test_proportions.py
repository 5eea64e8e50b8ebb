"""Tests of counts beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.stats

import fxflow
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import stats
from tests.scipy.stats.beside import same
from tests.scipy.stats.samples import SIDES, X


@pytest.mark.slow
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(
    ("k", "n", "p"),
    [(3, 15, 0.1), (7, 20, 0.5), (0, 5, 0.3), (5, 5, 0.3), (30, 300, 0.12)],
)
def test_binomtest(k: int, n: int, p: float, side: str) -> None:
    want = scipy.stats.binomtest(k, n, p, side)
    with fxflow.config.override(x64=True):
        got = stats.binomtest(k, n, p, side)
        np.testing.assert_allclose(
            [got.statistic, got.pvalue], [want.statistic, want.pvalue], 1e-9
        )
        for method in ("exact", "wilson", "wilsoncc"):
            ours: Any = got.proportion_ci(0.9, method)
            theirs: Any = want.proportion_ci(0.9, method)
            np.testing.assert_allclose(ours, theirs, 1e-8)


def test_no_counts() -> None:
    for k, n, p in ((1.5, 3, 0.5), (4, 3, 0.5), (1, 3, 1.5)):
        assert np.isnan(stats.binomtest(k, n, p).pvalue)
    with pytest.raises(ShapeError, match="vmap"):
        stats.binomtest(np.array([1, 2]), 3)


@pytest.mark.slow
def test_many_counts() -> None:
    many = fxflow.vmap(lambda k: stats.binomtest(k, 9).pvalue)(np.array([1, 4, 8]))
    want = [scipy.stats.binomtest(k, 9).pvalue for k in (1, 4, 8)]
    np.testing.assert_allclose(many, want, 1e-4)


@pytest.mark.parametrize("side", SIDES)
def test_quantiles(side: str) -> None:
    want = scipy.stats.quantile_test(X[0], q=0.3, p=0.4, alternative=side)
    with fxflow.config.override(x64=True):
        got = stats.quantile_test(X[0], q=0.3, p=0.4, alternative=side)
        assert int(got.statistic) == want.statistic
        assert int(got.statistic_type) == want.statistic_type
        np.testing.assert_allclose(got.pvalue, want.pvalue, 1e-9)
        for level in (0.6, 0.9):
            ours: Any = got.confidence_interval(level)
            theirs: Any = want.confidence_interval(level)
            np.testing.assert_allclose(ours, theirs)


@pytest.mark.parametrize("side", SIDES)
def test_poisson_means(side: str) -> None:
    for given in ((0, 100, 3, 100), (20, 10, 20, 2), (0, 10, 0, 20), (7, 4, 30, 20)):
        for diff in (0, 0.1):
            options: Any = {"diff": diff, "alternative": side, "tolerance": 1e-7}
            same("poisson_means_test", *given, **options)
    with pytest.raises(ArgumentError, match="outside of jit"):
        fxflow.jit(lambda k: stats.poisson_means_test(k, 3, 4, 5))(1)
    with pytest.raises(ArgumentError, match="positive"):
        stats.poisson_means_test(1, 0, 4, 5)
