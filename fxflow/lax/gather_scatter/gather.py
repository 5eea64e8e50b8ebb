"""Gather: slices of an array read at computed indices.

`dimension_numbers` say how the axes correspond, and a mode says what happens to an
out-of-bounds slice: it is clamped (`CLIP`), replaced by a fill value (`FILL_OR_DROP`),
or the caller promises that there is none (`PROMISE_IN_BOUNDS`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fxflow.core.arrays import Array, Aval, Shape, dtypes, typeof
from fxflow.core.ir import arith
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
from fxflow.core.sizes import smaller
from fxflow.core.spmd import layouts
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import canonical_shape
from fxflow.lax.families import MOVED
from fxflow.lax.gather_scatter.dimension_numbers import (
    GatherDimensionNumbers,
    GatherScatterMode,
    require_axes,
)
from fxflow.lax.gather_scatter.slices import SliceWindow, in_bounds_text, wide_indices
from fxflow.lax.keys import check, map_key_data


@register
class Gather(Primitive):
    """Slices at computed indices. All dtypes; integer indices. StableHLO: gather."""

    name = "gather"
    linear_in_inexact = True
    host_kinds = MOVED
    layout: Callable[..., Any] = layouts.gathered

    def abstract(
        self,
        x: Aval,
        indices: Aval,
        *,
        dimension_numbers: GatherDimensionNumbers,
        slice_sizes: Shape,
        **_: Any,
    ) -> Aval:
        """Batch axes and slice axes, interleaved as asked for."""
        numbers = dimension_numbers
        numbers.check("gather", x, indices)
        if len(slice_sizes) != x.ndim or any(
            not 0 <= k <= n for k, n in zip(slice_sizes, x.shape, strict=False)
        ):
            raise ShapeError(
                f"gather: slice_sizes {slice_sizes} do not fit {x}: give one length "
                "for each axis, none larger than the axis"
            )
        gone = numbers.dropped
        for d in sorted(gone):
            if slice_sizes[d] > 1:
                raise ShapeError(
                    f"gather: slice_sizes {slice_sizes} must be 1 along axis {d}, "
                    "which is collapsed or a batching dimension"
                )
        window = [k for d, k in enumerate(slice_sizes) if d not in gone]
        if len(window) != len(numbers.offset_dims):
            raise ShapeError(
                f"gather: a slice of {x} keeps {len(window)} axes, but offset_dims "
                f"{numbers.offset_dims} have {len(numbers.offset_dims)}"
            )
        out_ndim = indices.ndim - 1 + len(window)
        require_axes("gather", "offset_dims", numbers.offset_dims, out_ndim)
        offsets, batch = iter(window), iter(indices.shape)
        inside = set(numbers.offset_dims)
        shape = tuple(
            next(offsets) if d in inside else next(batch) for d in range(out_ndim)
        )
        return Aval(shape, x.dtype, x.weak_type)

    def lower(
        self,
        ctx: Context,
        x: str,
        indices: str,
        *,
        dimension_numbers: GatherDimensionNumbers,
        slice_sizes: Shape,
        indices_are_sorted: bool,
        mode: GatherScatterMode,
        fill_value: Any,
        **_: Any,
    ) -> str:
        """`gather`, which clamps; the fill value is selected by the in-bounds mask."""
        aval, index_aval = ctx.avals_in
        out = ctx.avals_out[0]
        numbers = dimension_numbers
        if not (aval.size and out.size):
            # XLA has no slices of length 1 of an empty axis.
            scalar = out.update(shape=())
            name = ctx.constant(_outside(mode, fill_value, out.dtype), scalar)
            return ctx.broadcast(name, scalar, out.shape)
        indices, index_aval = wide_indices(ctx, indices, index_aval)
        sorted_text = "true" if indices_are_sorted else "false"
        sizes = ": " * bool(slice_sizes) + ", ".join(map(str, slice_sizes))
        gathered = ctx.emit(
            f'"stablehlo.gather"({x}, {indices}) <{{dimension_numbers = '
            f"{numbers.hlo(index_aval.ndim - 1)}, indices_are_sorted = "
            f"{sorted_text}, slice_sizes = array<i64{sizes}>}}> : "
            f"({aval.mlir}, {index_aval.mlir}) -> {out.mlir}"
        )
        if mode is not GatherScatterMode.FILL_OR_DROP or not numbers.start_index_map:
            return gathered
        inside = in_bounds_text(
            ctx,
            indices,
            index_aval,
            [aval.shape[d] - slice_sizes[d] for d in numbers.start_index_map],
        )
        batch = [d for d in range(out.ndim) if d not in numbers.offset_dims]
        flags = Aval(index_aval.shape[:-1], np.dtype(bool))
        wide = out.update(dtype=np.dtype(bool))
        mask = ctx.emit(
            f"stablehlo.broadcast_in_dim {inside}, dims = {list(batch)} : "
            f"({flags.mlir}) -> {wide.mlir}"
        )
        scalar = out.update(shape=())
        fill = ctx.constant(fill_scalar(fill_value, out.dtype), scalar)
        fill = ctx.broadcast(fill, scalar, out.shape)
        return ctx.emit(
            f"stablehlo.select {mask}, {gathered}, {fill} : {wide.mlir}, {out.mlir}"
        )

    def host_function(self, **params: Any) -> Callable[..., Any]:
        """Indexing prepared as far as the parameters allow."""
        numbers, sizes = params["dimension_numbers"], params["slice_sizes"]
        fills = params["mode"] is GatherScatterMode.FILL_OR_DROP
        fill_value = params["fill_value"]
        window = SliceWindow(sizes, numbers)
        offset_dims = numbers.offset_dims
        inside_dims = frozenset(offset_dims)
        axis = _taken_axis(numbers)

        def call(x: Any, indices: Any) -> Any:
            rank = indices.ndim - 1
            if axis is not None and _is_take(x, axis, rank, sizes, offset_dims):
                at = indices[..., 0]
                if at.dtype == np.uint64:
                    # As intp it would wrap around to a negative index.
                    at = np.minimum(at, np.uint64(x.shape[axis]))
                at = at.astype(np.intp, copy=False)
                out = x.take(at, axis, mode="clip")
                if fills:
                    inside = (at >= 0) & (at < x.shape[axis])
                    if not inside.all():
                        mask = inside.reshape(at.shape + (1,) * (x.ndim - 1 - axis))
                        out = np.where(mask, out, fill_scalar(fill_value, x.dtype))
                return out
            index, inside = window.positions(x.shape, indices, not fills)
            ndim = rank + len(offset_dims)
            shape = indices.shape[:-1] + tuple(sizes[d] for d in window.kept)
            if 0 in shape or not x.size:
                value = _outside(params["mode"], fill_value, x.dtype)
                out, inside = np.broadcast_to(value, shape), None
            elif index:
                out = x[index]
                if out.shape != shape:
                    out = np.broadcast_to(out, shape)
            else:
                out = np.broadcast_to(x, shape)
            if inside is not None and not inside.all():
                mask = inside.reshape(inside.shape + (1,) * len(offset_dims))
                out = np.where(mask, out, fill_scalar(fill_value, x.dtype))
            # From (batch axes, slice axes) to the order asked for.
            batch, slices = iter(range(rank)), iter(range(rank, ndim))
            order = [
                next(slices) if d in inside_dims else next(batch) for d in range(ndim)
            ]
            return out.transpose(order)

        return call

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """The gather of the tangent, filled with zeros."""
        x, indices = primals
        out = self.bind(x, indices, **params)
        if type(tangents[0]) is Zero:
            return out, Zero(typeof(out).tangent())
        fills = params["mode"] is GatherScatterMode.FILL_OR_DROP
        params["fill_value"] = 0 if fills else None
        return out, self.bind(tangents[0], indices, **params)

    def transpose(
        self,
        cotangent: Any,
        x: Any,
        indices: Any,
        *,
        dimension_numbers: GatherDimensionNumbers,
        indices_are_sorted: bool,
        unique_indices: bool,
        mode: GatherScatterMode,
        **_: Any,
    ) -> Values:
        """The cotangents added up where they came from."""
        total = table["scatter_add"].bind(
            arith.zeros(x.aval),
            indices,
            cotangent,
            dimension_numbers=dimension_numbers.scatter(),
            indices_are_sorted=indices_are_sorted,
            # Different indices may be clipped to the same one.
            unique_indices=unique_indices and mode is not GatherScatterMode.CLIP,
            mode=mode,
        )
        return [total, None]

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """One more axis of the slices, of the indices, or one batching dimension."""
        x, indices = args
        numbers = params["dimension_numbers"].batched(*mapped)
        sizes = params["slice_sizes"]
        if mapped[0]:
            # Where both are mapped each index looks at one element of the new axis.
            sizes = (smaller(size, 1) if mapped[1] else size, *sizes)
        params |= {"dimension_numbers": numbers, "slice_sizes": sizes}
        if mapped[1]:
            params["indices_are_sorted"] = False
            # Slices that read one array may meet in it.
            params["unique_indices"] = params["unique_indices"] and mapped[0]
        return self.bind(x, indices, **params), True


def default_fill(dtype: Any) -> Any:
    """Returns what a gather gives outside the array: nan, or the farthest integer."""
    if dtypes.is_inexact(dtype):
        has_nan = np.isnan(np.asarray(np.nan).astype(dtype))
        return dtype.type(np.nan) if has_nan else dtype.type(0)
    if dtypes.is_bool(dtype):
        return np.True_
    info = dtypes.iinfo(dtype)
    return dtype.type(info.min if dtypes.is_signed(dtype) else info.max)


def _taken_axis(numbers: GatherDimensionNumbers) -> int | None:
    """Returns the one axis that is indexed and dropped, if that is all there is."""
    if len(numbers.start_index_map) != 1 or numbers.operand_batching_dims:
        return None
    if numbers.collapsed_slice_dims != numbers.start_index_map:
        return None
    return numbers.start_index_map[0]


def _is_take(
    x: Any, axis: int, rank: int, sizes: Shape, offsets: Sequence[int]
) -> bool:
    """Returns whether `np.take` along the axis gives the result, already in order."""
    natural = (*range(axis), *range(axis + rank, x.ndim - 1 + rank))
    whole = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    return bool(x.size) and sizes == whole and tuple(offsets) == natural


def _outside(mode: GatherScatterMode, fill_value: Any, dtype: Any) -> Any:
    """Returns what a gather from an empty array gives."""
    if mode is GatherScatterMode.FILL_OR_DROP:
        return fill_scalar(fill_value, dtype)
    return np.zeros((), dtype)


def fill_scalar(fill_value: Any, dtype: Any) -> Any:
    """Returns the fill value of a gather as a NumPy scalar."""
    if fill_value is None:
        return default_fill(dtype)
    value = float(fill_value) if isinstance(fill_value, str) else fill_value
    return np.asarray(value).astype(dtype)[()]


def gather(
    operand: Any,
    start_indices: Any,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: str | GatherScatterMode | None = None,
    fill_value: Any = None,
) -> Array:
    """Returns slices of an array at computed indices.

    Args:
      operand: array of any dtype.
      start_indices: `int[..., n]`: index vectors along the last axis.
      dimension_numbers: how the axes correspond.
      slice_sizes: length of a slice along each axis of `operand`.
      unique_indices: a promise that no two index vectors are equal; it makes the
        derivative cheaper.
      indices_are_sorted: a promise that index vectors come in order.
      mode: what happens to an out-of-bounds slice: `"clip"`, `"fill"` or
        `"promise_in_bounds"`; None: "fill" with a `fill_value`, else "clip".
      fill_value: a number for mode `"fill"` (None: nan for inexact dtypes, the smallest
        signed, the largest unsigned integer, True for bool).

    Returns:
      Array whose axes `offset_dims` run inside a slice; the others are the batch axes
      of the indices.

    Raises:
      ShapeError, AxisError: the shapes and dimension numbers are inconsistent.
      DtypeError: indices are not integers.
      ArgumentError: unknown mode, or a fill value that is not a number.

    Special cases:
      Negative indices do not count from the end: they lie outside.

    Example:
      >>> numbers = GatherDimensionNumbers((), (0,), (0,))
      >>> x = np.array([5, 6, 7], "i4")
      >>> gather(x, np.array([[2], [0], [9]]), numbers, (1,), fill_value=-1)
      Array([ 7,  5, -1], dtype=int32)

    Source: StableHLO `gather`.
    """
    aval = typeof(operand)
    sizes = canonical_shape("gather", slice_sizes, "slice_sizes")
    if not isinstance(dimension_numbers, GatherDimensionNumbers):
        raise ArgumentError(
            "gather: dimension_numbers must be GatherDimensionNumbers, got "
            f"{dimension_numbers!r}"
        )
    if mode is None and fill_value is None:
        mode = GatherScatterMode.CLIP
    chosen = GatherScatterMode.from_any(mode)
    params = {
        "dimension_numbers": dimension_numbers,
        "slice_sizes": sizes,
        "indices_are_sorted": bool(indices_are_sorted),
        "unique_indices": bool(unique_indices),
        "mode": chosen,
        "fill_value": fill_param(fill_value, aval, chosen),
    }
    if dtypes.is_key(aval.dtype):
        out = check(Gather, aval, typeof(start_indices), **params)
        inner = aval.dtype.suffix
        last = tuple(range(out.ndim, out.ndim + len(inner)))
        params["slice_sizes"] = sizes + inner
        params["dimension_numbers"] = replace(
            dimension_numbers, offset_dims=dimension_numbers.offset_dims + last
        )
        keys: Array = map_key_data(
            lambda w: Gather.bind(w, start_indices, **params), operand
        )
        return keys
    return Gather.bind(operand, start_indices, **params)


def fill_param(fill_value: Any, aval: Aval, mode: GatherScatterMode) -> Any:
    """Returns a fill value that hashes and equals itself, or None for the default."""
    if fill_value is None or mode is not GatherScatterMode.FILL_OR_DROP:
        return None
    dtype = aval.dtype.base if dtypes.is_key(aval.dtype) else aval.dtype
    try:
        number = np.asarray(fill_value).astype(dtype)
        if number.ndim:
            raise TypeError
    except (TypeError, ValueError):
        raise ArgumentError(
            f"gather: fill_value must be a number, got {fill_value!r}"
        ) from None
    value = number.item()
    # nan is the default already, and would make a key that never equals itself.
    if value != value:
        return None
    # A parameter must differ from what it differs from: 0.0 equals -0.0, its text does
    # not.
    return "-0.0" if value == 0 and str(value) == "-0.0" else value


def take_along(x: Any, indices: Any, axis: int) -> Any:
    """Returns `x` with each line along `axis` picked at that line's own indices.

    Args:
      x: array.
      indices: in-bounds integers, of the shape of `x` but for `axis`.
      axis: the axis, from 0.
    """
    aval, index_aval = typeof(x), typeof(indices)
    others = tuple(d for d in range(aval.ndim) if d != axis)
    column = table["reshape"].bind(indices, new_sizes=(*index_aval.shape, 1))
    return Gather.bind(
        x,
        column,
        dimension_numbers=GatherDimensionNumbers(
            offset_dims=(),
            collapsed_slice_dims=(axis,),
            start_index_map=(axis,),
            operand_batching_dims=others,
            start_indices_batching_dims=others,
        ),
        slice_sizes=tuple(smaller(n, 1) for n in aval.shape),
        indices_are_sorted=False,
        # An index may come twice only where the caller wants it to: never in a sort.
        unique_indices=True,
        mode=GatherScatterMode.PROMISE_IN_BOUNDS,
        fill_value=None,
    )
