"""Zeros of Bessel functions and Airy's against SciPy and mpmath."""

import mpmath
import numpy as np
import pytest
import scipy.special

import fxflow
from fxflow.errors import ArgumentError
from fxflow.scipy import special


@pytest.mark.parametrize("name", ["jn_zeros", "jnp_zeros", "yn_zeros", "ynp_zeros"])
def test_zeros_of_bessel_functions(name: str) -> None:
    function, want = getattr(special, name), getattr(scipy.special, name)
    with fxflow.config.override(x64=True):
        for n in (0, 1, 7, 40):
            np.testing.assert_allclose(function(n, 60), want(n, 60), 1e-15)
        both = special.jnyn_zeros(3, 4)
        kinds = ["jn_zeros", "jnp_zeros", "yn_zeros", "ynp_zeros"]
        np.testing.assert_array_equal(both[kinds.index(name)], function(3, 4))
    for n, nt, word in ((-1, 3, "n must"), (0, 0, "nt must"), (0.5, 3, "n")):
        with pytest.raises(ArgumentError, match=word):
            function(n, nt)


@pytest.mark.parametrize("kind", ["ai", "bi"])
def test_zeros_of_airys_functions(kind: str) -> None:
    function = getattr(special, f"{kind}_zeros")
    with fxflow.config.override(x64=True):
        got = [np.asarray(v) for v in function(400)]
        want = getattr(scipy.special, f"{kind}_zeros")(400)
        np.testing.assert_allclose(got, want, 1e-9)
        zero = getattr(mpmath, f"airy{kind}zero")
        for k in (1, 7, 300):
            exact = [float(mpmath.re(zero(k, derivative=d))) for d in (0, 1)]
            np.testing.assert_allclose([g[k - 1] for g in got[:2]], exact, 1e-14)
    with pytest.raises(ArgumentError, match="nt"):
        function(0)


def test_zeros_of_all_orders() -> None:
    with fxflow.config.override(x64=True):
        for nt in (5, 60):
            got, want = special.jnjnp_zeros(nt), scipy.special.jnjnp_zeros(nt)
            for g, w in zip(got, want, strict=True):
                np.testing.assert_allclose(g, w, 1e-14)
    with pytest.raises(ArgumentError, match="nt must"):
        special.jnjnp_zeros(1201)
