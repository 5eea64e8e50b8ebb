"""Ragged products: matrices of groups of rows, of lengths that only the data know.

As in a mixture of experts, where each row of `lhs` goes to one of several matrices:
`ragged_dot` multiplies sorted rows with the matrix of their group, and its derivative
with respect to the matrices contracts over the rows of each group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fxflow.core.arrays import dtypes
from fxflow.core.arrays.array import Array
from fxflow.core.arrays.aval import Aval
from fxflow.core.arrays.convert import typeof
from fxflow.core.ir import arith
from fxflow.core.runtime.eager import library
from fxflow.errors import ArgumentError, AxisError, DtypeError, ShapeError
from fxflow.lax.axes import canonical_axis, int_tuple
from fxflow.lax.conversion import convert_element_type
from fxflow.lax.cumulative import cumsum
from fxflow.lax.dot import DotDimensionNumbers, canonical_dims, dot_general
from fxflow.lax.dynamic_slicing import dynamic_slice_in_dim
from fxflow.lax.elementwise import sub
from fxflow.lax.joining import concatenate
from fxflow.lax.padding import pad
from fxflow.lax.product_precision import canonical_precision
from fxflow.lax.ragged_dot_primitive import RaggedDot
from fxflow.lax.ragged_tiles import loop_axes
from fxflow.lax.reshaping import expand_dims, reshape
from fxflow.lax.transfer import laid_out


@dataclass(frozen=True)
class RaggedDotDimensionNumbers:
    """How the axes of a ragged product correspond.

    Attributes:
      dot_dimension_numbers: as for `dot_general`.
      lhs_ragged_dimensions: the one axis of lhs that is in groups. If it contracts, the
        result has an axis of groups in front; if it is a batch axis, the product is an
        ordinary one.
      rhs_group_dimensions: the one axis of rhs with one matrix for each group; none if
        the ragged axis contracts or is a batch axis.
    """

    dot_dimension_numbers: DotDimensionNumbers
    lhs_ragged_dimensions: Sequence[int]
    rhs_group_dimensions: Sequence[int]

    def __post_init__(self) -> None:
        name = type(self).__name__
        try:
            pairs = tuple(tuple(map(tuple, p)) for p in self.dot_dimension_numbers)
        except TypeError:
            raise ArgumentError(
                f"{name}: dot_dimension_numbers must be ((contracting axes of lhs, of "
                "rhs), (batch axes of lhs, of rhs)), got "
                f"{self.dot_dimension_numbers!r}"
            ) from None
        object.__setattr__(self, "dot_dimension_numbers", pairs)
        for field in ("lhs_ragged_dimensions", "rhs_group_dimensions"):
            object.__setattr__(
                self, field, int_tuple(name, field, getattr(self, field))
            )


def _only(name: str, what: str, axes: Sequence[int], aval: Aval) -> int:
    if len(axes) != 1:
        raise ArgumentError(f"{name}: {what} names one axis of {aval}, got {axes}")
    return canonical_axis(name, axes[0], aval.ndim, what)


def _group_ranges(
    name: str, group_sizes: Any, offset: Any, groups: int | None, lengths: Sequence[int]
) -> Any:
    """Returns where groups begin and end: i32[..., groups, 2].

    Args:
      name: of the function, for messages.
      group_sizes: integers [g] or [*lengths, g].
      offset: the first group that is computed, or None for 0.
      groups: how many are computed, or None for all.
      lengths: of the axes along which groups may differ.
    """
    aval = typeof(group_sizes)
    if not dtypes.is_integer(aval.dtype):
        raise DtypeError(f"{name}: group_sizes must be integers, got {aval}")
    if not aval.ndim or aval.shape[:-1] not in ((), tuple(lengths)):
        either = f" or [{', '.join(map(str, lengths))}, g]" if lengths else ""
        raise ShapeError(
            f"{name}: group_sizes must be [g]{either} for g groups, got {aval}"
        )
    total, last = aval.shape[-1], aval.ndim - 1
    if groups is None:
        groups = total
    if groups != total and (offset is None or groups > total):
        raise ShapeError(
            f"{name}: rhs has {groups} matrices and group_sizes {aval} are of {total} "
            "groups: give as many, or say by group_offset which groups those of rhs are"
        )
    sizes = convert_element_type(group_sizes, np.int32)
    ends = cumsum(sizes, last)
    sides = [expand_dims(side, (last + 1,)) for side in (sub(ends, sizes), ends)]
    ranges = concatenate(sides, last + 1)
    if offset is None:
        return ranges
    at = typeof(offset)
    if not dtypes.is_integer(at.dtype) or at.shape not in ((), (1,)):
        raise ShapeError(f"{name}: group_offset must be one integer [1], got {at}")
    # Groups behind the last one are empty.
    config = [(0, groups if d == last else 0, 0) for d in range(last + 2)]
    ranges = pad(ranges, arith.constant(0, np.dtype(np.int32)), config)
    return dynamic_slice_in_dim(ranges, reshape(offset, ()), groups, last)


def ragged_dot_general(
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: Any = None,
    preferred_element_type: Any = None,
    group_offset: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Multiplies groups of rows (or sums over groups) of lengths that only data know.

    Args:
      lhs: bool or numeric[...]; its ragged axis holds the groups one after the other.
      rhs: of the same dtype.
      group_sizes: int[g], or int[..., g] with the axes of lhs that lie before the
        ragged one: the batch axes, then, if it contracts, the contracting axes named
        before it, else the remaining axes before it.
      ragged_dot_dimension_numbers: how the axes correspond.
      precision: as for `dot_general`.
      preferred_element_type: dtype to accumulate in and to return; None is that of the
        operands.
      group_offset: int[1]: the first group that is computed, such as where rhs holds
        the matrices of some of the groups only; None is 0.
      out_sharding: a `Sharding`, or a `PartitionSpec` over the current mesh: how the
        result is laid out.

    Returns:
      If the ragged axis is not contracted, an array with the batch axes, then the rest
      of lhs, then the rest of rhs; 0 in rows that belong to no group of rhs. If it is
      contracted, an array with one axis more in front: one product for each group, from
      `group_offset` on (0 for groups without rows). If it is a batch axis, the ordinary
      product: groups do not matter.

    Raises:
      ShapeError: lengths of paired axes differ, or group sizes do not fit.
      AxisError: an axis is out of range or named twice.
      DtypeError: dtypes differ, the preferred one does not hold products, or group
        sizes are not integers.
      ArgumentError: dimension numbers or precision make no sense.
      PlacementError: the result cannot be laid out as `out_sharding` says.

    Special cases:
      Groups that reach beyond the axis are cut off there.

    Example:
      >>> x, w = np.ones((3, 2), "f4"), np.float32([[[1], [1]], [[5], [5]]])
      >>> numbers = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), [0], [0])
      >>> ragged_dot_general(x, w, np.array([1, 2], "i4"), numbers)
      Array([[ 2.],
             [10.],
             [10.]], dtype=float32)

    Source: CHLO `ragged_dot`.
    """
    out = _ragged_dot_general(
        lhs,
        rhs,
        group_sizes,
        ragged_dot_dimension_numbers,
        precision,
        preferred_element_type,
        group_offset,
    )
    if out_sharding is not None:
        return laid_out("ragged_dot_general", out, out_sharding)
    return out


