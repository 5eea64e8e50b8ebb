"""The dimension numbers of gather and scatter, their modes and checks.

Both have StableHLO's general form, with batching dimensions: five tuples of axes, under
the names that StableHLO and JAX give them.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

from fxflow.core.arrays import Aval, Shape, dtypes
from fxflow.errors import ArgumentError, AxisError, DtypeError, ShapeError
from fxflow.lax.axes import int_tuple

Axes = tuple[int, ...]


class GatherScatterMode(enum.Enum):
    """What happens to an out-of-bounds slice."""

    CLIP = "clip"
    """It is clamped: moved to the nearest in-bounds start."""
    FILL_OR_DROP = "fill"
    """A gather gives the fill value, a scatter drops the update."""
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
          ArgumentError: unknown mode.

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


@dataclass(frozen=True, init=False, repr=False, eq=False)
class DimensionNumbers:
    """What the dimension numbers of gather and scatter share: five tuples of axes.

    A subclass names them, in this order: the axes of the result (or the updates) that
    run inside a slice, the operand's axes that slices do not keep, the operand's axis
    of each component of an index vector, the batching dimensions of the operand and
    those of the indices.
    """

    operation: ClassVar[str]

    def __post_init__(self) -> None:
        """Makes the fields tuples of ints, so that they hash."""
        for field in fields(self):
            given = getattr(self, field.name)
            known = int_tuple(type(self).__name__, field.name, given)
            object.__setattr__(self, field.name, known)
        # Every eager call hashes its parameters.
        object.__setattr__(self, "_hash", hash(self.axes))

    def __hash__(self) -> int:
        return self._hash  # type: ignore[attr-defined, no-any-return]

    def __str__(self) -> str:
        given = zip(fields(self), self.axes, strict=True)
        return f"({', '.join(f'{f.name}={axes}' for f, axes in given if axes)})"

    @property
    def axes(self) -> tuple[Axes, ...]:
        """The five tuples in the order of the fields."""
        return tuple(getattr(self, field.name) for field in fields(self))

    @property
    def dropped(self) -> set[int]:
        """The operand's axes along which a slice has length 1 and is not kept."""
        return {*self.axes[1], *self.axes[3]}

    def hlo(self, index_vector_dim: int) -> str:
        """Returns StableHLO's attribute."""
        given = zip(fields(self), self.axes, strict=True)
        window, dropped, index_map, *batching = (
            f"{field.name} = {list(axes)}" for field, axes in given
        )
        parts = (window, dropped, *batching, index_map)
        text = f"{', '.join(parts)}, index_vector_dim = {index_vector_dim}"
        return f"#stablehlo.{self.operation}<{text}>"

    def batched(self, operand: bool, indices: bool) -> Self:
        """Returns the numbers when operand, indices or both got a new axis 0."""
        window, dropped, index_map, batching, indices_batching = self.axes
        window = shifted(window, 1)
        both = (0,) * (operand and indices)
        return type(self)(
            # Alone, the operand's new axis is one more that a slice has in full.
            window if indices else (0, *window),  # type: ignore[call-arg]
            shifted(dropped, operand),
            shifted(index_map, operand),
            both + shifted(batching, operand),
            both + shifted(indices_batching, indices),
        )

    def check(self, name: str, operand: Aval, indices: Aval) -> None:
        """Checks all but the axes inside a slice against operand and indices.

        Args:
          name: of the operation, for messages.
          operand: type of the array.
          indices: type of the index vectors.

        Raises:
          AxisError: an axis is out of range, repeated or has two roles.
          DtypeError: the indices are not integers.
          ShapeError: lengths do not agree.
        """
        names = [field.name for field in fields(self)]
        _, dropped, index_map, batching, indices_batching = self.axes
        if not dtypes.is_integer(indices.dtype):
            raise DtypeError(f"{name}: indices must be integers, got {indices}")
        if not indices.ndim or indices.shape[-1] != len(index_map):
            raise ShapeError(
                f"{name}: the last axis of the indices {indices} must have length "
                f"{len(index_map)}, one component for each axis of the operand in "
                f"{index_map}"
            )
        require_axes(name, names[2], index_map, operand.ndim, increasing=False)
        require_axes(name, names[1], dropped, operand.ndim)
        require_axes(name, names[3], batching, operand.ndim)
        require_axes(
            name, names[4], indices_batching, indices.ndim - 1, increasing=False
        )
        if set(batching) & {*dropped, *index_map}:
            raise AxisError(
                f"{name}: operand_batching_dims {batching} may not have another role, "
                f"got {(*dropped, *index_map)} as well"
            )
        ours = [operand.shape[d] for d in batching]
        if ours != [indices.shape[d] for d in indices_batching]:
            raise ShapeError(
                f"{name}: batching dimensions must agree in number and length, got "
                f"{batching} of {operand} and {indices_batching} of the indices "
                f"{indices}"
            )


@dataclass(frozen=True)
class GatherDimensionNumbers(DimensionNumbers):
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

    operation: ClassVar[str] = "gather"
    __hash__: ClassVar[Any] = DimensionNumbers.__hash__

    def scatter(self) -> ScatterDimensionNumbers:
        """Returns the numbers of the scatter that puts the slices back."""
        return ScatterDimensionNumbers(*self.axes)


@dataclass(frozen=True)
class ScatterDimensionNumbers(DimensionNumbers):
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

    operation: ClassVar[str] = "scatter"
    __hash__: ClassVar[Any] = DimensionNumbers.__hash__

    def hlo(self, index_vector_dim: int) -> str:
        """Returns StableHLO's attribute, which calls a scatter's operand its input."""
        text = super().hlo(index_vector_dim)
        return text.replace("operand_batching_dims", "input_batching_dims")

    def gather(self) -> GatherDimensionNumbers:
        """Returns the numbers of the gather that reads what was written."""
        return GatherDimensionNumbers(*self.axes)

    def window_sizes(self, operand_ndim: int, updates_shape: Shape) -> Shape:
        """Returns the length of a slice along each axis of the operand.

        Args:
          operand_ndim: number of the operand's axes.
          updates_shape: of the updates.
        """
        window = iter(updates_shape[d] for d in self.update_window_dims)
        gone = self.dropped
        return tuple(1 if d in gone else next(window) for d in range(operand_ndim))


def shifted(axes: Sequence[int], by: int) -> Axes:
    """Returns axes that lie further back."""
    return tuple(a + by for a in axes)


def require_axes(
    name: str, field: str, axes: Sequence[int], ndim: int, *, increasing: bool = True
) -> None:
    """Checks one field of dimension numbers.

    Raises:
      AxisError: an axis is out of range, repeated or not in order.
    """
    bad = len(set(axes)) != len(axes) or any(not 0 <= a < ndim for a in axes)
    if bad or (increasing and list(axes) != sorted(axes)):
        order = "increasing " if increasing else ""
        raise AxisError(
            f"{name}: {field} must be distinct {order}axes from 0 to {ndim - 1}, got "
            f"{tuple(axes)}"
        )
