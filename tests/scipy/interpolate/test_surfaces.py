"""Splines of two variables beside SciPy's."""

import numpy as np
import pytest
import scipy.interpolate as want

import fxflow
from fxflow.errors import ArgumentError, ConcretizationError, ShapeError
from fxflow.scipy.interpolate import RectBivariateSpline

RNG = np.random.default_rng(0)
X, Y = np.arange(7.0), np.cumsum(RNG.random(8) + 0.3)
Z = RNG.normal(size=(7, 8))
A, B = np.linspace(-1, 7, 9), np.linspace(0, Y[-1] + 1, 10)


@pytest.mark.parametrize("degrees", [(3, 3), (1, 2), (5, 4)])
def test_surfaces_agree_with_scipy(degrees: tuple[int, int]) -> None:
    kx, ky = degrees
    with fxflow.config.override(x64=True):
        f = RectBivariateSpline(X, Y, Z, kx=kx, ky=ky)
        g = want.RectBivariateSpline(X, Y, Z, kx=kx, ky=ky)
        for dx, dy in ((0, 0), (1, 0), (0, 1), (1, 1)):
            if dx < kx and dy < ky:
                got, expected = f(A, B, dx, dy), g(A, B, dx, dy)
                np.testing.assert_allclose(got, expected, 1e-6, 1e-6)
                got, expected = f.ev(A, B[:9], dx, dy), g.ev(A, B[:9], dx, dy)
                np.testing.assert_allclose(got, expected, 1e-6, 1e-6)
        area = (0.5, 4.0, 1.0, 3.0)
        np.testing.assert_allclose(f.integral(*area), g.integral(*area), 1e-8)
        np.testing.assert_allclose(f.get_coeffs(), g.get_coeffs(), 1e-7)
        for one, other in zip(f.get_knots(), g.get_knots(), strict=True):
            np.testing.assert_allclose(one, other)


def test_surfaces_have_derivatives() -> None:
    with fxflow.config.override(x64=True):
        f = RectBivariateSpline(X, Y, Z)
        slopes = fxflow.grad(f.ev, (0, 1))(1.3, 2.2)
        np.testing.assert_allclose(slopes, [f.ev(1.3, 2.2, 1), f.ev(1.3, 2.2, 0, 1)])
        total = lambda z: RectBivariateSpline(X, Y, z).ev(1.3, 2.2)
        by_value = fxflow.jit(fxflow.grad(total))(Z)
        np.testing.assert_allclose((by_value * Z).sum(), total(Z), 1e-9)


def test_other_intervals_are_those_of_scipy() -> None:
    box = (-1.0, None, Y[0] - 0.5, Y[-1] + 2)
    with fxflow.config.override(x64=True):
        f = RectBivariateSpline(X, Y, Z, box, kx=3, ky=2)
        g = want.RectBivariateSpline(X, Y, Z, box, kx=3, ky=2)
        for one, other in zip(f.get_knots(), g.get_knots(), strict=True):
            np.testing.assert_allclose(one, other)
        np.testing.assert_allclose(f(A, B), g(A, B), 1e-6, 1e-6)
        assert float(f.get_residual()) == 0


def test_smooth_surfaces_leave_a_sum_of_squares() -> None:
    x, y = np.linspace(0, 3, 15), np.linspace(0, 2, 13)
    z = np.sin(2 * x)[:, None] * np.cos(3 * y) + 0.1 * RNG.normal(size=(15, 13))
    with fxflow.config.override(x64=True):
        for s in (2.0, 40.0):
            f = RectBivariateSpline(x, y, z, s=s)
            g = want.RectBivariateSpline(x, y, z, s=s)
            for one, other in zip(f.get_knots(), g.get_knots(), strict=True):
                np.testing.assert_allclose(one, other)
            left = np.sum((np.asarray(f(x, y)) - z) ** 2)
            np.testing.assert_allclose(f.get_residual(), left, 1e-9)
            # SciPy stops near s.
            np.testing.assert_allclose(left, g.get_residual(), 2e-3)
            np.testing.assert_allclose(f(x, y), g(x, y), atol=5e-3)
        slope = fxflow.grad(lambda z: RectBivariateSpline(x, y, z, s=2.0).ev(1.1, 0.7))
        step = 1e-5 * RNG.normal(size=z.shape)
        ahead, back = (
            RectBivariateSpline(x, y, z + v, s=2.0).ev(1.1, 0.7) for v in (step, -step)
        )
        np.testing.assert_allclose(
            np.sum(np.asarray(slope(z)) * step), (ahead - back) / 2, 1e-4
        )
    with pytest.raises(ConcretizationError, match="give knots to LSQBivariateSpline"):
        fxflow.jit(lambda z: RectBivariateSpline(x, y, z, s=2.0))(z)


def test_bad_surfaces_are_refused() -> None:
    with pytest.raises(ArgumentError, match="s must not be negative"):
        RectBivariateSpline(X, Y, Z, s=-1)
    with pytest.raises(ArgumentError, match="bbox must be four numbers"):
        RectBivariateSpline(X, Y, Z, bbox=(0, 1))
    with pytest.raises(ArgumentError):
        RectBivariateSpline(X, Y, Z, bbox=(0, 1, 2, 3))
    with pytest.raises(ShapeError, match="two axes"):
        RectBivariateSpline(X, Y, Z[0])
    with pytest.raises(ArgumentError, match="derivative's order"):
        RectBivariateSpline(X, Y, Z).ev(1.0, 2.0, 4)
