"""Hyperbolic functions: domains and complex derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import fxflow
from fxflow import lax


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
