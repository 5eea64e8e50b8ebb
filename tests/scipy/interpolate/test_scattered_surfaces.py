"""Splines near scattered points beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.interpolate as want

import fxflow
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.scipy import interpolate

RNG = np.random.default_rng(0)
X, Y = RNG.random((2, 120))
Z = np.sin(5 * X) * np.cos(4 * Y) + 0.05 * RNG.normal(size=120)
W = RNG.random(120) + 0.5
AT = np.linspace(0.1, 0.9, 5), np.linspace(0.2, 0.8, 4)
INNER = [0.3, 0.6], [0.5]


def close(got: Any, expected: Any, tolerance: float = 1e-7) -> None:
    np.testing.assert_allclose(got, expected, tolerance, tolerance)


@pytest.mark.parametrize("k", [(3, 3), (2, 1)])
def test_least_squares_agree_with_scipy(k: tuple[int, int]) -> None:
    with fxflow.config.override(x64=True):
        for w, bbox in ((None, [None] * 4), (W, [-0.1, 1.2, -0.2, 1.1])):
            args = (X, Y, Z, *INNER, w, bbox, *k)
            ours = interpolate.LSQBivariateSpline(*args)
            theirs = want.LSQBivariateSpline(*args)
            close(ours(*AT), theirs(*AT))
            close(ours.ev(X[:9], Y[:9], 1, 0), theirs.ev(X[:9], Y[:9], 1, 0), 1e-6)
            close(ours.get_residual(), theirs.get_residual())
            close(
                ours.integral(0.1, 0.7, 0.2, 0.9), theirs.integral(0.1, 0.7, 0.2, 0.9)
            )
            if w is not None:
                pairs = zip(ours.get_knots(), theirs.get_knots(), strict=True)
                for one, other in pairs:
                    close(one, other)


def test_smooth_splines_agree_with_scipy() -> None:
    with fxflow.config.override(x64=True):
        for s in (0.6, 3.0, 1000.0):
            ours = interpolate.SmoothBivariateSpline(X, Y, Z, s=s)
            theirs = want.SmoothBivariateSpline(X, Y, Z, s=s)
            close(ours(*AT), theirs(*AT), 2e-2)
            close(ours.get_residual(), theirs.get_residual(), 2e-3)
        more = ours.partial_derivative(1, 0)
        close(more(*AT), ours(*AT, dx=1))
        tck = interpolate.bisplrep(X, Y, Z, W, s=1.0)
        beside = want.bisplrep(X, Y, Z, W, s=1.0)
        close(interpolate.bisplev(*AT, tck), want.bisplev(*AT, beside), 2e-2)
        given = {"task": -1, "tx": beside[0], "ty": beside[1]}
        tck, fp, *_ = interpolate.bisplrep(X, Y, Z, W, full_output=1, **given)
        expected = want.bisplrep(X, Y, Z, W, full_output=1, **given)
        close(fp, expected[1])
        for at in (AT, (AT[0][0], AT[1]), (AT[0], AT[1][0]), (0.3, 0.4)):
            got = interpolate.bisplev(*at, expected[0], dx=1)
            close(got, want.bisplev(*at, expected[0], dx=1))


@pytest.mark.slow
def test_fits_have_derivatives() -> None:
    with fxflow.config.override(x64=True):
        point = (np.array([0.4]), np.array([0.6]))
        lsq = lambda z, x: interpolate.LSQBivariateSpline(
            x, Y, z, *INNER, bbox=[0, 1, 0, 1]
        )(*point)[0, 0]
        smooth = lambda z, x: interpolate.SmoothBivariateSpline(
            x, Y, z, s=0.6, bbox=[0, 1, 0, 1]
        ).ev(0.4, 0.6)
        for run in (lsq, smooth):
            slopes = fxflow.grad(run, (0, 1))(Z, X)
            ways = RNG.normal(size=(2, 120))
            ends = [float(run(Z + e * ways[0], X + e * ways[1])) for e in (1e-6, -1e-6)]
            got = sum(float((s * w).sum()) for s, w in zip(slopes, ways, strict=True))
            assert got == pytest.approx((ends[0] - ends[1]) / 2e-6, 1e-3)
        again = fxflow.jit(fxflow.grad(lsq))(Z, X)
        close(again, fxflow.grad(lsq)(Z, X), 1e-6)


def test_bad_arguments_are_refused() -> None:
    i = interpolate
    tck = [np.arange(4.0), np.arange(4.0), np.zeros(4), 1, 1]
    refused: list[tuple[Any, Any, str]] = [
        (ShapeError, lambda: i.LSQBivariateSpline(X, Y[1:], Z, *INNER), "one length"),
        (ArgumentError, lambda: i.LSQBivariateSpline(X, Y, Z, [2.0], []), "tx"),
        (ShapeError, lambda: i.LSQBivariateSpline(X, Y, Z, 0.5, []), "vector"),
        (ArgumentError, lambda: i.SmoothBivariateSpline(X, Y, Z, s=-1.0), "positive"),
        (ArgumentError, lambda: i.SmoothBivariateSpline(X[:5], Y[:5], Z[:5]), "m"),
        (
            ConcretizationError,
            lambda: fxflow.jit(i.SmoothBivariateSpline)(X, Y, Z),
            "LSQBivariateSpline",
        ),
        (ArgumentError, lambda: i.bisplrep(X, Y, Z, task=1), "task"),
        (ArgumentError, lambda: i.bisplrep(X, Y, Z, task=-1), "knots"),
        (ArgumentError, lambda: i.bisplev(X, Y, tck[:4]), "tck"),
        (ShapeError, lambda: i.bisplev(X, Y, [*tck[:2], np.zeros(3), 1, 1]), "need"),
        (
            ArgumentError,
            lambda: i.LSQBivariateSpline(X, Y, Z, *INNER).partial_derivative(3, 0),
            "below the degree",
        ),
    ]
    for error, call, words in refused:
        with pytest.raises(error, match=words):
            call()
