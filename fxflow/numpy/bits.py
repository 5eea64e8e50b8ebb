"""Bits: combined, shifted, counted, packed into bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow import lax
from fxflow.core.arrays import Array, dtypes
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, DtypeError
from fxflow.lax.axes import canonical_axis
from fxflow.numpy._operands import array_of, convert, promote
from fxflow.numpy.axis_order import moveaxis
from fxflow.numpy.comparisons import truth
from fxflow.numpy.reductions import sum
from fxflow.numpy.ufuncs import Binary, binary, primitive_binary, unary


def _shifts(name: str, bitorder: str) -> Any:
    if bitorder not in ("big", "little"):
        raise ArgumentError(f'{name}: bitorder is "big" or "little", got {bitorder!r}')
    shifts = np.arange(8, dtype=np.uint8)
    return shifts[::-1].copy() if bitorder == "big" else shifts


def _last(name: str, array: Any, axis: int | None) -> tuple[Any, int]:
    if axis is None:
        return lax.reshape(array, (array.aval.size,)), 0
    axis = canonical_axis(name, axis, array.aval.ndim)
    return moveaxis(array, axis, -1), axis


@library("axis", "bitorder")
def packbits(a: Any, axis: int | None = None, bitorder: str = "big") -> Array:
    """Packs bits into bytes, eight in one; the end is padded with zeros.

    Args:
      a: integer or bool array-like[...]; what is not 0 is a bit of 1.
      axis: the axis; None flattens the array first.
      bitorder: whether the first bit is the most ("big") or the least significant.

    Returns:
      u8 array with an eighth of the length along the axis, rounded up.

    Raises:
      DtypeError: the elements are neither integers nor bools.
      AxisError: the axis is out of range.
      ArgumentError: unknown order.

    Example:
      >>> packbits(np.array([1, 0, 1]))
      Array([160], dtype=uint8)

    Source: `numpy.packbits`.
    """
    array = array_of(a, "packbits")
    if not (dtypes.is_bool(array.aval.dtype) or dtypes.is_integer(array.aval.dtype)):
        raise DtypeError(f"packbits: takes integers and bools, got {array.aval}")
    shifts = _shifts("packbits", bitorder)
    rows, axis = _last(
        "packbits", convert(truth("packbits", array), dtypes.uint8), axis
    )
    *lead, n = rows.aval.shape
    count = -(-n // 8)
    config = [(0, 0, 0)] * len(lead) + [(0, count * 8 - n, 0)]
    rows = lax.pad(rows, lax.full((), 0, dtypes.uint8), config)
    bits = lax.reshape(rows, (*lead, count, 8))
    # The eight bits are disjoint: their sum is their bitwise or, without a carry.
    out = sum(bits << shifts, axis=-1, dtype=dtypes.uint8)
    return moveaxis(out, -1, axis)


@library("axis", "count", "bitorder")
def unpackbits(
    a: Any, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> Array:
    """Unpacks bytes into bits.

    Args:
      a: u8 array-like[...].
      axis: the axis; None flattens the array first.
      count: the number of bits to return, padded with zeros; a negative number drops
        that many bits at the end; None is all.
      bitorder: whether the first bit is the most ("big") or the least significant.

    Returns:
      u8 array of zeros and ones.

    Raises:
      DtypeError: the elements are not u8.
      AxisError: the axis is out of range.
      ArgumentError: unknown order.

    Example:
      >>> unpackbits(np.array([160], np.uint8), count=3)
      Array([1, 0, 1], dtype=uint8)

    Source: `numpy.unpackbits`.
    """
    array = array_of(a, "unpackbits")
    if array.aval.dtype != dtypes.uint8:
        raise DtypeError(f"unpackbits: takes u8, got {array.aval}")
    shifts = _shifts("unpackbits", bitorder)
    rows, axis = _last("unpackbits", array, axis)
    *lead, n = rows.aval.shape
    bits = (lax.expand_dims(rows, (len(lead) + 1,)) >> shifts) & np.uint8(1)
    out = lax.reshape(bits, (*lead, n * 8))
    if count is not None:
        length = count if count >= 0 else max(n * 8 + count, 0)
        if length <= n * 8:
            out = lax.slice_in_dim(out, 0, length, axis=len(lead))
        else:
            config = [(0, 0, 0)] * len(lead) + [(0, length - n * 8, 0)]
            out = lax.pad(out, lax.full((), 0, dtypes.uint8), config)
    return moveaxis(out, -1, axis)


def _bits(name: str, x: Any, y: Any) -> list[Any]:
    x, y = promote(name, x, y)
    if dtypes.is_inexact(x.aval.dtype):
        raise DtypeError(
            f"{name}: takes integers and bools, got {x.aval} and {y.aval} after "
            "promotion: convert them with .astype(...) first"
        )
    return [x, y]


bitwise_and: Binary[Array] = primitive_binary(
    "bitwise_and",
    "Bits that both have.",
    "and",
    identity=-1,
    promotion=_bits,
    example=("bitwise_and(np.array([12, 10]), 6)", "Array([4, 2], dtype=int32)"),
)


bitwise_or: Binary[Array] = primitive_binary(
    "bitwise_or",
    "Bits that one or both have.",
    "or",
    identity=0,
    promotion=_bits,
    example=("bitwise_or(np.array([12, 10]), 1)", "Array([13, 11], dtype=int32)"),
)


bitwise_xor: Binary[Array] = primitive_binary(
    "bitwise_xor",
    "Bits that exactly one has.",
    "xor",
    identity=0,
    promotion=_bits,
    example=("bitwise_xor(np.array([12, 10]), 6)", "Array([10, 12], dtype=int32)"),
)


@unary(
    "All bits turned; of bools, the negation.",
    example=("bitwise_invert(np.array([0, 5]))", "Array([-1, -6], dtype=int32)"),
)
def bitwise_invert(x: Array) -> Array:
    """All bits turned."""
    return lax.bitwise_not(x)


@binary(
    "`x1` shifted to the left by `x2` bits.",
    special="a shift by as many bits as there are, or more, gives 0.",
    promotion=_bits,
    example=("bitwise_left_shift(np.array([1, 3]), 2)", "Array([ 4, 12], dtype=int32)"),
)
def bitwise_left_shift(x: Array, y: Array) -> Array:
    """Bits shifted up."""
    return _shift(lax.shift_left, x, y)


@binary(
    "`x1` shifted to the right by `x2` bits; of negative numbers ones come in.",
    special="a shift by as many bits as there are, or more, gives 0 or -1.",
    promotion=_bits,
    example=(
        "bitwise_right_shift(np.array([12, -12]), 2)",
        "Array([ 3, -3], dtype=int32)",
    ),
)
def bitwise_right_shift(x: Array, y: Array) -> Array:
    """Bits shifted down."""
    # Bools count as signed: `_shift` makes them the default int.
    if dtypes.is_signed(x.aval.dtype) or dtypes.is_bool(x.aval.dtype):
        return _shift(lax.shift_right_arithmetic, x, y)
    return _shift(lax.shift_right_logical, x, y)


def _shift(function: Callable[[Any, Any], Array], x: Array, y: Array) -> Array:
    if dtypes.is_bool(x.aval.dtype):
        x, y = (convert(a, dtypes.default_int()) for a in (x, y))
    return function(x, y)


@unary(
    "Number of ones in the bits of the absolute value.",
    returns="u8 array of the shape of `x`.",
    example=("bitwise_count(np.array([7, 8]))", "Array([3, 1], dtype=uint8)"),
)
def bitwise_count(x: Array) -> Array:
    """Number of ones."""
    if dtypes.is_inexact(x.aval.dtype):
        raise DtypeError(f"bitwise_count: takes integers and bools, got {x.aval}")
    if dtypes.is_bool(x.aval.dtype):
        return convert(x, np.dtype(np.uint8))
    # NumPy counts the bits of the magnitude, not those of two's complement.
    magnitude = lax.abs(x) if dtypes.is_signed(x.aval.dtype) else x
    return convert(lax.population_count(magnitude), np.dtype(np.uint8))
