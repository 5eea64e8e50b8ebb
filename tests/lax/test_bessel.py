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
def test_values(order: int, dtype: str, tol: float) -> None:
    x = X.astype(dtype)
    expected = getattr(scipy.special, f"i{order}e")(x.astype("f8"))
    function = getattr(lax, f"bessel_i{order}e")
    out = np.asarray(function(lax.convert_element_type(x, dtype)))
    np.testing.assert_allclose(out, expected, tol, tol * 1e-3)


def test_slopes_at_zero() -> None:
    assert float(fxflow.grad(lax.bessel_i1e)(0.0)) == 0.5
    assert float(fxflow.grad(lax.bessel_i0e)(0.0)) == 0
