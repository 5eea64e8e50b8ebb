"""Tests of means beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.stats

import fxflow
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import stats
from tests.scipy.stats.beside import same
from tests.scipy.stats.samples import HOLED, POLICIES, SIDES, P, W, X, Y


@pytest.mark.parametrize("side", SIDES)
def test_t_tests(side: str) -> None:
    for policy in POLICIES:
        options: Any = {"axis": 1, "alternative": side, "nan_policy": policy}
        same("ttest_1samp", HOLED, 0.2, keepdims=True, **options)
        same("ttest_ind", X, HOLED, **options)
        same("ttest_ind", X, HOLED, equal_var=False, **options)
        same("ttest_rel", P, HOLED, **options)
    same("ttest_ind", X, Y, axis=1, alternative=side, trim=0.2)
    same("ttest_ind", X, HOLED, axis=1, alternative=side, trim=0.2, equal_var=False)
    for equal in (True, False):
        moments = (1.0, 2.0, 9, 1.5, 1.0, 12)
        same("ttest_ind_from_stats", *moments, equal_var=equal, alternative=side)


@pytest.mark.slow
def test_intervals() -> None:
    with fxflow.config.override(x64=True):
        for side in SIDES:
            for name, args in (("ttest_ind", (X[0], Y[0])), ("ttest_1samp", (X[0], 1))):
                got = getattr(stats, name)(*args, alternative=side)
                want = getattr(scipy.stats, name)(*args, alternative=side)
                ends = want.confidence_interval(0.9)
                np.testing.assert_allclose(got.confidence_interval(0.9), ends, 1e-8)


def test_several_samples() -> None:
    for policy in POLICIES:
        for name in ("f_oneway", "alexandergovern"):
            same(name, X, HOLED, W, axis=1, nan_policy=policy, keepdims=True)
        same("f_oneway", X, HOLED, W, axis=1, nan_policy=policy, equal_var=False)
    same("f_oneway", np.ones(3), np.full(3, 2.0))
    same("f_oneway", np.ones(3), np.ones(4))
    with pytest.raises(ArgumentError, match="at least 2 samples"):
        stats.f_oneway(X)


def test_bad_arguments_and_derivatives() -> None:
    with pytest.raises(ShapeError, match="pairs"):
        stats.ttest_rel(X[0], Y[0])
    with pytest.raises(ArgumentError, match="trim must be 0"):
        stats.ttest_ind(X, Y, axis=1, trim=0.1, nan_policy="omit")
    with pytest.raises(ArgumentError, match="alternative"):
        stats.ttest_1samp(X, 0.0, alternative="up")
    slope = fxflow.grad(lambda x: stats.ttest_1samp(x, 0.1).statistic)(X[0])
    step = np.zeros(11)
    step[2] = 1e-6
    ends = [scipy.stats.ttest_1samp(X[0] + s, 0.1).statistic for s in (step, -step)]
    np.testing.assert_allclose(slope[2], (ends[0] - ends[1]) / 2e-6, 1e-4)
