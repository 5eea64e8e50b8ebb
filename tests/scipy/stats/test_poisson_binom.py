"""The Poisson binomial distribution beside SciPy's."""

import numpy as np
import pytest
import scipy.stats

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy.stats import poisson_binom as ours

theirs = scipy.stats.poisson_binom
P = np.random.default_rng(0).uniform(size=12)
K = np.array([-1, 0, 3, 5, 6.5, 11, 12, 13])


@pytest.mark.parametrize("name", ["pmf", "logpmf", "cdf", "logcdf", "sf", "logsf"])
def test_probabilities(name: str) -> None:
    with fxflow.config.override(x64=True), np.errstate(all="ignore"):
        got = getattr(ours, name)(K, P, 1)
        np.testing.assert_allclose(got, getattr(theirs, name)(K, P, 1), 1e-9, 1e-15)


def test_moments_and_quantiles() -> None:
    with fxflow.config.override(x64=True):
        for name in ("mean", "var", "std", "entropy"):
            want = getattr(theirs, name)(P, 2.0)
            np.testing.assert_allclose(getattr(ours, name)(P, 2.0), want, 1e-12)
        q = np.array([0, 0.1, 0.5, 0.99, 1])
        np.testing.assert_array_equal(ours.ppf(q, P), theirs.ppf(q, P))
    assert np.isnan(ours.ppf(np.array([-0.1, np.nan]), P)).all()
    assert np.isnan(ours.pmf(np.nan, P)) and ours.cdf(np.inf, P) == 1
    assert np.isnan(ours.mean(np.array([0.5, 1.5])))


def test_summaries_and_upper_quantiles() -> None:
    with fxflow.config.override(x64=True):
        for name in ("median", "support"):
            want = getattr(theirs, name)(P, 2.0)
            np.testing.assert_array_equal(getattr(ours, name)(P, 2.0), want)
        got = ours.stats(P, 2.0, "mvsk")
        np.testing.assert_allclose(got, theirs.stats(P, 2.0, "mvsk"), 1e-9)
        for order in (1, 2, 5):
            want = theirs.moment(order, P, 2.0)
            np.testing.assert_allclose(ours.moment(order, P, 2.0), want, 1e-9)
        q = np.array([0, 1e-9, 0.1, 0.5, 0.99, 1])
        np.testing.assert_array_equal(ours.isf(q, P), theirs.isf(q, P))
        np.testing.assert_array_equal(ours.interval(0.9, P), theirs.interval(0.9, P))
        chances = theirs.pmf(np.arange(13), P)
        want = chances @ np.sqrt(np.arange(13) + 1)
        got = ours.expect(fnp.sqrt, P, 1)
        np.testing.assert_allclose(got, want, 1e-12)
        some = ours(P, 1).expect(fnp.sqrt, lb=3, ub=7, conditional=True)
        part = chances[2:7] @ np.sqrt(np.arange(3, 8)) / chances[2:7].sum()
        np.testing.assert_allclose(some, part, 1e-12)
    with pytest.raises(ArgumentError, match="order must be positive"):
        ours.moment(0, P)
    with pytest.raises(ArgumentError, match="letters of"):
        ours.stats(P, moments="x")


def test_derivatives_and_batches() -> None:
    of = lambda p: ours.logcdf(5.0, p)
    with fxflow.config.override(x64=True):
        slope = fxflow.jit(fxflow.grad(of))(P)
        step = 1e-6 * (np.arange(12) == 4)
        want = float(of(P + step) - of(P - step)) / 2e-6
        np.testing.assert_allclose(slope[4], want, 1e-6)
        rows = np.stack([P, P[::-1] / 2])
        got = ours.pmf(3.0, rows)
        np.testing.assert_allclose(got, [theirs.pmf(3, p) for p in rows], 1e-12)


def test_samples() -> None:
    drawn = np.asarray(ours.rvs(fxflow.random.key(0), P, shape=(2000,)))
    want = 2000 * theirs.pmf(np.arange(13), P)
    found = np.bincount(drawn.astype(int), minlength=13)
    seen = want > 5
    distance = ((found - want)[seen] ** 2 / want[seen]).sum()
    assert scipy.stats.chi2(seen.sum()).sf(distance) > 1e-3


def test_what_is_refused() -> None:
    with pytest.raises(ShapeError, match=r"p must be \[..., n\]"):
        ours.pmf(1, 0.5)
