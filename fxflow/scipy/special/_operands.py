"""What the functions share: operands, and values that are never chosen."""

from __future__ import annotations

import math
from typing import Any

from fxflow import lax
from fxflow.core.arrays import dtypes
from fxflow.core.arrays.array import Array
from fxflow.core.docs import shared
from fxflow.errors import DtypeError
from fxflow.numpy._operands import broadcast, promote_inexact
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
      ArgumentError: an argument is no array.
      DtypeError: an argument is complex.

    Source: `scipy.special.{name}`.
""")


def operands(name: str, *args: Any, real: bool = True) -> list[Array]:
    """Returns operands of one float dtype and one shape."""
    out = broadcast(name, promote_inexact(name, *args))
    if real and dtypes.is_complex(out[0].aval.dtype):
        raise DtypeError(f"{name}: takes real numbers, got {out[0].aval}")
    return out


def filled(x: Any, value: float) -> Array:
    """Returns an array like `x` of one value."""
    return lax.full_like(x, value)


def safe(condition: Any, x: Any, value: float) -> Array:
    """Returns `x` where a condition holds, a harmless value elsewhere.

    What is not chosen later must be finite, or derivatives would be nan.
    """
    return choose_between(condition, x, filled(x, value))


def whole(args: list[Array]) -> list[Array]:
    """Returns operands that all have the full shape."""
    shape = lax.broadcast_shapes(*[a.aval.shape for a in args])
    return [
        a if a.aval.shape == shape else lax.broadcast_in_dim(a, shape, ()) for a in args
    ]
