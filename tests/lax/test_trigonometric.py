"""Trigonometric and hyperbolic functions: quadrants, branch cuts, slopes at ends."""

from __future__ import annotations

import numpy as np
import pytest

import fxflow
from fxflow import lax
from fxflow.errors import DtypeError


def test_quadrants() -> None:
    y = np.array([1, 1, -1, -1, 0.0, -0.0], "f4")
    x = np.array([1, -1, 1, -1, -1.0, -1.0], "f4")
    for run in (lax.atan2, fxflow.jit(lax.atan2)):
        np.testing.assert_allclose(np.asarray(run(y, x)), np.arctan2(y, x), 1e-6)


@pytest.mark.parametrize("name", ["asin", "acos", "atan", "sin", "cos", "tan"])
def test_complex_values_are_numpys(name: str) -> None:
    z = (np.mgrid[-2:2:5j, -2:2:4j][0] + 1j * np.mgrid[-2:2:5j, -2:2:4j][1]).ravel()
    z = z.astype("c8")
    numpy_name = {"asin": "arcsin", "acos": "arccos", "atan": "arctan"}.get(name, name)
    out = np.asarray(fxflow.jit(getattr(lax, name))(z))
    np.testing.assert_allclose(out, getattr(np, numpy_name)(z), 1e-5, 1e-5)


def test_slopes_at_the_ends() -> None:
    assert float(fxflow.grad(lax.asin)(1.0)) == np.inf
    assert float(fxflow.grad(lax.acos)(1.0)) == -np.inf
    assert np.isnan(float(fxflow.grad(lax.atan2)(0.0, 0.0)))


def test_errors() -> None:
    with pytest.raises(DtypeError, match=r"sin: takes .*got i32\[\]"):
        lax.sin(np.int32(0))
    with pytest.raises(DtypeError, match=r"atan2: .*one dtype"):
        lax.atan2(np.float32(0), np.float16(0))


def test_domains() -> None:
    x = np.array([0.5, 1.0, 2.0], "f4")
    assert np.isnan(np.asarray(lax.acosh(x))).tolist() == [True, False, False]
    assert np.isnan(np.asarray(lax.atanh(x))).tolist() == [False, False, True]
    assert float(lax.atanh(1.0)) == np.inf


@pytest.mark.parametrize("z", [1 + 2j, -1 + 2j, -1 - 2j, 0.5 - 1j])
def test_slope_of_complex_acosh(z: complex) -> None:
    # On the left half plane √(z² - 1) is on the other branch than √(z-1) √(z+1).
    h = 1e-6
    expected = (np.arccosh(z + h) - np.arccosh(z - h)) / (2 * h)
    point, one = np.complex64(z), np.complex64(1)
    _, slope = fxflow.jvp(lax.acosh, (point,), (one,))
    np.testing.assert_allclose(np.asarray(slope), expected, 1e-5)


def test_large_arguments() -> None:
    x = np.array([-50.0, 50.0], "f4")
    assert np.asarray(lax.tanh(x)).tolist() == [-1, 1]
    assert np.asarray(lax.sinh(x * 4)).tolist() == [-np.inf, np.inf]
