"""Sorting: whole lines in order, and the largest elements.

`sort` treats -0 and +0 as equal and puts nan last, whatever its sign; it is stable if
asked, so equal elements stay in order. `top_k` uses IEEE's total order instead (a nan
with its sign set is the smallest, -0 lies below +0), which is what accelerators do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays import Array, Aval, dtypes, is_arraylike, not_an_array, typeof
from fxflow.core.interpreters.batching import materialize
from fxflow.core.ir.primitive import (
    Batched,
    Dual,
    Flags,
    MultipleResults,
    Values,
    Zero,
    register,
)
from fxflow.core.runtime.library import library
from fxflow.core.runtime.lowering import Context
from fxflow.core.sizes import is_at_least
from fxflow.core.spmd import layouts
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax import sort_words
from fxflow.lax.axes import canonical_axis, integer
from fxflow.lax.broadcasting import broadcast_in_dim
from fxflow.lax.creation import broadcasted_iota
from fxflow.lax.families import ANY, MOVED, ORDERED, kind, require_kind
from fxflow.lax.gather_scatter.gather import take_along
from fxflow.lax.keys import map_key_data

_COMPARE = {"b": "UNSIGNED", "u": "UNSIGNED", "i": "SIGNED", "f": "TOTALORDER"}


def _canonical_text(ctx: Context, name: str, aval: Aval) -> str:
    """Writes a float with one zero and one nan, so that the total order will do."""
    zero = ctx.constant(np.zeros((), aval.dtype), aval)
    flag = aval.update(dtype=np.dtype(bool)).mlir
    pair = f"({aval.mlir}, {aval.mlir}) -> {flag}"
    is_zero = ctx.emit(f"stablehlo.compare EQ, {name}, {zero}, FLOAT : {pair}")
    out = ctx.emit(f"stablehlo.select {is_zero}, {zero}, {name} : {flag}, {aval.mlir}")
    nan_value = np.asarray(np.nan).astype(aval.dtype)
    if not np.isnan(nan_value):
        return out
    nan = ctx.constant(nan_value, aval)
    is_nan = ctx.emit(f"stablehlo.compare NE, {name}, {name}, FLOAT : {pair}")
    return ctx.emit(f"stablehlo.select {is_nan}, {nan}, {out} : {flag}, {aval.mlir}")


def _keys_text(ctx: Context, name: str, aval: Aval) -> list[tuple[str, Aval]]:
    """Writes what an element is compared by: one real number, or two."""
    if dtypes.is_complex(aval.dtype):
        part = aval.update(dtype=dtypes.to_real(aval.dtype))
        sides = [
            ctx.emit(f"stablehlo.{side} {name} : ({aval.mlir}) -> {part.mlir}")
            for side in ("real", "imag")
        ]
        return [(_canonical_text(ctx, side, part), part) for side in sides]
    if dtypes.is_floating(aval.dtype):
        return [(_canonical_text(ctx, name, aval), aval)]
    return [(name, aval)]


def _total_order_key(x: Any) -> Any:
    """Returns signed integers that are ordered as floats are in the total order.

    Args:
      x: NumPy array of floats.
    """
    width = x.dtype.itemsize
    bits = np.asarray(x).view(f"i{width}")
    # Negative floats grow with their bits' magnitude downwards: all but the sign flips.
    return np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)


def _host_keys(x: Any) -> list[Any]:
    """Returns NumPy arrays whose lexicographic order is that of `x`."""
    dtype = x.dtype
    if dtype.kind == "c":
        return [*_host_keys(x.real), *_host_keys(x.imag)]
    if dtype.kind in "biu":
        return [x]
    if dtypes.is_integer(dtype):
        return [x.astype(np.int8 if dtypes.is_signed(dtype) else np.uint8)]
    # float32 holds every value of the smaller floats.
    return [x if dtype.itemsize > 2 else x.astype(np.float32)]


@register
class Sort(MultipleResults):
    """Sorts lines of several arrays by the first ones. All dtypes. StableHLO: sort.

    -0 equals +0; nan is last; complex numbers go by real, then imaginary part.
    """

    name = "sort"
    host_kinds = MOVED
    layout: Callable[..., Any] = layouts.along

    def abstract(self, *avals: Aval, num_keys: int, **_: Any) -> list[Aval]:
        """Unchanged."""
        first = avals[0]
        for aval in avals:
            if aval.shape != first.shape:
                raise ShapeError(
                    "sort: operands must have one shape, got "
                    f"{', '.join(map(str, avals))}"
                )
        for aval in avals[:num_keys]:
            require_kind(self.name, aval, ANY)
        return list(avals)

    def lower(
        self,
        ctx: Context,
        *operands: str,
        dimension: int,
        is_stable: bool,
        num_keys: int,
    ) -> list[str]:
        """`sort` with a comparison of one key after the other; by integers on CPUs."""
        if sort_words.applies(ctx, ctx.avals_in, dimension, num_keys):
            return ctx.compose(
                lambda *xs: sort_words.sort_by_words(xs, dimension, num_keys), operands
            )
        keys = ctx.avals_in[:num_keys]
        if ctx.platform == "cpu" and any(dtypes.is_inexact(k.dtype) for k in keys):
            return ctx.compose(
                lambda *xs: sort_words.sort_by_integers(
                    xs, dimension, is_stable, num_keys
                ),
                operands,
            )
        elements = [a.update(shape=()) for a in ctx.avals_in]
        flag = Aval((), np.dtype(bool))

        def before(inner: Context, names: list[str]) -> Sequence[str]:
            pairs: list[tuple[str, str, Aval]] = []
            for i, aval in enumerate(elements[:num_keys]):
                left = _keys_text(inner, names[2 * i], aval)
                right = _keys_text(inner, names[2 * i + 1], aval)
                pairs += [
                    (x, y, part) for (x, part), (y, _) in zip(left, right, strict=True)
                ]

            def compare(direction: str, x: str, y: str, aval: Aval) -> str:
                how = _COMPARE[kind(aval.dtype)]
                return inner.emit(
                    f"stablehlo.compare {direction}, {x}, {y}, {how} : "
                    f"({aval.mlir}, {aval.mlir}) -> {flag.mlir}"
                )

            # Lexicographically: less by the first key, or equal there and less by the
            # others.
            *outer, last = pairs
            result = compare("LT", *last)
            for pair in reversed(outer):
                less, equal = compare("LT", *pair), compare("EQ", *pair)
                both = inner.emit(f"stablehlo.and {equal}, {result} : {flag.mlir}")
                result = inner.emit(f"stablehlo.or {less}, {both} : {flag.mlir}")
            return [result]

        twice = [a for a in elements for _ in range(2)]
        region = ctx.region(twice, before, [flag])
        types = ", ".join(a.mlir for a in ctx.avals_in)
        stable = "true" if is_stable else "false"
        return ctx.emit_many(
            len(operands),
            f'"stablehlo.sort"({", ".join(operands)}) <{{dimension = {dimension} : '
            f"i64, is_stable = {stable}}}> ({region}) : ({types}) -> ({types})",
        )

    def evaluate(
        self, *values: Any, dimension: int, num_keys: int, **_: Any
    ) -> list[Any]:
        """`np.sort`, or `np.lexsort` and picking."""
        first = values[0]
        if not first.size:
            return [np.array(v) for v in values]
        if len(values) == 1 and first.dtype.kind in "biuf" and first.itemsize > 1:
            # -0 and +0 are equal, and only a stable sort says which comes first.
            return [np.sort(first, axis=dimension, kind="stable")]
        keys = [k for v in values[:num_keys] for k in _host_keys(v)]
        if len(keys) == 1:
            order = np.argsort(keys[0], axis=dimension, kind="stable")
        else:
            order = np.lexsort(keys[::-1], axis=dimension)
        return [np.take_along_axis(v, order, dimension) for v in values]

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """The tangents in the order of the elements."""
        axis = params["dimension"]
        aval = typeof(primals[0])
        dtype = np.int64 if is_at_least(aval.size, 2**31) else np.int32
        # Sorted along, they become the order that the tangents need.
        positions = broadcasted_iota(dtype, aval.shape, axis)
        *outs, order = self.bind(*primals, positions, **params)
        moved = [
            Zero(typeof(out).tangent())
            if type(t) is Zero
            else take_along(t, order, axis)
            for out, t in zip(outs, tangents, strict=True)
        ]
        return outs, moved

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """One axis further back."""
        params["dimension"] += 1
        wide = [materialize(a, size, m) for a, m in zip(args, mapped, strict=True)]
        return self.bind(*wide, **params), [True] * len(wide)


def sort(
    operand: Any,
    dimension: int = -1,
    is_stable: bool = True,
    num_keys: int = 1,
) -> Any:
    """Sorts along an axis, ascending.

    Args:
      operand: array, or a sequence of arrays of one shape that are sorted together.
      dimension: the axis.
      is_stable: whether equal elements stay in order.
      num_keys: how many of the arrays are compared, one after the other.

    Returns:
      An array, or a tuple of arrays, of the same types.

    Raises:
      ShapeError: shapes differ.
      AxisError: an axis is out of range.
      ArgumentError: there are no arrays, or not as many as `num_keys`.
      DtypeError: keys are compared.

    Special cases:
      -0 equals +0. nan is last, whatever its sign. Complex numbers are sorted by real,
      then imaginary part.

    Example:
      >>> sort(np.array([3, 1, 2], "i4"))
      Array([1, 2, 3], dtype=int32)

    Source: StableHLO `sort`; `numpy.sort`.
    """
    several = isinstance(operand, list | tuple)
    values = list(operand) if several else [operand]
    if not values:
        raise ArgumentError("sort: needs at least one array, got none")
    for value in values:
        if not is_arraylike(value):
            raise not_an_array(value, "sort: got")
    if not 1 <= num_keys <= len(values):
        raise ArgumentError(
            f"sort: num_keys must be from 1 to the number of arrays {len(values)}, got "
            f"{num_keys}"
        )
    axis = canonical_axis("sort", dimension, typeof(values[0]).ndim, "dimension")
    moved = [
        i
        for i in range(num_keys, len(values))
        if dtypes.is_key(typeof(values[i]).dtype)
    ]
    if moved:
        return _with_keys(values, moved, axis, is_stable, num_keys)
    outs = Sort.bind(
        *values, dimension=axis, is_stable=bool(is_stable), num_keys=int(num_keys)
    )
    return tuple(outs) if several else outs[0]


def _with_keys(
    values: Values, moved: Sequence[int], axis: int, stable: bool, num_keys: int
) -> tuple[Any, ...]:
    """Returns sorted arrays, of which those at positions `moved` are of random keys."""
    shape = typeof(values[0]).shape
    rest = [v for i, v in enumerate(values) if i not in moved]
    positions = broadcasted_iota(dtypes.int32, shape, axis)
    *outs, order = sort([*rest, positions], axis, stable, num_keys)
    for i in moved:
        suffix = typeof(values[i]).dtype.suffix
        wide = broadcast_in_dim(order, shape + suffix, tuple(range(len(shape))))
        outs.insert(
            i, map_key_data(lambda w, at=wide: take_along(w, at, axis), values[i])
        )
    return tuple(outs)


def sort_key_val(
    keys: Any, values: Any, dimension: int = -1, is_stable: bool = True
) -> tuple[Array, Array]:
    """Sorts keys along an axis and puts values in the same order.

    Args:
      keys: array to compare.
      values: array of the same shape.
      dimension: the axis.
      is_stable: whether equal elements stay in order.

    Returns:
      The keys in order, and the values.

    Raises:
      ShapeError: shapes differ.
      AxisError: an axis is out of range.

    Example:
      >>> sort_key_val(np.array([2, 1], "i4"), np.array([5, 6], "i4"))
      (Array([1, 2], dtype=int32), Array([6, 5], dtype=int32))

    Source: StableHLO `sort`.
    """
    first, second = sort((keys, values), dimension, is_stable, 1)
    return first, second


@library("dimension", "is_stable")
def argsort(operand: Any, dimension: int = -1, is_stable: bool = True) -> Array:
    """Returns the indices that sort an array along an axis.

    Args:
      operand: array of any dtype except keys.
      dimension: the axis.
      is_stable: whether equal elements stay in order.

    Returns:
      `int32` array of the same shape.

    Raises:
      AxisError: an axis is out of range.
      DtypeError: the array holds keys.

    Special cases:
      As for `sort`.

    Example:
      >>> argsort(np.array([3, 1, 2], "i4"))
      Array([1, 2, 0], dtype=int32)

    Source: StableHLO `sort`; `numpy.argsort`.
    """
    aval = typeof(operand)
    axis = canonical_axis("argsort", dimension, aval.ndim, "dimension")
    long = is_at_least(aval.shape[axis], 2**31)
    positions = broadcasted_iota(np.int64 if long else np.int32, aval.shape, axis)
    _, order = Sort.bind(
        operand, positions, dimension=axis, is_stable=bool(is_stable), num_keys=1
    )
    return order


# -- the largest -----------------------------------------------------------------------


@register
class TopK(MultipleResults):
    """The k largest elements along an axis. dtypes: ordered. CHLO: top_k.

    In IEEE's total order; of equal elements those in front come first.
    """

    name = "top_k"
    layout: Callable[..., Any] = layouts.along_last

    def abstract(self, x: Aval, *, k: int, axis: int) -> list[Aval]:
        """Values, and i32 indices."""
        require_kind(self.name, x, ORDERED)
        if not 0 <= k <= x.shape[axis]:
            raise ShapeError(
                f"top_k: k must be from 0 to the length {x.shape[axis]} of axis {axis} "
                f"of {x}, got {k}"
            )
        shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
        return [Aval(shape, x.dtype, x.weak_type), Aval(shape, np.dtype(np.int32))]

    def lower(self, ctx: Context, x: str, *, k: int, axis: int) -> list[str]:
        """`top_k` of the last axis, with the axis moved there and back."""
        aval = ctx.avals_in[0]
        outs = ctx.avals_out
        if not (outs[0].size):
            return [
                ctx.broadcast(
                    ctx.constant(np.zeros((), a.dtype), a.update(shape=())),
                    a.update(shape=()),
                    a.shape,
                )
                for a in outs
            ]
        last = aval.ndim - 1
        there = [d for d in range(aval.ndim) if d != axis] + [axis]
        back = [there.index(d) for d in range(aval.ndim)]

        def moved(name: str, order: list[int], old: Aval) -> tuple[str, Aval]:
            new = old.update(shape=tuple(old.shape[d] for d in order))
            return ctx.emit(
                f"stablehlo.transpose {name}, dims = {list(order)} : "
                f"({old.mlir}) -> {new.mlir}"
            ), new

        if axis != last:
            x, aval = moved(x, there, aval)
        lines = [a.update(shape=(*aval.shape[:-1], k)) for a in outs]
        names = ctx.emit_many(
            2,
            f"chlo.top_k({x}, k = {k}) : {aval.mlir} -> "
            f"({lines[0].mlir}, {lines[1].mlir})",
        )
        if axis == last:
            return names
        return [moved(n, back, a)[0] for n, a in zip(names, lines, strict=True)]

    def evaluate(self, x: Any, *, k: int, axis: int) -> list[Any]:
        """`np.argsort`, backwards so that the first of equals stays first."""
        keys = _total_order_key(x) if dtypes.is_floating(x.dtype) else _host_keys(x)[0]
        n = x.shape[axis]
        flipped = np.flip(keys, axis)
        order = np.flip(np.argsort(flipped, axis=axis, kind="stable"), axis)
        index = (slice(None),) * axis + (slice(k),)
        order = (n - 1 - order[index]).astype(np.int32)
        return [np.take_along_axis(x, order, axis), order]

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """The tangents of the chosen elements."""
        values, order = self.bind(*primals, **params)
        moved = take_along(tangents[0], order, params["axis"])
        return [values, order], [moved, Zero(typeof(order).tangent())]

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """One axis further back."""
        outs = self.bind(args[0], k=params["k"], axis=params["axis"] + 1)
        return outs, [True, True]


def top_k(operand: Any, k: int, *, axis: int = -1) -> tuple[Array, Array]:
    """Returns the k largest elements along an axis, largest first, and their indices.

    Args:
      operand: real, integer or boolean array.
      k: the number of elements to return.
      axis: the axis.

    Returns:
      Values, and `int32` indices; `axis` has length `k`.

    Raises:
      ShapeError: the axis is shorter than `k`.
      AxisError: an axis is out of range.
      DtypeError: the array is complex.

    Special cases:
      nan is the largest, or, if its sign is set, the smallest. -0 lies below +0. Equal
      elements keep their order.

    Example:
      >>> top_k(np.array([1, 3, 2], "i4"), 2)
      (Array([3, 2], dtype=int32), Array([1, 2], dtype=int32))

    Source: CHLO `top_k`.
    """
    aval = typeof(operand)
    at = canonical_axis("top_k", axis, aval.ndim)
    values, order = TopK.bind(operand, k=integer("top_k", "k", k), axis=at)
    return values, order
