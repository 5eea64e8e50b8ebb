"""Splines as tuples beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.interpolate as want

import fxflow
from fxflow.errors import ArgumentError
from fxflow.scipy import interpolate

RNG = np.random.default_rng(0)
X = np.cumsum(RNG.random(12) + 0.2)
Y = RNG.normal(size=12)
AT = np.linspace(X[0] - 0.5, X[-1] + 0.5, 33)


SPLINE = interpolate.splrep(X, Y)
QUADRATIC = interpolate.splrep(X, Y, k=2)


def close(got: Any, expected: Any, near: float = 1e-8) -> None:
    np.testing.assert_allclose(got, expected, near, near)


def test_older_names_agree_with_scipy() -> None:
    y = Y
    with fxflow.config.override(x64=True):
        for k in (2, 3, 4):
            f, g = interpolate.splrep(X, y, k=k), want.splrep(X, y, k=k)
            close(f[0], g[0])
            for ext in (0, 1, 3):
                close(interpolate.splev(AT, f, 0, ext), want.splev(AT, g, 0, ext), 1e-7)
            close(interpolate.splev(AT, f, 1), want.splev(AT, g, 1), 1e-6)
            close(interpolate.splint(AT[0], 3.0, f), want.splint(AT[0], 3.0, g))
            for name in ("splder", "splantider"):
                one, other = (
                    getattr(m, name)(s) for m, s in ((interpolate, f), (want, g))
                )
                close(interpolate.splev(AT, one), want.splev(AT, other), 1e-6)
        with pytest.raises(ArgumentError, match="lies beyond"):
            interpolate.splev(AT, f, ext=2)
        knots = np.arange(5.0)
        got = interpolate.BSpline.basis_element(knots)(knots)
        close(got, want.BSpline.basis_element(knots)(knots))


def test_bad_tuples_are_refused() -> None:
    refused: list[tuple[Any, Any, str]] = [
        (ArgumentError, lambda: interpolate.splrep(X, Y, task=1), "task must"),
        (ArgumentError, lambda: interpolate.insert(X[-1] + 1, SPLINE), "x must lie"),
        (ArgumentError, lambda: interpolate.insert(X[1], SPLINE, per=True), "periodic"),
        (ArgumentError, lambda: interpolate.sproot(QUADRATIC), "degree"),
        (ArgumentError, lambda: interpolate.splrep(X, Y, task=-1), "needs knots"),
        (ArgumentError, lambda: interpolate.splev(0.0, (X, Y)), "tck must be"),
        (
            ArgumentError,
            lambda: interpolate.splev(0.0, interpolate.splrep(X, Y), ext=7),
            "ext must be",
        ),
    ]
    for error, call, words in refused:
        with pytest.raises(error, match=words):
            call()


def test_smoothing_and_zeros_agree_with_scipy() -> None:
    with fxflow.config.override(x64=True):
        f, g = interpolate.splrep(X, Y, s=4.0), want.splrep(X, Y, s=4.0)
        close(f[0], g[0])
        at = AT[(X[0] < AT) & (X[-1] > AT)]
        close(interpolate.splev(at, f), want.splev(at, g), 3e-2)
        curve = [X, Y]
        for options in ({"s": 0}, {"t": np.array([0.4])}):
            got, u = interpolate.splprep(curve, **options)
            theirs = dict(options, task=-1) if "t" in options else options
            if "t" in options:
                knots = np.r_[[0.0] * 4, options["t"], [1.0] * 4]
                theirs = {"t": knots, "task": -1}
            expected, v = want.splprep(curve, **theirs)
            close(u, v)
            close(got[0], expected[0])
            for one, other in zip(got[1], expected[1], strict=True):
                close(one, other, 1e-6)
        f, g = interpolate.splrep(X, Y), want.splrep(X, Y)
        close(interpolate.spalde(X[3] + 0.1, f), want.spalde(X[3] + 0.1, g), 1e-6)
        close(interpolate.sproot(f), want.sproot(g, 30), 1e-7)
        for knot, m in ((X[4] + 0.05, 1), (X[5], 2)):
            one, other = interpolate.insert(knot, f, m), want.insert(knot, g, m)
            close(one[0], other[0])
            close(one[1], other[1][: one[1].size])
            close(interpolate.splev(at, one), want.splev(at, g), 1e-7)
        slope = fxflow.grad(lambda c: interpolate.insert(X[5], (f[0], c, 3))[1].sum())
        assert slope(f[1]).shape == f[1].shape


def test_sums_of_squares_of_fits() -> None:
    x = np.linspace(0, 3, 25)
    y = np.sin(x) + 0.05 * np.cos(31 * x)
    w = 1 + np.abs(np.cos(x))
    with fxflow.config.override(x64=True):
        tck, fp = interpolate.splrep(x, y, w, s=0.1, full_output=True)
        exact = want.splrep(x, y, w, s=0.1, full_output=True)
        np.testing.assert_allclose(fp, exact[1], 1e-3)
        np.testing.assert_allclose(
            interpolate.splev(x, tck), want.splev(x, exact[0]), atol=1e-4
        )
        (_, u), fp = interpolate.splprep([x, y], s=0.1, full_output=True)
        exact = want.splprep([x, y], s=0.1, full_output=True)
        np.testing.assert_allclose(u, exact[0][1])
        np.testing.assert_allclose(fp, exact[1], 1e-3)
