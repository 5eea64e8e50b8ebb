"""Tests of distributions beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.stats

import fxflow
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import stats
from tests.scipy.stats.beside import same
from tests.scipy.stats.samples import SIDES, TIED, W, X, Y


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("n", [1, 3, 20, 200])
def test_one_sample(n: int, side: str) -> None:
    x = np.random.default_rng(n).normal(size=n)
    with fxflow.config.override(x64=True):
        for shift in (0.1, 0.3):
            for method in ("auto", "asymp", "approx"):
                options: Any = {"alternative": side, "method": method}
                got = stats.ks_1samp(x + shift, "norm", **options)
                want = scipy.stats.ks_1samp(x + shift, scipy.stats.norm.cdf, **options)
                np.testing.assert_allclose(tuple(got), tuple(want), 1e-6)
                assert float(got.statistic_location) == want.statistic_location
                assert int(got.statistic_sign) == want.statistic_sign


@pytest.mark.parametrize("side", SIDES)
def test_two_samples(side: str) -> None:
    for x, y in ((X, Y), TIED[:2]):
        for method in ("auto", "asymp"):
            same("ks_2samp", x, y, axis=1, alternative=side, method=method)
    with fxflow.config.override(x64=True):
        got = stats.kstest(X[0], Y[0], alternative=side)
        want = scipy.stats.kstest(X[0], Y[0], alternative=side)
        assert float(got.statistic_location) == want.statistic_location
        assert int(got.statistic_sign) == want.statistic_sign


def test_cramer_and_von_mises() -> None:
    same("cramervonmises_2samp", X, Y, axis=1)
    same("cramervonmises_2samp", *TIED[:2], axis=1)
    x, y = np.random.default_rng(36).normal(size=(2, 30))
    same("cramervonmises_2samp", x, y, tolerance=1e-6)
    with fxflow.config.override(x64=True):
        for shift in (0.0, 0.3, 1.0):
            got = stats.cramervonmises(x + shift, "norm")
            want = scipy.stats.cramervonmises(x + shift, "norm")
            np.testing.assert_allclose(got, [want.statistic, want.pvalue], 1e-5, 1e-7)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dist", ["norm", "expon", "logistic", "gumbel_l", "gumbel_r"])
def test_anderson(dist: str) -> None:
    x = np.abs(W[0])
    want = scipy.stats.anderson(x, dist)
    with fxflow.config.override(x64=True):
        got = stats.anderson(x, dist)
        levels = [want.critical_values, want.significance_level]
        np.testing.assert_allclose(got[0], want.statistic, 1e-5)
        np.testing.assert_allclose(list(got)[1:], levels, 1e-9)
    same("anderson", x, dist, method="interpolate", tolerance=1e-5)


def test_anderson_of_samples() -> None:
    for samples in ([X[0], Y[0]], [t[0] for t in TIED[:3]], [X[0], Y[0] + 2, W[0]]):
        for variant in ("midrank", "right"):
            same("anderson_ksamp", samples, variant=variant)
    same("anderson_ksamp", [X[0], W[0]], variant="continuous")
    with pytest.raises(ArgumentError, match="two or more"):
        stats.anderson_ksamp([X[0]])


def test_bad_arguments() -> None:
    with pytest.raises(ArgumentError, match="args must be a tuple"):
        stats.cramervonmises(np.ones(3), "norm", args=np.ones(3))
    with pytest.raises(ArgumentError, match="name of a distribution"):
        stats.ks_1samp(X[0], "normal")
    with pytest.raises(ArgumentError, match="must be an array"):
        stats.kstest("norm", "norm")
    with pytest.raises(ShapeError, match="at least 2"):
        stats.cramervonmises(X[0, :1], "norm")
