"""Rounding to shorter formats."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import fxflow
from fxflow import lax
from fxflow.errors import ArgumentError, DtypeError


@pytest.mark.parametrize(
    ("dtype", "exponent", "mantissa"), [("float16", 5, 10), (ml_dtypes.bfloat16, 8, 7)]
)
def test_is_a_conversion_there_and_back(dtype, exponent, mantissa) -> None:
    rng = np.random.default_rng(0)
    x = (rng.normal(size=500) * 10.0 ** rng.integers(-1, 6, 500)).astype("f4")
    # What would be subnormal is flushed to zero, unlike in a conversion.
    x = np.where(np.abs(x) < 1e-3, np.float32(0), x)
    with np.errstate(over="ignore"):
        expected = x.astype(dtype).astype("f4")
    compiled = fxflow.jit(lax.reduce_precision, static_argnums=(1, 2))
    for run in (lax.reduce_precision, compiled):
        out = np.asarray(run(x, exponent, mantissa))
        np.testing.assert_array_equal(out, expected)


def test_invalid_bit_counts_and_integers_are_refused() -> None:
    with pytest.raises(ArgumentError, match=r"exponent_bits >= 1.*got 0 and 3"):
        lax.reduce_precision(np.float32(1), 0, 3)
    with pytest.raises(DtypeError, match=r"reduce_precision: takes .*, got i32\[\]"):
        lax.reduce_precision(np.int32(1), 5, 3)
