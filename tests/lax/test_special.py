"""Special functions against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special

import fxflow
from fxflow import lax
from fxflow.errors import NotDifferentiableError

X = np.concatenate([np.linspace(-5.3, 6, 120), [30.0, 150.5]])
NAMES = {"erf": "erf", "erfc": "erfc", "lgamma": "gammaln", "digamma": "digamma"}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("dtype", "tol"), [("float64", 1e-11), ("float32", 3e-5)])
def test_values(name: str, dtype: str, tol: float) -> None:
    x = X.astype(dtype)
    expected = getattr(scipy.special, NAMES[name])(x.astype("f8"))
    out = np.asarray(getattr(lax, name)(lax.convert_element_type(x, dtype)))
    np.testing.assert_allclose(out, expected, tol, tol)


def test_erf_inv() -> None:
    y = np.concatenate([np.linspace(-0.999, 0.999, 41), [1 - 1e-10, 1e-12]])
    out = np.asarray(lax.erf_inv(lax.convert_element_type(y, "float64")))
    np.testing.assert_allclose(out, scipy.special.erfinv(y), 1e-10)


def test_polygamma_and_zeta() -> None:
    x = np.array([0.3, 1.0, 2.5, 10.0])
    wide = lax.convert_element_type(x, "float64")
    for m in (0, 1, 2, 5):
        out = np.asarray(lax.polygamma(float(m), wide))
        np.testing.assert_allclose(out, scipy.special.polygamma(m, x), 1e-10)
    for s in (1.5, 2.0, 7.0):
        out = np.asarray(lax.zeta(s, wide))
        np.testing.assert_allclose(out, scipy.special.zeta(s, x), 1e-10)


def test_orders_have_no_slope() -> None:
    message = "no derivative with respect to their first argument"
    for function in (lax.polygamma, lax.zeta):
        with pytest.raises(NotDifferentiableError, match=message):
            fxflow.grad(function)(2.0, 3.0)


def test_higher_derivatives_of_lgamma() -> None:
    third = fxflow.grad(fxflow.grad(fxflow.grad(lax.lgamma)))(2.5)
    np.testing.assert_allclose(float(third), scipy.special.polygamma(2, 2.5), 1e-5)
