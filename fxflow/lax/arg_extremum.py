"""Positions of extrema: `argmax` and `argmin`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from fxflow.core.arrays import Array, Aval, dtypes, typeof
from fxflow.core.docs import shared
from fxflow.core.ir.primitive import (
    Batched,
    Dual,
    Flags,
    Primitive,
    Values,
    Zero,
    register,
    table,
)
from fxflow.core.runtime.lowering import Context
from fxflow.core.spmd import layouts
from fxflow.errors import DtypeError, ShapeError
from fxflow.lax.axes import canonical_axis, without
from fxflow.lax.bitwise import bitwise_or
from fxflow.lax.broadcasting import broadcast_in_dim
from fxflow.lax.comparison import eq, ne
from fxflow.lax.conversion import convert_element_type
from fxflow.lax.creation import broadcasted_iota
from fxflow.lax.families import ORDERED, require_kind
from fxflow.lax.reduction import NATIVE, Maximum, Minimum
from fxflow.lax.select import select

#: Up to here float32 has every integer.
_EXACT = 1 << 24


def _in_turns(ctx: Context, operand: Aval, axis: int) -> bool:
    """Returns whether the extremum is found first, then where it is.

    XLA:CPU does not vectorize a reduction of values with their indices. For 10,000 rows
    of 100 float32 it takes 2.5 ms, and the two reductions one after the other 0.3 to
    0.8; of 32 numbers 0.87 and 0.40, of 16 0.12 and 0.45; of int32 it is as quick.
    """
    return (
        ctx.platform == "cpu"
        and not ctx.module.partitioned
        and dtypes.is_floating(operand.dtype)
        and dtypes.bits(operand.dtype) >= 16
        and not operand.is_symbolic
        and 20 <= operand.shape[axis] <= _EXACT
    )


class ArgExtremum(Primitive):
    """Index of an extremum along one axis."""

    extremum: ClassVar[Primitive]
    better: ClassVar[str]
    identity: ClassVar[Any]  # gives a value of a dtype that is never better
    layout: Callable[..., Any] = layouts.reduction

    def abstract(self, operand: Aval, *, axis: int, index_dtype: Any) -> Aval:
        """The operand's shape without the axis."""
        require_kind(self.name, operand, ORDERED)
        if not dtypes.is_integer(index_dtype):
            raise DtypeError(
                f"{self.name}: index_dtype must be an integer dtype, got "
                f"{dtypes.short_name(index_dtype)}: use int32"
            )
        if not operand.shape[axis]:
            raise ShapeError(
                f"{self.name}: axis {axis} of {operand} is empty and has no extremum: "
                "reduce along an axis of at least one element"
            )
        return Aval(without(operand.shape, (axis,)), index_dtype)

    def lower(self, ctx: Context, *operands: str, axis: int, index_dtype: Any) -> str:
        """`reduce` of values and their indices; on a CPU one after the other."""
        (operand,) = ctx.avals_in
        if _in_turns(ctx, operand, axis):
            named = functools.partial(self._first, axis=axis, index_dtype=index_dtype)
            return ctx.compose(named, operands)[0]
        (out,) = ctx.avals_out
        indices = Aval(operand.shape, index_dtype)
        value, index = Aval((), operand.dtype), Aval((), index_dtype)
        iota = ctx.emit(f"stablehlo.iota dim = {axis} : {indices.mlir}")
        start = ctx.constant(self.identity(operand.dtype), value)
        # Index 0 wins every tie with the start value, which is right if all are equal
        # to it.
        first = ctx.constant(np.zeros((), index_dtype), index)
        region = ctx.region(
            [value, index, value, index],
            lambda inner, names: self._pick(inner, names, value, index),
            [value, index],
        )
        best = out.update(dtype=operand.dtype)
        names = ctx.emit_many(
            2,
            f'"stablehlo.reduce"({operands[0]}, {iota}, {start}, {first}) '
            f"({region}) {{dimensions = array<i64: {axis}>}} : "
            f"({operand.mlir}, {indices.mlir}, {value.mlir}, {index.mlir}) -> "
            f"({best.mlir}, {out.mlir})",
        )
        return names[1]

    def _first(self, x: Any, *, axis: int, index_dtype: Any) -> Any:
        """The least index of what is the extremum, or of what is NaN."""
        best = self.extremum.bind(x, axes=(axis,))
        best = broadcast_in_dim(best, x.shape, without(tuple(range(x.ndim)), (axis,)))
        # Only NaN differs from itself.
        found = bitwise_or(eq(x, best), ne(x, x))
        # The values' own memory serves for these; integers take new one, and more time.
        indices = select(
            found, broadcasted_iota(np.float32, x.shape, axis), np.float32(np.inf)
        )
        first = table["reduce_min"].bind(indices, axes=(axis,))
        return convert_element_type(first, index_dtype)

    def _pick(
        self, ctx: Context, names: list[str], value: Aval, index: Aval
    ) -> list[str]:
        """NaN is best of all; among equals the lower index is."""
        x, i, y, j = names
        flag = Aval((), dtypes.bool_).mlir

        def compare(how: str, a: str, b: str, aval: Aval) -> str:
            pair = f"({aval.mlir}, {aval.mlir}) -> {flag}"
            return ctx.emit(f"stablehlo.compare {how}, {a}, {b} : {pair}")

        def both(op: str, a: str, b: str) -> str:
            return ctx.emit(f"stablehlo.{op} {a}, {b} : {flag}")

        better = compare(self.better, x, y, value)
        same = compare("EQ", x, y, value)
        if dtypes.is_floating(value.dtype):
            # StableHLO has no is_nan: only NaN differs from itself.
            x_nan = compare("NE", x, x, value)
            y_nan = compare("NE", y, y, value)
            better = both("or", better, both("and", x_nan, compare("EQ", y, y, value)))
            same = both("or", same, both("and", x_nan, y_nan))
        earlier = compare("LT", i, j, index)
        pick = both("or", better, both("and", same, earlier))
        types = f"{flag}, {value.mlir}"
        best = ctx.emit(f"stablehlo.select {pick}, {x}, {y} : {types}")
        where = ctx.emit(f"stablehlo.select {pick}, {i}, {j} : {flag}, {index.mlir}")
        return [best, where]

    def evaluate(self, operand: Any, *, axis: int, index_dtype: Any) -> Any:
        """`numpy.argmax` or `argmin`: they take the first NaN, too."""
        if operand.dtype.char not in NATIVE:
            # NumPy's argmax knows its own dtypes only; widening keeps the order.
            wide = np.float32 if dtypes.is_floating(operand.dtype) else np.int32
            operand = operand.astype(wide)
        numpy = np.argmax if self.better == "GT" else np.argmin
        return np.asarray(numpy(operand, axis)).astype(index_dtype)

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """An index does not change."""
        out = self.bind(*primals, **params)
        return out, Zero(typeof(out).tangent())

    def batch(
        self, size: int, args: Values, mapped: Flags, *, axis: int, **params: Any
    ) -> Batched:
        """The axis moves up by one."""
        return self.bind(args[0], axis=axis + 1, **params), True

    def cost(self, *avals: Aval, **params: Any) -> dict[str, float]:
        """One comparison an element."""
        return {**super().cost(*avals, **params), "flops": float(avals[0].size)}


