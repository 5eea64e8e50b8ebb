"""Floats as integers of the same order, which keep a NaN where runtimes drop it.

XLA's maximum of two floats is NaN if one is; the runtime of CPUs, which takes the
maximum over devices, drops it instead. Integers it compares as usual.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow.core.arrays import dtypes, typeof
from fxflow.core.runtime.lowering import Context
from fxflow.lax.bitcasting import bitcast_convert_type
from fxflow.lax.bitwise import bitwise_and, bitwise_xor, shift_right_arithmetic
from fxflow.lax.comparison import ne
from fxflow.lax.creation import full_like
from fxflow.lax.select import select


def applies(ctx: Context, dtype: Any) -> bool:
    """Whether extrema over the devices of a program go by integers.

    Floats of 8 bits and fewer have a NaN at other bit patterns, or none.
    """
    return (
        ctx.platform == "cpu" and dtypes.is_floating(dtype) and dtypes.bits(dtype) >= 16
    )


def to_ordered_bits(x: Any, nan: float) -> Any:
    """Returns integers in the order of floats.

    Args:
      x: float[...].
      nan: NaN of the sign that makes it the greatest (`numpy.nan`) or the least
        (`-numpy.nan`).

    Returns:
      Signed integers of the same shape and width.
    """
    x = select(ne(x, x), full_like(x, nan), x)
    width = dtypes.bits(typeof(x).dtype)
    return _reversed_below_zero(bitcast_convert_type(x, np.dtype(f"int{width}")))


def from_ordered_bits(x: Any, dtype: Any) -> Any:
    """Returns the floats that `to_ordered_bits` made integers of."""
    return bitcast_convert_type(_reversed_below_zero(x), dtype)


def _reversed_below_zero(x: Any) -> Any:
    # The bits of floats are a sign and a magnitude, those of integers a complement.
    info = np.iinfo(typeof(x).dtype)
    sign = shift_right_arithmetic(x, full_like(x, info.bits - 1))
    return bitwise_xor(x, bitwise_and(sign, full_like(x, info.max)))
