"""Slices at computed starts, read and written.

The primitives take 0-d integers of one dtype, which XLA clamps so that the slice lies
inside the array; for users a negative start counts from the end first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays import Array, Aval, Shape, dtypes, promotion, typeof
from fxflow.core.interpreters.batching import materialize
from fxflow.core.ir import arith
from fxflow.core.ir.graph import Literal, Node, Var
from fxflow.core.ir.primitive import (
    Batched,
    Dual,
    Flags,
    Primitive,
    Values,
    Zero,
    register,
)
from fxflow.core.runtime.library import library
from fxflow.core.runtime.lowering import Context
from fxflow.core.sizes import Size, smaller
from fxflow.core.spmd import layouts
from fxflow.core.spmd.memories import part, written
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.lax.axes import canonical_axis, canonical_shape, integer
from fxflow.lax.comparison import lt
from fxflow.lax.concatenation import concatenate
from fxflow.lax.conversion import convert_element_type
from fxflow.lax.elementwise import add
from fxflow.lax.families import MOVED
from fxflow.lax.gather_scatter.dimension_numbers import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
)
from fxflow.lax.gather_scatter.gather import Gather
from fxflow.lax.gather_scatter.scatter import Scatter
from fxflow.lax.keys import check, map_key_data
from fxflow.lax.reshaping import reshape, squeeze
from fxflow.lax.select import select
from fxflow.lax.slicing import index_in_dim


def check_integers(name: str, starts: Sequence[Aval]) -> None:
    """Raises `DtypeError` if a start index is not a 0-d integer."""
    if any(start.ndim or not dtypes.is_integer(start.dtype) for start in starts):
        raise DtypeError(
            f"{name}: start indices must be 0-d integers, got "
            f"{', '.join(map(str, starts))}"
        )


def _check_starts(name: str, x: Aval, starts: Sequence[Aval]) -> None:
    if len(starts) != x.ndim:
        raise ShapeError(
            f"{name}: {x} needs {x.ndim} start indices, one for each axis, got "
            f"{len(starts)}"
        )
    check_integers(name, starts)
    for start in starts:
        if start.dtype != starts[0].dtype:
            raise DtypeError(
                f"{name}: start indices must have one dtype, got "
                f"{', '.join(map(str, starts))}"
            )


def _clamped(
    ctx: Context, starts: Sequence[str], shape: Shape, sizes: Shape
) -> tuple[str, ...]:
    """Writes clamped start indices, though the operations clamp them.

    XLA joins slices of slices as if each were in-bounds (`devices/faults`), and its
    partitioner writes nothing where a start is out of bounds along a divided axis.
    """
    inside = []
    atoms = ctx.inputs[-len(starts) :] if starts else ()
    for start, atom, n, k in zip(starts, atoms, shape, sizes, strict=True):
        aval = atom.aval
        last: Any = n - k
        if type(last) is not Size:
            last = np.asarray(min(last, int(dtypes.iinfo(aval.dtype).max)), aval.dtype)
            if type(atom) is Literal and 0 <= atom.value <= last:
                inside.append(start)
                continue
        low = ctx.constant(np.zeros((), aval.dtype))
        if type(last) is not Size and not last:
            inside.append(low)
            continue
        high = ctx.constant(last, aval)
        clamp = f"stablehlo.clamp {low}, {start}, {high} : {aval.mlir}"
        inside.append(ctx.emit(clamp))
    return tuple(inside)


def _index_vectors(starts: Values, mapped: Flags, size: int) -> Any:
    """Returns mapped start indices as `i[size, ndim]`."""
    columns = [
        reshape(materialize(s, size, m), (size, 1))
        for s, m in zip(starts, mapped, strict=True)
    ]
    return concatenate(columns, 1)


@register
class DynamicSlice(Primitive):
    """A slice of static lengths at a computed start, which is clamped. All dtypes.

    StableHLO: dynamic_slice.
    """

    name = "dynamic_slice"
    linear_in_inexact = True
    host_kinds = MOVED
    is_view = True
    layout: Callable[..., Any] = layouts.partly

    def abstract(self, x: Aval, *starts: Aval, slice_sizes: Shape) -> Aval:
        """The lengths asked for."""
        _check_starts(self.name, x, starts)
        if len(slice_sizes) != x.ndim or any(
            not 0 <= k <= n for k, n in zip(slice_sizes, x.shape, strict=False)
        ):
            raise ShapeError(
                f"dynamic_slice: slice_sizes {slice_sizes} do not fit {x}: give one "
                "length for each axis, none larger than the axis"
            )
        return Aval(slice_sizes, x.dtype, x.weak_type)

    def lower(self, ctx: Context, x: str, *starts: str, slice_sizes: Shape) -> str:
        """`dynamic_slice`."""
        starts = _clamped(ctx, starts, ctx.avals_in[0].shape, slice_sizes)
        types = ", ".join(a.mlir for a in ctx.avals_in)
        return ctx.emit(
            f"stablehlo.dynamic_slice {', '.join((x, *starts))}, sizes = "
            f"{list(slice_sizes)} : ({types}) -> {ctx.avals_out[0].mlir}"
        )

    def host_function(self, **params: Any) -> Callable[..., Any]:
        """Indexing by slices whose start was clamped."""
        sizes = params["slice_sizes"]
        cut = slice

        def call(x: Any, *starts: Any) -> Any:
            index = []
            for n, k, start in zip(x.shape, sizes, starts, strict=True):
                at = min(max(int(start), 0), n - k)
                index.append(cut(at, at + k))
            return x[tuple(index)]

        return call

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """The slice of the tangent."""
        x, *starts = primals
        out = self.bind(x, *starts, **params)
        if type(tangents[0]) is Zero:
            return out, Zero(typeof(out).tangent())
        return out, self.bind(tangents[0], *starts, **params)

    def memories(self, node: Node, kinds: Values, layout: Any) -> Any:
        """Only the part is read."""
        return part(node, kinds)

    def transpose(self, cotangent: Any, x: Any, *starts: Any, **_: Any) -> Values:
        """Zeros with the cotangent put in."""
        zeros = arith.zeros(x.aval)
        return [
            DynamicUpdateSlice.bind(zeros, cotangent, *starts),
            *(None for _ in starts),
        ]

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """All of axis 0; a gather if the starts differ."""
        x, *starts = args
        sizes = params["slice_sizes"]
        # One start for all slices: still one slice, cheaper than a gather.
        if not any(mapped[1:]):
            zero = arith.constant(0, typeof(starts[0]).dtype) if starts else np.int32(0)
            return self.bind(x, zero, *starts, slice_sizes=(size, *sizes)), True
        ndim = len(starts)
        indices = _index_vectors(starts, mapped[1:], size)
        shift = int(mapped[0])
        # A mapped operand's batch axis is the gather's batching dimension; an unmapped
        # one has none, and each slice picks from the whole.
        numbers = GatherDimensionNumbers(
            offset_dims=tuple(range(1, ndim + 1)),
            collapsed_slice_dims=(),
            start_index_map=tuple(range(shift, ndim + shift)),
            operand_batching_dims=(0,) * shift,
            start_indices_batching_dims=(0,) * shift,
        )
        return Gather.bind(
            x,
            indices,
            dimension_numbers=numbers,
            slice_sizes=(smaller(size, 1),) * shift + sizes,
            indices_are_sorted=False,
            unique_indices=False,
            mode=GatherScatterMode.CLIP,
            fill_value=None,
        ), True


@register
class DynamicUpdateSlice(Primitive):
    """An array with a part replaced at a computed start, which is clamped.

    All dtypes. StableHLO: dynamic_update_slice.
    """

    name = "dynamic_update_slice"
    linear_in_inexact = True
    host_kinds = MOVED
    layout: Callable[..., Any] = layouts.updated

    def abstract(self, x: Aval, update: Aval, *starts: Aval) -> Aval:
        """The type of the array."""
        _check_starts(self.name, x, starts)
        if update.dtype != x.dtype:
            raise DtypeError(
                f"dynamic_update_slice: operand {x} and update {update} must have one "
                "dtype: convert one with .astype(...)"
            )
        if update.ndim != x.ndim or any(
            k > n for k, n in zip(update.shape, x.shape, strict=False)
        ):
            raise ShapeError(
                f"dynamic_update_slice: update {update} does not fit into {x}: it must "
                "have as many axes, none longer"
            )
        return Aval(x.shape, x.dtype)

    def lower(self, ctx: Context, x: str, update: str, *starts: str) -> str:
        """`dynamic_update_slice`."""
        shapes = (ctx.avals_in[0].shape, ctx.avals_in[1].shape)
        starts = _clamped(ctx, starts, *shapes)
        types = ", ".join(a.mlir for a in ctx.avals_in)
        whole = ctx.avals_out[0].mlir
        out = ctx.emit(
            f"stablehlo.dynamic_update_slice {', '.join((x, update, *starts))} : "
            f"({types}) -> {whole}"
        )
        if ctx.platform != "cpu" or x in ctx.fills:
            return out
        # XLA:CPU would move a change of shape before the update, and then no longer
        # see that what is written is read from what it overwrites (`devices/faults`).
        return ctx.emit(f"stablehlo.optimization_barrier {out} : {whole}")

    def evaluate(self, x: Any, update: Any, *starts: Any) -> Any:
        """A copy with the part written."""
        out = np.array(x)
        index = []
        for n, k, start in zip(x.shape, update.shape, starts, strict=True):
            at = min(max(int(start), 0), n - k)
            index.append(slice(at, at + k))
        out[tuple(index)] = update
        return out

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """The tangent of the part put into the tangent of the array."""
        x, update, *starts = primals
        out = self.bind(x, update, *starts)
        tx, tu = tangents[:2]
        if type(tx) is Zero and type(tu) is Zero:
            return out, Zero(typeof(out).tangent())
        tx, tu = arith.instantiate(tx), arith.instantiate(tu)
        return out, self.bind(tx, tu, *starts)

    def memories(self, node: Node, kinds: Values, layout: Any) -> Any:
        """Those of the operand: it is written to where it is."""
        return written(node, kinds)

    def transpose(self, cotangent: Any, x: Any, update: Any, *starts: Any) -> Values:
        """The cotangent without the part, and the part."""
        update_aval = update.aval if type(update) is Var else typeof(update)
        ct_x = ct_update = None
        if type(x) is Var:
            zeros = arith.zeros(update_aval)
            ct_x = DynamicUpdateSlice.bind(cotangent, zeros, *starts)
        if type(update) is Var:
            ct_update = DynamicSlice.bind(
                cotangent, *starts, slice_sizes=update_aval.shape
            )
        return [ct_x, ct_update, *(None for _ in starts)]

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """All of axis 0; a scatter if the starts differ."""
        x, update, *starts = args
        x = materialize(x, size, mapped[0])
        update = materialize(update, size, mapped[1])
        # One start for all slices: still one update, cheaper than a scatter.
        if not any(mapped[2:]):
            zero = arith.constant(0, typeof(starts[0]).dtype) if starts else np.int32(0)
            return self.bind(x, update, zero, *starts), True
        ndim = len(starts)
        indices = _index_vectors(starts, mapped[2:], size)
        inner = tuple(range(1, ndim + 1))
        numbers = ScatterDimensionNumbers(
            update_window_dims=inner,
            inserted_window_dims=(),
            scatter_dims_to_operand_dims=inner,
            operand_batching_dims=(0,),
            scatter_indices_batching_dims=(0,),
        )
        return Scatter.bind(
            x,
            indices,
            update,
            dimension_numbers=numbers,
            # One slice for each index along the batching dimension: in order, none
            # twice.
            indices_are_sorted=True,
            unique_indices=True,
            mode=GatherScatterMode.CLIP,
        ), True


# -- public ----------------------------------------------------------------------------


def _starts(
    name: str, shape: Shape, start_indices: Any, allow_negative: Any
) -> list[Any]:
    """Returns start indices as 0-d integers of one dtype, counted from the front."""
    if isinstance(start_indices, Array | np.ndarray):
        aval = typeof(start_indices)
        if aval.ndim != 1:
            raise ShapeError(
                f"{name}: start_indices must be a vector or a sequence of 0-d "
                f"integers, got {aval}"
            )
        starts = [
            index_in_dim(start_indices, i, keepdims=False) for i in range(aval.shape[0])
        ]
    else:
        starts = list(start_indices)
    if len(starts) != len(shape):
        raise ShapeError(
            f"{name}: an operand of shape {shape} needs {len(shape)} start indices, "
            f"one for each axis, got {len(starts)}"
        )
    avals = [typeof(s) for s in starts]
    check_integers(name, avals)
    if isinstance(allow_negative, bool | np.bool_):
        allow_negative = (allow_negative,) * len(starts)
    elif not isinstance(allow_negative, Sequence) or len(allow_negative) != len(starts):
        raise ArgumentError(
            f"{name}: allow_negative_indices must be a bool or one for each of "
            f"{len(starts)} axes, got {allow_negative!r}"
        )
    dtype = np.dtype(np.int32)
    strong = [a.dtype for a in avals if not a.weak_type]
    if strong:
        dtype = promotion.result_type(*strong)
    elif avals:
        dtype = avals[0].dtype
    if dtypes.bits(dtype) < 32 or not dtypes.is_integer(dtype):
        # XLA clamps in the dtype of the index, where a long axis would overflow.
        dtype = np.dtype(np.int32)
    return [
        _start(s, n, dtype, negative)
        for s, n, negative in zip(starts, shape, allow_negative, strict=True)
    ]


def _start(start: Any, length: int, dtype: Any, allow_negative: bool) -> Any:
    if isinstance(start, int | np.integer) and not isinstance(start, bool):
        known = int(start)
        if known < 0 and allow_negative:
            known += length
        # Clamping would do it as well, but the number has to fit the dtype.
        return arith.constant(smaller(max(known, 0), length), dtype)
    aval = typeof(start)
    if aval.dtype != dtype:
        start = convert_element_type(start, dtype)
    if not allow_negative or dtypes.is_unsigned(aval.dtype):
        return start
    moved = add(start, arith.constant(length, dtype))
    return select(lt(start, arith.constant(0, dtype)), moved, start)


@library("slice_sizes", "allow_negative_indices")
def dynamic_slice(
    operand: Any,
    start_indices: Array | Values,
    slice_sizes: Sequence[int],
    *,
    allow_negative_indices: bool | Flags = True,
) -> Array:
    """Returns a slice of static lengths at a computed start.

    A start that would make the slice reach over an end is moved until it fits.

    Args:
      operand: array of any dtype.
      start_indices: for each axis an integer (an integer vector, or a sequence of 0-d
        integers).
      slice_sizes: for each axis the length of the slice.
      allow_negative_indices: whether a negative start counts from the end (else it is
        moved to 0); one bool, or one for each axis.

    Returns:
      Array of shape `slice_sizes`.

    Raises:
      ShapeError: not one start and one length for each axis, or a length is larger than
        its axis.
      DtypeError: a start is not an integer.

    Special cases:
      A start beyond the end gives the last slice that fits.

    Example:
      >>> dynamic_slice(np.array([0, 1, 2, 3], "i4"), (3,), (2,))
      Array([2, 3], dtype=int32)

    Source: StableHLO `dynamic_slice`.
    """
    aval = typeof(operand)
    sizes = canonical_shape("dynamic_slice", slice_sizes, "slice_sizes")
    starts = _starts("dynamic_slice", aval.shape, start_indices, allow_negative_indices)
    if dtypes.is_key(aval.dtype):
        inner = aval.dtype.suffix
        keys: Array = map_key_data(
            lambda w: DynamicSlice.bind(
                w, *starts, *_no_starts(starts, inner), slice_sizes=sizes + inner
            ),
            operand,
        )
        return keys
    return DynamicSlice.bind(operand, *starts, slice_sizes=sizes)


def _no_starts(starts: Values, inner: Shape) -> list[Any]:
    dtype = typeof(starts[0]).dtype if starts else np.dtype(np.int32)
    return [arith.constant(0, dtype)] * len(inner)


@library("allow_negative_indices")
def dynamic_update_slice(
    operand: Any,
    update: Any,
    start_indices: Array | Values,
    *,
    allow_negative_indices: bool | Flags = True,
) -> Array:
    """Returns an array with a part replaced at a computed start.

    A start that would make the part reach over an end is moved until it fits.

    Args:
      operand: array of any dtype.
      update: array of that dtype and as many axes, none longer.
      start_indices: for each axis an integer (an integer vector, or a sequence of 0-d
        integers).
      allow_negative_indices: whether a negative start counts from the end (else it is
        moved to 0); one bool, or one for each axis.

    Returns:
      Array of the type of `operand`.

    Raises:
      ShapeError: `update` has an incompatible shape, or there is not one start for each
        axis.
      DtypeError: dtypes differ, or a start is not an integer.

    Special cases:
      A start beyond the end replaces the last part that fits.

    Example:
      >>> dynamic_update_slice(np.zeros(3, "f4"), np.ones(2, "f4"), (5,))
      Array([0., 1., 1.], dtype=float32)

    Source: StableHLO `dynamic_update_slice`.
    """
    aval = typeof(operand)
    starts = _starts(
        "dynamic_update_slice", aval.shape, start_indices, allow_negative_indices
    )
    if dtypes.is_key(aval.dtype):
        check(DynamicUpdateSlice, aval, typeof(update), *map(typeof, starts))
        zeros = _no_starts(starts, aval.dtype.suffix)
        keys: Array = map_key_data(
            lambda w, u: DynamicUpdateSlice.bind(w, u, *starts, *zeros), operand, update
        )
        return keys
    if isinstance(update, bool | int | float | complex):
        update = arith.constant(update, aval.dtype)
    return DynamicUpdateSlice.bind(operand, update, *starts)


def dynamic_slice_in_dim(
    operand: Any,
    start_index: Any,
    slice_size: int,
    axis: int = 0,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Slices along one axis at a computed start.

    Args:
      operand: array of any dtype.
      start_index: 0-d integer.
      slice_size: length of the slice.
      axis: the axis.
      allow_negative_indices: as for `dynamic_slice`.

    Returns:
      Array whose `axis` has length `slice_size`.

    Raises:
      AxisError: an axis is out of range.
      ShapeError: `slice_size` is larger than the axis.
      DtypeError: the start is not an integer.

    Example:
      >>> dynamic_slice_in_dim(np.array([0, 1, 2, 3], "i4"), 1, 2)
      Array([1, 2], dtype=int32)

    Source: StableHLO `dynamic_slice`.
    """
    aval = typeof(operand)
    at = canonical_axis("dynamic_slice_in_dim", axis, aval.ndim)
    sizes = list(aval.shape)
    sizes[at] = integer("dynamic_slice_in_dim", "slice_size", slice_size)
    starts: list[Any] = [0] * aval.ndim
    starts[at] = start_index
    return dynamic_slice(
        operand, starts, tuple(sizes), allow_negative_indices=allow_negative_indices
    )


