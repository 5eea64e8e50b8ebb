"""Comparisons: arrays of one dtype in, booleans out.

They follow IEEE 754: nan equals nothing, -0 equals +0.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from fxflow.core.arrays import Array, Aval, dtypes, typeof
from fxflow.core.docs import shared
from fxflow.core.ir.graph import Literal
from fxflow.core.ir.primitive import register, table
from fxflow.core.runtime.lowering import Context
from fxflow.errors import DtypeError
from fxflow.lax._operands import operands
from fxflow.lax.broadcasting import broadcast_in_dim, broadcast_shapes
from fxflow.lax.families import ANY, MOVED, ORDERED, Elementwise, kind

# StableHLO takes bools for unsigned, and complex numbers compare as floats.
_COMPARE_TYPE = {
    "b": "UNSIGNED",
    "u": "UNSIGNED",
    "i": "SIGNED",
    "f": "FLOAT",
    "c": "FLOAT",
}


#: Relations that XLA has for True where an operand is nonnegative and the other, of
#: this index, is 0; and the strict relations.
_OF_ZERO = {"GE": (1, "GT"), "LE": (0, "LT")}


class Comparison(Elementwise):
    """Compares elements.

    Attributes:
      direction: StableHLO's name of the relation.
    """

    kinds = ORDERED
    host_kinds = MOVED
    nondifferentiable: ClassVar[str | None] = "a comparison is piecewise constant"
    direction: ClassVar[str]

    def abstract(self, *avals: Aval, **params: Any) -> Aval:
        """Booleans, never weak."""
        return super().abstract(*avals, **params).strong()

    def result_dtype(self, dtype: Any) -> Any:
        """Boolean."""
        return dtypes.bool_

    def lower(self, ctx: Context, *operands: str, **params: Any) -> str:
        """`compare` with the kind of comparison of the dtype."""
        x, y = self.aligned(ctx, operands)
        out = ctx.avals_out[0]
        aval = ctx.avals_in[0].update(shape=out.shape)
        how = _COMPARE_TYPE[kind(aval.dtype)]

        def compare(direction: str) -> str:
            return ctx.emit(
                f"stablehlo.compare {direction}, {x}, {y}, {how} : "
                f"({aval.mlir}, {aval.mlir}) -> {out.mlir}"
            )

        if how != "FLOAT" or self.direction not in _OF_ZERO:
            return compare(self.direction)
        index, strict = _OF_ZERO[self.direction]
        if type(ctx.inputs[index]) is not Literal and operands[index] not in ctx.fills:
            return compare(self.direction)
        # XLA has `x * x >= 0` for True though x may be NaN (`devices/faults`). LLVM
        # joins the two again.
        parts = compare(strict), compare("EQ")
        return ctx.emit(f"stablehlo.or {', '.join(parts)} : {out.mlir}")


@register
class Eq(Comparison):
    """x == y. dtypes: any. StableHLO: compare EQ."""

    name = "eq"
    kinds = ANY
    direction = "EQ"
    numpy = np.equal


@register
class Ne(Comparison):
    """x != y. dtypes: any. StableHLO: compare NE."""

    name = "ne"
    kinds = ANY
    direction = "NE"
    numpy = np.not_equal


@register
class Lt(Comparison):
    """x < y. dtypes: ordered. StableHLO: compare LT."""

    name = "lt"
    direction = "LT"
    numpy = np.less


@register
class Le(Comparison):
    """x <= y. dtypes: ordered. StableHLO: compare LE."""

    name = "le"
    direction = "LE"
    numpy = np.less_equal


@register
class Gt(Comparison):
    """x > y. dtypes: ordered. StableHLO: compare GT."""

    name = "gt"
    direction = "GT"
    numpy = np.greater


@register
class Ge(Comparison):
    """x >= y. dtypes: ordered. StableHLO: compare GE."""

    name = "ge"
    direction = "GE"
    numpy = np.greater_equal


def _of_keys(x: Any) -> bool:
    aval = getattr(x, "aval", None)
    return aval is not None and dtypes.is_key(aval.dtype)


def _compared_keys(primitive: Any, joined: str, x: Any, y: Any) -> Array:
    """Returns a comparison of keys: of all their data."""
    name = primitive.name
    x_aval, y_aval = typeof(x), typeof(y)
    if x_aval.dtype != y_aval.dtype:
        raise DtypeError(
            f"{name}: keys compare with keys of their kind, got {x_aval} and {y_aval}"
        )
    shape = broadcast_shapes(x_aval.shape, y_aval.shape)
    suffix = x_aval.dtype.suffix
    key_data = []
    for value, aval in ((x, x_aval), (y, y_aval)):
        lead = len(shape) - aval.ndim
        axes = tuple(range(lead, len(shape) + len(suffix)))
        key_data.append(
            broadcast_in_dim(table["random_unwrap"].bind(value), shape + suffix, axes)
        )
    last = tuple(range(len(shape), len(shape) + len(suffix)))
    return table[joined].bind(primitive.bind(*key_data), axes=last)


def eq(x: Any, y: Any, /) -> Array:
    """Returns whether x == y, elementwise.

    Args:
      x: bool, int, float or complex array, or keys.
      y: of the same dtype, or a Python number.

    Returns:
      A boolean array of their common shape.

    Raises:
      DtypeError: the dtypes differ.
      ShapeError: the shapes are incompatible.

    Special cases:
      nan is not equal to anything, itself included; -0 equals +0.

    Example:
      >>> eq(np.array([1, 2, 3], "i4"), 2)
      Array([False,  True, False], dtype=bool)

    Source: StableHLO `compare`, direction EQ.
    """
    if _of_keys(x) or _of_keys(y):
        return _compared_keys(Eq, "reduce_and", x, y)
    return Eq.bind(*operands("eq", x, y))


def ne(x: Any, y: Any, /) -> Array:
    """Returns whether x != y, elementwise.

    Args:
      x: bool, int, float or complex array, or keys.
      y: of the same dtype, or a Python number.

    Returns:
      A boolean array of their common shape.

    Raises:
      DtypeError: the dtypes differ.
      ShapeError: the shapes are incompatible.

    Special cases:
      nan differs from everything, itself included.

    Example:
      >>> ne(np.array([1, 2, 3], "i4"), 2)
      Array([ True, False,  True], dtype=bool)

    Source: StableHLO `compare`, direction NE.
    """
    if _of_keys(x) or _of_keys(y):
        return _compared_keys(Ne, "reduce_or", x, y)
    return Ne.bind(*operands("ne", x, y))


_comparison_docs = shared("""
    Args:
      x: bool, int or float array.
      y: of the same dtype, or a Python number.

    Returns:
      A boolean array of their common shape.

    Raises:
      DtypeError: the dtypes differ, or have no order (complex).
      ShapeError: the shapes are incompatible.
