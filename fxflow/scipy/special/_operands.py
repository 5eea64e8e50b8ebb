"""What the functions share: operands, and values that are never chosen."""

from __future__ import annotations

import math
from typing import Any

from fxflow import lax
from fxflow.core.arrays import Array, dtypes
from fxflow.core.docs import shared
from fxflow.core.ir.arith import repeated
from fxflow.errors import DtypeError
from fxflow.numpy._operands import broadcast, convert, joint_shape, promote_inexact
from fxflow.numpy.selection import choose_between

LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)


special_docs = shared("""
    Args:
      x: real array-like.
      a: positive real array-like.
      b: real array-like.
      q: real array-like.
      p: real array-like.

    Returns:
      Float array of the broadcast shape.

    Raises:
      ArgumentError: an argument is not an array.
      DtypeError: an argument is complex.

    Source: `scipy.special.{name}`.
""")


def operands(name: str, *args: Any, real: bool = True) -> list[Array]:
    """Returns operands of one float dtype, all of the full shape."""
    out = promote_inexact(name, *args)
    if real and dtypes.is_complex(out[0].aval.dtype):
        raise DtypeError(f"{name}: takes real numbers, got {out[0].aval}")
    shape = joint_shape(name, [a.aval for a in out])
    return [repeated(a, shape) for a in broadcast(name, out)]


def in_64_bits(function: Any, name: str, *args: Any) -> Array:
    """Calls a function with 64 bits, and returns the operands' dtype."""
    given = operands(name, *args)
    out = function(*(convert(a, dtypes.float64) for a in given))
    return convert(out, given[0].aval.dtype)


def safe(condition: Any, x: Any, value: float) -> Array:
    """Returns `x` where a condition holds, a harmless value elsewhere.

    What is not chosen later must be finite, or derivatives would be nan.
    """
    return choose_between(condition, x, lax.full_like(x, value))
