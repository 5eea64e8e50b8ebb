"""Reductions: sum, product, extrema and bitwise ones.

Accumulation of 16-bit floats is left to XLA (`fxflow.numpy.sum` accumulates them in 32
bits). `custom_reduction` reduces by any computation.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from fxflow.core.arrays import Array, Aval, Shape, dtypes, typeof
from fxflow.core.docs import shared
from fxflow.core.interpreters.jvp import jvp_flat
from fxflow.core.ir.graph import Node
from fxflow.core.ir.primitive import (
    Batched,
    Dual,
    Flags,
    HostCall,
    Primitive,
    Values,
    Zero,
    register,
    table,
)
from fxflow.core.runtime.lowering import Context
from fxflow.core.spmd import layouts
from fxflow.core.spmd.partition import whole_along
from fxflow.devices import faults
from fxflow.lax import _extrema_host, ordered_bits
from fxflow.lax.axes import distinct_axes, kept_axes, without
from fxflow.lax.broadcasting import BroadcastInDim
from fxflow.lax.comparison import eq, ne
from fxflow.lax.conversion import convert_element_type
from fxflow.lax.creation import full_like
from fxflow.lax.elementwise import add, div, max, min, mul
from fxflow.lax.families import (
    ADDED,
    ANY,
    BITS,
    NUMERIC,
    Kinds,
    Linear,
    kind,
    require_kind,
)
from fxflow.lax.reshaping import reshape
from fxflow.lax.select import select
from fxflow.lax.transfer import laid_out
from fxflow.lax.tree_reduction import combine_pairs, rows_of

# NumPy reduces these itself, in their own precision.
NATIVE = frozenset("?bhilqBHILQfdFD")


@functools.cache
def lowest(dtype: Any) -> Any:
    """Returns the least value of a dtype: the identity of the maximum."""
    if dtypes.is_bool(dtype):
        return np.False_
    if dtypes.is_integer(dtype):
        return np.asarray(dtypes.iinfo(dtype).min, dtype)[()]
    if dtypes.is_complex(dtype):
        return np.asarray(complex(-np.inf, -np.inf), dtype)[()]
    if dtypes.finfo(dtype).dtype.kind in "fV" and not has_infinity(dtype):
        return np.asarray(dtypes.finfo(dtype).min, dtype)[()]
    return np.asarray(-np.inf, dtype)[()]


@functools.cache
def highest(dtype: Any) -> Any:
    """Returns the greatest value of a dtype: the identity of the minimum."""
    if dtypes.is_bool(dtype):
        return np.True_
    if dtypes.is_integer(dtype):
        return np.asarray(dtypes.iinfo(dtype).max, dtype)[()]
    if dtypes.is_complex(dtype):
        return np.asarray(complex(np.inf, np.inf), dtype)[()]
    if not has_infinity(dtype):
        return np.asarray(dtypes.finfo(dtype).max, dtype)[()]
    return np.asarray(np.inf, dtype)[()]


def has_infinity(dtype: Any) -> bool:
    """Returns whether a float dtype has an infinity (several of 8 bits have not)."""
    return bool(np.isinf(np.asarray(np.inf, np.float32).astype(dtype).astype("f4")))


# -- what is combined ------------------------------------------------------------------


class Monoid:
    """An associative operation: of reductions, running and windowed ones.

    Attributes:
      hlo: the StableHLO operation on two elements, or "" if it is a composition.
      ufunc: NumPy's.
    """

    hlo: ClassVar[str] = ""
    ufunc: ClassVar[np.ufunc]

    def identity(self, dtype: Any) -> Any:
        """Returns what changes nothing when combined."""
        raise NotImplementedError

    def combine(self, x: Any, y: Any) -> Any:
        """Returns two values combined, by operations of `lax`."""
        raise NotImplementedError

    def window_text(
        self, ctx: Context, operand: str, aval: Aval, out: Aval, attributes: str
    ) -> str:
        """Writes `reduce_window` of an operand of a type."""
        scalar = Aval((), aval.dtype)
        init = ctx.constant(self.identity(aval.dtype), scalar)
        region = ctx.region(
            [scalar, scalar],
            lambda c, n: [c.emit(f"{self.hlo} {n[0]}, {n[1]} : {scalar.mlir}")],
            [scalar],
        )
        return ctx.emit(
            f'"stablehlo.reduce_window"({operand}, {init}) ({region}) {{{attributes}}} '
            f": ({aval.mlir}, {scalar.mlir}) -> {out.mlir}"
        )


class Sum(Monoid):
    """x + y."""

    hlo = "stablehlo.add"
    ufunc: ClassVar[np.ufunc] = np.add

    def identity(self, dtype: Any) -> Any:
        """Zero."""
        return np.zeros((), dtype)[()]

    def combine(self, x: Any, y: Any) -> Any:
        """The sum."""
        return add(x, y)


class Product(Monoid):
    """x y."""

    hlo = "stablehlo.multiply"
    ufunc: ClassVar[np.ufunc] = np.multiply

    def identity(self, dtype: Any) -> Any:
        """One."""
        return np.ones((), dtype)[()]

    def combine(self, x: Any, y: Any) -> Any:
        """The product."""
        return mul(x, y)


class Maximum(Monoid):
    """The greater of two."""

    hlo = "stablehlo.maximum"
    ufunc: ClassVar[np.ufunc] = np.maximum

    def identity(self, dtype: Any) -> Any:
        """The least value."""
        return lowest(dtype)

    def combine(self, x: Any, y: Any) -> Any:
        """The greater."""
        return max(x, y)


class Minimum(Monoid):
    """The less of two."""

    hlo = "stablehlo.minimum"
    ufunc: ClassVar[np.ufunc] = np.minimum

    def identity(self, dtype: Any) -> Any:
        """The greatest value."""
        return highest(dtype)

    def combine(self, x: Any, y: Any) -> Any:
        """The less."""
        return min(x, y)


# -- in two stages ---------------------------------------------------------------------

#: With so many elements between two that are combined, XLA:CPU combines whole vectors.
_WIDTH = 512
#: Fewest elements of a reduction that is worth two.
_MANY = 1 << 15
#: Rows that are combined at first: LLVM writes that loop out, and combines vectors.
_PARTS = 8
#: Fewest elements to combine, for each that is left, that are worth two stages. XLA:CPU
#: makes one slow loop of both if the second one combines 32 or fewer.
_DEEP = 64 * _PARTS
#: XLA:CPU leaves reductions of 4,096 elements to YNNPACK, and perhaps of fewer.
_FEW = 1 << 10


def _is_slow(ctx: Context, operand: Aval) -> bool:
    """Returns whether XLA:CPU itself reduces an array, one element after the other.

    It does where YNNPACK's sums are switched off: a million numbers take 0.4 ms, and
    0.12 in two stages.
    """
    return (
        ctx.platform == "cpu"
        and operand.dtype in (dtypes.float32, dtypes.float64)
        and not operand.is_symbolic
        and operand.size >= _MANY
        and not ctx.module.partitioned
        and faults.present("sums of many axes", "cpu") is not None
    )


def _loses_nan(ctx: Context, operand: Aval) -> bool:
    """Returns whether YNNPACK takes the extrema of an array, which pass over NaN."""
    return (
        ctx.platform == "cpu"
        and operand.dtype in (dtypes.float32, dtypes.float64)
        and (operand.is_symbolic or operand.size >= _FEW)
        and faults.present("extrema beside NaN", "cpu") is not None
        and faults.present("sums of many axes", "cpu") is None  # which keeps it off
    )


def _reshaped(ctx: Context, name: str, aval: Aval, shape: Shape) -> tuple[str, Aval]:
    """Returns a value with another shape, and its type."""
    if aval.shape == shape:
        return name, aval
    out = aval.update(shape=shape)
    return ctx.emit(f"stablehlo.reshape {name} : ({aval.mlir}) -> {out.mlir}"), out


def _leading(axes: tuple[int, ...]) -> int:
    """Returns how many axes in front are reduced."""
    return next((i for i, axis in enumerate(axes) if axis != i), len(axes))


def _rows(shape: tuple[int, ...], axes: tuple[int, ...]) -> int | None:
    """Returns how many leading axes to reduce first, so that vectors are combined.

    Returns:
      Their number, if other axes are reduced behind; 0 if all are leading ones, which
      are cut into `_PARTS` rows; None if one stage is as good.
    """
    leading = _leading(axes)
    if leading == len(axes):
        return 0 if math.prod(shape[:leading]) >= _DEEP else None
    for rows in range(leading, 0, -1):
        if math.prod(shape[rows:]) >= _WIDTH:
            return rows
    return None


# -- reductions ------------------------------------------------------------------------


class Reduction(Monoid, Primitive):
    """Combines the elements along some axes.

    Attributes:
      kinds: dtypes it takes.
      between_devices: kinds of dtype of which XLA combines what devices have.
    """

    kinds: ClassVar[Kinds] = NUMERIC
    between_devices: ClassVar[Kinds] = ANY
    layout: Callable[..., Any] = layouts.reduction

    def abstract(self, operand: Aval, *, axes: tuple[int, ...]) -> Aval:
        """The operand's type without the axes."""
        if kind(operand.dtype) not in self.kinds:
            require_kind(self.name, operand, self.kinds)
        return operand.update(shape=without(operand.shape, axes))

    def lower(self, ctx: Context, *operands: str, axes: tuple[int, ...]) -> str:
        """`reduce`, with the operation by name; of large arrays on some CPUs, two."""
        (operand,) = ctx.avals_in
        if not axes:
            return operands[0]
        if _is_slow(ctx, operand):
            rows = _rows(operand.shape, axes)
            if rows is not None:
                return self._in_stages(ctx, operands[0], operand, axes, rows)
        name = operands[0]
        if kind(operand.dtype) not in self.between_devices:
            name = whole_along(ctx, name, operand, axes)
        return self._reduced(ctx, name, operand, axes)

    def _reduced(
        self, ctx: Context, name: str, aval: Aval, axes: tuple[int, ...]
    ) -> str:
        scalar = Aval((), aval.dtype)
        init = ctx.constant(self.identity(aval.dtype), scalar)
        out = aval.update(shape=without(aval.shape, axes))
        return ctx.emit(
            f"stablehlo.reduce({name} init: {init}) applies {self.hlo} "
            f"across dimensions = {list(axes)} : "
            f"({aval.mlir}, {scalar.mlir}) -> {out.mlir}"
        )

    def _in_stages(
        self, ctx: Context, name: str, aval: Aval, axes: tuple[int, ...], rows: int
    ) -> str:
        """Writes a reduction as one of rows, then one of what is left of a row.

        Args:
          ctx: where to write.
          name: of the operand.
          aval: its type.
          axes: to reduce.
          rows: as `_rows` says.
        """
        if not rows:
            return self._in_parts(ctx, name, aval, len(axes))
        shape, count = aval.shape, math.prod(aval.shape[:rows])
        name = self._of_rows(ctx, name, aval, count)
        rest = aval.update(shape=shape[rows:])
        name, _ = _reshaped(ctx, name, aval.update(shape=(rest.size,)), rest.shape)
        return self._reduced(ctx, name, rest, tuple(a - rows for a in axes[rows:]))

    def _of_rows(self, ctx: Context, name: str, aval: Aval, count: int) -> str:
        """Combines the rows of an array that is cut into `count`, behind a barrier."""
        name, aval = _reshaped(ctx, name, aval, (count, aval.size // count))
        name = self._reduced(ctx, name, aval, (0,))
        row = aval.update(shape=aval.shape[1:])
        # XLA would make one reduction of both.
        return ctx.emit(f"stablehlo.optimization_barrier {name} : {row.mlir}")

    def _in_parts(self, ctx: Context, name: str, aval: Aval, leading: int) -> str:
        """Reduces the leading axes: `_PARTS` parts of them at first, then one part."""
        count, kept = math.prod(aval.shape[:leading]), aval.shape[leading:]
        name, aval = _reshaped(ctx, name, aval, (count, *kept))
        tail, whole = "", count // _PARTS * _PARTS
        if whole < count:
            tail, rest = self._part(ctx, name, aval, whole, count)
            tail = self._reduced(ctx, tail, rest, (0,))
            name, aval = self._part(ctx, name, aval, 0, whole)
        name = self._of_rows(ctx, name, aval, _PARTS)
        row = aval.update(shape=(aval.size // _PARTS,))
        name, part = _reshaped(ctx, name, row, (whole // _PARTS, *kept))
        name = self._reduced(ctx, name, part, (0,))
        if tail:
            out = aval.update(shape=kept)
            name = ctx.emit(f"{self.hlo} {name}, {tail} : {out.mlir}")
        return name

    def _part(
        self, ctx: Context, name: str, aval: Aval, start: int, stop: int
    ) -> tuple[str, Aval]:
        """Returns a slice along the first axis, and its type."""
        part = aval.update(shape=(stop - start, *aval.shape[1:]))
        ranges = ", ".join([f"{start}:{stop}", *(f"0:{n}" for n in aval.shape[1:])])
        text = f"stablehlo.slice {name} [{ranges}] : ({aval.mlir}) -> {part.mlir}"
        return ctx.emit(text), part

    def host_function(self, *, axes: tuple[int, ...]) -> Callable[..., Any]:
        """The ufunc's `reduce` with the axes filled in."""
        if not axes:
            return lambda operand: operand  # NumPy would add it to zero
        reduce_ = self.ufunc.reduce
        identity = self.identity

        def call(operand: Any) -> Any:
            dtype = operand.dtype
            if dtype.char in NATIVE and operand.size:
                # Without a dtype NumPy adds small integers in 64 bits.
                return reduce_(operand, axes, dtype)
            wide = np.float32 if dtypes.is_floating(dtype) else np.int32
            if dtype.char in NATIVE:
                wide = dtype
            start = np.asarray(identity(dtype)).astype(wide)
            out = reduce_(operand.astype(wide), axes, wide, initial=start)
            return np.asarray(out).astype(dtype)

        return call

    def host_call(self, node: Node) -> HostCall:
        """The ufunc's `reduce` itself where nothing else is to be done."""
        call = super().host_call(node)
        aval, axes = node.inputs[0].aval, node.params["axes"]
        plain = type(self).host_function is Reduction.host_function
        if plain and axes and aval.size and aval.dtype.char in NATIVE:
            # All axes by None, which spares NumPy the tuple.
            along = None if len(axes) == aval.ndim else axes
            call = HostCall(self.ufunc.reduce, call.noisy, (along, aval.dtype))
        return call

    def batch(
        self, size: int, args: Values, mapped: Flags, *, axes: tuple[int, ...]
    ) -> Batched:
        """The axes move up by one."""
        return self.bind(args[0], axes=tuple(a + 1 for a in axes)), True

    def cost(self, *avals: Aval, **params: Any) -> dict[str, float]:
        """One operation an element."""
        return {**super().cost(*avals, **params), "flops": float(avals[0].size)}


@register
class ReduceSum(Sum, Reduction, Linear):
    """Sum along axes. dtypes: numeric. StableHLO: reduce, add. Empty: 0."""

    name = "reduce_sum"
    sums: Callable[..., Any] = layouts.linear
    host_kinds = ADDED

    def transpose(self, cotangent: Any, *args: Any, axes: tuple[int, ...]) -> Values:
        """The cotangent, repeated along the axes."""
        (operand,) = args
        return [repeat(cotangent, operand.aval.shape, axes)]


@register
class ReduceProd(Product, Reduction):
    """Product along axes. dtypes: numeric. StableHLO: reduce. Empty: 1."""

    name = "reduce_prod"

    def jvp(self, primals: Values, tangents: Values, *, axes: tuple[int, ...]) -> Dual:
        """Derivative of a tree of products: right at zeros, and O(n)."""
        out = self.bind(*primals, axes=axes)

        def product(x: Any) -> list[Any]:
            rows = rows_of([x], axes)
            (row,) = combine_pairs(rows, lambda a, b: [mul(a[0], b[0])])
            return [reshape(row, typeof(out).shape)]

        if not all(typeof(primals[0]).shape[a] for a in axes):
            return out, Zero(typeof(out).tangent())
        return out, jvp_flat(product, primals, tangents)[1][0]


class Extremum(Reduction):
    """Greatest or least element along axes."""

    kinds = ANY
    nan: ClassVar[float]

    def host_function(self, *, axes: tuple[int, ...]) -> Callable[..., Any]:
        """The ufunc's `reduce`, and the right one of two zeros."""
        extremum = super().host_function(axes=axes)
        larger = self.name == "reduce_max"

        def call(operand: Any) -> Any:
            out = extremum(operand)
            if axes and _extrema_host.may_hold_zeros(out):
                won = np.logical_or.reduce(_extrema_host.winners(operand, larger), axes)
                return _extrema_host.settled(out, won, larger)
            return out

        return call

    def lower(self, ctx: Context, *operands: str, axes: tuple[int, ...]) -> str:
        """`reduce`; of complex numbers with an order of our own, as XLA has none."""
        (operand,) = ctx.avals_in
        if axes and ctx.module.partitioned and ordered_bits.applies(ctx, operand.dtype):

            def by_bits(x: Any) -> Any:
                found = self.bind(ordered_bits.to_ordered_bits(x, self.nan), axes=axes)
                return ordered_bits.from_ordered_bits(found, operand.dtype)

            return ctx.compose(by_bits, operands)[0]
        if not axes or not dtypes.is_complex(operand.dtype):
            out = super().lower(ctx, *operands, axes=axes)
            if axes and _loses_nan(ctx, operand):
                return self._with_nan(ctx, out, operands, axes)
            return out
        scalar = Aval((), operand.dtype)
        init = ctx.constant(self.identity(operand.dtype), scalar)
        two = table["max" if self.name == "reduce_max" else "min"]

        def body(inner: Context, names: list[str]) -> list[str]:
            return inner.compose(two.bind, names, [scalar, scalar])

        region = ctx.region([scalar, scalar], body, [scalar])
        listed = ", ".join(map(str, axes))
        return ctx.emit(
            f'"stablehlo.reduce"({operands[0]}, {init}) ({region}) '
            f"{{dimensions = array<i64: {listed}>}} : "
            f"({operand.mlir}, {scalar.mlir}) -> {ctx.avals_out[0].mlir}"
        )

    def _with_nan(
        self, ctx: Context, out: str, operands: Sequence[str], axes: tuple[int, ...]
    ) -> str:
        """Returns the extremum, NaN where an element is."""
        (operand,), result = ctx.avals_in, ctx.avals_out[0]

        def is_nan(x: Any) -> Any:
            return table["reduce_or"].bind(ne(x, x), axes=axes)

        def chosen(out: Any, nan: Any) -> Any:
            return select(nan, full_like(out, np.nan), out)

        flag = result.update(dtype=dtypes.bool_, weak_type=False)
        found = ctx.compose(is_nan, operands, [operand])[0]
        return ctx.compose(chosen, [out, found], [result, flag])[0]

    def jvp(self, primals: Values, tangents: Values, *, axes: tuple[int, ...]) -> Dual:
        """The mean of the tangents of all elements that are the extremum."""
        (x,), (t,) = primals, tangents
        out = self.bind(x, axes=axes)
        shape = typeof(x).shape
        if not all(shape[a] for a in axes):
            return out, Zero(typeof(out).tangent())
        hits = convert_element_type(eq(x, repeat(out, shape, axes)), typeof(x).dtype)
        # Equal extrema share the derivative equally, as in JAX.
        count = ReduceSum.bind(hits, axes=axes)
        return out, div(ReduceSum.bind(mul(t, hits), axes=axes), count)


@register
class ReduceMax(Maximum, Extremum):
    """Greatest element along axes. dtypes: all. StableHLO: reduce, maximum.

    Empty: -inf or the least integer. NaN, if there is one. Complex numbers are
    ordered by real part, then by imaginary part.
    """

    name = "reduce_max"
    nan = np.nan


@register
class ReduceMin(Minimum, Extremum):
    """Least element along axes. dtypes: all. StableHLO: reduce, minimum.

    Empty: inf or the greatest integer. NaN, if there is one. Complex numbers are
    ordered by real part, then by imaginary part.
    """

    name = "reduce_min"
    # Negative: as ordered bits it lies below everything.
    nan = -np.nan


class Bitwise(Reduction):
    """Bits combined along axes."""

    kinds = BITS
    between_devices: ClassVar[Kinds] = frozenset("b")
    nondifferentiable: ClassVar[str | None] = "its operands are integers or booleans"

    def identity(self, dtype: Any) -> Any:
        """No bit set."""
        return np.zeros((), dtype)[()]


@register
class ReduceAnd(Bitwise):
    """Bitwise and along axes. dtypes: bool, integer. StableHLO: reduce, and."""

    name = "reduce_and"
    hlo = "stablehlo.and"
    ufunc: ClassVar[np.ufunc] = np.bitwise_and

    def identity(self, dtype: Any) -> Any:
        """All bits set."""
        if dtypes.is_bool(dtype):
            return np.True_
        low, high = dtypes.iinfo(dtype).min, dtypes.iinfo(dtype).max
        return np.asarray(-1 if low < 0 else high, dtype)[()]


@register
class ReduceOr(Bitwise):
    """Bitwise or along axes. dtypes: bool, integer. StableHLO: reduce, or."""

    name = "reduce_or"
    hlo = "stablehlo.or"
    ufunc: ClassVar[np.ufunc] = np.bitwise_or


@register
class ReduceXor(Bitwise):
    """Exclusive or along axes. dtypes: bool, integer. StableHLO: reduce, xor."""

    name = "reduce_xor"
    between_devices: ClassVar[Kinds] = frozenset()
    hlo = "stablehlo.xor"
    ufunc: ClassVar[np.ufunc] = np.bitwise_xor


def repeat(value: Any, shape: Shape, axes: Sequence[int]) -> Any:
    """Returns a reduced value repeated along the axes it was reduced over.

    Args:
      value: of `shape` without `axes`.
      shape: shape of the result.
      axes: that were reduced.
    """
    if not axes:
        return value
    kept = kept_axes(len(shape), axes)
    return BroadcastInDim.bind(value, shape=shape, broadcast_dimensions=kept)


# -- public ----------------------------------------------------------------------------


def _axes(name: str, axes: Any, operand: Any) -> tuple[int, ...]:
    return tuple(sorted(distinct_axes(name, axes, typeof(operand).ndim, "axes")))


_reduction_docs = shared("""
    Args:
      axes: to reduce.

    Returns:
      An array of the operand's dtype, without the axes.

    Raises:
      AxisError: an axis is out of range or repeated.
""")


@_reduction_docs
def reduce_sum(operand: Any, axes: Sequence[int], *, out_sharding: Any = None) -> Array:
    """Sums elements along axes.

    Args:
      operand: numeric[...].
      out_sharding: a `Sharding`, or a `PartitionSpec` over the current mesh: how the
        result is laid out.

    Raises:
      DtypeError: the array is not numeric.
      PlacementError: the result cannot be laid out as `out_sharding` specifies.

    Special cases:
      No elements: 0. Integers wrap around.

    Example:
      >>> print(reduce_sum(np.float32([[1, 2], [3, 4]]), (1,)))
      [3. 7.]

    Source: StableHLO reduce with add.
    """
    result: Array = ReduceSum.bind(operand, axes=_axes("reduce_sum", axes, operand))
    if out_sharding is not None:
        return laid_out("reduce_sum", result, out_sharding)
    return result


@_reduction_docs
def reduce_prod(operand: Any, axes: Sequence[int]) -> Array:
    """Multiplies elements along axes.

    Args:
      operand: numeric[...].

    Raises:
      DtypeError: the array is not numeric.

    Special cases:
      No elements: 1. Integers wrap around.

    Example:
      >>> print(reduce_prod(np.float32([[1, 2], [3, 4]]), (1,)))
      [ 2. 12.]

    Source: StableHLO reduce with multiply.
    """
    return ReduceProd.bind(operand, axes=_axes("reduce_prod", axes, operand))


@_reduction_docs
def reduce_max(operand: Any, axes: Sequence[int]) -> Array:
    """Returns the maximum along axes.

    Args:
      operand: array[...] of any dtype.

    Special cases:
      No elements: -inf, or the dtype's least value. NaN propagates.

    Example:
      >>> print(reduce_max(np.float32([[1, 2], [3, 4]]), (1,)))
      [2. 4.]

    Source: StableHLO reduce with maximum.
    """
    return ReduceMax.bind(operand, axes=_axes("reduce_max", axes, operand))


@_reduction_docs
def reduce_min(operand: Any, axes: Sequence[int]) -> Array:
    """Returns the minimum along axes.

    Args:
      operand: array[...] of any dtype.

    Special cases:
      No elements: inf, or the dtype's greatest value. NaN propagates.

    Example:
      >>> print(reduce_min(np.float32([[1, 2], [3, 4]]), (1,)))
      [1. 3.]

    Source: StableHLO reduce with minimum.
    """
    return ReduceMin.bind(operand, axes=_axes("reduce_min", axes, operand))


@_reduction_docs
def reduce_and(operand: Any, axes: Sequence[int]) -> Array:
    """Combines the bits of elements by and along axes.

    Args:
      operand: bool or integer[...].

    Raises:
      DtypeError: the array is not bool or integer.

    Special cases:
      No elements: True, or all bits set.

    Example:
      >>> print(reduce_and(np.array([[True, True], [True, False]]), (1,)))
      [ True False]

    Source: StableHLO reduce with and.
    """
    return ReduceAnd.bind(operand, axes=_axes("reduce_and", axes, operand))


@_reduction_docs
def reduce_or(operand: Any, axes: Sequence[int]) -> Array:
    """Combines the bits of elements by or along axes.

    Args:
      operand: bool or integer[...].

    Raises:
      DtypeError: the array is not bool or integer.

    Special cases:
      No elements: False, or no bit set.

    Example:
      >>> print(reduce_or(np.array([[True, True], [True, False]]), (1,)))
      [ True  True]

    Source: StableHLO reduce with or.
    """
    return ReduceOr.bind(operand, axes=_axes("reduce_or", axes, operand))


@_reduction_docs
def reduce_xor(operand: Any, axes: Sequence[int]) -> Array:
    """Combines the bits of elements by exclusive or along axes.

    Args:
      operand: bool or integer[...].

    Raises:
      DtypeError: the array is not bool or integer.

    Special cases:
      No elements: False, or no bit set.

    Example:
      >>> print(reduce_xor(np.array([[True, True], [True, False]]), (1,)))
      [False  True]

    Source: StableHLO reduce with xor.
    """
    return ReduceXor.bind(operand, axes=_axes("reduce_xor", axes, operand))
