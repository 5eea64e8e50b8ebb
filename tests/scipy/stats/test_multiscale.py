"""Multiscale graph correlation beside SciPy's."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.spatial
import scipy.stats

import fxflow
import fxflow.numpy as fnp
from fxflow import random
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import stats

RNG = np.random.default_rng(5)
KEY = random.key(3)


def of_scipy(x: Any, y: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # few permutations
        return scipy.stats.multiscale_graphcorr(x, y, reps=0, **options)


def same(x: Any, y: Any, **options: Any) -> None:
    """Compares the statistic and all scales with SciPy's."""
    want = of_scipy(np.asarray(x, "f8"), np.asarray(y, "f8"), **options)
    with fxflow.config.override(x64=True):
        got = stats.multiscale_graphcorr(x, y, key=KEY, reps=0, **options)
    np.testing.assert_allclose(got.stat, want.stat, 1e-9, 1e-12)
    there = want.mgc_dict["mgc_map"]
    rows, columns = there.shape
    scales = np.asarray(got.mgc_dict["mgc_map"])
    np.testing.assert_allclose(scales[:rows, :columns], there, 1e-8, 1e-11)
    # Further neighbours there are none: the last scale again.
    np.testing.assert_array_equal(
        scales[rows - 1 :], scales[-1:].repeat(len(scales) - rows + 1, 0)
    )
    np.testing.assert_array_equal(got.mgc_dict["opt_scale"], want.mgc_dict["opt_scale"])
    assert float(got.pvalue) == want.pvalue == 1


X = RNG.uniform(-1, 1, size=(30, 1))
NOISE = RNG.normal(size=(30, 1))


def test_statistics_are_scipys() -> None:
    same(X, np.cos(9 * X) + 0.1 * NOISE)


@pytest.mark.slow
@pytest.mark.parametrize(
    "y",
    [X + 0.3 * NOISE, NOISE, X**2, np.round(3 * X), np.hstack([NOISE, X]), -X[:, 0]],
    ids=["line", "nothing", "square", "ties", "columns", "one axis"],
)
def test_other_statistics_are_scipys(y: Any) -> None:
    same(X, y)


@pytest.mark.slow
def test_two_samples_and_distances() -> None:
    same(X, NOISE[:26])
    same(X, 2 * NOISE, is_twosamp=True)
    pairs = (
        scipy.spatial.distance.cdist(X, X),
        scipy.spatial.distance.cdist(NOISE, NOISE, "cityblock"),
    )
    same(*pairs, compute_distance=None)
    # In a smaller sample all scales may be one region.
    same(X[:5], np.arange(5.0))
    # Equal distances only, where SciPy fails.
    found = stats.multiscale_graphcorr(X[:6], np.ones(6), reps=9, key=KEY)
    assert float(found.statistic) == 0 and float(found.pvalue) == 1


@pytest.mark.slow
def test_p_values() -> None:
    run = lambda y: stats.multiscale_graphcorr(X[:, 0], y, reps=99, key=KEY)
    close, far = run(X[:, 0] ** 2), run(NOISE[:, 0])
    assert float(close.pvalue) == np.float32(0.01)
    assert close.mgc_dict["null_dist"].shape == (99,)
    above = (np.asarray(far.mgc_dict["null_dist"]) >= float(far.statistic)).sum()
    np.testing.assert_allclose(far.pvalue, (above + 1) / 100, 1e-6)
    statistic, pvalue, parts = fxflow.jit(run)(X[:, 0] ** 2)
    np.testing.assert_allclose(statistic, close.statistic, 1e-5)
    assert float(pvalue) == float(close.pvalue) and set(parts) == set(close.mgc_dict)


@pytest.mark.slow
def test_p_values_are_uniform_under_the_hypothesis() -> None:
    def one(key: Any) -> Any:
        x, y, draws = random.split(key, 3)
        x, y = (random.normal(k, (12,)) for k in (x, y))
        return stats.multiscale_graphcorr(x, y, reps=59, key=draws).pvalue

    found = fxflow.jit(fxflow.vmap(one))(random.split(KEY, 200))
    # The statistic is often the same, that of all scales: p-values are not below.
    assert (np.asarray(found) <= 0.1).mean() < 0.17
    assert 0.4 < np.asarray(found).mean() < 0.65


@pytest.mark.slow
def test_derivatives_and_missing_numbers() -> None:
    y = X[:, 0] ** 2 + 0.05 * NOISE[:, 0]
    of = lambda y: (
        stats.multiscale_graphcorr(
            X[:, 0], y, reps=0, key=KEY, compute_distance=lambda v: abs(v - v.T)
        ).statistic
    )
    with fxflow.config.override(x64=True):
        slope = np.asarray(fxflow.grad(of)(y))
        step = 1e-7 * NOISE[::-1, 0]
        change = (float(of(y + step)) - float(of(y - step))) / 2
        np.testing.assert_allclose(slope @ step, change, 1e-4)
    y[3] = np.nan
    found = stats.multiscale_graphcorr(X, y, reps=5, key=KEY)
    assert np.isnan(found.statistic) and np.isnan(found.pvalue)


def test_bad_arguments() -> None:
    run = stats.multiscale_graphcorr
    with pytest.raises(ShapeError, match="5 or more"):
        run(X[:4], NOISE[:4], key=KEY)
    with pytest.raises(ShapeError, match="as many rows"):
        run(X, np.ones((20, 2)), key=KEY)
    with pytest.raises(ShapeError, match="one or two axes"):
        run(np.ones((5, 5, 5)), X, key=KEY)
    with pytest.raises(ShapeError, match="distances must be"):
        run(X, NOISE, None, key=KEY)
    with pytest.raises(ArgumentError, match="must not be None"):
        run(X, NOISE, None, key=KEY, is_twosamp=True)
    with pytest.raises(ArgumentError, match="compute_distance"):
        run(X, NOISE, "euclidean", key=KEY)
    with pytest.raises(ArgumentError, match="reps"):
        run(X, NOISE, reps=-1, key=KEY)
    assert fnp.ndim(run(X, NOISE, reps=0, key=KEY).pvalue) == 0
