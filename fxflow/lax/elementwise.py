"""Arithmetic, place by place.

Operands have one dtype, or are Python numbers beside arrays. Integers have XLA's
conventions: sums and products wrap, division truncates, dividing by zero gives -1.
"""

from __future__ import annotations

from typing import Any

from fxflow.core.arrays.array import Array
from fxflow.lax._operands import operands
from fxflow.lax.elementwise_primitives import (
    Abs,
    Add,
    Div,
    Max,
    Min,
    Mul,
    Neg,
    Rem,
    Sign,
    Sub,
)


def neg(x: Any, /) -> Array:
    """Returns minus x.

    Args:
      x: int, float or complex array.

    Returns:
      An array of the dtype and shape of `x`.

    Raises:
      DtypeError: `x` is boolean.

    Special cases:
      Integers wrap: minus the smallest one is itself; unsigned ones are modulo 2ⁿ.

    Example:
      >>> neg(2.0)
      Array(-2., dtype=float32, weak_type=True)

    Source: StableHLO `negate`.
    """
    result: Array = Neg.bind(x)
    return result


def add(x: Any, y: Any, /) -> Array:
    """Returns x + y.

    Args:
      x: int, float or complex array, or a Python number.
      y: of the same dtype, or a Python number.

    Returns:
      An array of their dtype and common shape.

    Raises:
      DtypeError: the dtypes differ, or the operation does not take them.
      ShapeError: the shapes do not go together.

    Special cases:
      Integers wrap.

    Example:
      >>> add(np.array([1, 2], "i4"), 1)
      Array([2, 3], dtype=int32)

    Source: StableHLO `add`.
    """
    result: Array = Add.bind(*operands("add", x, y))
    return result


def sub(x: Any, y: Any, /) -> Array:
    """Returns x - y.

    Args:
      x: int, float or complex array, or a Python number.
      y: of the same dtype, or a Python number.

    Returns:
      An array of their dtype and common shape.

    Raises:
      DtypeError: the dtypes differ, or the operation does not take them.
      ShapeError: the shapes do not go together.

    Special cases:
      Integers wrap.

    Example:
      >>> sub(np.array([1, 2], "i4"), 1)
      Array([0, 1], dtype=int32)

    Source: StableHLO `subtract`.
    """
    result: Array = Sub.bind(*operands("sub", x, y))
    return result


def mul(x: Any, y: Any, /) -> Array:
    """Returns x y.

    Args:
      x: int, float or complex array, or a Python number.
      y: of the same dtype, or a Python number.

    Returns:
      An array of their dtype and common shape.

    Raises:
      DtypeError: the dtypes differ, or the operation does not take them.
      ShapeError: the shapes do not go together.

    Special cases:
      Integers wrap. 0 · inf is nan.

    Example:
      >>> mul(np.array([1, 2], "i4"), 3)
      Array([3, 6], dtype=int32)

    Source: StableHLO `multiply`.
    """
    result: Array = Mul.bind(*operands("mul", x, y))
    return result


def div(x: Any, y: Any, /) -> Array:
    """Returns x / y.

    Args:
      x: int, float or complex array, or a Python number.
      y: of the same dtype, or a Python number.

    Returns:
      An array of their dtype and common shape.

    Raises:
      DtypeError: the dtypes differ, or the operation does not take them.
      ShapeError: the shapes do not go together.

    Special cases:
      Integer quotients are truncated towards zero. An integer divided by 0 is -1 (all
      bits set), the smallest integer divided by -1 is itself.

    Example:
      >>> div(np.array([7, -7, 1], "i4"), np.array([2, 2, 0], "i4"))
      Array([ 3, -3, -1], dtype=int32)

    Source: StableHLO `divide`.
    """
    result: Array = Div.bind(*operands("div", x, y))
    return result


def rem(x: Any, y: Any, /) -> Array:
    """Returns what truncating division of x by y leaves, with the sign of x.

    Args:
      x: int or float array, or a Python number.
      y: of the same dtype, or a Python number.

    Returns:
      An array of their dtype and common shape.

    Raises:
      DtypeError: the dtypes differ, or the operation does not take them.
      ShapeError: the shapes do not go together.

    Special cases:
      An integer divided by 0 leaves itself; a float divided by 0 leaves nan.

    Example:
      >>> rem(np.array([7.0, -7.0], "f4"), 4.0)
      Array([ 3., -3.], dtype=float32)

    Source: StableHLO `remainder`.
    """
    result: Array = Rem.bind(*operands("rem", x, y))
    return result


def sign(x: Any, /) -> Array:
    """Returns -1, 0 or 1; of a complex number, x / abs(x).

    Args:
      x: int, float or complex array.

    Returns:
      An array of the dtype and shape of `x`.

    Raises:
      DtypeError: `x` is boolean.

    Special cases:
      ±0 gives ±0, nan gives nan. The derivative of a real sign is 0 everywhere.

    Example:
      >>> sign(np.array([-2.0, 0.0, 3.0], "f4"))
      Array([-1.,  0.,  1.], dtype=float32)

    Source: StableHLO `sign`.
    """
    result: Array = Sign.bind(x)
    return result


def abs(x: Any, /) -> Array:
    """Returns the absolute value.

    Args:
      x: signed int, float or complex array.

    Returns:
      An array of the shape of `x`, real where `x` is complex.

    Raises:
      DtypeError: `x` is boolean or unsigned.

    Special cases:
      The smallest integer is its own absolute value. The derivative at 0 is 1; at the
      complex 0 it is 0.

    Example:
      >>> abs(np.complex64(3 + 4j))
      Array(5., dtype=float32)

    Source: StableHLO `abs`.
    """
    result: Array = Abs.bind(x)
    return result


def max(x: Any, y: Any, /) -> Array:
    """Returns the larger of x and y.

    Args:
      x: bool, int, float or complex array, or a Python number.
      y: of the same dtype, or a Python number.

    Returns:
      An array of their dtype and common shape.

    Raises:
      DtypeError: the dtypes differ, or the operation does not take them.
      ShapeError: the shapes do not go together.

    Special cases:
      nan where either is nan. Complex numbers are compared by their real, then their
      imaginary parts. Where the two are equal, each gets half of the derivative.

    Example:
      >>> max(np.array([1, 5], "i4"), 3)
      Array([3, 5], dtype=int32)

    Source: StableHLO `maximum`.
    """
    result: Array = Max.bind(*operands("max", x, y))
    return result


def min(x: Any, y: Any, /) -> Array:
    """Returns the smaller of x and y.

    Args:
      x: bool, int, float or complex array, or a Python number.
      y: of the same dtype, or a Python number.

    Returns:
      An array of their dtype and common shape.

    Raises:
      DtypeError: the dtypes differ, or the operation does not take them.
      ShapeError: the shapes do not go together.

    Special cases:
      nan where either is nan. Complex numbers are compared by their real, then their
      imaginary parts. Where the two are equal, each gets half of the derivative.

    Example:
      >>> min(np.array([1, 5], "i4"), 3)
      Array([1, 3], dtype=int32)

    Source: StableHLO `minimum`.
    """
    result: Array = Min.bind(*operands("min", x, y))
    return result
