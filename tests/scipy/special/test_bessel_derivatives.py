"""Derivatives of Bessel functions, and scaled Hankel functions, against SciPy."""

import numpy as np
import pytest
import scipy.special

import fxflow
from fxflow.errors import ArgumentError
from fxflow.scipy import special

RNG = np.random.default_rng(27)
V, Z = RNG.uniform(0, 6, 12), RNG.uniform(0.3, 20, 12)


@pytest.mark.parametrize("name", ["jvp", "yvp", "ivp", "kvp", "h1vp", "h2vp"])
def test_derivatives_agree_with_scipy(name: str) -> None:
    function, theirs = getattr(special, name), getattr(scipy.special, name)
    with fxflow.config.override(x64=True):
        want = theirs(V, Z, 3)
        np.testing.assert_allclose(function(V, Z, 3), want, 1e-9, 1e-13)
    with pytest.raises(ArgumentError, match="n must not be negative, got -1"):
        function(1.0, 1.0, -1)


def test_the_first_derivative_is_that_of_the_function() -> None:
    with fxflow.config.override(x64=True):
        got = float(special.kvp(1.3, 2.0))
        assert got == pytest.approx(float(fxflow.grad(special.kv, 1)(1.3, 2.0)))
        assert float(special.kvp(1.3, 2.0, 0)) == float(special.kv(1.3, 2.0))


@pytest.mark.parametrize("name", ["hankel1e", "hankel2e"])
def test_scaled_hankel_functions(name: str) -> None:
    with fxflow.config.override(x64=True):
        want = getattr(scipy.special, name)(V, Z)
        np.testing.assert_allclose(getattr(special, name)(V, Z), want, 1e-12)


def test_lambda_functions() -> None:
    with fxflow.config.override(x64=True):
        for v, x in ((0.0, 1.5), (3.4, 2.3), (2.0, 30.0)):
            value, slope = special.lmbda(v, x)
            want, want_slope = scipy.special.lmbda(v, x)
            count = int(v) + 1  # SciPy has one order more for v below 1.
            np.testing.assert_allclose(value, want[:count], 1e-12, 1e-14)
            np.testing.assert_allclose(slope, want_slope[:count], 1e-12, 1e-14)
        first = fxflow.grad(lambda x: special.lmbda(1.5, x)[0][1])(2.0)
        assert float(first) == pytest.approx(float(special.lmbda(1.5, 2.0)[1][1]))
        value, slope = special.lmbda(1.5, np.zeros(3))
        assert (value == 1).all() and (slope == 0).all() and value.shape == (2, 3)
    with pytest.raises(
        ArgumentError, match="v must be a number from 0 to 1000, got -1"
    ):
        special.lmbda(-1, 2.0)
