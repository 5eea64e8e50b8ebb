"""The incomplete beta function against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special

import fxflow
from fxflow import lax
from fxflow.errors import NotDifferentiableError

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
    ends = np.array([-1, 0, 1, 2.5, np.inf, np.nan], "f4")
    x = np.array([-0.1, 0, 0.5, 1, 1.1, np.nan], "f4")
    a, b, x = (v.ravel() for v in np.meshgrid(ends, ends, x))
    expected = scipy.special.betainc(a, b, x)
    for function in (lax.betainc, fxflow.jit(lax.betainc)):
        np.testing.assert_allclose(np.asarray(function(a, b, x)), expected, 2e-6)


def test_slope_is_the_density() -> None:
    slope = fxflow.grad(lax.betainc, 2)(2.0, 3.0, 0.3)
    np.testing.assert_allclose(float(slope), 12 * 0.3 * 0.7**2, 1e-5)
    for a, b, x, first, second in [
        (1, 2.5, 0.0, 2.5, -3.75),
        (2, 3, 0.0, 0.0, 12.0),
        (3, 1, 1.0, 3.0, 6.0),
        (2, 2, 1.0, 0.0, -6.0),
        (0.5, 2, 1.0, 0.0, -0.75),
        (1e4, 2e4, 0.0, 0.0, 0.0),
        (0, 1, 0.5, 0.0, 0.0),
        (1, np.inf, 0.5, 0.0, 0.0),
    ]:
        for slope in (fxflow.grad(lax.betainc, 2), fxflow.jacfwd(lax.betainc, 2)):
            bend = fxflow.grad(slope, 2)
            args = [np.float32(v) for v in (a, b, x)]
            np.testing.assert_allclose(slope(*args), first, 1e-5, 1e-6)
            np.testing.assert_allclose(bend(*args), second, 1e-5, 1e-6)
    with pytest.raises(NotDifferentiableError, match="with respect to x alone"):
        fxflow.grad(lax.betainc)(2.0, 3.0, 0.3)
