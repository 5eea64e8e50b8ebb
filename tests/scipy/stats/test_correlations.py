"""Correlations and lines beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.stats

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import stats
from tests.scipy.stats.beside import same

RNG = np.random.default_rng(33)
X = RNG.normal(size=(3, 12))
Y = X + RNG.normal(size=(3, 12))
TIED = np.round(2 * X), np.round(2 * Y)
HOLED = Y.copy()
HOLED[1, 2] = np.nan
SIDES = ("two-sided", "less", "greater")


@pytest.mark.parametrize("side", SIDES)
def test_ranks(side: str) -> None:
    for x, y in ((X, Y), TIED):
        same("spearmanr", x[0], y[0], alternative=side)
        same("spearmanr", x, y, axis=1, alternative=side)
        for variant in ("b", "c"):
            same("kendalltau", x[0], y[0], variant=variant, alternative=side)
        same("kendalltau", x, y, axis=1, alternative=side, keepdims=True)
        same("kendalltau", x[0], y[0], method="asymptotic", alternative=side)
        got = stats.somersd(x[0], y[0], side)
        want = scipy.stats.somersd(x[0], y[0], side)
        pair = [want.statistic, want.pvalue]
        np.testing.assert_allclose(list(got)[:2], pair, 1e-4)
    same(
        *("kendalltau", X, HOLED),
        method="asymptotic",
        axis=1,
        nan_policy="omit",
        alternative=side,
    )
    # Almost in order: the exact p-value for any number of elements.
    order = np.arange(60.0)
    swapped = np.r_[1.0, 0.0, np.arange(2, 60.0)]
    for sign in (1, -1):
        same("kendalltau", sign * order, swapped, alternative=side)


def test_exact_kendall_of_many() -> None:
    x, y = RNG.normal(size=(2, 70))
    same("kendalltau", x, y, method="exact")
    same("kendalltau", x, y)


@pytest.mark.parametrize("side", SIDES)
def test_pearson_and_lines(side: str) -> None:
    with fxflow.config.override(x64=True):
        got = stats.pearsonr(X, Y, axis=1, alternative=side)
        want = scipy.stats.pearsonr(X, Y, axis=1, alternative=side)
        np.testing.assert_allclose(tuple(got), tuple(want), 1e-9)
        np.testing.assert_allclose(
            got.confidence_interval(0.9), want.confidence_interval(0.9), 1e-9
        )
    for y, policy in ((Y, "propagate"), (HOLED, "propagate"), (HOLED, "omit")):
        same("linregress", X, y, side, axis=1, nan_policy=policy)
    same("pointbiserialr", X > 0, Y, axis=1)


def test_lines_of_medians() -> None:
    for name, methods in (
        ("theilslopes", ("separate", "joint")),
        ("siegelslopes", ("separate", "hierarchical")),
    ):
        for method in methods:
            same(name, TIED[1][0], TIED[0][0], method=method)
            same(name, Y[0], method=method)
            same(name, HOLED[1], X[1], method=method, nan_policy="omit")
            same(name, HOLED[1], method=method)
            same(name, HOLED, X, axis=1, method=method)
    same("theilslopes", Y[0], X[0], 0.8)


@pytest.mark.parametrize("rank", [True, None, False, "given"])
def test_weightedtau(rank: Any) -> None:
    rank = RNG.permutation(12) if rank == "given" else rank
    for additive in (True, False):
        for x, y in ((X, Y), TIED):
            same("weightedtau", x[0], y[0], rank, None, additive)
    same("weightedtau", X[0], Y[0], rank, lambda r: 1 / (r + 1) ** 2)


def test_tables_and_xi() -> None:
    table = np.array([[27, 25, 14, 7, 0], [7, 14, 18, 35, 12], [1, 3, 2, 7, 17]])
    want = scipy.stats.somersd(table)
    got = stats.somersd(table)
    np.testing.assert_allclose(got.statistic, want.statistic, 1e-5)
    np.testing.assert_allclose(got.pvalue, want.pvalue, 1e-3)
    for continuous in (True, False):
        same("chatterjeexi", X, TIED[1], axis=1, y_continuous=continuous)


def test_constants_and_few_pairs() -> None:
    flat = np.full(5, 2.0)
    x = np.arange(5.0)
    with pytest.raises(ShapeError, match="as many elements"):
        stats.spearmanr(1.0, np.ones(3))
    assert np.isnan(np.asarray(stats.spearmanr(1.0, 2.0).statistic))
    for name in ("pearsonr", "spearmanr", "kendalltau"):
        assert np.isnan(getattr(stats, name)(x, flat).statistic)
    for y in (x[:2], -x[:2], flat[:2]):
        same("linregress", x[:2], y)
    same("pearsonr", x[:2], np.array([3.0, 1.0]))
    same("pearsonr", x[:3], np.array([3.0, 1.0, 4.0]))
    with pytest.raises(ShapeError, match="pairs"):
        stats.pearsonr(x, x[:-1])
    with pytest.raises(ArgumentError, match="alternative"):
        stats.pearsonr(x, x, alternative="more")
    with pytest.raises(ArgumentError, match="asymptotic"):
        stats.kendalltau(x, x, nan_policy="omit")


def test_batches_and_derivatives() -> None:
    x, y = fnp.asarray(X, "f8"), fnp.asarray(Y, "f8")
    for name in ("pearsonr", "kendalltau"):
        function = getattr(stats, name)
        many = fxflow.jit(fxflow.vmap(lambda a, b, f=function: tuple(f(a, b))))(x, y)
        np.testing.assert_allclose(many, tuple(function(x, y, axis=1)), 1e-9)
    slope = fxflow.grad(lambda a: stats.pearsonr(a, y[0]).pvalue)(x[0])
    step = np.zeros(12)
    step[3] = 1e-6
    ends = [scipy.stats.pearsonr(X[0] + s, Y[0]).pvalue for s in (step, -step)]
    np.testing.assert_allclose(slope[3], (ends[0] - ends[1]) / 2e-6, 1e-4)
    by_slope = fxflow.grad(lambda b: stats.linregress(x[0], b).slope)(y[0])
    np.testing.assert_allclose(fnp.sum(by_slope * x[0]), 1.0, 1e-9)


@pytest.mark.parametrize("side", SIDES)
def test_spearmanrho(side: str) -> None:
    same("spearmanrho", X, Y, axis=1, alternative=side)
    same("spearmanrho", HOLED, X, axis=1, alternative=side)
    same("spearmanrho", HOLED, X, axis=1, nan_policy="omit")
    same("spearmanrho", TIED[0], TIED[1], axis=1, keepdims=True)
