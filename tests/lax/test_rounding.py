"""Rounding."""

from __future__ import annotations

import numpy as np
import pytest

from fxflow import lax
from fxflow.errors import ArgumentError, DtypeError


def test_halves_round_by_the_method() -> None:
    x = np.array([0.5, 1.5, -0.5, -2.5, 0.49999997], "f4")
    away = np.asarray(lax.round(x))
    even = np.asarray(lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN))
    assert away.tolist() == [1, 2, -1, -3, 0]
    assert even.tolist() == [0, 2, 0, -2, 0]
    assert np.asarray(lax.round(x, 1)).tolist() == even.tolist()


def test_large_numbers_are_integers_already() -> None:
    x = np.array([8388609.0, -1e30, np.inf], "f4")
    assert np.asarray(lax.round(x)).tolist() == x.tolist()


def test_nextafter_crosses_zero() -> None:
    tiny = float(lax.nextafter(np.float32(0), -1.0))
    assert tiny < 0 and np.isclose(tiny, -1.4e-45, 0.1, 0)


def test_unknown_methods_and_dtypes_are_refused() -> None:
    with pytest.raises(ArgumentError, match="must be a RoundingMethod, got 7"):
        lax.round(np.float32(1), 7)
    with pytest.raises(DtypeError, match=r"floor: takes floating point.*i32\[\]"):
        lax.floor(np.int32(1))
    with pytest.raises(DtypeError, match=r"is_finite: takes .*c64\[\]"):
        lax.is_finite(np.complex64(1))
