"""The incomplete beta function against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special
import scipy.stats

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
def test_agrees_with_scipy(dtype: str, tol: float) -> None:
    args = [v.astype(dtype) for v in (A, B, X)]
    expected = scipy.special.betainc(*(v.astype("f8") for v in args))
    out = lax.betainc(*(lax.convert_element_type(v, dtype) for v in args))
    np.testing.assert_allclose(np.asarray(out), expected, tol, tol)


def test_limits_agree_with_scipy() -> None:
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


@pytest.mark.parametrize(("dtype", "tol"), [("float64", 3e-16), ("float32", 1e-7)])
def test_large_shapes(dtype: str, tol: float) -> None:
    a, b, off = (
        v.ravel().astype(dtype)
        for v in np.meshgrid([12.0, 2e3, 1e6, 1e10], [15.0, 1.1e3, 1e7], [-2, 0, 0.5])
    )
    mean = a / (a + b)
    x = mean + off * np.sqrt(mean * (1 - mean) / (a + b))
    wide = [v.astype("f8") for v in (a, b, x)]
    # x is known to its rounding, which moves the result by √a times that. SciPy itself
    # is right to 2e-10 only.
    near = tol * np.sqrt(np.minimum(wide[0], wide[1]) + 1e3) * 10 + 3e-10
    with fxflow.config.override(x64=True):
        for function in (lax.betainc, fxflow.jit(lax.betainc)):
            error = np.asarray(function(a, b, x)) - scipy.special.betainc(*wide)
            assert np.all(abs(error) < near), abs(error / near).max()
        slope = fxflow.vmap(fxflow.grad(lax.betainc, 2))(a, b, x)
        expected = scipy.stats.beta.pdf(wide[2], wide[0], wide[1])
        met = (x < 1) & (expected > 0)
        error = np.asarray(slope)[met] / expected[met] - 1
        assert np.all(abs(error) < 10 * near[met])
