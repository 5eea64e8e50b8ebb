"""The bootstrap, permutation tests and simulations beside SciPy's."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.stats

import fxflow
import fxflow.numpy as fnp
from fxflow import random
from fxflow.errors import ArgumentError, AxisError, ShapeError
from fxflow.scipy import stats
from fxflow.scipy.stats.resampling import _all_orders, orders

RNG = np.random.default_rng(36)
X = RNG.gamma(2.0, size=40).astype(np.float32)
Y = (RNG.normal(size=40) + 0.3 * X).astype(np.float32)
KEY = random.key(1)


def apart(x: Any, y: Any) -> Any:
    return x.mean() - y.mean()


@pytest.mark.parametrize("method", ["BCa", "basic", "percentile"])
@pytest.mark.parametrize("side", ["two-sided", "less"])
def test_intervals_are_scipys_but_for_chance(method: str, side: str) -> None:
    settings: Any = {"method": method, "alternative": side, "confidence_level": 0.8}
    got = stats.bootstrap((X,), fnp.mean, key=KEY, n_resamples=4000, **settings)
    want = scipy.stats.bootstrap((X,), np.mean, rng=0, **settings)
    ends = want.confidence_interval
    near = 0.15 * want.standard_error
    np.testing.assert_allclose(got.confidence_interval, ends, atol=near)
    np.testing.assert_allclose(got.standard_error, want.standard_error, 0.06)
    assert got.bootstrap_distribution.shape == (4000,)


def test_a_statistic_of_pairs_and_more_resamples() -> None:
    def correlation(x: Any, y: Any) -> Any:
        return stats.pearsonr(x, y).statistic

    settings: Any = {"key": KEY, "paired": True, "method": "percentile"}
    first = stats.bootstrap((X, Y), correlation, n_resamples=100, **settings)
    more = stats.bootstrap(
        (X, Y), correlation, n_resamples=50, batch=7, bootstrap_result=first, **settings
    )
    assert more.bootstrap_distribution.shape == (150,)
    np.testing.assert_array_equal(
        more.bootstrap_distribution[:100], first.bootstrap_distribution
    )


def test_batches_do_not_change_the_numbers() -> None:
    rows = np.stack([X, Y])
    settings: Any = {"key": KEY, "n_resamples": 60, "axis": 1, "method": "basic"}
    whole = stats.bootstrap((rows,), fnp.mean, vectorized=True, **settings)
    parts = stats.bootstrap((rows,), fnp.mean, vectorized=False, batch=8, **settings)
    assert whole.confidence_interval.low.shape == (2,)
    for a, b in zip(whole.confidence_interval, parts.confidence_interval, strict=True):
        np.testing.assert_allclose(a, b, 1e-4)


@pytest.mark.parametrize("side", ["two-sided", "less", "greater"])
def test_all_rearrangements_give_scipys_p_value(side: str) -> None:
    x, y = X[:4], Y[:5]
    got = stats.permutation_test((x, y), apart, alternative=side)
    want = scipy.stats.permutation_test((x, y), apart, alternative=side)
    np.testing.assert_allclose(got.pvalue, want.pvalue, 1e-5)
    assert got.null_distribution.shape == want.null_distribution.shape
    for kind, data in (("samples", (x, y[:4])), ("pairings", (y[:4],))):
        first = (lambda *d: (d[0] * np.arange(4)).sum()) if len(data) == 1 else apart
        settings: Any = {"permutation_type": kind, "alternative": side}
        ours = stats.permutation_test(data, first, **settings)
        theirs = scipy.stats.permutation_test(data, first, **settings)
        np.testing.assert_allclose(ours.pvalue, theirs.pvalue, 1e-5)
    one = stats.permutation_test((x,), fnp.sum, permutation_type="samples")
    ref = scipy.stats.permutation_test((x,), np.sum, permutation_type="samples")
    np.testing.assert_allclose(one.pvalue, ref.pvalue, 1e-5)


def test_drawn_rearrangements() -> None:
    got = stats.permutation_test((X, Y), apart, key=KEY, n_resamples=2000)
    want = scipy.stats.permutation_test((X, Y), apart, rng=0)
    np.testing.assert_allclose(got.pvalue, want.pvalue, atol=0.02)
    pairs = stats.permutation_test(
        (X, Y), apart, key=KEY, n_resamples=500, permutation_type="samples"
    )
    exact = stats.ttest_rel(X, Y).pvalue
    assert abs(float(pairs.pvalue) - float(exact)) < 0.05


def test_simulations() -> None:
    got = stats.monte_carlo_test(
        X, random.normal, fnp.mean, key=KEY, n_resamples=999, alternative="greater"
    )
    np.testing.assert_allclose(got.pvalue, 0.001, 1e-5)
    assert got.null_distribution.shape == (999,)

    def shifted(key: Any, shape: Any) -> Any:
        return random.normal(key, shape) + 0.5

    def test(x: Any) -> Any:
        return stats.ttest_1samp(x, 0.0)

    level = np.array([0.01, 0.1])
    found = stats.power(test, shifted, 25, key=KEY, significance=level, n_resamples=900)
    # The power of the t-test, by its noncentral distribution.
    far = scipy.stats.t.isf(level / 2, 24)
    want = scipy.stats.nct.sf(far, 24, 2.5) + scipy.stats.nct.cdf(-far, 24, 2.5)
    np.testing.assert_allclose(found.power, want, atol=0.06)


def test_bad_arguments() -> None:
    with pytest.raises(ArgumentError, match="tuple of samples"):
        stats.bootstrap(X, fnp.mean, key=KEY)
    with pytest.raises(ArgumentError, match="method"):
        stats.bootstrap((X,), fnp.mean, key=KEY, method="normal")
    with pytest.raises(ArgumentError, match="key must be given"):
        stats.permutation_test((X, Y), apart)
    for axis in (1, -2):
        with pytest.raises(AxisError, match="bootstrap: axis"):
            stats.bootstrap((X,), fnp.mean, key=KEY, axis=axis)
    with pytest.raises(ArgumentError, match="n_resamples"):
        stats.permutation_test((X, Y), apart, key=KEY, n_resamples=0)
    with pytest.raises(ShapeError, match="pairs"):
        stats.bootstrap((X, Y[:-1]), apart, key=KEY, paired=True)
    with pytest.raises(ArgumentError, match="kwargs must be a dict"):
        stats.power(fnp.mean, random.normal, 5, key=random.key(0), kwargs=1.5)
    with pytest.raises(ArgumentError, match="rvs"):
        stats.monte_carlo_test(X, "normal", fnp.mean, key=KEY)


@pytest.mark.slow
@pytest.mark.parametrize("size", [5, 6])
def test_medians_have_the_distribution_of_resamples(size: int) -> None:
    x = np.array([0.3, 1.0, 2.5, 2.7, 4.0, 9.0])[:size]
    rows = np.array(list(itertools.product(range(size), repeat=size)))
    values, counts = np.unique(np.median(x[rows], axis=-1), return_counts=True)
    found = stats.bootstrap((x,), fnp.median, key=random.key(4), n_resamples=4000)
    drawn = np.asarray(found.bootstrap_distribution)
    places = abs(drawn[:, None] - values).argmin(-1)
    np.testing.assert_allclose(drawn, values[places], 1e-6)
    want = 4000 * counts / counts.sum()
    got = np.bincount(places, minlength=len(values))
    kept = want > 5
    distance = ((got - want)[kept] ** 2 / want[kept]).sum()
    assert scipy.stats.chi2(kept.sum()).sf(distance) > 1e-3
    # Leaving elements out gives the same interval as a statistic that is not known.
    other = stats.bootstrap(
        (x,), lambda v: fnp.median(v), key=random.key(4), n_resamples=4000
    )
    near = np.asarray(other.standard_error)
    np.testing.assert_allclose(found.standard_error, near, 0.1)
    for one, two in zip(
        found.confidence_interval, other.confidence_interval, strict=True
    ):
        assert abs(float(one - two)) <= 1.5


@pytest.mark.slow
@pytest.mark.parametrize("rows", [2, 20])
def test_rows_are_drawn_together(rows: int) -> None:
    x = np.random.default_rng(rows).exponential(size=7).astype("f4")
    signs = np.array([1, -1] * (rows // 2), "f4")
    settings: Any = {"key": KEY, "n_resamples": 400, "method": "percentile"}
    found = stats.bootstrap((signs[:, None] * x,), fnp.mean, axis=1, **settings)
    spread = np.asarray(found.bootstrap_distribution)
    np.testing.assert_allclose(
        spread * signs[:, None], spread[:1].repeat(rows, 0), 1e-4
    )
    one = stats.bootstrap((x,), fnp.mean, **settings).bootstrap_distribution
    np.testing.assert_allclose(spread[0], one, 1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2, 3])
def test_exchanges_at_one_place(count: int) -> None:
    # A statistic that says what came from where.
    rows = [10.0**i * np.arange(1, 4) for i in range(count)]
    weights = [1.0, 3.0, 10.0]
    of = lambda *x: sum(w * fnp.sum(v * v) for w, v in zip(weights, x, strict=False))
    if count == 1:
        of = lambda x: fnp.sum(x)
    settings: Any = {"permutation_type": "samples"}
    whole = stats.permutation_test(rows, of, **settings).null_distribution
    drawn = stats.permutation_test(rows, of, key=KEY, n_resamples=7, **settings)
    many = [
        stats.permutation_test(rows, of, key=k, n_resamples=7, **settings)
        for k in random.split(KEY, 60)
    ]
    found = np.concatenate([np.asarray(m.null_distribution) for m in (drawn, *many)])
    values = np.unique(np.asarray(whole))
    near = abs(found[:, None] - values).min(1)
    np.testing.assert_allclose(near, 0, atol=1e-5 * abs(values).max())
    spread = np.std(np.asarray(whole)) / len(found) ** 0.5
    assert abs(found.mean() - np.asarray(whole).mean()) < 4 * spread


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 5, 9, 3000])
def test_orders_are_permutations_at_random(size: int) -> None:
    keys = random.split(KEY, 2000 if size < 10 else 3)
    drawn = np.asarray(orders(keys, size))
    np.testing.assert_array_equal(
        np.sort(drawn, axis=1), np.broadcast_to(np.arange(size), drawn.shape)
    )
    if size == 5:
        _, seen = np.unique(drawn, axis=0, return_counts=True)
        assert len(seen) == 120
        assert scipy.stats.chisquare(seen).pvalue > 1e-3
    assert orders(KEY[None], 1).tolist() == [[0]]


@pytest.mark.slow
def test_ends_of_intervals_have_derivatives() -> None:
    settings: Any = {"key": KEY, "n_resamples": 30, "method": "percentile"}
    low = lambda x: stats.bootstrap((x,), fnp.mean, **settings).confidence_interval.low
    slope = np.asarray(fxflow.grad(low)(X))
    # A mean of elements, each as often as it was drawn.
    np.testing.assert_allclose(slope.sum(), 1, 1e-4)
    np.testing.assert_allclose(slope @ X, low(X), 1e-4)


@pytest.mark.slow
def test_resamples_take_each_place_as_often() -> None:
    x = np.arange(7.0)
    found = stats.bootstrap(
        (x,), lambda v: v[3], key=random.key(1), n_resamples=7000, method="basic"
    )
    counts = np.bincount(np.asarray(found.bootstrap_distribution, int), minlength=7)
    assert scipy.stats.chisquare(counts).pvalue > 1e-3


def test_many_elements_have_more_orders_than_are_counted() -> None:
    assert _all_orders("independent", [10**8, 10**8], 9999) is None
    assert _all_orders("independent", [1, 10**8], 9999) is None
    # As many as are asked for, and one more.
    assert len(_all_orders("independent", [4, 4], 70)) == 70
    assert _all_orders("independent", [4, 4], 69) is None
    assert len(_all_orders("independent", [0, 2, 1], 3)) == 3
