"""The incomplete beta function against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special

import fxflow
from fxflow import lax
from fxflow.core.errors import NotDifferentiableError

A, B, X = (
    grid.ravel()
    for grid in np.meshgrid(
        [0.05, 0.5, 1.0, 3.0, 30.0, 200.0],
        [0.1, 1.0, 7.5, 90.0],
        [0.01, 0.3, 0.6, 0.99],
    )
)


@pytest.mark.parametrize(("dtype", "tol"), [("float64", 1e-11), ("float32", 1e-4)])
def test_values(dtype: str, tol: float) -> None:
    args = [v.astype(dtype) for v in (A, B, X)]
    expected = scipy.special.betainc(*(v.astype("f8") for v in args))
    out = lax.betainc(*(lax.convert_element_type(v, dtype) for v in args))
    np.testing.assert_allclose(np.asarray(out), expected, tol, tol)


def test_ends() -> None:
    a = np.array([1, 1, 1, 0, -1, 1], "f4")
    x = np.array([0, 1, -0.1, 0.5, 0.5, np.nan], "f4")
    out = np.asarray(lax.betainc(a, np.ones(6, "f4"), x))
    np.testing.assert_array_equal(out, [0, 1, np.nan, np.nan, np.nan, np.nan])


def test_slope_is_the_density() -> None:
    slope = fxflow.grad(lax.betainc, 2)(2.0, 3.0, 0.3)
    np.testing.assert_allclose(float(slope), 12 * 0.3 * 0.7**2, 1e-5)
    with pytest.raises(NotDifferentiableError, match="with respect to x alone"):
        fxflow.grad(lax.betainc)(2.0, 3.0, 0.3)
