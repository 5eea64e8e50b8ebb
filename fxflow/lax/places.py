"""Places: what gather and scatter share.

Their dimension numbers (StableHLO's general form, with batching dimensions) and checks,
the modes, and where the elements of the slices lie, for NumPy.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from fxflow.core.arrays import dtypes
from fxflow.core.arrays.aval import Aval, Shape
from fxflow.errors import ArgumentError, AxisError, DtypeError, ShapeError
from fxflow.lax.axes import int_tuple


class GatherScatterMode(enum.Enum):
    """What happens to a slice that does not lie inside the array."""

    CLIP = "clip"
    """It is moved inside."""
    FILL_OR_DROP = "fill"
    """A gather gives the fill value, a scatter leaves the update out."""
    ONE_HOT = FILL_OR_DROP
    """JAX's hint to multiply with a matrix of ones and zeros; the same result."""
    PROMISE_IN_BOUNDS = "promise_in_bounds"
    """The caller promises that there is none; else the result is unspecified."""

    @staticmethod
    def from_any(mode: str | GatherScatterMode | None) -> GatherScatterMode:
        """Returns the mode of a name; None means `FILL_OR_DROP`.

        Args:
          mode: a mode, or `"clip"`, `"fill"`, `"drop"`, `"promise_in_bounds"`, or
            `"one_hot"`, which is `"fill"`.

        Returns:
          The mode.

        Raises:
          ArgumentError: there is no such mode.

        Example:
          >>> GatherScatterMode.from_any("drop").name
          'FILL_OR_DROP'
        """
        if isinstance(mode, GatherScatterMode):
            return mode
        known = _MODES.get(mode) if mode is None or isinstance(mode, str) else None
        if known is None:
            names = ", ".join(repr(name) for name in _MODES if name)
            raise ArgumentError(f"unknown mode {mode!r}: expected one of {names}")
        return known

    def __str__(self) -> str:
        return self.value


_MODES: dict[str | None, GatherScatterMode] = {
    None: GatherScatterMode.FILL_OR_DROP,
    "clip": GatherScatterMode.CLIP,
    "fill": GatherScatterMode.FILL_OR_DROP,
    "drop": GatherScatterMode.FILL_OR_DROP,
    "one_hot": GatherScatterMode.ONE_HOT,
    "promise_in_bounds": GatherScatterMode.PROMISE_IN_BOUNDS,
}


@dataclass(frozen=True)
class GatherDimensionNumbers:
    """How the axes of a gather correspond.

    The last axis of the indices holds an index vector; the others are batch axes.

    Attributes:
      offset_dims: axes of the result that run inside a slice.
      collapsed_slice_dims: axes of the operand whose slice has length 1 and disappears.
      start_index_map: for each component of an index vector the axis of the operand
        that it is for.
      operand_batching_dims: axes of the operand that go with batch axes of the indices.
      start_indices_batching_dims: those batch axes.
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        canonical_fields(self)

    def __hash__(self) -> int:
        return self._hash  # type: ignore[attr-defined, no-any-return]

    def __str__(self) -> str:
        return show_numbers(self)

    def hlo(self, index_vector_dim: int) -> str:
        """Returns StableHLO's attribute."""
        return (
            f"#stablehlo.gather<offset_dims = {list(self.offset_dims)}, "
            f"collapsed_slice_dims = {list(self.collapsed_slice_dims)}, "
            f"operand_batching_dims = {list(self.operand_batching_dims)}, "
            "start_indices_batching_dims = "
            f"{list(self.start_indices_batching_dims)}, "
            f"start_index_map = {list(self.start_index_map)}, "
            f"index_vector_dim = {index_vector_dim}>"
        )

    def scatter(self) -> ScatterDimensionNumbers:
        """Returns the numbers of the scatter that puts the slices back."""
        return ScatterDimensionNumbers(
            self.offset_dims,
            self.collapsed_slice_dims,
            self.start_index_map,
            self.operand_batching_dims,
            self.start_indices_batching_dims,
        )

    def batched(self, operand: bool, indices: bool) -> GatherDimensionNumbers:
        """Returns the numbers when operand, indices or both got a new axis 0."""
        dims, both = int(operand), operand and indices
        offsets = shifted(self.offset_dims, 1)
        return GatherDimensionNumbers(
            # Alone, the operand's new axis is one more that a slice has in full.
            offset_dims=offsets if indices else (0, *offsets),
            collapsed_slice_dims=shifted(self.collapsed_slice_dims, dims),
            start_index_map=shifted(self.start_index_map, dims),
            operand_batching_dims=(0,) * both
            + shifted(self.operand_batching_dims, dims),
            start_indices_batching_dims=(0,) * both
            + shifted(self.start_indices_batching_dims, int(indices)),
        )


