"""Arithmetic, place by place.

The primitives take operands of one dtype and one shape (a constant may be 0-d); the
functions also take Python numbers beside arrays. Integers have XLA's conventions: sums
and products wrap, division truncates, dividing by zero gives -1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow.core import arith, dtypes
from fxflow.core.aval import Aval
from fxflow.core.convert import typeof
from fxflow.core.graph import Var
from fxflow.core.primitive import Zero, register
from fxflow.lax._operands import Array, ArrayLike, operands
from fxflow.lax.comparison import eq, gt
from fxflow.lax.complex import conj, real
from fxflow.lax.families import NUMERIC, ORDERED, REAL, Elementwise, kind
from fxflow.lax.select import select

# -- sums and products -----------------------------------------------------------


@register
class Neg(Elementwise):
    """Minus x. dtypes: numeric. StableHLO: negate. Integers wrap."""

    name = "neg"
    kinds = NUMERIC
    hlo = "stablehlo.negate"
    numpy = np.negative
    partials = (-1,)
    linear = True

    def transpose(self, cotangent: Any, *args: Any, **params: Any) -> Sequence[Any]:
        """Minus the cotangent."""
        return [self.bind(cotangent)]


@register
class Add(Elementwise):
    """x + y. dtypes: numeric. StableHLO: add. Integers wrap."""

    name = "add"
    kinds = NUMERIC
    hlo = "stablehlo.add"
    numpy = np.add
    partials = (1, 1)
    linear = True

    def transpose(self, cotangent: Any, *args: Any, **params: Any) -> Sequence[Any]:
        """The cotangent, for each operand."""
        return [cotangent if type(a) is Var else None for a in args]


@register
class Sub(Elementwise):
    """x - y. dtypes: numeric. StableHLO: subtract. Integers wrap."""

    name = "sub"
    kinds = NUMERIC
    hlo = "stablehlo.subtract"
    numpy = np.subtract
    partials = (1, -1)
    linear = True

    def transpose(self, cotangent: Any, *args: Any, **params: Any) -> Sequence[Any]:
        """The cotangent, and its negative."""
        x, y = args
        return [
            cotangent if type(x) is Var else None,
            arith.neg(cotangent) if type(y) is Var else None,
        ]


@register
class Mul(Elementwise):
    """x * y. dtypes: numeric. StableHLO: multiply. Integers wrap."""

    name = "mul"
    kinds = NUMERIC
    hlo = "stablehlo.multiply"
    numpy = np.multiply
    partials = (lambda _, x, y: y, lambda _, x, y: x)

    def transpose(self, cotangent: Any, *args: Any, **params: Any) -> Sequence[Any]:
        """The cotangent times the operand that is not linear."""
        x, y = args
        if type(x) is Var:
            return [self.bind(cotangent, y), None]
        return [None, self.bind(cotangent, x)]


def _host_div(x: Any, y: Any) -> Any:
    dtype = x.dtype
    if kind(dtype) not in "iu":
        return np.divide(x, y)
    quotient = np.floor_divide(x, y)
    if kind(dtype) == "i":
        inexact = np.multiply(quotient, y) != x
        quotient = quotient + (inexact & ((x < 0) != (y < 0))).astype(dtype)
    return np.where(y == 0, np.array(-1).astype(dtype), quotient)


@register
class Div(Elementwise):
    """x / y. dtypes: numeric. StableHLO: divide.

    Integers truncate towards zero; a zero divisor gives -1 (all bits set), and the
    smallest integer divided by -1 is itself.
    """

    name = "div"
    kinds = NUMERIC
    hlo = "stablehlo.divide"
    numpy = _host_div

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        """dx / y - dy (x / y) / y."""
        x, y = primals
        dx, dy = tangents
        out = self.bind(x, y)
        left = None if type(dx) is Zero else self.bind(dx, y)
        right = None
        if type(dy) is not Zero:
            right = arith.mul(dy, neg(self.bind(out, y)))
        return out, arith.add(left, right)

    def transpose(self, cotangent: Any, *args: Any, **params: Any) -> Sequence[Any]:
        """The cotangent divided by the same."""
        return [self.bind(cotangent, args[1]), None]


def _host_rem(x: Any, y: Any) -> Any:
    if kind(x.dtype) not in "iu":
        return np.fmod(x, y)
    safe = np.where(y == 0, np.array(1).astype(y.dtype), y)
    return np.where(y == 0, x, np.fmod(x, safe))


@register
class Rem(Elementwise):
    """Remainder of truncating division, with the sign of x. dtypes: real.

    StableHLO: remainder. An integer divided by zero leaves itself, a float nan.
    """

    name = "rem"
    kinds = REAL
    hlo = "stablehlo.remainder"
    numpy = _host_rem
    partials = (1, lambda out, x, y: neg(_truncated(div(x, y))))


def _truncated(x: Any) -> Any:
    from_zero = floor_p(abs(x))
    return mul(sign(x), from_zero)


def neg(x: ArrayLike, /) -> Array:
    """Returns minus x.

    Args:
      x: int, float or complex array, of any shape.

    Returns:
      An array of the shape and dtype of `x`.

    Raises:
      DtypeError: `x` is boolean.

    Special cases:
      Integers wrap: minus the smallest one is itself; of unsigned ones the result is
      modulo 2ⁿ.

    Example:
      >>> neg(2.0)
      Array(-2., dtype=float32, weak_type=True)

    Source: StableHLO `negate`.
    """
    return Neg.bind(x)
