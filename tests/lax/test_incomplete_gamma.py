"""Incomplete gamma functions against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special

import fxflow
from fxflow import lax
from fxflow.errors import NotDifferentiableError

A, X = (
    grid.ravel()
    for grid in np.meshgrid(
        [0.01, 0.3, 1.0, 2.5, 9.9, 10.1, 40.0, 1e3], [1e-3, 0.2, 1.0, 3.0, 12.0, 45.0]
    )
)


@pytest.mark.parametrize(("dtype", "tol"), [("float64", 1e-11), ("float32", 2e-5)])
@pytest.mark.parametrize("name", ["igamma", "igammac"])
def test_agrees_with_scipy(name: str, dtype: str, tol: float) -> None:
    a, x = A.astype(dtype), X.astype(dtype)
    scipy_name = {"igamma": "gammainc", "igammac": "gammaincc"}[name]
    expected = getattr(scipy.special, scipy_name)(a.astype("f8"), x.astype("f8"))
    out = getattr(lax, name)(
        lax.convert_element_type(a, dtype), lax.convert_element_type(x, dtype)
    )
    np.testing.assert_allclose(np.asarray(out), expected, tol, tol)


def test_near_the_mean_of_a_large_shape() -> None:
    a = np.array([1e4, 1e4, 1e5], "f4")
    x = np.array([1e4, 1.01e4, 0.999e5], "f4")
    expected = scipy.special.gammainc(a.astype("f8"), x.astype("f8"))
    np.testing.assert_allclose(np.asarray(lax.igamma(a, x)), expected, 2e-3)


def test_limits_of_either_argument() -> None:
    inf, nan = np.inf, np.nan
    a = np.array([0, 1, 0, -1, inf, 2, inf, nan], "f4")
    x = np.array([1, 0, 0, 1, 1, inf, inf, 1], "f4")
    lower, upper = np.asarray(lax.igamma(a, x)), np.asarray(lax.igammac(a, x))
    np.testing.assert_array_equal(lower, [1, 0, nan, nan, 0, 1, nan, nan])
    np.testing.assert_array_equal(upper, [0, 1, nan, nan, 1, 0, nan, nan])


def test_a_sample_moves_along_its_quantile() -> None:
    a, p = np.array([0.5, 2.0, 20.0]), 0.4
    h = 1e-5
    x = scipy.special.gammaincinv(a, p)
    expected = (
        scipy.special.gammaincinv(a + h, p) - scipy.special.gammaincinv(a - h, p)
    ) / (2 * h)
    out = lax.random_gamma_grad(
        lax.convert_element_type(a, "float64"), lax.convert_element_type(x, "float64")
    )
    np.testing.assert_allclose(np.asarray(out), expected, 1e-6)


def test_gradients_agree_with_formula_and_differences() -> None:
    by_a, by_x = fxflow.grad(lax.igamma, (0, 1))(2.0, 1.5)
    np.testing.assert_allclose(float(by_x), 1.5 * np.exp(-1.5), 1e-5)
    h = 1e-4
    slope = (
        scipy.special.gammainc(2 + h, 1.5) - scipy.special.gammainc(2 - h, 1.5)
    ) / (2 * h)
    np.testing.assert_allclose(float(by_a), slope, 1e-4)


def test_missing_slopes_are_errors() -> None:
    with pytest.raises(NotDifferentiableError, match="with respect to the shape"):
        fxflow.grad(lax.igamma_grad_a)(2.0, 1.5)
    with pytest.raises(NotDifferentiableError, match="it is one already"):
        fxflow.grad(lax.random_gamma_grad)(2.0, 1.5)


def test_density_at_zero_and_of_large_shapes() -> None:
    for a, x, first, second in [
        (1.0, 0.0, 1.0, -1.0),
        (2.0, 0.0, 0.0, 1.0),
        (2.5, 0.0, 0.0, 0.0),
        (0.5, 0.0, np.inf, -np.inf),
        (1e6, 1e6, 0.00039894225, -3.9894225e-10),
        (2.0, np.inf, 0.0, 0.0),
    ]:
        for function, sign in ((lax.igamma, 1), (lax.igammac, -1)):
            slope = fxflow.grad(function, 1)
            np.testing.assert_allclose(slope(a, x), sign * first, 2e-6)
            bend = float(fxflow.grad(slope, 1)(a, x))
            np.testing.assert_allclose(bend, sign * second, 1e-5)


@pytest.mark.parametrize(("dtype", "tol"), [("float64", 2e-12), ("float32", 2e-5)])
def test_large_shapes(dtype: str, tol: float) -> None:
    sizes = np.array([20.5, 25, 3e2, 1e4, 1e6, 1e8, 1e11, 1e15])
    a, off = (v.ravel() for v in np.meshgrid(sizes, [-3.0, -0.7, 0, 0.2, 2.5]))
    a = a.astype(dtype)
    x = (a + off * np.sqrt(a)).astype(dtype)
    wide = a.astype("f8"), x.astype("f8")
    with fxflow.config.override(x64=True):
        for ours, theirs, sign in (
            (lax.igamma, scipy.special.gammainc, 1),
            (lax.igammac, scipy.special.gammaincc, -1),
        ):
            for f in (ours, fxflow.jit(ours)):
                np.testing.assert_allclose(f(a, x), theirs(*wide), tol)
            h = 1e-3 * np.sqrt(wide[0])
            rise = theirs(wide[0] + h, wide[1]) - theirs(wide[0] - h, wide[1])
            slope = np.asarray(fxflow.vmap(fxflow.grad(ours))(a, x))
            np.testing.assert_allclose(slope * 2 * h, rise, 5e-4, 1e-7)
            assert np.all(slope * sign < 0)


@pytest.mark.parametrize(("dtype", "tol"), [("float64", 1e-12), ("float32", 1e-5)])
def test_upper_function_of_small_shapes(dtype: str, tol: float) -> None:
    a = np.array([1e-30, 1e-12, 1e-3, 0.02, 0.2, 0.45], dtype)[:, None]
    x = np.array([1e-6, 0.03, 0.5, 0.9, 1.0, 1.1, 3.0], dtype)
    with fxflow.config.override(x64=True):
        out = np.asarray(fxflow.jit(lax.igammac)(*np.broadcast_arrays(a, x)))
    expected = scipy.special.gammaincc(a.astype("f8"), x.astype("f8"))
    np.testing.assert_allclose(out, expected, tol)
