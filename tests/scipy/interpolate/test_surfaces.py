"""Splines of two variables beside SciPy's."""

import numpy as np
import pytest
import scipy.interpolate as want

import fxflow
from fxflow.errors import ArgumentError, ShapeError
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


def test_bad_surfaces_are_refused() -> None:
    with pytest.raises(ArgumentError, match="s must be 0"):
        RectBivariateSpline(X, Y, Z, s=1)
    with pytest.raises(ArgumentError, match="bbox"):
        RectBivariateSpline(X, Y, Z, bbox=(0, 1, 2, 3))
    with pytest.raises(ShapeError, match="two axes"):
        RectBivariateSpline(X, Y, Z[0])
    with pytest.raises(ArgumentError, match="derivative's order"):
        RectBivariateSpline(X, Y, Z).ev(1.0, 2.0, 4)