""")


@_comparison_docs
def lt(x: Any, y: Any, /) -> Array:
    """Returns whether x < y, elementwise.

    Special cases:
      False where either is nan; -0 is not less than +0.

    Example:
      >>> lt(np.array([1, 2, 3], "i4"), 2)
      Array([ True, False, False], dtype=bool)

    Source: StableHLO `compare`, direction LT.
    """
    return Lt.bind(*operands("lt", x, y))


@_comparison_docs
def le(x: Any, y: Any, /) -> Array:
    """Returns whether x <= y, elementwise.

    Special cases:
      False where either is nan.

    Example:
      >>> le(np.array([1, 2, 3], "i4"), 2)
      Array([ True,  True, False], dtype=bool)

    Source: StableHLO `compare`, direction LE.
    """
    return Le.bind(*operands("le", x, y))


@_comparison_docs
def gt(x: Any, y: Any, /) -> Array:
    """Returns whether x > y, elementwise.

    Special cases:
      False where either is nan; +0 is not greater than -0.

    Example:
      >>> gt(np.array([1, 2, 3], "i4"), 2)
      Array([False, False,  True], dtype=bool)

    Source: StableHLO `compare`, direction GT.
    """
    return Gt.bind(*operands("gt", x, y))


@_comparison_docs
def ge(x: Any, y: Any, /) -> Array:
    """Returns whether x >= y, elementwise.

    Special cases:
      False where either is nan.

    Example:
      >>> ge(np.array([1, 2, 3], "i4"), 2)
      Array([False,  True,  True], dtype=bool)

    Source: StableHLO `compare`, direction GE.
    """
    return Ge.bind(*operands("ge", x, y))
