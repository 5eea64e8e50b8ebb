"""Polynomials in Newton's form beside SciPy's."""

import math
from typing import Any

import numpy as np
import pytest
import scipy.interpolate as want

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError, ShapeError
from fxflow.scipy import interpolate

RNG = np.random.default_rng(31)


def close(got: Any, expected: Any, tol: float = 1e-9) -> None:
    assert np.shape(got) == np.shape(expected)
    np.testing.assert_allclose(got, expected, tol, tol)


def test_points_and_slopes_agree_with_scipy() -> None:
    at = RNG.uniform(-1, 2, (2, 3))
    with fxflow.config.override(x64=True):
        for xi in ([0.0, 1.0, 0.4, -0.7], [0.5, 0.5, 0.5, -1.0, 2.0, 2.0], [0.3]):
            x = np.asarray(xi)
            for shape, axis in (((len(xi),), 0), ((2, len(xi)), 1), ((len(xi), 3), 0)):
                y = RNG.normal(size=shape)
                f = interpolate.KroghInterpolator(x, y, axis)
                g = want.KroghInterpolator(x, y, axis)
                close(f(at), g(at))
                close(f(0.3), g(0.3))
                close(f.derivative(at, 2), g.derivative(at, 2))
                close(f.derivatives(at[0], 3), g.derivatives(at[0], 3))
                close(f.derivatives(0.3), g.derivatives(0.3))
        y = RNG.normal(size=4)
        x = np.array([0.0, 1.0, 0.4, -0.7])
        for der in (0, 1, [0, 2]):
            got = interpolate.krogh_interpolate(x, y, at, der)
            close(got, want.krogh_interpolate(x, y, at, der))
        x = np.sort(x)
        close(
            interpolate.pchip_interpolate(x, y, 0.3), want.pchip_interpolate(x, y, 0.3)
        )
        got = interpolate.pchip_interpolate(x, y, at, [0, 1])
        for one, other in zip(
            got, want.pchip_interpolate(x, y, at, [0, 1]), strict=True
        ):
            close(one, other)


def test_polynomials_go_through_transforms() -> None:
    x, y = np.array([0.0, 0.0, 1.0, 2.0]), RNG.normal(size=4)
    with fxflow.config.override(x64=True):
        f = interpolate.KroghInterpolator(x, y)
        close(fxflow.jit(lambda f, t: f(t))(f, 0.3), f(0.3))
        # The polynomial is linear in the values, and its slope is its derivative.
        slope = fxflow.grad(lambda y: interpolate.KroghInterpolator(x, y)(0.3))(y)
        assert float((slope * y).sum()) == pytest.approx(float(f(0.3)))
        assert float(fxflow.grad(f)(0.3)) == pytest.approx(float(f.derivative(0.3)))
        bend = fxflow.grad(fxflow.grad(f))(0.3)
        assert float(bend) == pytest.approx(float(f.derivative(0.3, 2)))
        many = fxflow.vmap(lambda y: interpolate.KroghInterpolator(x, y)(0.3))
        close(many(fnp.stack([y, 2 * y])), np.array([1, 2]) * float(f(0.3)))


def test_coefficients_agree_with_scipy() -> None:
    with fxflow.config.override(x64=True):
        x, w = np.array([0.0, 1.0, 0.4, -0.7]), RNG.normal(size=4)
        close(interpolate.lagrange(x, w), want.lagrange(x, w).coeffs, 1e-8)
        an = np.array([1 / math.factorial(k) for k in range(7)])
        for m, n in ((3, None), (2, 2), (0, 4), (4, 0)):
            got, expected = interpolate.pade(an, m, n), want.pade(an, m, n)
            for one, other in zip(got, expected, strict=True):
                close(one, other.coeffs, 1e-7)
        close(
            fxflow.jit(lambda a: interpolate.pade(a, 3))(an)[1],
            want.pade(an, 3)[1].coeffs,
        )
        for degree, order in ((4, None), (3, 6), (0, 3)):
            rest = (0.5, degree, 0.3, order)
            got = interpolate.approximate_taylor_polynomial(fnp.sin, *rest)
            expected = want.approximate_taylor_polynomial(np.sin, *rest)
            close(got, expected.coeffs, 1e-6)


def test_bad_polynomials_are_refused() -> None:
    x = np.arange(3.0)
    krogh, lagrange = interpolate.KroghInterpolator, interpolate.lagrange
    refused: list[tuple[Any, Any, str]] = [
        (
            ArgumentError,
            lambda: krogh([0, 1, 0], x),
            "one after",
        ),
        (ShapeError, lambda: krogh(x, x[:2]), "as many"),
        (
            ArgumentError,
            lambda: lagrange([0.0, 0.0], [1.0, 2.0]),
            "different",
        ),
        (ShapeError, lambda: lagrange(x, x[:2]), "one length"),
        (ArgumentError, lambda: interpolate.pade(x, 3), "coefficients"),
        (ShapeError, lambda: interpolate.pade(np.ones((2, 2)), 1), "vector"),
    ]
    for error, call, words in refused:
        with pytest.raises(error, match=words):
            call()
