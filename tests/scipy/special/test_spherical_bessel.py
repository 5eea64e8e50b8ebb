"""Spherical Bessel functions and Airy's against mpmath and SciPy."""

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special

import fxflow
from fxflow.errors import DtypeError
from fxflow.scipy import special

CYLINDER: dict[str, Callable[..., Any]] = {
    "spherical_jn": mpmath.besselj,
    "spherical_yn": mpmath.bessely,
    "spherical_in": mpmath.besseli,
    "spherical_kn": mpmath.besselk,
}
AIRY = (mpmath.airyai, mpmath.airyai, mpmath.airybi, mpmath.airybi)


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


def test_airy() -> None:
    rng = np.random.default_rng(27)
    x = np.concatenate([rng.uniform(-30, 30, 40), [-1, 1, 0, 0.999, 100, -1e4]])
    with mpmath.workdps(40):
        want = np.array(
            [
                [float(f(at, derivative=i % 2)) for at in x.tolist()]
                for i, f in enumerate(AIRY)
            ]
        )
    with fxflow.config.override(x64=True):
        got = np.asarray(special.airy(x))
        # What oscillates: to the amplitude, and as far as the phase is known.
        power = np.array([-0.25, 0.25, -0.25, 0.25])[:, None]
        amplitude = np.where(x < -1, np.maximum(abs(x), 1) ** power, 0)
        moves = 1 + abs(x) ** 1.5 / 4
        error = abs(got - want) / np.maximum(abs(want), amplitude) / moves
        assert (error < 4e-15).all()
        ends = np.asarray(special.airy(np.array([np.inf, -np.inf, np.nan])))
    np.testing.assert_array_equal(ends[:, 0], [0, 0, np.inf, np.inf])
    np.testing.assert_array_equal(ends[[0, 2], 1], [0, 0])
    assert np.isnan(ends[:, 2]).all()
    narrow = special.airy(x[:40].astype(np.float32))
    assert narrow[0].dtype == np.float32


@pytest.mark.slow
def test_derivatives_of_airy() -> None:
    with fxflow.config.override(x64=True):
        for x in (-5.0, -0.3, 0.0, 2.0):
            ai, dai, bi, dbi = scipy.special.airy(x)
            for i, want in enumerate((dai, x * ai, dbi, x * bi)):
                got = fxflow.grad(lambda x, i=i: special.airy(x)[i])(x)
                assert float(got) == pytest.approx(want, rel=1e-12, abs=1e-14)
            twice = fxflow.grad(fxflow.grad(lambda x: special.airy(x)[0]))(x)
            assert float(twice) == pytest.approx(x * ai, rel=1e-12, abs=1e-14)


def test_shapes_and_dtypes() -> None:
    assert special.airy(np.zeros((0, 2)))[3].shape == (0, 2)
    got = special.spherical_in(np.array([[0], [1]]), np.float32([0.5, 2, 3]))
    assert (got.shape, got.dtype) == ((2, 3), np.float32)
    with pytest.raises(DtypeError, match="real"):
        special.airy(1j)
