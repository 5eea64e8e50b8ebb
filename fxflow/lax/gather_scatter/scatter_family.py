"""What all scatters share: slices of an array combined with updates.

The family of their primitives, the checks, the program's text, and where the updates
go, for NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from fxflow.core.arrays import Aval, typeof
from fxflow.core.interpreters.batching import materialize
from fxflow.core.ir import arith
from fxflow.core.ir.primitive import Batched, Flags, Primitive, Values
from fxflow.core.runtime.lowering import Context
from fxflow.core.sizes import smaller
from fxflow.core.spmd import layouts
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.lax.families import ANY, Kinds, require_kind
from fxflow.lax.gather_scatter.dimension_numbers import (
    GatherScatterMode,
    ScatterDimensionNumbers,
    require_axes,
)
from fxflow.lax.gather_scatter.gather import Gather
from fxflow.lax.gather_scatter.slices import SliceWindow, bounds_text, wide_indices
from fxflow.lax.select import select

Combine = Callable[[Any, list[str]], Sequence[str]]


class Scattering(Primitive):
    """Combines slices of an array with updates.

    Attributes:
      kinds: dtypes it takes.
      combiner: StableHLO's operation on (old, update), or "" for the update itself.
      ufunc: NumPy's, or None for the update itself.
    """

    kinds: ClassVar[Kinds] = ANY
    combiner: ClassVar[str] = ""
    ufunc: ClassVar[np.ufunc | None] = None
    layout: Callable[..., Any] = layouts.scattered

    def abstract(
        self,
        x: Aval,
        indices: Aval,
        updates: Aval,
        *,
        dimension_numbers: ScatterDimensionNumbers,
        **_: Any,
    ) -> Aval:
        """The type of the array."""
        name = self.name
        if self.kinds is not ANY:
            require_kind(name, x, self.kinds)
        if x.dtype != updates.dtype:
            raise DtypeError(
                f"{name}: operand {x} and updates {updates} must have one dtype: "
                "convert one with .astype(...)"
            )
        check_scatter(name, x, indices, updates, dimension_numbers)
        return Aval(x.shape, x.dtype, x.weak_type)

    def lower(self, ctx: Context, *operands: str, **params: Any) -> str:
        """`scatter`, which drops out-of-bounds slices."""
        combine = combine_text(self.combiner, ctx.avals_in[0].dtype)
        return scatter_text(ctx, operands, ctx.avals_in, combine, **params)

    def host_function(self, **params: Any) -> Callable[..., Any]:
        """A copy of the array, changed at the positions of the updates."""
        return scattered_on_host(self.ufunc, **params)

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """One more axis of the slices, or one batching dimension."""
        x, indices, updates = args
        params["dimension_numbers"] = params["dimension_numbers"].batched(
            True, mapped[1]
        )
        if mapped[1]:
            params["indices_are_sorted"] = False
        out = self.bind(
            materialize(x, size, mapped[0]),
            indices,
            materialize(updates, size, mapped[2]),
            **params,
        )
        return out, True


def scattered_on_host(ufunc: np.ufunc | None, **params: Any) -> Callable[..., Any]:
    """Returns a function of NumPy arrays that combines slices with updates.

    Args:
      ufunc: combines them; None: takes the update.
      **params: of a `Scattering`.
    """
    numbers: ScatterDimensionNumbers = params["dimension_numbers"]
    clip = params["mode"] is GatherScatterMode.CLIP

    def call(x: Any, indices: Any, updates: Any) -> Any:
        out = np.array(x)
        index, values = scatter_positions(numbers, x, indices, updates, clip)
        if not values.size:
            return out
        # `at` needs an axis to index.
        target = out if out.ndim else out.reshape(1)
        if ufunc is None:
            target[index] = values
        else:
            ufunc.at(target, index, values)
        return out

    return call


def check_scatter(
    name: str,
    x: Aval,
    indices: Aval,
    updates: Aval,
    numbers: ScatterDimensionNumbers,
) -> None:
    """Checks that shapes and dimension numbers fit together.

    Raises:
      ShapeError, AxisError, DtypeError: they do not.
    """
    numbers.check(name, x, indices)
    require_axes(name, "update_window_dims", numbers.update_window_dims, updates.ndim)
    window = len(numbers.update_window_dims)
    dropped = numbers.dropped
    if window + len(dropped) != x.ndim:
        raise ShapeError(
            f"{name}: each axis of {x} must be one of update_window_dims (there are "
            f"{window}), inserted_window_dims or operand_batching_dims (there are "
            f"{len(dropped)})"
        )
    batch = tuple(
        n for d, n in enumerate(updates.shape) if d not in numbers.update_window_dims
    )
    if batch != indices.shape[:-1]:
        raise ShapeError(
            f"{name}: updates {updates} need the batch axes {indices.shape[:-1]} of "
            f"the indices {indices} apart from update_window_dims "
            f"{numbers.update_window_dims}, got {batch}"
        )
    sizes = numbers.window_sizes(x.ndim, updates.shape)
    if any(
        k > n
        for d, (k, n) in enumerate(zip(sizes, x.shape, strict=True))
        if d not in dropped
    ):
        raise ShapeError(
            f"{name}: slices of {sizes} (from updates {updates}) are larger than the "
            f"operand {x}"
        )


def combine_text(operation: str, dtype: Any) -> Combine:
    """Returns what writes the combination of (old, update); "" takes the update."""

    def combine(inner: Context, names: list[str]) -> Sequence[str]:
        if not operation:
            return names[1:]
        return [inner.emit(f"{operation} {', '.join(names)} : {Aval((), dtype).mlir}")]

    return combine


def scatter_text(
    ctx: Context,
    operands: Sequence[str],
    avals: Sequence[Aval],
    combine: Combine,
    *,
    dimension_numbers: ScatterDimensionNumbers,
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: GatherScatterMode,
) -> str:
    """Writes a scatter with the given combination of (old, update)."""
    x, indices, updates = operands
    aval, index_aval, update_aval = avals
    if not (aval.size and update_aval.size):
        return x
    if not aval.ndim:
        # XLA's simplifier fails on a scatter into a number: make it a vector of one.
        line = aval.update(shape=(1,))
        at = Aval((*update_aval.shape, 1), np.dtype(np.int32))
        zeros = ctx.constant(np.int32(0), at.update(shape=()))
        out = scatter_text(
            ctx,
            (
                ctx.emit(f"stablehlo.reshape {x} : ({aval.mlir}) -> {line.mlir}"),
                ctx.broadcast(zeros, at.update(shape=()), at.shape),
                updates,
            ),
            (line, at, update_aval),
            combine,
            dimension_numbers=ScatterDimensionNumbers((), (0,), (0,)),
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
            mode=mode,
        )
        return ctx.emit(f"stablehlo.reshape {out} : ({line.mlir}) -> {aval.mlir}")
    indices, index_aval = wide_indices(ctx, indices, index_aval)
    numbers = dimension_numbers
    components = numbers.scatter_dims_to_operand_dims
    if mode is GatherScatterMode.CLIP and components:
        sizes = numbers.window_sizes(aval.ndim, update_aval.shape)
        low, high = bounds_text(
            ctx, index_aval, [aval.shape[d] - sizes[d] for d in components]
        )
        indices = ctx.emit(
            f"stablehlo.clamp {low}, {indices}, {high} : {index_aval.mlir}"
        )
    scalar = Aval((), aval.dtype)
    region = ctx.region([scalar, scalar], combine, [scalar])
    flags = [
        "true" if flag else "false" for flag in (indices_are_sorted, unique_indices)
    ]
    return ctx.emit(
        f'"stablehlo.scatter"({x}, {indices}, {updates}) <{{indices_are_sorted = '
        f"{flags[0]}, scatter_dimension_numbers = "
        f"{numbers.hlo(index_aval.ndim - 1)}, unique_indices = {flags[1]}}}> "
        f"({region}) : ({aval.mlir}, {index_aval.mlir}, {update_aval.mlir}) -> "
        f"{aval.mlir}"
    )


def scatter_positions(
    numbers: ScatterDimensionNumbers, x: Any, indices: Any, updates: Any, clip: bool
) -> tuple[tuple[Any, ...], Any]:
    """Returns an index into `x`, and the updates that go there in the same order.

    Args:
      numbers: how the axes correspond.
      x: NumPy array.
      indices: index vectors.
      updates: NumPy array.
      clip: whether out-of-bounds slices are clamped; else they are dropped.
    """
    sizes = numbers.window_sizes(x.ndim, updates.shape)
    window = SliceWindow(sizes, numbers)
    inner = numbers.update_window_dims
    outer = [d for d in range(updates.ndim) if d not in inner]
    values = updates.transpose((*outer, *inner))
    if not values.size or not x.size:
        return (), values[:0] if values.ndim else values[None][:0]
    index, inside = window.positions(x.shape, indices, clip)
    if not numbers.scatter_dims_to_operand_dims:
        # No index says how many slices there are.
        index = index or (np.zeros((), np.int64),)
        index = tuple(np.broadcast_to(i, values.shape) for i in index)
    if inside is not None and not inside.all():
        wide = np.broadcast_arrays(*index, values)
        *picked, values = (part[inside] for part in wide)
        index = tuple(picked)
    return index, values


def read_back(params: dict[str, Any], x: Any, indices: Any, updates_shape: Any) -> Any:
    """Returns the elements that updates go to, zero for updates that are dropped."""
    numbers: ScatterDimensionNumbers = params["dimension_numbers"]
    mode = params["mode"]
    aval = typeof(x)
    sizes = numbers.window_sizes(aval.ndim, updates_shape)
    gone = numbers.dropped
    return Gather.bind(
        x,
        indices,
        dimension_numbers=numbers.gather(),
        slice_sizes=tuple(
            # An empty axis has no slice of length 1.
            smaller(k, n) if d in gone else k
            for d, (k, n) in enumerate(zip(sizes, aval.shape, strict=True))
        ),
        indices_are_sorted=params["indices_are_sorted"],
        unique_indices=params["unique_indices"],
        mode=mode,
        fill_value=0 if mode is GatherScatterMode.FILL_OR_DROP else None,
    )


def kept_where(mask: Any, value: Any) -> Any:
    """Returns a value where the mask is true, zero elsewhere."""
    return select(mask, value, arith.constant(0, typeof(value).dtype))


def scatter_params(
    name: str,
    dimension_numbers: Any,
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: str | GatherScatterMode | None,
) -> dict[str, Any]:
    """Returns the parameters of a scatter, checked.

    Raises:
      ArgumentError: not dimension numbers, or an unknown mode.
    """
    if not isinstance(dimension_numbers, ScatterDimensionNumbers):
        raise ArgumentError(
            f"{name}: dimension_numbers must be ScatterDimensionNumbers, got "
            f"{dimension_numbers!r}"
        )
    return {
        "dimension_numbers": dimension_numbers,
        "indices_are_sorted": bool(indices_are_sorted),
        "unique_indices": bool(unique_indices),
        "mode": GatherScatterMode.from_any(mode),
    }
