"""Rounding."""

from __future__ import annotations

import numpy as np
import pytest

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
    found = fnp.round(np.array([1.25, -3e30], "f4"), decimals)
    assert found.tolist() == pytest.approx(want)