@dataclass(frozen=True)
class ScatterDimensionNumbers:
    """How the axes of a scatter correspond.

    The last axis of the indices holds an index vector; the others are batch axes.

    Attributes:
      update_window_dims: axes of the updates that run inside a slice.
      inserted_window_dims: axes of the operand whose slice has length 1 and is not an
        axis of the updates.
      scatter_dims_to_operand_dims: for each component of an index vector the operand's
        axis it is for.
      operand_batching_dims: axes of the operand that go with batch axes of the indices.
      scatter_indices_batching_dims: those batch axes.
    """

    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    scatter_indices_batching_dims: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        canonical_fields(self)

    def __hash__(self) -> int:
        return self._hash  # type: ignore[attr-defined, no-any-return]

    def __str__(self) -> str:
        return show_numbers(self)

    def hlo(self, index_vector_dim: int) -> str:
        """Returns StableHLO's attribute."""
        return (
            "#stablehlo.scatter<update_window_dims = "
            f"{list(self.update_window_dims)}, "
            f"inserted_window_dims = {list(self.inserted_window_dims)}, "
            f"input_batching_dims = {list(self.operand_batching_dims)}, "
            "scatter_indices_batching_dims = "
            f"{list(self.scatter_indices_batching_dims)}, "
            "scatter_dims_to_operand_dims = "
            f"{list(self.scatter_dims_to_operand_dims)}, "
            f"index_vector_dim = {index_vector_dim}>"
        )

    def gather(self) -> GatherDimensionNumbers:
        """Returns the numbers of the gather that reads what was written."""
        return GatherDimensionNumbers(
            self.update_window_dims,
            self.inserted_window_dims,
            self.scatter_dims_to_operand_dims,
            self.operand_batching_dims,
            self.scatter_indices_batching_dims,
        )

    def window_sizes(self, operand_ndim: int, updates_shape: Shape) -> Shape:
        """Returns the length of a slice along each axis of the operand.

        Args:
          operand_ndim: number of the operand's axes.
          updates_shape: of the updates.
        """
        gone = {*self.inserted_window_dims, *self.operand_batching_dims}
        window = iter(updates_shape[d] for d in self.update_window_dims)
        return tuple(1 if d in gone else next(window) for d in range(operand_ndim))

    def batched(self, indices: bool) -> ScatterDimensionNumbers:
        """Returns the numbers when operand and updates got a new axis 0.

        Args:
          indices: whether the indices got one, too.
        """
        window = shifted(self.update_window_dims, 1)
        return ScatterDimensionNumbers(
            update_window_dims=window if indices else (0, *window),
            inserted_window_dims=shifted(self.inserted_window_dims, 1),
            scatter_dims_to_operand_dims=shifted(self.scatter_dims_to_operand_dims, 1),
            operand_batching_dims=(0,) * indices
            + shifted(self.operand_batching_dims, 1),
            scatter_indices_batching_dims=(0,) * indices
            + shifted(self.scatter_indices_batching_dims, int(indices)),
        )


def canonical_fields(numbers: Any) -> None:
    """Makes the fields of dimension numbers tuples of ints, so that they hash."""
    for field in fields(numbers):
        value = getattr(numbers, field.name)
        known = int_tuple(type(numbers).__name__, field.name, value)
        object.__setattr__(numbers, field.name, known)
    parts = tuple(getattr(numbers, field.name) for field in fields(numbers))
    # Every eager call hashes its parameters.
    object.__setattr__(numbers, "_hash", hash(parts))


def show_numbers(numbers: Any) -> str:
    """Returns dimension numbers as they are printed: without empty fields."""
    parts = {field.name: getattr(numbers, field.name) for field in fields(numbers)}
    return f"({', '.join(f'{k}={v}' for k, v in parts.items() if v)})"


def shifted(axes: Sequence[int], by: int) -> tuple[int, ...]:
    """Returns axes that lie further back."""
    return tuple(a + by for a in axes)


def require_axes(
    name: str, field: str, axes: Sequence[int], ndim: int, *, increasing: bool
) -> None:
    """Checks one field of dimension numbers.

    Raises:
      AxisError: an axis is out of range, named twice or not in order.
    """
    bad = len(set(axes)) != len(axes) or any(not 0 <= a < ndim for a in axes)
    if bad or (increasing and list(axes) != sorted(axes)):
        order = "increasing " if increasing else ""
        raise AxisError(
            f"{name}: {field} must be distinct {order}axes from 0 to {ndim - 1}, got "
            f"{tuple(axes)}"
        )


def require_indices(name: str, indices: Aval, components: Sequence[int]) -> None:
    """Checks the type of indices.

    Raises:
      DtypeError: they are not integers.
      ShapeError: the last axis does not hold one component for each mapped axis.
    """
    if not dtypes.is_integer(indices.dtype):
        raise DtypeError(f"{name}: indices must be integers, got {indices}")
    if not indices.ndim or indices.shape[-1] != len(components):
        raise ShapeError(
            f"{name}: the last axis of the indices {indices} must have length "
            f"{len(components)}, one component for each axis of the operand in "
            f"{tuple(components)}"
        )


