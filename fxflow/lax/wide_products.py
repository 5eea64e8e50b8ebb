"""Products of integers that do not fit their dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.core.ir import arith
from fxflow.core.runtime.library import library
from fxflow.errors import DtypeError
from fxflow.lax._operands import operands
from fxflow.lax.bitwise import bitwise_and, shift_right_logical
from fxflow.lax.comparison import lt
from fxflow.lax.conversion import convert_element_type
from fxflow.lax.elementwise import add, mul, sub
from fxflow.lax.families import INTEGER, require_kind
from fxflow.lax.select import select

_LONG = np.dtype(np.uint64)


@library()
def mulhi(x: Any, y: Any, /) -> Array:
    """Returns the upper half of the bits of x · y.

    Args:
      x: integer array.
      y: integer array of the same dtype.

    Returns:
      An array of that dtype: ⌊x · y / 2ⁿ⌋ for n bits.

    Raises:
      DtypeError: the dtypes differ or are not integers.
      ShapeError: the shapes are incompatible.

    Example:
      >>> mulhi(np.array([2**31 - 1, -1], "i4"), np.array([4, 1], "i4"))
      Array([ 1, -1], dtype=int32)

    Source: CHLO `mulhi`; H. Warren, Hacker's Delight, 2013, section 8-2.
    """
    x, y = operands("mulhi", x, y)
    for value in (x, y):
        require_kind("mulhi", typeof(value), INTEGER)
    dtype = typeof(x).dtype
    if typeof(y).dtype != dtype:
        raise DtypeError(
            f"mulhi: operands must have one dtype, got {typeof(x)} and {typeof(y)}: "
            "convert one with .astype(...)"
        )
    bits = dtypes.bits(dtype)
    if bits < 64:
        # The product fits 64 bits; shifted, its lower half is what is asked for.
        long = np.dtype(np.int64) if dtypes.is_signed(dtype) else _LONG
        product = mul(convert_element_type(x, long), convert_element_type(y, long))
        product = convert_element_type(product, _LONG)
        return convert_element_type(shift_right_logical(product, bits), dtype)
    a, b = (convert_element_type(v, _LONG) for v in (x, y))
    low, half = arith.constant(2**32 - 1, _LONG), 32
    (a0, a1), (b0, b1) = (
        (bitwise_and(v, low), shift_right_logical(v, half)) for v in (a, b)
    )
    carry = add(mul(a1, b0), shift_right_logical(mul(a0, b0), half))
    middle = add(mul(a0, b1), bitwise_and(carry, low))
    high = add(mul(a1, b1), shift_right_logical(carry, half))
    high = add(high, shift_right_logical(middle, half))
    if dtypes.is_signed(dtype):
        # As an unsigned number, a negative one is larger by 2ⁿ.
        zero = arith.constant(0, _LONG)
        high = sub(high, select(lt(x, 0), b, zero))
        high = sub(high, select(lt(y, 0), a, zero))
    return convert_element_type(high, dtype)
