"""Spherical Bessel functions and Airy's against mpmath and SciPy."""

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special

import fxflow
from fxflow.errors import ArgumentError, DtypeError
from fxflow.scipy import special

CYLINDER: dict[str, Callable[..., Any]] = {
    "spherical_jn": mpmath.besselj,
    "spherical_yn": mpmath.bessely,
    "spherical_in": mpmath.besseli,
    "spherical_kn": mpmath.besselk,
}


def exact(name: str, n: int, z: float) -> float:
    """A spherical function of a positive number."""
    with mpmath.workdps(30):
        at = mpmath.mpf(z)
        root = mpmath.sqrt(mpmath.pi / 2 / at)
        return float(root * CYLINDER[name](n + mpmath.mpf("0.5"), at))


@pytest.mark.parametrize("name", ["spherical_jn", "spherical_kn"])
def test_spherical_functions(name: str) -> None:
    check_spherical(name, 30)


@pytest.mark.slow
@pytest.mark.parametrize("name", CYLINDER)
def test_more_spherical_functions(name: str) -> None:
    check_spherical(name, 400)
    with fxflow.config.override(x64=True), np.errstate(all="ignore"):
        n, z = np.array([0, 1, 2, 5])[:, None], np.array([-3.0, 0.4, 2.5, 9.0])
        function, theirs = getattr(special, name), getattr(scipy.special, name)
        np.testing.assert_allclose(function(n, z), theirs(n, z), 1e-13)
        want = theirs(n, z, derivative=True)
        np.testing.assert_allclose(function(n, z, derivative=True), want, 1e-12)
        slope = fxflow.grad(lambda z: function(n, z).sum())(z)
        np.testing.assert_allclose(slope, want.sum(0), 1e-11)
        twice = fxflow.grad(fxflow.grad(function, 1), 1)(2.0, 0.7)
        h = 1e-6
        near = theirs(2, 0.7 + h, derivative=True) - theirs(2, 0.7 - h, derivative=True)
        assert float(twice) == pytest.approx(near / (2 * h), rel=1e-7)
        edges = np.array([-0.0, 0.0, np.inf, np.nan])
        np.testing.assert_allclose(function(n, edges), theirs(n, edges), 1e-14)
        assert np.isnan(function(-1, 1.0))


def check_spherical(name: str, count: int) -> None:
    """Compares with mpmath, relative to the amplitude where it oscillates."""
    rng = np.random.default_rng(27)
    n, z = rng.integers(0, 40, count), 10 ** rng.uniform(-3, 3, count)
    want = np.array([exact(name, *p) for p in zip(n.tolist(), z.tolist(), strict=True)])
    usual = (abs(want) > 1e-290) & (abs(want) < 1e290)
    n, z, want = n[usual], z[usual], want[usual]
    with fxflow.config.override(x64=True):
        got = np.asarray(getattr(special, name)(n, z))
    waves = (name[-2] in "jy") & (z > n + 0.5)
    scale = np.where(waves, np.maximum(abs(want), 1 / z), abs(want))
    assert (abs(got - want) / scale < 2e-14 * (1 + n / 4)).all()


def test_spherical_derivative_at_zero() -> None:
    slopes = special.spherical_jn(np.arange(3), 0.0, derivative=True)
    np.testing.assert_allclose(slopes, [0, 1 / 3, 0], 1e-6)


def test_shapes_and_dtypes() -> None:
    assert special.spherical_jn(0, np.zeros((0, 2))).shape == (0, 2)
    got = special.spherical_in(np.array([[0], [1]]), np.float32([0.5, 2, 3]))
    assert (got.shape, got.dtype) == ((2, 3), np.float32)
    with pytest.raises(DtypeError, match="real"):
        special.spherical_jn(0, 1j)


@pytest.mark.parametrize("name", ["spherical_jn", "spherical_yn"])
def test_whole_orders_are_as_exact_as_others(name: str) -> None:
    rng = np.random.default_rng(27)
    n, x = rng.integers(0, 40, 40), 10 ** rng.uniform(-1, 2, 40)
    function = getattr(special, name)
    with fxflow.config.override(x64=True):
        got = np.asarray(function(n, x))
        # One order that is not whole, and all are computed in the other way.
        some = function(np.append(n, 0.5), np.append(x, 1.0))[:-1]
        amplitude = np.where(n < x, 1 / x, 0)
        error = abs(got - np.asarray(some)) / np.maximum(abs(got), amplitude)
        assert error.max() < 1e-13
        by_order = fxflow.grad(function)(3.0, 2.5)
        h = 1e-5
        rate = (function(3.0 + h, 2.5) - function(3.0 - h, 2.5)) / (2 * h)
        assert float(by_order) == pytest.approx(float(rate), rel=1e-8)


@pytest.mark.parametrize("name", ["riccati_jn", "riccati_yn"])
def test_riccati_form(name: str) -> None:
    function, theirs = getattr(special, name), getattr(scipy.special, name)
    with fxflow.config.override(x64=True):
        for x in (0.4, 2.3, 12.0):
            for got, want in zip(function(6, x), theirs(6, x), strict=True):
                np.testing.assert_allclose(got, want, 1e-12, 1e-14)
        slope = fxflow.grad(lambda x: function(3, x)[0][3])(2.3)
        assert float(slope) == pytest.approx(float(function(3, 2.3)[1][3]))
    assert function(2, np.zeros((4, 0)))[0].shape == (3, 4, 0)
    with pytest.raises(ArgumentError, match="n must be from 0 to 9999, got -1"):
        function(-1, 1.0)
