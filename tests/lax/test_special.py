"""Special functions against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special

from fxflow import lax

X = np.concatenate([np.linspace(-5.3, 6, 120), [30.0, 150.5]])
NAMES = {"erf": "erf", "erfc": "erfc"}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("dtype", "tol"), [("float64", 1e-11), ("float32", 3e-5)])
def test_agrees_with_scipy(name: str, dtype: str, tol: float) -> None:
    x = X.astype(dtype)
    expected = getattr(scipy.special, NAMES[name])(x.astype("f8"))
    out = np.asarray(getattr(lax, name)(lax.convert_element_type(x, dtype)))
    np.testing.assert_allclose(out, expected, tol, tol)


def test_erf_inv() -> None:
    y = np.concatenate([np.linspace(-0.999, 0.999, 41), [1 - 1e-10, 1e-12]])
    out = np.asarray(lax.erf_inv(lax.convert_element_type(y, "float64")))
    np.testing.assert_allclose(out, scipy.special.erfinv(y), 1e-10)
