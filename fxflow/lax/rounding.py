"""Rounding, neighbours and finiteness of floats."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow.core.arrays import Array, Aval, dtypes
from fxflow.core.docs import shared
from fxflow.core.ir.primitive import register
from fxflow.core.runtime.lowering import Context
from fxflow.lax._operands import operands
from fxflow.lax.families import FLOAT, Elementwise


class RoundingMethod(enum.IntEnum):
    """What `round` does with a number halfway between two integers.

    Attributes:
      AWAY_FROM_ZERO: takes the one farther from zero: 0.5 → 1, -2.5 → -3.
      TO_NEAREST_EVEN: takes the even one: 0.5 → 0, -2.5 → -2.
    """

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


@register
class Floor(Elementwise):
    """Largest integer not above x. dtypes: float. StableHLO: floor."""

    name = "floor"
    kinds = FLOAT
    hlo = "stablehlo.floor"
    numpy = np.floor
    partials = (None,)


@register
class Ceil(Elementwise):
    """Smallest integer not below x. dtypes: float. StableHLO: ceil."""

    name = "ceil"
    kinds = FLOAT
    hlo = "stablehlo.ceil"
    numpy = np.ceil
    partials = (None,)


def _host_round_away(x: Any) -> Any:
    # x + 0.5 would round where x is just below a half: look at what is cut off.
    whole = np.trunc(x)
    rest = np.abs(np.subtract(x, whole))
    one = np.array(1).astype(x.dtype)
    up = np.copysign(np.where(rest >= 0.5, one, np.zeros_like(one)), x)
    return np.where(np.isfinite(x), np.add(whole, up), x)


@register
class Round(Elementwise):
    """Nearest integer. dtypes: float. StableHLO: round_nearest_{afz,even}."""

    name = "round"
    kinds = FLOAT
    partials = (None,)

    def lower(self, ctx: Context, *operands: str, **params: Any) -> str:
        """The operation of the method."""
        even = params["rounding_method"] == RoundingMethod.TO_NEAREST_EVEN
        op = "round_nearest_even" if even else "round_nearest_afz"
        return ctx.emit(f"stablehlo.{op} {operands[0]} : {ctx.avals_out[0].mlir}")

    def evaluate(self, *values: Any, **params: Any) -> Any:
        """`np.rint`, or by what truncation cuts off."""
        return self.host_function(**params)(*values)

    def host_function(self, **params: Any) -> Callable[..., Any]:
        """The function of the method."""
        even = params["rounding_method"] == RoundingMethod.TO_NEAREST_EVEN
        return np.rint if even else _host_round_away


def _host_nextafter(x: Any, y: Any) -> Any:
    # The next float is y itself where they are equal, also of zeros of two signs.
    return np.where(np.equal(x, y), y, np.nextafter(x, y))


@register
class Nextafter(Elementwise):
    """Next float after x in the direction of y. dtypes: float. CHLO: next_after."""

    name = "nextafter"
    kinds = FLOAT
    hlo = "chlo.next_after"
    numpy = _host_nextafter
    nondifferentiable = "it steps from one float to the next"


@register
class IsFinite(Elementwise):
    """Whether x is neither infinite nor nan. dtypes: float. StableHLO: is_finite."""

    name = "is_finite"
    kinds = FLOAT
    hlo = "stablehlo.is_finite"
    numpy = np.isfinite
    nondifferentiable = "it is piecewise constant"

    def abstract(self, *avals: Aval, **params: Any) -> Aval:
        """Booleans, never weak."""
        return super().abstract(*avals, **params).strong()

    def result_dtype(self, dtype: Any) -> Any:
        """Boolean."""
        return dtypes.bool_


_rounding_docs = shared("""
    Args:
      x: float array.

    Returns:
      An array of the dtype and shape of `x`.

    Raises:
      DtypeError: `x` is not floating point.

    Source: StableHLO `{name}`.
""")


@_rounding_docs
def floor(x: Any, /) -> Array:
    """Returns the largest integer not above x.

    Special cases:
      The derivative is 0 everywhere. ±0, ±inf and nan stay.

    Example:
      >>> floor(-1.5)
      Array(-2., dtype=float32, weak_type=True)
    """
    return Floor.bind(x)


@_rounding_docs
def ceil(x: Any, /) -> Array:
    """Returns the smallest integer not below x.

    Special cases:
      The derivative is 0 everywhere. ±0, ±inf and nan stay.

    Example:
      >>> ceil(1.5)
      Array(2., dtype=float32, weak_type=True)
    """
    return Ceil.bind(x)


@_rounding_docs
def round(
    x: Any, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO
) -> Array:
    """Returns the integer nearest to x.

    Args:
      rounding_method: which of two integers equally near is taken.

    Raises:
      ValueError: unknown method.

    Special cases:
      The derivative is 0 everywhere. ±0, ±inf and nan stay.

    Example:
      >>> round(np.array([0.5, 1.5, 2.4], "f4"))
      Array([1., 2., 2.], dtype=float32)
      >>> round(np.array([0.5, 1.5, 2.4], "f4"), RoundingMethod.TO_NEAREST_EVEN)
      Array([0., 2., 2.], dtype=float32)

    Source: StableHLO `round_nearest_afz`, `round_nearest_even`.
    """
    method = RoundingMethod(rounding_method)
    return Round.bind(x, rounding_method=method)


def nextafter(x: Any, y: Any, /) -> Array:
    """Returns the next float after x in the direction of y.

    Args:
      x: float array, or a Python number.
      y: of the same dtype, or a Python number.

    Returns:
      An array of their dtype and common shape.

    Raises:
      DtypeError: the dtypes differ, or the operation does not take them.
      ShapeError: the shapes are incompatible.

    Special cases:
      y where the two are equal, nan where either is nan.

    Example:
      >>> nextafter(np.float32(1), 2.0)
      Array(1.0000001, dtype=float32)

    Source: CHLO `next_after`.
    """
    return Nextafter.bind(*operands("nextafter", x, y))


@_rounding_docs
def is_finite(x: Any, /) -> Array:
    """Returns whether x is neither infinite nor nan.

    Returns:
      A boolean array of the shape of `x`.

    Example:
      >>> is_finite(np.array([1.0, np.inf], "f4"))
      Array([ True, False], dtype=bool)
    """
    return IsFinite.bind(x)
