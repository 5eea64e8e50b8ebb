"""Linear recurrences along an axis, and the two ways of running any recurrence.

`loop` and `tree_scan` serve `cumulative` as well.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from fxflow.core.arrays import Array, Aval, dtypes, typeof
from fxflow.core.interpreters.batching import materialize
from fxflow.core.ir import arith
from fxflow.core.ir.graph import Var
from fxflow.core.ir.primitive import (
    Batched,
    Dual,
    Flags,
    Primitive,
    Values,
    Zero,
    register,
)
from fxflow.core.runtime.lowering import Context
from fxflow.core.sizes import is_symbolic
from fxflow.core.spmd import layouts
from fxflow.errors import DtypeError, ShapeError
from fxflow.lax.axes import canonical_axis
from fxflow.lax.axis_order import rev
from fxflow.lax.concatenation import concatenate
from fxflow.lax.control_flow.doubling_scan import doubling_scan
from fxflow.lax.elementwise import add, mul
from fxflow.lax.families import INEXACT, require_kind
from fxflow.lax.padding import pad, shifted
from fxflow.lax.reshaping import reshape
from fxflow.lax.slicing import slice_in_dim


@register
class LinearRecurrence(Primitive):
    """`y[k] = a[k] y[k-1] + u[k]` along an axis. dtypes: float, complex.

    `y[0] = u[0]`: the first coefficient is not used. Linear in u.
    """

    name = "linear_recurrence"
    host_kinds: ClassVar[frozenset[str]] = frozenset()
    layout: Callable[..., Any] = layouts.along

    def abstract(self, a: Aval, u: Aval, *, axis: int, reverse: bool) -> Aval:
        """The type of both operands."""
        require_kind(self.name, u, INEXACT)
        if a.shape != u.shape:
            raise ShapeError(
                f"{self.name}: coefficients {a} and values {u} must have one shape"
            )
        if a.dtype != u.dtype:
            raise DtypeError(
                f"{self.name}: coefficients {a} and values {u} must have one dtype: "
                "convert one with .astype(...)"
            )
        return u.strong()

    def lower(self, ctx: Context, *operands: str, axis: int, reverse: bool) -> str:
        """A loop on the CPU, a tree elsewhere."""
        (aval,) = ctx.avals_out
        if aval.size == 0:
            return operands[1]
        wide = aval.update(dtype=accumulator(aval.dtype))
        if wide is not aval:
            operands = tuple(convert_text(ctx, x, aval, wide) for x in operands)
        if ctx.platform == "cpu":
            out = loop(ctx, operands, wide, _affine_text, axis, reverse)
        else:
            (out,) = ctx.compose(
                lambda a, u: tree_scan(_affine, [a, u], axis, reverse)[1],
                operands,
                [wide, wide],
            )
        return out if wide is aval else convert_text(ctx, out, wide, aval)

    def evaluate(self, a: Any, u: Any, *, axis: int, reverse: bool) -> Any:
        """One row after the other."""
        wide = accumulator(u.dtype)
        rows, factors = (np.moveaxis(x.astype(wide), axis, 0) for x in (u, a))
        out = rows.copy()
        order = list(range(len(rows)))
        if reverse:
            order.reverse()
        for last, k in itertools.pairwise(order):
            out[k] += factors[k] * out[last]
        return np.moveaxis(out, 0, axis).astype(u.dtype)

    def jvp(
        self, primals: Values, tangents: Values, *, axis: int, reverse: bool
    ) -> Dual:
        """The same recurrence, fed by all changes."""
        a, u = primals
        ta, tu = tangents
        out = self.bind(a, u, axis=axis, reverse=reverse)
        feed = tu
        if type(ta) is not Zero and typeof(a).size:
            # dy[k] = a[k] dy[k-1] + (da[k] y[k-1] + du[k]).
            feed = arith.add(mul(ta, shifted(out, axis, reverse, 0)), tu)
        if type(feed) is Zero:
            return out, feed
        return out, self.bind(a, feed, axis=axis, reverse=reverse)

    def transpose(self, cotangent: Any, *args: Any, axis: int, reverse: bool) -> Values:
        """The recurrence from the other end; each coefficient belongs to the next."""
        a, u = args
        if type(a) is Var:
            return super().transpose(cotangent, *args)
        assert type(u) is Var
        if not u.aval.size:
            return [None, cotangent]
        moved = shifted(a, axis, not reverse, 0)
        return [None, self.bind(moved, cotangent, axis=axis, reverse=not reverse)]

    def batch(
        self, size: int, args: Values, mapped: Flags, *, axis: int, reverse: bool
    ) -> Batched:
        """The axis moves up by one."""
        both = [materialize(a, size, m) for a, m in zip(args, mapped, strict=True)]
        return self.bind(*both, axis=axis + 1, reverse=reverse), True


def _affine(first: list[Any], then: list[Any]) -> list[Any]:
    """Returns the composition of two affine maps `y -> a y + u`."""
    a, u = first
    b, v = then
    return [mul(a, b), add(mul(b, u), v)]


def _affine_text(ctx: Context, row: Aval, last: str, a: str, u: str) -> str:
    product = ctx.emit(f"stablehlo.multiply {a}, {last} : {row.mlir}")
    return ctx.emit(f"stablehlo.add {product}, {u} : {row.mlir}")


# -- how they run ----------------------------------------------------------------------


def accumulator(dtype: Any) -> Any:
    """Returns the dtype to accumulate in: 32 bits for smaller floats."""
    if dtypes.is_floating(dtype) and dtypes.bits(dtype) < 32:
        return np.dtype(np.float32)
    return dtype


def tree_scan(
    combine: Callable[[list[Any], list[Any]], list[Any]],
    values: list[Any],
    axis: int,
    reverse: bool,
) -> list[Any]:
    """Returns running combinations, in O(n) work and O(log n) steps.

    Args:
      combine: associative; of two lists of arrays, element by element.
      values: arrays of one length along the axis.
      axis: the axis.
      reverse: whether to start from the end.

    Source: Blelloch 1990, "Prefix sums and their applications".
    """
    if reverse:
        flipped = [rev(v, (axis,)) for v in values]
        return [rev(v, (axis,)) for v in tree_scan(combine, flipped, axis, False)]
    length = typeof(values[0]).shape[axis]
    if is_symbolic((length,)):
        return doubling_scan(combine, values, [axis] * len(values))
    if length < 2:
        return values

    def every_second(start: int, stop: int) -> list[Any]:
        return [slice_in_dim(v, start, stop, 2, axis) for v in values]

    # Running combinations of pairs are those at odd indices; each even one is its left
    # neighbour's combined with its own element.
    pairs = combine(every_second(0, length - 1), every_second(1, length))
    odd = tree_scan(combine, pairs, axis, False)
    count = (length - 1) // 2
    first = [slice_in_dim(v, 0, 1, 1, axis) for v in values]
    even = first
    if count:
        before = [slice_in_dim(v, 0, count, 1, axis) for v in odd]
        rest = combine(before, every_second(2, length))
        even = [
            concatenate([one, more], axis)
            for one, more in zip(first, rest, strict=True)
        ]
    return [_interleave(e, o, axis) for e, o in zip(even, odd, strict=True)]


def _interleave(even: Any, odd: Any, axis: int) -> Any:
    shape = typeof(even).shape
    length = shape[axis] + typeof(odd).shape[axis]
    # One element more, cut off again: both must be equally long.
    if length % 2:
        config = [(0, 0, 0)] * len(shape)
        config[axis] = (0, 1, 0)
        odd = pad(odd, arith.constant(0, typeof(odd).dtype), config)
    split = (*shape[: axis + 1], 1, *shape[axis + 1 :])
    both = concatenate([reshape(even, split), reshape(odd, split)], axis + 1)
    merged = reshape(both, (*shape[:axis], 2 * shape[axis], *shape[axis + 1 :]))
    return slice_in_dim(merged, 0, length, 1, axis) if length % 2 else merged


def loop(
    ctx: Context,
    operands: Sequence[str],
    aval: Aval,
    combine: Callable[..., str],
    axis: int,
    reverse: bool,
) -> str:
    """Writes a loop over an axis that keeps each step's result.

    The first result is the last operand's first row.

    Args:
      ctx: to write to.
      operands: arrays of type `aval`.
      aval: their type, not empty.
      combine: writes a step: `(ctx, row's type, last result, *rows)`.
      axis: the axis.
      reverse: whether to start from the end.
    """
    length = aval.shape[axis]
    row = aval.update(shape=(*aval.shape[:axis], 1, *aval.shape[axis + 1 :]))
    index, flag = Aval((), dtypes.int32), Aval((), dtypes.bool_)

    def read(c: Context, x: str, at: list[str]) -> str:
        types = ", ".join([index.mlir] * aval.ndim)
        return c.emit(
            f"stablehlo.dynamic_slice {x}, {', '.join(at)}, "
            f"sizes = {list(row.shape)} : ({aval.mlir}, {types}) -> {row.mlir}"
        )

    def write(c: Context, x: str, value: str, at: list[str]) -> str:
        types = ", ".join([index.mlir] * aval.ndim)
        return c.emit(
            f"stablehlo.dynamic_update_slice {x}, {value}, {', '.join(at)} : "
            f"({aval.mlir}, {row.mlir}, {types}) -> {aval.mlir}"
        )

    def at(c: Context, step: str) -> list[str]:
        zero = c.constant(np.int32(0), index)
        if reverse:
            end = c.constant(length - 1, index)
            step = c.emit(f"stablehlo.subtract {end}, {step} : {index.mlir}")
        return [step if i == axis else zero for i in range(aval.ndim)]

    def unfinished(c: Context, names: list[str]) -> list[str]:
        end = c.constant(length, index)
        types = f"({index.mlir}, {index.mlir}) -> {flag.mlir}"
        return [c.emit(f"stablehlo.compare LT, {names[0]}, {end} : {types}")]

    def body(c: Context, names: list[str]) -> list[str]:
        step, last, out, *arrays = names
        position = at(c, step)
        rows = [read(c, x, position) for x in arrays]
        value = combine(c, row, last, *rows)
        one = c.constant(np.int32(1), index)
        following = c.emit(f"stablehlo.add {step}, {one} : {index.mlir}")
        return [following, value, write(c, out, value, position), *arrays]

    start = at(ctx, ctx.constant(np.int32(0), index))
    first = read(ctx, operands[-1], start)
    out = write(ctx, ctx.constant(np.zeros((), aval.dtype), aval), first, start)
    if length == 1:
        return out
    carried = [index, row, aval, *[aval] * len(operands)]
    types = ", ".join(a.mlir for a in carried)
    begin = [ctx.constant(np.int32(1), index), first, out, *operands]
    condition = ctx.region(carried, unfinished, [flag])
    step = ctx.region(carried, body, carried)
    names = ctx.emit_many(
        len(carried),
        f'"stablehlo.while"({", ".join(begin)}) ({condition}, {step}) : '
        f"({types}) -> ({types})",
    )
    return names[2]


def convert_text(ctx: Context, name: str, given: Aval, wanted: Aval) -> str:
    """Writes a conversion to another dtype."""
    return ctx.emit(f"stablehlo.convert {name} : ({given.mlir}) -> {wanted.mlir}")


# -- public ----------------------------------------------------------------------------


def linear_recurrence(
    coefficients: Any, values: Any, axis: int = 0, reverse: bool = False
) -> Array:
    """Runs `y[k] = coefficients[k] * y[k-1] + values[k]`, from `y[0] = values[0]`.

    Args:
      coefficients: float or complex[...]; the first one along the axis is not used.
      values: of the same type.
      axis: the axis.
      reverse: whether to start from the end.

    Returns:
      An array of the operands' shape and dtype.

    Raises:
      ShapeError, DtypeError: the operands differ.
      AxisError: the axis is out of range.

    Example:
      >>> print(linear_recurrence(np.float32([9, 2, 2]), np.float32([1, 1, 1])))
      [1. 3. 7.]

    Source: Martin and Cundy 2018, "Parallelizing linear recurrent neural nets".
    """
    axis = canonical_axis("linear_recurrence", axis, typeof(values).ndim)
    return LinearRecurrence.bind(coefficients, values, axis=axis, reverse=bool(reverse))
