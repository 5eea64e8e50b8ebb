"""Modified Bessel functions: two orders, each plain and scaled by exp(-|x|)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fxflow import lax
from fxflow.core.arrays import Array
from fxflow.core.runtime.eager import library
from fxflow.scipy.special._operands import operands


def _declared(name: str, order: int) -> Callable[[Any], Array]:
    """Declares a function of an order; scaled, if its name ends with "e"."""
    scaled = name.endswith("e")
    compute = (lax.bessel_i0e, lax.bessel_i1e)[order]

    def function(x: Any) -> Array:
        (x,) = operands(name, x)
        out = compute(x)
        # Not |x|, whose derivative at 0 is not that of an even function.
        return out if scaled else lax.exp(x * lax.sign(x)) * out

    function.__name__ = function.__qualname__ = name
    times = ", times exp(-|x|)" if scaled else ""
    overflow = "" if scaled else "; inf where the dtype's range ends"
    function.__doc__ = f"""Modified Bessel function of order {order}{times}.

    Args:
      x: real array-like.

    Returns:
      Float array of the shape of `x`.

    Raises:
      ArgumentError: an argument is no array.
      DtypeError: an argument is complex.

    Special cases:
      {"Even" if order == 0 else "Odd"} in x{overflow}.

    Example:
      >>> round(float({name}(0.0)), 6)
      {float(order == 0)}

    Source: `scipy.special.{name}`.
    """
    return library()(function)


i0: Callable[[Any], Array] = _declared("i0", 0)
i0e: Callable[[Any], Array] = _declared("i0e", 0)
i1: Callable[[Any], Array] = _declared("i1", 1)
i1e: Callable[[Any], Array] = _declared("i1e", 1)
