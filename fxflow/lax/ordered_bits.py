"""Floats as integers of the same order, which no runtime compares in a way of its own.

XLA's maximum of two floats is NaN if one is; the runtime of CPUs, which takes the
maximum over devices, drops it instead. XLA's programs for CPUs compare subnormal
numbers as if they were zeros. Integers they compare as usual.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow.core.arrays import Array, Aval, dtypes, typeof
from fxflow.core.ir.primitive import register
from fxflow.core.runtime.lowering import Context
from fxflow.lax.bitcasting import bitcast_convert_type
from fxflow.lax.bitwise import bitwise_and, bitwise_xor, shift_right_arithmetic
from fxflow.lax.comparison import lt, ne
from fxflow.lax.conversion import convert_element_type
from fxflow.lax.creation import full_like
from fxflow.lax.elementwise import sub
from fxflow.lax.families import FLOAT, MOVED, Elementwise
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


def sort_keys(x: Any) -> Any:
    """Returns integers in the order of a sort: zeros are equal, all NaN are last.

    Args:
      x: float[...].

    Returns:
      Signed integers of the same shape, equal where floats are: int32 for floats of
      less than 16 bits, others have the width of the floats.
    """
    if dtypes.bits(typeof(x).dtype) < 16:
        x = convert_element_type(x, np.float32)
    info = np.iinfo(f"i{typeof(x).dtype.itemsize}")
    bits = bitcast_convert_type(x, info.dtype)
    # A float's magnitude is behind its sign: that of -0 becomes 0.
    key = select(lt(bits, 0), sub(info.min, bits), bits)
    return select(ne(x, x), full_like(key, info.max), key)


def _precedes(x: Any, y: Any) -> Any:
    """The order of a sort in NumPy, which compares subnormal numbers as they are."""
    return np.less(x, y) | (np.isnan(y) & ~np.isnan(x))


@register
class SortsBefore(Elementwise):
    """Whether a sort puts x before y. dtypes: float. StableHLO: compare of integers.

    All nan come last, and are equal, as zeros are.
    """

    name = "sorts_before"
    kinds = FLOAT
    host_kinds = MOVED
    numpy = _precedes
    nondifferentiable = "a comparison is piecewise constant"

    def abstract(self, *avals: Aval, **params: Any) -> Aval:
        """Booleans, never weak."""
        return super().abstract(*avals, **params).strong()

    def result_dtype(self, dtype: Any) -> Any:
        """Boolean."""
        return dtypes.bool_

    def lower(self, ctx: Context, *operands: str, **params: Any) -> str:
        """The comparison of `sort_keys`."""
        return ctx.compose(lambda x, y: lt(sort_keys(x), sort_keys(y)), operands)[0]


def sorts_before(x: Any, y: Any) -> Array:
    """Returns whether a sort puts floats before others, as bool[...]."""
    return SortsBefore.bind(x, y)


def from_ordered_bits(x: Any, dtype: Any) -> Any:
    """Returns the floats that `to_ordered_bits` made integers of."""
    return bitcast_convert_type(_reversed_below_zero(x), dtype)


def _reversed_below_zero(x: Any) -> Any:
    # The bits of floats are a sign and a magnitude, those of integers a complement.
    info = np.iinfo(typeof(x).dtype)
    sign = shift_right_arithmetic(x, full_like(x, info.bits - 1))
    return bitwise_xor(x, bitwise_and(sign, full_like(x, info.max)))
