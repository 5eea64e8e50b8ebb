"""Splines beside SciPy's."""

from typing import Any

import numpy as np
import pytest
import scipy.interpolate as want

import fxflow
from fxflow.errors import ArgumentError, ConcretizationError, DtypeError, ShapeError
from fxflow.scipy import interpolate

RNG = np.random.default_rng(0)
X = np.array([0.0, 0.7, 1.0, 2.5, 3.0, 4.2])
Y = RNG.normal(size=(2, 6, 3))
AT = np.linspace(-1, 5, 14).reshape(2, 7)
ENDS: list[Any] = [
    "not-a-knot",
    "clamped",
    "natural",
    ("not-a-knot", (1, 2.0)),
    ((2, np.full((2, 3), 0.5)), "not-a-knot"),
    ((1, np.ones((2, 3))), (2, np.zeros((2, 3)))),
]


def close(got: Any, expected: Any, tolerance: float = 1e-9) -> None:
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, tolerance, tolerance)


def same(got: Any, expected: Any) -> None:
    """Compares values, derivatives, integrals and what is beyond the ends."""
    close(got(AT), expected(AT))
    close(got(1.2), expected(1.2))
    close(got(AT, 2), expected(AT, 2))
    close(got(AT, 1, extrapolate=False), expected(AT, 1, extrapolate=False))
    close(got.derivative()(AT), expected.derivative()(AT))
    close(got.antiderivative(2)(AT), expected.antiderivative(2)(AT))
    close(got.integrate(0.3, 3.3), expected.integrate(0.3, 3.3))
    close(
        got.integrate(3.3, -2.0, "periodic"), expected.integrate(3.3, -2.0, "periodic")
    )


@pytest.mark.parametrize("bc_type", ENDS, ids=str)
def test_cubic_splines_agree_with_scipy(bc_type: Any) -> None:
    theirs = bc_type
    if not isinstance(bc_type, str):
        shape = Y[:, 0].shape
        theirs = tuple(
            e if isinstance(e, str) else (e[0], np.broadcast_to(e[1], shape))
            for e in bc_type
        )
    with fxflow.config.override(x64=True):
        for n in (2, 3, 4, 6):
            got = interpolate.CubicSpline(X[:n], Y[:, :n], 1, bc_type)
            expected = want.CubicSpline(X[:n], Y[:, :n], 1, theirs)
            close(got(AT), expected(AT))
        same(got, expected)


def test_periodic_splines_agree_with_scipy() -> None:
    with fxflow.config.override(x64=True):
        for n in (2, 3, 4, 6):
            y = np.concatenate([Y[:, : n - 1], Y[:, :1]], 1)
            got = interpolate.CubicSpline(X[:n], y, 1, "periodic")
            expected = want.CubicSpline(X[:n], y, 1, "periodic")
            close(got(AT), expected(AT))
        close(got.integrate(-3.0, 9.0), expected.integrate(-3.0, 9.0))


def test_other_splines_agree_with_scipy() -> None:
    flat = Y.copy()
    flat[:, 2:4] = flat[:, 1:2]
    with fxflow.config.override(x64=True):
        for y in (Y, flat):
            for n in (2, 3, 6):
                x, part = X[:n], y[:, :n]
                same(
                    interpolate.PchipInterpolator(x, part, 1),
                    want.PchipInterpolator(x, part, 1),
                )
                for method in ("akima", "makima"):
                    got = interpolate.Akima1DInterpolator(x, part, 1, method=method)
                    expected = want.Akima1DInterpolator(x, part, 1, method=method)
                    close(got(AT), expected(AT))
        got = interpolate.CubicHermiteSpline(X, Y, 2 * Y, 1)
        same(got, want.CubicHermiteSpline(X, Y, 2 * Y, 1))
        c = RNG.normal(size=(3, 2, 5))
        same(interpolate.PPoly(c, X, axis=1), want.PPoly(c, X, axis=1))


