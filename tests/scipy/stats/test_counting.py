"""Percentiles of scores and binned numbers beside SciPy's."""

import numpy as np
import pytest

from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import stats
from tests.scipy.stats.beside import same

RNG = np.random.default_rng(30)
U, W = RNG.normal(size=30), RNG.uniform(size=30)
TIED = np.round(2 * U)


def test_percentiles() -> None:
    holed = TIED.copy()
    holed[3] = np.nan
    for kind in ("rank", "strict", "weak", "mean"):
        same("percentileofscore", TIED, np.array([0.0, 1.0, 1.5, np.nan]), kind)
        same("percentileofscore", holed, 1.0, kind, "omit")
    same("percentileofscore", holed, 1.0)
    for way in ("fraction", "lower", "higher"):
        same("scoreatpercentile", U, 33, interpolation_method=way)
        per = np.array([33.0, 20.0])
        same("scoreatpercentile", U.reshape(5, 6), per, (), way, 1)
        same("scoreatpercentile", U, per, (-1, 1), way)
    with pytest.raises(ShapeError, match="row"):
        stats.percentileofscore(U.reshape(5, 6), 0.0)


def test_frequencies() -> None:
    same("cumfreq", U, 7)
    same("cumfreq", U, 5, weights=W)
    same("relfreq", U, 7, (-1, 1))
    with pytest.raises(ArgumentError, match="numbins"):
        stats.cumfreq(U, 0)


@pytest.mark.parametrize(
    "statistic", ["mean", "std", "median", "count", "sum", "min", "max"]
)
def test_binned(statistic: str) -> None:
    same("binned_statistic", U, W, statistic, 5)
    same("binned_statistic", U, W, statistic, np.array([-1, 0, 0.3, 1.0]))
    same("binned_statistic", U, np.stack([W, U]), statistic, 5, range=(-1, 1))
    same("binned_statistic_2d", U, U[::-1] * 2, W, statistic, np.int64(3))
    bins = (3, np.array([-1, 0, 1.0]))
    same("binned_statistic_2d", U, 2 * W, W, statistic, bins, expand_binnumbers=True)


@pytest.mark.parametrize("statistic", ["mean", "median", "max"])
def test_binned_in_three_dimensions(statistic: str) -> None:
    x = np.stack([U, 2 * W, U[::-1]], axis=1)
    same("binned_statistic_dd", x, W, statistic, 3)
    bins = [np.array([-1, 0, 1.0]), 2, np.array([-2, 0.5, 3])]
    same("binned_statistic_dd", x, W, statistic, bins, expand_binnumbers=True)
    limits = [(-1, 1), (0, 2), (-2, 2)]
    same("binned_statistic_dd", x, np.stack([W, U]), statistic, [2, 3, 4], limits)


def test_bad_arguments() -> None:
    with pytest.raises(ShapeError, match=r"sample must be f32\[n, d\]"):
        stats.binned_statistic_dd(U, W)
    with pytest.raises(ArgumentError, match="bins must have one entry for each of the"):
        stats.binned_statistic_dd(np.stack([U, W], axis=1), W, bins=[2, 3, 4])
    with pytest.raises(ArgumentError, match="statistic must be one of"):
        stats.binned_statistic(U, W, "mode")
    with pytest.raises(ShapeError, match="a value for each"):
        stats.binned_statistic(U, W[:-1])
    for wrong in (..., 1j, (0, 1, 2)):
        with pytest.raises(ArgumentError, match="range must be a pair"):
            stats.binned_statistic(U, W, range=wrong)
        with pytest.raises(ArgumentError, match="range must be a pair"):
            stats.binned_statistic_2d(U, W, W, range=wrong)
    with pytest.raises(ArgumentError, match="bins must be a number"):
        stats.binned_statistic(U, W, bins=2.5)
