"""Confluent hypergeometric functions against mpmath."""

import mpmath
import numpy as np
import pytest
import scipy.special

import fxflow
from fxflow.scipy import special

RNG = np.random.default_rng(27)


def test_hyp0f1() -> None:
    v, z = RNG.uniform(-5, 20, 40), RNG.uniform(-100, 100, 40)
    with fxflow.config.override(x64=True):
        pairs = zip(v, z, strict=True)
        want = np.array([float(mpmath.hyp0f1(*pair)) for pair in pairs])
        # Where it oscillates, relative to its amplitude.
        below = np.maximum(-z, 1)
        size = abs(scipy.special.gamma(v)) * below ** (0.25 - v / 2)
        size = np.where(z < 0, np.maximum(abs(want), size), abs(want))
        assert (abs(np.asarray(special.hyp0f1(v, z)) - want) < 3e-14 * size).all()
        edges = special.hyp0f1(np.array([-2.0, 0, np.nan, 1]), np.array([1, 1, 1, 0.0]))
        np.testing.assert_array_equal(edges, [np.nan, np.nan, np.nan, 1])


def test_hyperu() -> None:
    a, b = RNG.uniform(0.1, 12, 24), RNG.uniform(-10, 12, 24)
    x = 10 ** RNG.uniform(-2, 2, 24)
    a[:6], b[:6] = RNG.uniform(-6, 0, 6), RNG.uniform(-4, 1, 6)
    with fxflow.config.override(x64=True):
        rows = zip(a, b, x, strict=True)
        want = np.array([float(mpmath.hyperu(*row)) for row in rows])
        np.testing.assert_allclose(special.hyperu(a, b, x), want, 1e-12)
        outside = special.hyperu(1.0, 2.0, np.array([-1.0, 0, np.nan]))
        assert np.isnan(outside).all()


@pytest.mark.slow
def test_derivatives() -> None:
    with fxflow.config.override(x64=True):
        slopes = fxflow.jit(fxflow.grad(special.hyp0f1, (0, 1)))
        for z in (0.7, -7.0):
            orders = ((1, 0), (0, 1))
            rates = [float(mpmath.diff(mpmath.hyp0f1, (1.3, z), k)) for k in orders]
            np.testing.assert_allclose(slopes(1.3, z), rates, 1e-12)
        at = (1.3, 0.7, 2.0)
        slopes = fxflow.jit(fxflow.grad(special.hyperu, (0, 1, 2)))
        orders = ((1, 0, 0), (0, 1, 0), (0, 0, 1))
        rates = [float(mpmath.diff(mpmath.hyperu, at, k)) for k in orders]
        np.testing.assert_allclose(slopes(*at), rates, 1e-12)
