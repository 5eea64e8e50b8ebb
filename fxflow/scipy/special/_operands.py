"""What the functions share: operands, and values that are never chosen."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

from fxflow import lax
from fxflow.core.arrays import Array, dtypes
from fxflow.core.docs import shared
from fxflow.core.ir.arith import repeated
from fxflow.errors import DtypeError
from fxflow.numpy._operands import broadcast, convert, joint_shape, promote_inexact
from fxflow.numpy.selection import choose_between

F = TypeVar("F", bound=Callable[..., Any])

LOG_SQRT_2PI = 0.5 * math.log(2 * math.pi)


def docs_of(arguments: str, source: str = "") -> Callable[[F], F]:
    """Makes a decorator that completes docstrings of elementwise functions.

    Args:
      arguments: their entries, `name: what` each on a line.
      source: what comes behind SciPy's name under Source.
    """
    entries = "".join(f"\n      {line}" for line in arguments.strip().splitlines())
    return shared(f"""
    Args:{entries}

    Returns:
      Float array of the broadcast shape.

    Raises:
      ArgumentError: an argument is not an array.
      DtypeError: an argument is complex.

    Source: `scipy.special.{{name}}`{source}.
""")


special_docs = docs_of("""
x: real array-like.
a: positive real array-like.
b: real array-like.
q: real array-like.
p: real array-like.
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


# -- quotients by a parameter that may be 0 --------------------------------------------

#: Below it they are power series, whose terms give derivatives with respect to the
#: parameter, too.
_NEAR = 0.01
_LOG1P = [(-1) ** k / (k + 1) for k in range(9)]
_EXPM1 = [1 / math.factorial(k + 1) for k in range(9)]


def _quotient(function: Any, terms: list[float], c: Any, z: Any) -> Array:
    """Returns f(c z) / c, by the terms of f(u) / u where u is small, and z at c = 0."""
    u = c * z
    near = lax.abs(u) < _NEAR
    small = safe(near, u, 0)
    series = lax.full_like(small, terms[-1])
    for term in terms[-2::-1]:
        series = series * small + term
    near = near | (c == 0)
    far = function(safe(~near, u, 1)) / safe(~near, c, 1)
    return choose_between(near, z * series, far)


def log1p_over(c: Any, z: Any) -> Array:
    """Returns log(1 + c z) / c, which is z where c is 0."""
    return _quotient(lax.log1p, _LOG1P, c, z)


def expm1_over(c: Any, z: Any) -> Array:
    """Returns (exp(c z) - 1) / c, which is z where c is 0."""
    return _quotient(lax.expm1, _EXPM1, c, z)