def require_batching(
    name: str,
    operand: Aval,
    indices: Aval,
    operand_dims: Sequence[int],
    indices_dims: Sequence[int],
    others: Sequence[int],
) -> None:
    """Checks batching dimensions against each other.

    Raises:
      AxisError: an axis has two roles, or is the one of the index vectors.
      ShapeError: their lengths differ.
    """
    require_axes(
        name, "operand_batching_dims", operand_dims, operand.ndim, increasing=True
    )
    require_axes(
        name, "indices batching dims", indices_dims, indices.ndim - 1, increasing=False
    )
    if set(operand_dims) & set(others):
        raise AxisError(
            f"{name}: operand_batching_dims {tuple(operand_dims)} may not have another "
            f"role, got {tuple(others)} as well"
        )
    theirs = tuple(indices.shape[d] for d in indices_dims)
    ours = tuple(operand.shape[d] for d in operand_dims)
    if ours != theirs:
        raise ShapeError(
            f"{name}: batching dimensions must agree in number and length, got "
            f"{tuple(operand_dims)} of {operand} and {tuple(indices_dims)} of the "
            f"indices {indices}"
        )


def wide_indices(ctx: Any, name: str, aval: Aval) -> tuple[str, Aval]:
    """Writes indices of at least 32 bits.

    XLA compares and clamps in the dtype of the index, where a long axis would overflow.
    """
    if dtypes.bits(aval.dtype) >= 32:
        return name, aval
    wide = aval.update(dtype=np.dtype(np.int32))
    return str(
        ctx.emit(f"stablehlo.convert {name} : ({aval.mlir}) -> {wide.mlir}")
    ), wide


def bounds_text(ctx: Any, aval: Aval, upper: Sequence[int]) -> tuple[str, str]:
    """Writes 0 and the largest start of each component, as large as the indices."""
    most = int(dtypes.iinfo(aval.dtype).max)
    row = Aval((len(upper),), aval.dtype)
    values = np.asarray([min(n, most) for n in upper], aval.dtype)
    names = []
    for value in (np.zeros_like(values), values):
        name = ctx.constant(value, row)
        names.append(
            str(
                ctx.emit(
                    f"stablehlo.broadcast_in_dim {name}, dims = [{aval.ndim - 1}] : "
                    f"({row.mlir}) -> {aval.mlir}"
                )
            )
        )
    return names[0], names[1]


def inside_text(ctx: Any, indices: str, aval: Aval, upper: Sequence[int]) -> str:
    """Writes for each index vector whether its slice lies inside."""
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
        return str(ctx.emit(f"stablehlo.reshape {both} : ({flags.mlir}) -> {out.mlir}"))
    scalar = Aval((), flags.dtype)
    true = ctx.constant(np.True_, scalar)
    return str(
        ctx.emit(
            f"stablehlo.reduce({both} init: {true}) applies stablehlo.and across "
            f"dimensions = [{aval.ndim - 1}] : ({flags.mlir}, {scalar.mlir}) -> "
            f"{out.mlir}"
        )
    )


# -- positions, for the host -----------------------------------------------------------


class Window:
    """Where the elements of the slices lie, prepared for NumPy.

    Args:
      operand_ndim: number of the operand's axes.
      slice_sizes: of one slice, one for each of them.
      index_map: the operand's axis of each component.
      dropped: axes of the operand that the slices do not keep.
      operand_batching: axes of the operand that go with batch axes of the indices.
      indices_batching: those batch axes.
    """

    __slots__ = (
        "batching",
        "index_map",
        "kept",
        "offsets",
        "operand_ndim",
        "sizes",
    )

    def __init__(
        self,
        operand_ndim: int,
        slice_sizes: Shape,
        index_map: Sequence[int],
        dropped: Sequence[int],
        operand_batching: Sequence[int],
        indices_batching: Sequence[int],
    ) -> None:
        self.operand_ndim = operand_ndim
        self.sizes = slice_sizes
        self.index_map = tuple(index_map)
        self.batching = tuple(zip(operand_batching, indices_batching, strict=True))
        gone = {*dropped, *operand_batching}
        self.kept = [d for d in range(operand_ndim) if d not in gone]
        count = len(self.kept)
        self.offsets = {
            d: np.arange(slice_sizes[d]).reshape((-1,) + (1,) * (count - 1 - place))
            for place, d in enumerate(self.kept)
        }

    def positions(
        self, shape: Shape, indices: Any, clip: bool
    ) -> tuple[tuple[Any, ...], Any]:
        """Returns an index for each axis of the operand, and which slices lie inside.

        The indices broadcast to (batch axes, kept axes of the slice). Slices that do
        not lie inside are moved inside.

        Args:
          shape: of the operand.
          indices: index vectors.
          clip: whether nobody wants to know which slices lie inside (then None).
        """
        batch = indices.shape[:-1]
        inner = (1,) * len(self.kept)
        starts: dict[int, Any] = {}
        inside = None if clip else np.ones(batch, bool)
        for component, d in enumerate(self.index_map):
            at = indices[..., component].astype(np.int64)
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
        for d in range(self.operand_ndim):
            start = starts.get(d, 0)
            offset = self.offsets.get(d)
            index.append(start if offset is None else start + offset)
        return tuple(index), inside
