"""log Γ, its derivatives and ζ against SciPy."""

from __future__ import annotations

import itertools
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special

import fxflow
from fxflow import lax
from fxflow.errors import NotDifferentiableError

X = np.concatenate([np.linspace(-5.3, 6, 120), [30.0, 150.5]])
NAMES = {"lgamma": "gammaln", "digamma": "digamma"}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("dtype", "tol"), [("float64", 1e-11), ("float32", 3e-5)])
def test_agrees_with_scipy(name: str, dtype: str, tol: float) -> None:
    x = X.astype(dtype)
    expected = getattr(scipy.special, NAMES[name])(x.astype("f8"))
    out = np.asarray(getattr(lax, name)(lax.convert_element_type(x, dtype)))
    np.testing.assert_allclose(out, expected, tol, tol)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_lgamma_keeps_its_digits_near_its_zeros(dtype: str) -> None:
    steps = np.array([-0.45, -1e-3, -1e-6, 1e-6, 1e-5, 0.2, 0.49])
    x = np.concatenate([1 + steps, 2 + steps]).astype(dtype)
    with fxflow.config.override(x64=True):
        out = np.asarray(fxflow.jit(lax.lgamma)(x))
    z = x.astype("f8") - np.repeat([1.0, 2.0], len(steps))
    # A series of few terms near 0, SciPy elsewhere.
    psi, bend = scipy.special.digamma([1.0, 2.0]), scipy.special.polygamma(1, [1, 2.0])
    near = np.repeat(psi, len(steps)) * z + np.repeat(bend, len(steps)) * z * z / 2
    expected = np.where(abs(z) < 1e-5, near, scipy.special.gammaln(x.astype("f8")))
    tol = 2e-6 if dtype == "float32" else 2e-10
    np.testing.assert_allclose(out, expected, tol)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_lgamma_within_a_few_ulp(dtype: str) -> None:
    ends = [0.5, 1.5, 2.5, 10, 30, 1e4]
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(a, b, 200) for a, b in itertools.pairwise(ends)])
    x = np.concatenate([x, rng.uniform(-0.5, 0.5, 200), [1e-30, -1e-30, 1e30]])
    x = x.astype(dtype)
    expected = [float(mpmath.re(mpmath.loggamma(v))) for v in x.tolist()]
    with fxflow.config.override(x64=True):
        out = np.asarray(fxflow.jit(lax.lgamma)(x))
        poles = np.array([0, -0.0, -1, -7, np.inf, -np.inf], dtype)
        at_poles = np.asarray(fxflow.jit(lax.lgamma)(poles))
    np.testing.assert_allclose(out, expected, 5 * np.finfo(dtype).eps)
    np.testing.assert_array_equal(at_poles, np.full(6, np.inf))


def test_poles_of_digamma() -> None:
    out = np.asarray(lax.digamma(np.array([0.0, -0.0, -1.0, -3.0], "f4")))
    np.testing.assert_array_equal(out, [-np.inf, np.inf, np.nan, np.nan])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_zeta_and_trigamma_left_of_zero(dtype: str) -> None:
    x = np.array([-0.3, -9.111273765563965, -10.6, -35.9243, -1e4 - 0.25], dtype)
    wide = x.astype("f8")
    with fxflow.config.override(x64=True):
        for s in (2, 3, 6):
            out = np.asarray(lax.zeta(np.asarray(s, dtype), x))
            np.testing.assert_allclose(out, scipy.special.zeta(s, wide), 2e-5)
        slope = fxflow.vmap(fxflow.grad(lax.digamma))(x)
        np.testing.assert_allclose(slope, scipy.special.polygamma(1, wide), 2e-5)


@pytest.mark.parametrize("s", [50.0, 1e4, 1e30])
def test_zeta_of_large_exponents(s: float) -> None:
    assert float(lax.zeta(s, 1.0)) == 1.0
    assert float(fxflow.jit(lax.zeta)(s, 3.0)) == pytest.approx(3.0**-s, 1e-4)
    np.testing.assert_allclose(float(lax.zeta(2.0, 1e30)), 1e-30, 1e-5)


def test_polygamma_and_zeta() -> None:
    x = np.array([0.3, 1.0, 2.5, 10.0])
    wide = lax.convert_element_type(x, "float64")
    for m in (0, 1, 2, 5):
        out = np.asarray(lax.polygamma(float(m), wide))
        np.testing.assert_allclose(out, scipy.special.polygamma(m, x), 1e-10)
    for s in (1.5, 2.0, 7.0):
        out = np.asarray(lax.zeta(s, wide))
        np.testing.assert_allclose(out, scipy.special.zeta(s, x), 1e-10)


@pytest.mark.parametrize("run", [lambda f: f, fxflow.jit], ids=["eager", "jit"])
def test_polygamma_where_its_factors_leave_the_range(run: Any) -> None:
    m, x = np.meshgrid(np.arange(1.0, 33), [1.5, 20, 1e2, 1e3, 1e6, 1e22, 1e35])
    want = scipy.special.polygamma(m.astype(int), x)
    with np.errstate(under="ignore"):
        want = want.astype(np.float32)
    got = np.asarray(run(lax.polygamma)(m.astype(np.float32), x.astype(np.float32)))
    np.testing.assert_allclose(got, want, 3e-5, np.finfo(np.float32).tiny)


def test_orders_have_no_slope() -> None:
    message = "no derivative with respect to their first argument"
    for function in (lax.polygamma, lax.zeta):
        with pytest.raises(NotDifferentiableError, match=message):
            fxflow.grad(function)(2.0, 3.0)


def test_higher_derivatives_of_lgamma() -> None:
    third = fxflow.grad(fxflow.grad(fxflow.grad(lax.lgamma)))(2.5)
    np.testing.assert_allclose(float(third), scipy.special.polygamma(2, 2.5), 1e-5)