@library("ragged_dot_dimension_numbers", "precision", "preferred_element_type")
def _ragged_dot_general(
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: Any,
    preferred_element_type: Any,
    group_offset: Any,
) -> Array:
    name = "ragged_dot_general"
    numbers = ragged_dot_dimension_numbers
    if not isinstance(numbers, RaggedDotDimensionNumbers):
        raise ArgumentError(
            f"{name}: ragged_dot_dimension_numbers must be RaggedDotDimensionNumbers, "
            f"got {numbers!r}"
        )
    left, right = typeof(lhs), typeof(rhs)
    dims = canonical_dims(name, numbers.dot_dimension_numbers, left, right)
    ragged = _only(name, "lhs_ragged_dimensions", numbers.lhs_ragged_dimensions, left)
    (lc, rc), (lb, rb) = dims
    group = None
    if ragged in lc or ragged in lb:
        if numbers.rhs_group_dimensions:
            raise ArgumentError(
                f"{name}: rhs has an axis of groups only if the ragged axis of lhs is "
                f"neither contracted nor a batch axis, got {numbers}"
            )
    else:
        group = _only(name, "rhs_group_dimensions", numbers.rhs_group_dimensions, right)
        if group in rc or group in rb:
            raise AxisError(
                f"{name}: axis {group} of {right} cannot hold the groups and be a "
                f"contracting or batch axis, got {numbers}"
            )
    lengths = [left.shape[a] for a, _ in loop_axes(left.ndim, dims, ragged)]
    if ragged in lb:
        lengths = [left.shape[a] for a in lb[: lb.index(ragged)]]
    groups = None if group is None else right.shape[group]
    ranges = _group_ranges(name, group_sizes, group_offset, groups, lengths)
    if ragged in lb:
        return dot_general(lhs, rhs, dims, precision, preferred_element_type)
    result: Array = RaggedDot.bind(
        lhs,
        rhs,
        ranges,
        dimension_numbers=dims,
        ragged=ragged,
        group=group,
        precision=canonical_precision(name, precision),
        preferred_element_type=None
        if preferred_element_type is None
        else dtypes.dtype(preferred_element_type),
    )
    return result


def ragged_dot(
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
    group_offset: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Multiplies each group of rows with its own matrix.

    Args:
      lhs: bool or numeric[m, k]: rows, those of one group after the other.
      rhs: of the same dtype, [g, k, n]: one matrix for each group.
      group_sizes: int[g]: how many rows belong to each.
      precision: as for `dot_general`.
      preferred_element_type: dtype to accumulate in and to return; None is that of the
        operands.
      group_offset: int[1]: the group that the first matrix of rhs is for, where rhs
        holds those of some groups only; None is 0.
      out_sharding: a `Sharding`, or a `PartitionSpec` over the current mesh: how the
        result is laid out.

    Returns:
      An array [m, n]; 0 in rows that belong to no group of rhs.

    Raises:
      ShapeError: the shapes do not fit.
      DtypeError: dtypes differ, the preferred one does not hold products, or group
        sizes are not integers.
      PlacementError: the result cannot be laid out as `out_sharding` says.

    Special cases:
      Groups that reach beyond the last row are cut off there.

    Example:
      >>> x, w = np.ones((3, 2), "f4"), np.float32([[[1], [1]], [[5], [5]]])
      >>> ragged_dot(x, w, np.array([1, 1], "i4"))
      Array([[ 2.],
             [10.],
             [ 0.]], dtype=float32)

    Source: CHLO `ragged_dot`.
    """
    left, right = typeof(lhs), typeof(rhs)
    if left.ndim != 2 or right.ndim != 3:
        raise ShapeError(
            "ragged_dot: takes rows [m, k] and matrices [g, k, n], got "
            f"{left} and {right}: use ragged_dot_general"
        )
    numbers = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
    return ragged_dot_general(
        lhs,
        rhs,
        group_sizes,
        numbers,
        precision,
        preferred_element_type,
        group_offset,
        out_sharding,
    )
