"""The primitives that read and write slices at computed places.

Starts are 0-d integers of one dtype; XLA moves them so that the slice lies inside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays import dtypes
from fxflow.core.arrays.aval import Aval, Shape
from fxflow.core.arrays.convert import typeof
from fxflow.core.interpreters.batching import materialize
from fxflow.core.ir import arith
from fxflow.core.ir.graph import Node, Var
from fxflow.core.ir.primitive import Primitive, Zero, register
from fxflow.core.runtime.lowering import Context
from fxflow.core.spmd.memories import part, written
from fxflow.errors import DtypeError, ShapeError
from fxflow.lax.families import MOVED
from fxflow.lax.gather_scatter.dimension_numbers import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
)
from fxflow.lax.gather_scatter.gather import Gather
from fxflow.lax.gather_scatter.scatter import Scatter
from fxflow.lax.joining import concatenate
from fxflow.lax.reshaping import reshape


def check_integers(name: str, starts: Sequence[Aval]) -> None:
    """Raises `DtypeError` if a start index is no 0-d integer."""
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
    """Writes start indices that let slices lie inside, which the partitioner assumes.

    Where the axis is divided it writes nothing for a start that is out of bounds.
    """
    inside = []
    avals = ctx.avals_in[-len(starts) :] if starts else ()
    for start, aval, n, k in zip(starts, avals, shape, sizes, strict=True):
        last = min(n - k, int(dtypes.iinfo(aval.dtype).max))
        low, high = (ctx.constant(np.asarray(v, aval.dtype)) for v in (0, last))
        clamp = f"stablehlo.clamp {low}, {start}, {high} : {aval.mlir}"
        inside.append(ctx.emit(clamp))
    return tuple(inside)


def _index_vectors(starts: Sequence[Any], mapped: Sequence[bool], size: int) -> Any:
    """Returns mapped start indices as `i[size, ndim]`."""
    columns = [
        reshape(materialize(s, size, m), (size, 1))
        for s, m in zip(starts, mapped, strict=True)
    ]
    return concatenate(columns, 1)


@register
class DynamicSlice(Primitive):
    """A slice of static lengths at a computed start, which is moved inside. All dtypes.

    StableHLO: dynamic_slice.
    """

    name = "dynamic_slice"
    host_kinds = MOVED
    is_view = True

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
        if ctx.module.partitioned:
            starts = _clamped(ctx, starts, ctx.avals_in[0].shape, slice_sizes)
        types = ", ".join(a.mlir for a in ctx.avals_in)
        return ctx.emit(
            f"stablehlo.dynamic_slice {', '.join((x, *starts))}, sizes = "
            f"{list(slice_sizes)} : ({types}) -> {ctx.avals_out[0].mlir}"
        )

    def evaluate(self, x: Any, *starts: Any, slice_sizes: Shape) -> Any:
        """A view."""
        return self.host_function(slice_sizes=slice_sizes)(x, *starts)

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

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        """The slice of the tangent."""
        x, *starts = primals
        out = self.bind(x, *starts, **params)
        if type(tangents[0]) is Zero:
            return out, Zero(typeof(out).tangent())
        return out, self.bind(tangents[0], *starts, **params)

    def memories(self, node: Node, kinds: Sequence[Any], layout: Any) -> Any:
        """Only the part is read."""
        return part(node, kinds)

    def transpose(
        self, cotangent: Any, x: Any, *starts: Any, slice_sizes: Shape
    ) -> Sequence[Any]:
        """Zeros with the cotangent put in."""
        zeros = arith.zeros(x.aval)
        return [
            DynamicUpdateSlice.bind(zeros, cotangent, *starts),
            *(None for _ in starts),
        ]

    def batch(
        self, size: int, args: Sequence[Any], mapped: Sequence[bool], **params: Any
    ) -> tuple[Any, bool]:
        """All of axis 0; a gather if the starts differ."""
        x, *starts = args
        sizes = params["slice_sizes"]
        if not any(mapped[1:]):
            zero = arith.constant(0, typeof(starts[0]).dtype) if starts else np.int32(0)
            return self.bind(x, zero, *starts, slice_sizes=(size, *sizes)), True
        ndim = len(starts)
        indices = _index_vectors(starts, mapped[1:], size)
        shift = int(mapped[0])
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
            slice_sizes=(min(size, 1),) * shift + sizes,
            indices_are_sorted=False,
            unique_indices=False,
            mode=GatherScatterMode.CLIP,
            fill_value=None,
        ), True


@register
class DynamicUpdateSlice(Primitive):
    """An array with a part replaced at a computed start, which is moved inside.

    All dtypes. StableHLO: dynamic_update_slice.
    """

    name = "dynamic_update_slice"
    host_kinds = MOVED

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
        if ctx.module.partitioned:
            shapes = (ctx.avals_in[0].shape, ctx.avals_in[1].shape)
            starts = _clamped(ctx, starts, *shapes)
        types = ", ".join(a.mlir for a in ctx.avals_in)
        return ctx.emit(
            f"stablehlo.dynamic_update_slice {', '.join((x, update, *starts))} : "
            f"({types}) -> {ctx.avals_out[0].mlir}"
        )

    def evaluate(self, x: Any, update: Any, *starts: Any) -> Any:
        """A copy with the part written."""
        out = np.array(x)
        index = []
        for n, k, start in zip(x.shape, update.shape, starts, strict=True):
            at = min(max(int(start), 0), n - k)
            index.append(slice(at, at + k))
        out[tuple(index)] = update
        return out

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        """The tangent of the part put into the tangent of the array."""
        x, update, *starts = primals
        out = self.bind(x, update, *starts)
        tx, tu = tangents[:2]
        if type(tx) is Zero and type(tu) is Zero:
            return out, Zero(typeof(out).tangent())
        tx, tu = arith.instantiate(tx), arith.instantiate(tu)
        return out, self.bind(tx, tu, *starts)

    def memories(self, node: Node, kinds: Sequence[Any], layout: Any) -> Any:
        """Those of the operand: it is written to where it is."""
        return written(node, kinds)

    def transpose(
        self, cotangent: Any, x: Any, update: Any, *starts: Any
    ) -> Sequence[Any]:
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

    def batch(
        self, size: int, args: Sequence[Any], mapped: Sequence[bool], **params: Any
    ) -> tuple[Any, bool]:
        """All of axis 0; a scatter if the starts differ."""
        x, update, *starts = args
        x = materialize(x, size, mapped[0])
        update = materialize(update, size, mapped[1])
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
            indices_are_sorted=True,
            unique_indices=True,
            mode=GatherScatterMode.CLIP,
        ), True
