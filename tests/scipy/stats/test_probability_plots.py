"""Probability plots beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.optimize
import scipy.stats

import fxflow
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import stats
from tests.scipy.stats.beside import same

Y = np.random.default_rng(7).gamma(2, size=30)


def test_points_and_lines() -> None:
    same("probplot", Y)
    same("probplot", Y, (2.0,), "gamma", fit=False)
    same("boxcox_normplot", Y, -1, 2, N=5)
    same("yeojohnson_normplot", Y, -1, 2, N=5)


@pytest.mark.slow
def test_shapes() -> None:
    same("ppcc_plot", Y, 0.5, 3, "gamma", N=5, tolerance=1e-7)
    bend = lambda c: -scipy.stats.probplot(Y, (c,), "weibull_min")[1][2]
    want = scipy.optimize.minimize_scalar(bend, bounds=(0.5, 5)).x
    with fxflow.config.override(x64=True):
        got = stats.ppcc_max(Y, (1.0, 2.0), "weibull_min")
    np.testing.assert_allclose(got, want, 1e-4)


class Axes:
    def __init__(self) -> None:
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *args: self.calls.append(name)


def test_drawings() -> None:
    axes = Axes()
    stats.probplot(Y, plot=axes, rvalue=True)
    assert axes.calls[:2] == ["plot", "plot"] and axes.calls[-1] == "text"
    axes = Axes()
    stats.boxcox_normplot(Y, 0, 1, plot=axes, N=2)
    assert axes.calls == ["plot", "set_xlabel", "set_ylabel", "set_title"]


def test_a_plot_has_derivatives() -> None:
    r = lambda y: stats.probplot(y)[1].r
    with fxflow.config.override(x64=True):
        slope = fxflow.jit(fxflow.grad(r))(Y)
        step = 1e-6 * (np.arange(30) == 3)
        want = (float(r(Y + step)) - float(r(Y - step))) / 2e-6
        np.testing.assert_allclose(slope[3], want, 1e-6)


def test_what_is_refused() -> None:
    with pytest.raises(ArgumentError, match="must be the name of a distribution"):
        stats.probplot(Y, dist="other")
    with pytest.raises(ArgumentError, match="an object with `ppf`, got 3"):
        stats.probplot(Y, dist=3)
    with pytest.raises(ArgumentError, match="the second end must exceed the first"):
        stats.boxcox_normplot(Y, 1, 0)
    with pytest.raises(ArgumentError, match="N must be a positive int, got 0"):
        stats.ppcc_plot(Y, 0, 1, N=0)
    with pytest.raises(ArgumentError, match="brack must be two or three numbers"):
        stats.ppcc_max(Y, 1.0)
    with pytest.raises(ShapeError, match="must be a row of at least one"):
        stats.probplot(np.zeros((2, 2)))


@pytest.mark.parametrize("wrong", [set, 3, "axes"])
def test_what_cannot_draw_is_refused(wrong: Any) -> None:
    with pytest.raises(ArgumentError, match="boxcox_normplot: plot must be"):
        stats.boxcox_normplot(np.array([1.0, 2.0, 4.0]), -1, 1, plot=wrong, N=3)
