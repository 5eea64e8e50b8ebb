"""Tests of trends and of the tails of two samples, beside SciPy's."""

import numpy as np
import pytest
import scipy.stats

import fxflow
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import stats
from tests.scipy.stats.beside import same
from tests.scipy.stats.samples import HOLED, SIDES, X, Y

TABLE = np.random.default_rng(1).normal(size=(5, 4)) + 0.4 * np.arange(4)


@pytest.mark.parametrize("method", ["auto", "exact", "asymptotic"])
def test_page(method: str) -> None:
    for order in (None, [2, 1, 4, 3]):
        want = scipy.stats.page_trend_test(TABLE, method=method, predicted_ranks=order)
        with fxflow.config.override(x64=True):
            got = stats.page_trend_test(TABLE, method=method, predicted_ranks=order)
        np.testing.assert_allclose(got[:2], [want.statistic, want.pvalue], 1e-12)
        assert got.method == want.method
    ranks = scipy.stats.rankdata(TABLE, axis=1)
    given = stats.page_trend_test(ranks, ranked=True)
    assert given.statistic == stats.page_trend_test(TABLE).statistic


@pytest.mark.parametrize("side", SIDES)
def test_bws(side: str) -> None:
    x, y = X[0, :4], Y[1, :5]
    want = scipy.stats.bws_test(x, y, alternative=side)
    with fxflow.config.override(x64=True):
        got = stats.bws_test(x, y, alternative=side)
    np.testing.assert_allclose(got.statistic, want.statistic, 1e-12)
    np.testing.assert_allclose(got.pvalue, want.pvalue, 1e-12)
    spread = np.sort(got.null_distribution)
    np.testing.assert_allclose(spread, np.sort(want.null_distribution), 1e-12, 1e-12)


def test_bws_draws_with_a_key() -> None:
    found = stats.bws_test(X[0], Y[1], key=fxflow.random.key(0), n_resamples=200)
    want = scipy.stats.bws_test(X[0], Y[1])
    assert abs(float(found.pvalue) - want.pvalue) < 0.1


@pytest.mark.slow
def test_epps_singleton() -> None:
    same("epps_singleton_2samp", X, Y, axis=1)
    same("epps_singleton_2samp", X, HOLED, axis=1, nan_policy="omit")
    same("epps_singleton_2samp", X, HOLED, axis=1)
    same("epps_singleton_2samp", X.ravel(), Y.ravel() ** 2, (0.3, 0.5, 0.9))


def test_what_is_refused() -> None:
    with pytest.raises(ShapeError, match="at least 2 rows and 3 columns"):
        stats.page_trend_test(TABLE[:1])
    with pytest.raises(ArgumentError, match="must be the numbers from 1 to 4"):
        stats.page_trend_test(TABLE, predicted_ranks=[1, 2, 3, 3])
    with pytest.raises(ArgumentError, match="at most 14 columns, got 15"):
        stats.page_trend_test(np.zeros((3, 15)), method="exact")
    with pytest.raises(ArgumentError, match="t must be a row of positive numbers"):
        stats.epps_singleton_2samp(X[0], Y[0], (0.0, 1.0))
    with pytest.raises(ShapeError, match="at least 5 elements, got 3 and 9"):
        stats.epps_singleton_2samp(X[0, :3], Y[0])
    with pytest.raises(ArgumentError, match="there is a nan"):
        stats.bws_test(X[0], HOLED[1])
    with pytest.raises(ArgumentError, match="key must be given"):
        stats.bws_test(X[0], Y[0], n_resamples=100)
