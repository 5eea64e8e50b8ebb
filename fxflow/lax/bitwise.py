"""Operations on the bits of integers, and logic on booleans."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow.core.arrays import Array
from fxflow.core.docs import shared
from fxflow.core.ir.primitive import register
from fxflow.lax._operands import operands
from fxflow.lax.families import BITS, INTEGER, Elementwise

_WHY = "it acts on bits"


class _Bits(Elementwise):
    """On bools and integers."""

    kinds = BITS
    nondifferentiable = _WHY


@register
class And(_Bits):
    """x & y. dtypes: bool, integer. StableHLO: and."""

    name = "and"
    hlo = "stablehlo.and"
    numpy = np.bitwise_and


@register
class Or(_Bits):
    """x | y. dtypes: bool, integer. StableHLO: or."""

    name = "or"
    hlo = "stablehlo.or"
    numpy = np.bitwise_or


@register
class Xor(_Bits):
    """x ^ y. dtypes: bool, integer. StableHLO: xor."""

    name = "xor"
    hlo = "stablehlo.xor"
    numpy = np.bitwise_xor


@register
class Not(_Bits):
    """~x; the negation of booleans. dtypes: bool, integer. StableHLO: not."""

    name = "not"
    hlo = "stablehlo.not"
    numpy = np.bitwise_not


class _Integers(_Bits):
    """On integers alone."""

    kinds = INTEGER


def _unsigned(x: Any) -> Any:
    return np.asarray(x).view(f"u{x.dtype.itemsize}")


def _host_shift_right_logical(x: Any, y: Any) -> Any:
    return np.right_shift(_unsigned(x), _unsigned(y)).view(x.dtype)


def _host_shift_right_arithmetic(x: Any, y: Any) -> Any:
    # NumPy takes the kind of shift from the dtype, XLA from the operation.
    signed = np.asarray(x).view(f"i{x.dtype.itemsize}")
    return np.right_shift(signed, np.asarray(y).view(signed.dtype)).view(x.dtype)


@register
class ShiftLeft(_Integers):
    """x << y; 0 where y >= the width. dtypes: integers. StableHLO: shift_left."""

    name = "shift_left"
    hlo = "stablehlo.shift_left"
    numpy = np.left_shift


@register
class ShiftRightLogical(_Integers):
    """x >> y, zeros coming in. dtypes: integers. StableHLO: shift_right_logical."""

    name = "shift_right_logical"
    hlo = "stablehlo.shift_right_logical"
    numpy = _host_shift_right_logical


@register
class ShiftRightArithmetic(_Integers):
    """x >> y, copies of the top bit coming in. dtypes: integers.

    StableHLO: shift_right_arithmetic.
    """

    name = "shift_right_arithmetic"
    hlo = "stablehlo.shift_right_arithmetic"
    numpy = _host_shift_right_arithmetic


def _host_population_count(x: Any) -> Any:
    return np.bitwise_count(_unsigned(x)).astype(x.dtype)


@register
class PopulationCount(_Integers):
    """The number of bits that are 1. dtypes: integers. StableHLO: popcnt."""

    name = "population_count"
    hlo = "stablehlo.popcnt"
    numpy = _host_population_count


def _host_clz(x: Any) -> Any:
    # Setting every bit below the highest leaves as many ones as the number is long.
    bits = _unsigned(x)
    width = x.dtype.itemsize * 8
    shift = 1
    while shift < width:
        bits = bits | np.right_shift(bits, bits.dtype.type(shift))
        shift *= 2
    return (width - np.bitwise_count(bits)).astype(x.dtype)


@register
class Clz(_Integers):
    """The number of zero bits that precede the highest 1. dtypes: integers.

    StableHLO: count_leading_zeros.
    """

    name = "clz"
    hlo = "stablehlo.count_leading_zeros"
    numpy = _host_clz


_bitwise_docs = shared("""
    Args:
      y: of the same dtype, or a Python number.

    Returns:
      An array of their dtype and common shape.

    Raises:
      DtypeError: the dtypes differ, or are not bool or integer.
      ShapeError: the shapes are incompatible.
