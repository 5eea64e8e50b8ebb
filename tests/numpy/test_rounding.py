"""Rounding."""

from __future__ import annotations

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow.errors import ArgumentError
from tests.numpy.oracle import BFLOAT16, COMPLEX, FLOATS, INTEGERS, check


@pytest.mark.parametrize("name", ("floor", "ceil", "trunc", "rint"))
def test_rounding(name: str) -> None:
    check(name, FLOATS)
    check(name, INTEGERS, compiled=False)


@pytest.mark.parametrize("decimals", (0, 1, 2, -1, -3))
def test_round(decimals: int) -> None:
    check("round", np.array([2.345, -0.55, 1234.5], np.float32), decimals=decimals)
    check("round", INTEGERS, decimals=decimals)
    check("round", COMPLEX, decimals=decimals, compiled=False)


def test_round_keeps_dtypes_and_large_numbers() -> None:
    assert fnp.round(fnp.ones(1, "bfloat16") * 1.26, 1).dtype == BFLOAT16
    assert float(fnp.round(fnp.float32(3e38), 5)) == np.float32(3e38)
    with pytest.raises(ArgumentError, match="out"):
        fnp.round(FLOATS, out=FLOATS)


@pytest.mark.parametrize("decimals", [10**30, 400, -400, -(10**30)])
def test_rounding_to_decimals_without_effect(decimals) -> None:
    want = [1.25, -3e30] if decimals > 0 else [0, 0]
    x = np.array([1.25, -3e30], "f4")
    for rounded in (fnp.round, fxflow.jit(fnp.round, static_argnums=1)):
        assert rounded(x, decimals).tolist() == pytest.approx(want)


def test_factors_whose_reciprocals_are_subnormal() -> None:
    x = np.array([1.25, 3e38, -2e38, 1.2345e-37], "f4")
    rounded = fxflow.jit(fnp.round, static_argnums=1)
    np.testing.assert_allclose(rounded(x, 38), [1.25, 3e38, -2e38, 1.2e-37], 1e-6)
    np.testing.assert_allclose(rounded(x, -38), [0, 3e38, -2e38, 0], 1e-6)