@register
class ArgMax(ArgExtremum):
    """Index of the greatest element. dtypes: bool, integer, float. StableHLO: reduce.

    The first of equals; the first NaN if there is one.
    """

    name = "argmax"
    extremum = table["reduce_max"]
    better = "GT"
    identity = Maximum.identity


@register
class ArgMin(ArgExtremum):
    """Index of the least element. dtypes: bool, integer, float. StableHLO: reduce.

    The first of equals; the first NaN if there is one.
    """

    name = "argmin"
    extremum = table["reduce_min"]
    better = "LT"
    identity = Minimum.identity


# -- public ----------------------------------------------------------------------------


def _bind(primitive: Any, operand: Any, axis: int, index_dtype: Any) -> Array:
    axis = canonical_axis(primitive.name, axis, typeof(operand).ndim)
    out: Array = primitive.bind(
        operand, axis=axis, index_dtype=dtypes.dtype(index_dtype)
    )
    return out


_extremum_docs = shared("""
    Args:
      operand: bool, integer or float[...].
      axis: along which, negative from the end; of at least one element.
      index_dtype: integer dtype of the result.

    Returns:
      index_dtype[...] without the axis.

    Raises:
      AxisError: the axis is out of range.
      DtypeError: the array is complex, or `index_dtype` is not an integer dtype.
      ShapeError: the axis is empty.

    Special cases:
      The first of equal elements; the first NaN if there is one.

    Source: StableHLO reduce.
""")


@_extremum_docs
def argmax(operand: Any, axis: int, index_dtype: Any) -> Array:
    """Returns the index of the greatest element along an axis.

    Example:
      >>> print(argmax(np.float32([[1, 2], [4, 3]]), 1, np.int32))
      [1 0]
    """
    return _bind(ArgMax, operand, axis, index_dtype)


@_extremum_docs
def argmin(operand: Any, axis: int, index_dtype: Any) -> Array:
    """Returns the index of the least element along an axis.

    Example:
      >>> print(argmin(np.float32([[1, 2], [4, 3]]), 1, np.int32))
      [0 1]
    """
    return _bind(ArgMin, operand, axis, index_dtype)