def test_transforms_go_through_splines() -> None:
    y = Y[0, :, 0]

    def value(x: Any, y: Any, at: Any) -> Any:
        return (interpolate.CubicSpline(x, y)(at) ** 2).sum()

    at = np.array([0.4, 2.2])
    with fxflow.config.override(x64=True):
        spline = interpolate.CubicSpline(X, y)
        close(fxflow.jit(lambda f, t: f(t))(spline, at), spline(at))
        slopes = fxflow.vmap(fxflow.grad(spline))(at)
        close(slopes, spline(at, 1))
        got = fxflow.grad(value, (0, 1))(X, y, at)
        for k in (0, 1):
            for i in (0, 3):
                h = 1e-6 * (np.arange(6) == i)
                up, down = [X, y], [X, y]
                up[k], down[k] = up[k] + h, down[k] - h
                difference = (value(*up, at) - value(*down, at)) / 2e-6
                np.testing.assert_allclose(got[k][i], difference, 1e-6)
        many = fxflow.vmap(lambda y: interpolate.PchipInterpolator(X, y)(at))(Y[0].T)
        close(many, want.PchipInterpolator(X, Y[0])(at).T)
        flat = fxflow.grad(lambda y: interpolate.Akima1DInterpolator(X, y)(at).sum())
        assert np.isfinite(flat(np.zeros(6))).all()


def test_bad_splines_are_refused() -> None:
    with pytest.raises(ArgumentError, match="x must be strictly ascending"):
        interpolate.CubicSpline(X[::-1], Y, 1)
    with pytest.raises(ShapeError, match="6 elements along axis 0"):
        interpolate.CubicSpline(X, Y)
    with pytest.raises(ArgumentError, match="bc_type"):
        interpolate.CubicSpline(X, Y, 1, "open")
    with pytest.raises(ShapeError, match="derivative at an end"):
        interpolate.CubicSpline(X, Y, 1, ((1, np.ones(2)), "natural"))
    with pytest.raises(ArgumentError, match="periodic spline must be equal"):
        interpolate.CubicSpline(X, Y, 1, "periodic")
    with pytest.raises(ArgumentError, match="finite"):
        interpolate.PchipInterpolator(X, np.where(X > 1, np.inf, X))
    with pytest.raises(DtypeError, match="real"):
        interpolate.PchipInterpolator(X, X * 1j)
    with pytest.raises(ArgumentError, match="method"):
        interpolate.Akima1DInterpolator(X, X, method="other")
    with pytest.raises(ArgumentError, match="extrapolate"):
        interpolate.CubicSpline(X, X, extrapolate="never")
    with pytest.raises(ShapeError, match="5 intervals"):
        interpolate.PPoly(np.ones((3, 4)), X)


def test_roots_agree_with_scipy() -> None:
    rng = np.random.default_rng(41)
    with fxflow.config.override(x64=True):
        for k in (1, 2, 4):
            c, x = rng.normal(size=(k, 5)), np.arange(6.0)
            for jumps in (True, False):
                for beyond in (True, False):
                    got = interpolate.PPoly(c, x).solve(0.1, jumps, beyond)
                    expected = want.PPoly(c, x).solve(0.1, jumps, beyond)
                    np.testing.assert_allclose(got, expected, 1e-8, 1e-8)
        flat = np.array([[0.0, 1.0]])
        got = interpolate.PPoly(flat, np.arange(3.0)).roots()
        np.testing.assert_allclose(got, want.PPoly(flat, np.arange(3.0)).roots())
        many = interpolate.PPoly(rng.normal(size=(3, 4, 2)), np.arange(5.0)).roots()
        assert many.shape == (2,) and many.dtype == object
        y = rng.normal(size=9)
        spline = interpolate.make_interp_spline(np.arange(9.0), y)
        f = interpolate.PPoly.from_spline(spline)
        at = rng.uniform(-1, 9, 20)
        np.testing.assert_allclose(f(at), spline(at), 1e-9, 1e-9)
        np.testing.assert_allclose(
            fxflow.jit(interpolate.PPoly.from_spline)(spline)(at),
            spline(at),
            1e-9,
            1e-9,
        )
    with pytest.raises(ConcretizationError, match="how many roots"):
        fxflow.jit(lambda f: f.roots())(f)
    with pytest.raises(ArgumentError, match="must be a BSpline"):
        interpolate.PPoly.from_spline((1, 2, 3))
