"""Modified Bessel functions against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special

import fxflow
from fxflow import lax

X = np.concatenate([np.linspace(-20, 20, 161), [1e-8, 7.9999, 8.0001, 700.0, 1e6]])


@pytest.mark.parametrize(("dtype", "tol"), [("float64", 1e-13), ("float32", 1e-6)])
@pytest.mark.parametrize("order", [0, 1])
def test_agrees_with_scipy(order: int, dtype: str, tol: float) -> None:
    x = X.astype(dtype)
    expected = getattr(scipy.special, f"i{order}e")(x.astype("f8"))
    function = getattr(lax, f"bessel_i{order}e")
    out = np.asarray(function(lax.convert_element_type(x, dtype)))
    np.testing.assert_allclose(out, expected, tol, tol * 1e-3)


def test_slopes_at_zero() -> None:
    assert float(fxflow.grad(lax.bessel_i1e)(0.0)) == 0.5
    assert float(fxflow.grad(lax.bessel_i0e)(0.0)) == 0


def test_further_slopes_near_zero() -> None:
    with fxflow.config.override(x64=True):
        for x in (0.0, 1e-20, 1e-3, 0.3, 0.5, 0.7):
            ratio = fxflow.grad(fxflow.grad(lax.bessel_i1e))
            # exp(-x) (I₁'' - 2 I₁' + I₁), from above; the mean of both sides at 0.
            i1 = [scipy.special.ivp(1, x, k) for k in range(3)]
            want = np.exp(-x) * (i1[2] - 2 * i1[1] * (x > 0) + i1[0])
            np.testing.assert_allclose(float(ratio(x)), want, 1e-12, 1e-12)
