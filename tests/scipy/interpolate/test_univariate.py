"""Splines of one variable beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.interpolate as want

import fxflow
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import interpolate

RNG = np.random.default_rng(42)
X = np.sort(RNG.uniform(0, 3, 25))
Y = np.sin(3 * X) + 0.1 * RNG.normal(size=25)
AT = np.linspace(X[0] - 0.3, X[-1] + 0.3, 9)


def close(got: Any, expected: Any, tol: float = 1e-7) -> None:
    assert np.shape(got) == np.shape(expected)
    np.testing.assert_allclose(got, expected, tol, tol)


def test_splines_agree_with_scipy() -> None:
    inner, bbox = [1.0, 2.0], (X[0] - 0.1, X[-1] + 0.2)
    with fxflow.config.override(x64=True):
        pairs: list[tuple[Any, Any]] = [
            (getattr(interpolate, name), getattr(want, name))
            for name in (
                "InterpolatedUnivariateSpline",
                "UnivariateSpline",
                "LSQUnivariateSpline",
            )
        ]
        for (ours, theirs), args, options in zip(
            pairs,
            ((), (), (inner,)),
            ({"bbox": bbox}, {"s": 0, "ext": 3, "k": 2}, {"ext": "zeros", "w": 1 + X}),
            strict=True,
        ):
            f, g = ours(X, Y, *args, **options), theirs(X, Y, *args, **options)
            close(f(AT), g(AT))
            close(f(AT[2:-2], 1), g(AT[2:-2], 1), 1e-6)
            close(f.get_knots(), g.get_knots())
            close(f.get_coeffs(), g.get_coeffs())
            close(f.get_residual(), g.get_residual())
            close(f.integral(0.5, 2.0), g.integral(0.5, 2.0))
            close(f.derivatives(1.1), g.derivatives(1.1), 1e-6)
            close(f.derivative()(AT[2:-2]), g.derivative()(AT[2:-2]), 1e-6)
            close(f.antiderivative()(AT), g.antiderivative()(AT))
            if f.get_knots().size and options.get("k", 3) == 3:
                close(f.roots(), g.roots())
        f = interpolate.UnivariateSpline(X, Y, s=0.3)
        g = want.UnivariateSpline(X, Y, s=0.3)
        close(f(X), g(X), 2e-2)
        assert float(f.get_residual()) == pytest.approx(0.3, 1e-6)
        assert float(fxflow.grad(f)(1.1)) == pytest.approx(float(f(1.1, 1)))
        close(fxflow.jit(lambda f, x: f(x))(f, AT), f(AT))


def test_bad_splines_are_refused() -> None:
    make = interpolate.UnivariateSpline
    refused: list[tuple[Any, Any, str]] = [
        (ArgumentError, lambda: make(X, Y, k=6), "at most 5"),
        (ArgumentError, lambda: make(X, Y, s=0, ext="no"), "ext must"),
        (ArgumentError, lambda: make(X, Y * np.nan, check_finite=True), "y must"),
        (ArgumentError, lambda: make(X, Y, bbox=(1,)), "bbox"),
        (ShapeError, lambda: make(X, Y[:3]), "one length"),
    ]
    for error, call, words in refused:
        with pytest.raises(error, match=words):
            call()
