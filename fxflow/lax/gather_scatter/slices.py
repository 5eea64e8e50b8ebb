"""Where the slices of a gather or scatter lie: positions for NumPy, bounds for XLA."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays import Aval, Shape, dtypes
from fxflow.core.runtime.lowering import Context
from fxflow.core.sizes import is_symbolic
from fxflow.lax.gather_scatter.dimension_numbers import DimensionNumbers

# -- StableHLO -------------------------------------------------------------------------


def wide_indices(ctx: Context, name: str, aval: Aval) -> tuple[str, Aval]:
    """Writes indices of at least 32 bits.

    XLA compares and clamps in the dtype of the index, where a long axis would overflow.
    """
    if dtypes.bits(aval.dtype) >= 32:
        return name, aval
    wide = aval.update(dtype=np.dtype(np.int32))
    return ctx.emit(f"stablehlo.convert {name} : ({aval.mlir}) -> {wide.mlir}"), wide


def _row(ctx: Context, values: Sequence[Any], row: Aval) -> str:
    """Writes a vector of integers and sizes."""
    if not is_symbolic(values):
        return ctx.constant(np.asarray(values, row.dtype), row)
    one = row.update(shape=(1,))
    names = [ctx.constant(value, one) for value in values]
    if len(names) == 1:
        return names[0]
    types = ", ".join([one.mlir] * len(names))
    return ctx.emit(
        f"stablehlo.concatenate {', '.join(names)}, dim = 0 : ({types}) -> {row.mlir}"
    )


def bounds_text(ctx: Context, aval: Aval, upper: Sequence[int]) -> tuple[str, str]:
    """Writes 0 and the largest start of each component, as large as the indices."""
    most = int(dtypes.iinfo(aval.dtype).max)
    row = Aval((len(upper),), aval.dtype)
    # A bound that the dtype cannot hold cannot be exceeded by such an index either.
    values = [n if is_symbolic((n,)) else min(n, most) for n in upper]

    def repeated(name: str) -> str:
        return ctx.emit(
            f"stablehlo.broadcast_in_dim {name}, dims = [{aval.ndim - 1}] : "
            f"({row.mlir}) -> {aval.mlir}"
        )

    low = repeated(_row(ctx, [0] * len(values), row))
    return low, repeated(_row(ctx, values, row))


def in_bounds_text(ctx: Context, indices: str, aval: Aval, upper: Sequence[int]) -> str:
    """Writes the in-bounds mask: a flag for each index vector."""
    low, high = bounds_text(ctx, aval, upper)
    kind = "SIGNED" if dtypes.is_signed(aval.dtype) else "UNSIGNED"
    flags = aval.update(dtype=np.dtype(bool), weak_type=False)
    sides = [
        ctx.emit(
            f"stablehlo.compare {side}, {indices}, {bound}, {kind} : "
            f"({aval.mlir}, {aval.mlir}) -> {flags.mlir}"
        )
        for side, bound in (("GE", low), ("LE", high))
    ]
    both = ctx.emit(f"stablehlo.and {sides[0]}, {sides[1]} : {flags.mlir}")
    out = Aval(aval.shape[:-1], flags.dtype)
    if aval.shape[-1] == 1:
        return ctx.emit(f"stablehlo.reshape {both} : ({flags.mlir}) -> {out.mlir}")
    scalar = Aval((), flags.dtype)
    true = ctx.constant(np.True_, scalar)
    return ctx.emit(
        f"stablehlo.reduce({both} init: {true}) applies stablehlo.and across "
        f"dimensions = [{aval.ndim - 1}] : ({flags.mlir}, {scalar.mlir}) -> "
        f"{out.mlir}"
    )


# -- NumPy -----------------------------------------------------------------------------


class SliceWindow:
    """Where the elements of the slices lie, prepared for NumPy.

    Args:
      sizes: length of a slice along each axis of the operand.
      numbers: how the axes correspond.
    """

    __slots__ = ("batching", "index_map", "kept", "offsets", "sizes")

    index_map: tuple[int, ...]
    sizes: Shape
    batching: tuple[tuple[Any, ...], ...]
    kept: list[int]

    def __init__(self, sizes: Shape, numbers: DimensionNumbers) -> None:
        _, _, self.index_map, *batching = numbers.axes
        self.sizes = sizes
        self.batching = tuple(zip(*batching, strict=True))
        dropped = numbers.dropped
        self.kept = [d for d in range(len(sizes)) if d not in dropped]
        count = len(self.kept)
        self.offsets: dict[int, np.ndarray[Any, Any]] = {
            d: np.arange(sizes[d]).reshape((-1,) + (1,) * (count - 1 - i))
            for i, d in enumerate(self.kept)
        }

    def positions(
        self, shape: Shape, indices: Any, clip: bool
    ) -> tuple[tuple[Any, ...], Any]:
        """Returns an index for each axis of the operand, and the in-bounds mask.

        The indices broadcast to (batch axes, kept axes of the slice). Out-of-bounds
        slices are clamped.

        Args:
          shape: shape of the operand.
          indices: index vectors.
          clip: skip the in-bounds mask and return None for it.
        """
        batch = indices.shape[:-1]
        inner = (1,) * len(self.kept)
        starts: dict[int, Any] = {}
        inside = None if clip else np.ones(batch, bool)
        for component, d in enumerate(self.index_map):
            at = indices[..., component].astype(np.int64)
            # What int64 does not hold came out negative, but lies beyond any axis.
            if indices.dtype == np.uint64:
                at = np.where(at < 0, np.iinfo(np.int64).max, at)
            last = max(shape[d] - self.sizes[d], 0)
            moved = np.minimum(np.maximum(at, 0), last)
            if inside is not None:
                inside &= moved == at
            starts[d] = moved.reshape(batch + inner)
        for d, axis in self.batching:
            along = [1] * (len(batch) + len(inner))
            along[axis] = -1
            starts[d] = np.arange(batch[axis]).reshape(along)
        index = []
        for d in range(len(self.sizes)):
            start = starts.get(d, 0)
            offset = self.offsets.get(d)
            index.append(start if offset is None else start + offset)
        return tuple(index), inside