""")


@_bitwise_docs
def bitwise_and(x: Any, y: Any, /) -> Array:
    """Returns x & y: the bits set in both.

    Args:
      x: bool or integer array.

    Example:
      >>> bitwise_and(np.int32(6), 3)
      Array(2, dtype=int32)

    Source: StableHLO `and`.
    """
    return And.bind(*operands("bitwise_and", x, y))


@_bitwise_docs
def bitwise_or(x: Any, y: Any, /) -> Array:
    """Returns x | y: the bits set in either.

    Args:
      x: bool or integer array.

    Example:
      >>> bitwise_or(np.int32(6), 3)
      Array(7, dtype=int32)

    Source: StableHLO `or`.
    """
    return Or.bind(*operands("bitwise_or", x, y))


@_bitwise_docs
def bitwise_xor(x: Any, y: Any, /) -> Array:
    """Returns x ^ y: the bits set in one of the two.

    Args:
      x: bool or integer array.

    Example:
      >>> bitwise_xor(np.int32(6), 3)
      Array(5, dtype=int32)

    Source: StableHLO `xor`.
    """
    return Xor.bind(*operands("bitwise_xor", x, y))


def bitwise_not(x: Any, /) -> Array:
    """Returns ~x: every bit inverted.

    Args:
      x: bool or integer array.

    Returns:
      An array of the dtype and shape of `x`.

    Raises:
      DtypeError: `x` is not bool or integer.

    Special cases:
      A boolean is negated.

    Example:
      >>> bitwise_not(np.int32(6))
      Array(-7, dtype=int32)

    Source: StableHLO `not`.
    """
    return Not.bind(x)


@_bitwise_docs
def shift_left(x: Any, y: Any, /) -> Array:
    """Returns x with its bits moved up by y.

    Args:
      x: integer array.

    Raises:
      DtypeError: the dtypes differ, or are not integer.

    Special cases:
      0 where `y`, read as unsigned, is not below the width of the dtype.

    Example:
      >>> shift_left(np.int32(3), 2)
      Array(12, dtype=int32)

    Source: StableHLO `shift_left`.
    """
    return ShiftLeft.bind(*operands("shift_left", x, y))


@_bitwise_docs
def shift_right_logical(x: Any, y: Any, /) -> Array:
    """Returns x with its bits moved down by y, zeros coming in.

    Args:
      x: integer array.

    Raises:
      DtypeError: the dtypes differ, or are not integer.

    Special cases:
      0 where `y`, read as unsigned, is not below the width of the dtype.

    Example:
      >>> shift_right_logical(np.int8(-8), 2)
      Array(62, dtype=int8)

    Source: StableHLO `shift_right_logical`.
    """
    return ShiftRightLogical.bind(*operands("shift_right_logical", x, y))


@_bitwise_docs
def shift_right_arithmetic(x: Any, y: Any, /) -> Array:
    """Returns x with its bits moved down by y, copies of the top bit coming in.

    Args:
      x: integer array.

    Raises:
      DtypeError: the dtypes differ, or are not integer.

    Special cases:
      All bits are the top bit where `y`, read as unsigned, is not below the width.

    Example:
      >>> shift_right_arithmetic(np.int8(-8), 2)
      Array(-2, dtype=int8)

    Source: StableHLO `shift_right_arithmetic`.
    """
    return ShiftRightArithmetic.bind(*operands("shift_right_arithmetic", x, y))


def population_count(x: Any, /) -> Array:
    """Returns how many bits are 1.

    Args:
      x: integer array.

    Returns:
      An array of the dtype and shape of `x`.

    Raises:
      DtypeError: `x` is not integer.

    Example:
      >>> population_count(np.int8(-1))
      Array(8, dtype=int8)

    Source: StableHLO `popcnt`.
    """
    return PopulationCount.bind(x)


def clz(x: Any, /) -> Array:
    """Returns how many zero bits precede the highest 1.

    Args:
      x: integer array.

    Returns:
      An array of the dtype and shape of `x`.

    Raises:
      DtypeError: `x` is not integer.

    Special cases:
      The width of the dtype for 0.

    Example:
      >>> clz(np.int32(1))
      Array(31, dtype=int32)

    Source: StableHLO `count_leading_zeros`.
    """
    return Clz.bind(x)
