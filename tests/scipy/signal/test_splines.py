"""Splines on samples beside SciPy's, and beside filters of long mirrored signals."""

from typing import Any

import numpy as np
import pytest
import scipy.signal as want

import fxflow
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import signal

RNG = np.random.default_rng(0)
X = RNG.normal(size=60)
IMAGE = RNG.normal(size=(45, 50))


def mirrored(x: np.ndarray, r: float, omega: float) -> np.ndarray:
    """Both passes over many mirror images of a signal."""
    a2, a3 = 2 * r * np.cos(omega), -r * r
    n, many = len(x), np.concatenate([np.concatenate([x[::-1], x])] * 11)
    for _ in range(2):
        many = want.lfilter([1 - a2 - a3], [1, -a2, -a3], many)[::-1]
    return many[11 * n : 12 * n]


def test_coefficients_agree_with_scipy() -> None:
    with fxflow.config.override(x64=True):
        for n in (2, 3, 9, 60):
            np.testing.assert_allclose(
                signal.cspline1d(X[:n]), want.cspline1d(X[:n]), 1e-12, 1e-13
            )
        for one in (signal.cspline1d(X[:1]), signal.cspline1d(X[:1], 2.0)):
            np.testing.assert_array_equal(one, X[:1])
        np.testing.assert_allclose(signal.qspline1d(X), want.qspline1d(X), 1e-12, 1e-13)
        for ours, theirs in (
            (signal.cspline2d, want.cspline2d),
            (signal.qspline2d, want.qspline2d),
        ):
            np.testing.assert_allclose(
                ours(IMAGE), theirs(IMAGE, 0.0, 1e-12), 1e-9, 1e-10
            )
        both = np.stack([X, X[::-1]]) + 1j
        for c0, z1 in ((0.3, 0.4), (2.0, -0.3)):
            np.testing.assert_allclose(
                signal.symiirorder1(both, c0, z1),
                want.symiirorder1(both, c0, z1, 1e-13),
                1e-9,
                1e-10,
            )


def test_smoothing_is_that_of_mirrored_signals() -> None:
    with fxflow.config.override(x64=True):
        got = signal.symiirorder2(np.stack([X, X[::-1]]), 0.5, 1.0)
        expected = mirrored(X, 0.5, 1.0)
        np.testing.assert_allclose(got, [expected, expected[::-1]], 1e-9, 1e-12)
        inner = slice(20, -20)
        np.testing.assert_allclose(
            signal.cspline1d(X, 1.0)[inner], want.cspline1d(X, 1.0)[inner], 1e-4, 1e-4
        )
        np.testing.assert_allclose(
            signal.spline_filter(IMAGE, 0.5)[inner, inner],
            want.spline_filter(IMAGE, 0.5)[inner, inner],
            1e-3,
            1e-3,
        )
        assert signal.symiirorder2(X[:1], 0.5, 1.0).shape == (1,)


def test_values_agree_with_scipy() -> None:
    at = RNG.normal(size=(3, 5)) * 90
    with fxflow.config.override(x64=True):
        for n in (2, 9):
            for ours, theirs in (
                (signal.cspline1d_eval, want.cspline1d_eval),
                (signal.qspline1d_eval, want.qspline1d_eval),
            ):
                got = ours(X[:n], at, 2.0, 0.3)
                expected = theirs(X[:n], at, 2.0, 0.3)
                np.testing.assert_allclose(got, expected, 1e-10, 1e-11)
        c = signal.cspline1d(X)
        np.testing.assert_allclose(signal.cspline1d_eval(c, np.arange(60)), X, 1e-9)
        assert bool(np.isnan(signal.cspline1d_eval(c, np.nan)))
        np.testing.assert_allclose(signal.gauss_spline(X, 3), want.gauss_spline(X, 3))
        rows, columns = RNG.normal(size=5), RNG.normal(size=3)
        np.testing.assert_allclose(
            signal.sepfir2d(IMAGE, rows, columns),
            want.sepfir2d(IMAGE, rows, columns),
            1e-9,
            1e-11,
        )


@pytest.mark.slow
def test_poles_and_places_have_derivatives() -> None:
    with fxflow.config.override(x64=True):
        x = X[:12]
        runs: list[tuple[Any, float]] = [
            (lambda z: (signal.symiirorder1(x, 1.0, z) ** 2).sum(), -0.4),
            (lambda r: (signal.symiirorder2(x, r, 1.0) ** 2).sum(), 0.5),
            (lambda w: (signal.symiirorder2(x, 0.5, w) ** 2).sum(), 1.0),
            (lambda t: signal.cspline1d_eval(x, t), 3.3),
        ]
        for run, at in runs:
            slope, bend = fxflow.jit(
                lambda v, run=run: (
                    fxflow.grad(run)(v),
                    fxflow.grad(fxflow.grad(run))(v),
                )
            )(at)
            ends = [float(run(at + e)) for e in (1e-4, 0.0, -1e-4)]
            assert float(slope) == pytest.approx((ends[0] - ends[2]) / 2e-4, 1e-5)
            second = (ends[0] - 2 * ends[1] + ends[2]) / 1e-8
            assert float(bend) == pytest.approx(second, 1e-3)


def test_bad_arguments_are_refused() -> None:
    refused: list[tuple[Any, Any, str]] = [
        (ArgumentError, lambda: signal.symiirorder1(X, 1.0, 1.0), "z1"),
        (ArgumentError, lambda: signal.symiirorder2(X, 1.5, 1.0), "r must"),
        (ArgumentError, lambda: signal.cspline1d(X, 0.001), "1 / 144"),
        (ArgumentError, lambda: signal.cspline2d(IMAGE, -1.0), "lamb"),
        (ArgumentError, lambda: signal.qspline1d(X, 1.0), "lamb"),
        (ArgumentError, lambda: signal.qspline2d(IMAGE, 1.0), "lamb"),
        (ShapeError, lambda: signal.cspline1d(IMAGE), "1 axes"),
        (ShapeError, lambda: signal.cspline2d(X), "2 axes"),
        (ShapeError, lambda: signal.cspline1d(X[:0]), "no samples"),
        (ShapeError, lambda: signal.cspline1d_eval(X[:0], X), "vector"),
        (ShapeError, lambda: signal.sepfir2d(IMAGE, X, X[:3]), "hrow"),
        (ShapeError, lambda: signal.sepfir2d(X, X[:3], X[:3]), "two axes"),
        (ArgumentError, lambda: signal.gauss_spline(X, -1), "n must"),
    ]
    for error, call, words in refused:
        with pytest.raises(error, match=words):
            call()