def dynamic_index_in_dim(
    operand: Any,
    index: Any,
    axis: int = 0,
    keepdims: bool = True,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Returns one computed index along an axis.

    Args:
      operand: array of any dtype.
      index: 0-d integer; out of range, the nearest one is taken.
      axis: the axis.
      keepdims: whether to keep the reduced axis, with length 1.
      allow_negative_indices: as for `dynamic_slice`.

    Returns:
      Array whose `axis` has length 1 or is removed.

    Raises:
      AxisError: an axis is out of range.
      ShapeError: the axis is empty.
      DtypeError: the index is not an integer.

    Example:
      >>> dynamic_index_in_dim(np.array([5, 6], "i4"), 1, keepdims=False)
      Array(6, dtype=int32)

    Source: StableHLO `dynamic_slice`.
    """
    at = canonical_axis("dynamic_index_in_dim", axis, typeof(operand).ndim)
    out = dynamic_slice_in_dim(
        operand, index, 1, at, allow_negative_indices=allow_negative_indices
    )
    return out if keepdims else squeeze(out, (at,))


def dynamic_update_slice_in_dim(
    operand: Any,
    update: Any,
    start_index: Any,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Replaces a part along one axis at a computed start.

    Args:
      operand: array of any dtype.
      update: array of that dtype that fits into `operand`.
      start_index: 0-d integer.
      axis: the axis.
      allow_negative_indices: as for `dynamic_slice`.

    Returns:
      Array of the type of `operand`.

    Raises:
      AxisError: an axis is out of range.
      ShapeError: `update` has an incompatible shape.
      DtypeError: dtypes differ, or the start is not an integer.

    Example:
      >>> x = np.zeros(3, "f4")
      >>> dynamic_update_slice_in_dim(x, np.ones(1, "f4"), 1, axis=0)
      Array([0., 1., 0.], dtype=float32)

    Source: StableHLO `dynamic_update_slice`.
    """
    ndim = typeof(operand).ndim
    starts: list[Any] = [0] * ndim
    starts[canonical_axis("dynamic_update_slice_in_dim", axis, ndim)] = start_index
    return dynamic_update_slice(
        operand, update, starts, allow_negative_indices=allow_negative_indices
    )


def dynamic_update_index_in_dim(
    operand: Any,
    update: Any,
    index: Any,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Replaces one computed index along an axis.

    Args:
      operand: array of any dtype.
      update: array of that dtype, of the shape of `operand` without `axis` or with
        length 1 there.
      index: 0-d integer; out of range, the nearest one is replaced.
      axis: the axis.
      allow_negative_indices: as for `dynamic_slice`.

    Returns:
      Array of the type of `operand`.

    Raises:
      AxisError: an axis is out of range.
      ShapeError: `update` has an incompatible shape.
      DtypeError: dtypes differ, or the index is not an integer.

    Example:
      >>> dynamic_update_index_in_dim(np.zeros(2, "f4"), np.float32(1), 1, axis=0)
      Array([0., 1.], dtype=float32)

    Source: StableHLO `dynamic_update_slice`.
    """
    ndim = typeof(operand).ndim
    at = canonical_axis("dynamic_update_index_in_dim", axis, ndim)
    shape = typeof(update).shape
    if len(shape) != ndim:
        update = reshape(update, (*shape[:at], 1, *shape[at:]))
    return dynamic_update_slice_in_dim(
        operand, update, index, at, allow_negative_indices=allow_negative_indices
    )
