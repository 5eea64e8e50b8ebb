"""Parabolic cylinder functions against mpmath and SciPy."""

from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special

import fxflow
from fxflow.errors import ArgumentError
from fxflow.scipy import special

RNG = np.random.default_rng(27)
ORDERS = np.concatenate([RNG.uniform(-20, 20, 14), [3, 0, -1, -0.5, 120.5, -150.3, 8]])
X = np.concatenate([RNG.uniform(-8, 8, 14), [-6, 0, 2, -3, -8, 7, -5.5]])


def _exact(name: str, v: float, x: float) -> float:
    if name == "pbdv":
        return float(mpmath.pcfd(v, x))
    if name == "pbvv":
        return float(mpmath.pcfv(-v - 0.5, x))
    return float(mpmath.pcfw(v, x).real)


@pytest.mark.parametrize("name", ["pbdv", "pbvv"])
def test_many_orders(name: str) -> None:
    orders = ORDERS if name == "pbdv" else ORDERS + 0.25  # mpmath lacks others
    with fxflow.config.override(x64=True), mpmath.workdps(30):
        value, slope = getattr(special, name)(orders, X)
        # Relative also to the other of both, of which one may be near a zero.
        exact = [
            _exact(name, v, x) for v, x in zip(orders.tolist(), X.tolist(), strict=True)
        ]
        scale = np.abs(exact) + np.abs(slope) / (
            1 + np.abs(X) + np.sqrt(np.abs(orders))
        )
        np.testing.assert_allclose(value / scale, exact / scale, 0, 1e-13)
        # D' = x / 2 D - D of the next order; V' = x / 2 V - (v + 1) V of it.
        other = getattr(special, name)(orders + 1, X)[0]
        factor = -1 if name == "pbdv" else -orders - 1
        want = 0.5 * X * np.asarray(value) + factor * np.asarray(other)
        scale = np.abs(slope) + np.abs(0.5 * X * np.asarray(value)) + 1e-300
        np.testing.assert_allclose(slope / scale, want / scale, 0, 1e-11)
        outside = getattr(special, name)(np.array([1001.0, 1.0]), np.array([1.0, -101]))
        assert np.isnan(outside).all()
        sequence = getattr(special, f"{name}_seq")
        got, want = sequence(3.5, 1.2), getattr(scipy.special, f"{name}_seq")(3.5, 1.2)
        np.testing.assert_allclose(got, want, 1e-12)
        assert sequence(2.5, np.ones(3))[0].shape == (3, 3)
    for bad in (-1.0, "a", np.ones(2)):
        with pytest.raises(ArgumentError, match="v must be"):
            sequence(bad, 1.0)


def test_w() -> None:
    a, x = RNG.uniform(-5, 3, 8), RNG.uniform(-5, 5, 8)
    with fxflow.config.override(x64=True), mpmath.workdps(30):
        value, slope = special.pbwa(a, x)
        want = [
            _exact("pbwa", p, q) for p, q in zip(a.tolist(), x.tolist(), strict=True)
        ]
        np.testing.assert_allclose(value, want, 1e-10, 1e-12)
        np.testing.assert_allclose(slope, scipy.special.pbwa(a, x)[1], 1e-8, 1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pbdv", "pbvv", "pbwa"])
def test_derivatives(name: str) -> None:
    function: Any = getattr(special, name)
    with fxflow.config.override(x64=True), mpmath.workdps(30):
        of = lambda v, x: function(v, x)[0]
        for v, x in ((1.3, -0.8), (-2.2, 1.7)):
            slopes = fxflow.grad(of, (0, 1))(v, x)
            want = [
                (_exact(name, v + 1e-5, x) - _exact(name, v - 1e-5, x)) / 2e-5,
                function(v, x)[1],
            ]
            np.testing.assert_allclose(slopes, [float(w) for w in want], 1e-7)
        force = 0.25 * 0.8**2 - 1.8 if name != "pbwa" else 1.3 - 0.25 * 0.8**2
        bend = fxflow.grad(fxflow.grad(of, 1), 1)(1.3, -0.8)
        assert float(bend) == pytest.approx(force * float(of(1.3, -0.8)), rel=1e-12)
