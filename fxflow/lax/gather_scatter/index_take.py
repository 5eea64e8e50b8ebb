"""Slices of an array at several indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fxflow.core.arrays import Array, as_array, dtypes, typeof
from fxflow.core.ir import arith
from fxflow.errors import DtypeError, ShapeError
from fxflow.lax.axes import distinct_axes
from fxflow.lax.comparison import lt
from fxflow.lax.concatenation import stack
from fxflow.lax.conversion import convert_element_type
from fxflow.lax.elementwise import add, rem
from fxflow.lax.gather_scatter.dimension_numbers import (
    GatherDimensionNumbers,
    GatherScatterMode,
)
from fxflow.lax.gather_scatter.gather import gather
from fxflow.lax.select import select


def index_take(src: Any, idxs: Sequence[Any], axes: Sequence[int]) -> Array:
    """Returns the slices of an array at indices along some of its axes.

    Args:
      src: array.
      idxs: for each of the axes an integer array [n]; they wrap around.
      axes: distinct axes of `src`.

    Returns:
      Array of the dtype of `src`, [n] and the other axes of `src`.

    Raises:
      ShapeError: indices are not of one length, not as many as axes, or for an axis
        without elements.
      DtypeError: indices are not integers.
      AxisError: an axis is out of range or repeated.

    Example:
      >>> index_take(np.arange(6.0, dtype="f4").reshape(2, 3), [np.array([2, -1])], [1])
      Array([[2., 5.],
             [2., 5.]], dtype=float32)

    Source: StableHLO `gather`.
    """
    aval = typeof(src)
    along = distinct_axes("index_take", axes, aval.ndim, "axes")
    arrays = [as_array(i) for i in idxs]
    avals = [typeof(a) for a in arrays]
    shapes = {a.shape for a in avals}
    if not along or len(arrays) != len(along) or len(shapes) > 1 or avals[0].ndim != 1:
        raise ShapeError(
            "index_take: idxs must be an array [n] for each axis of "
            f"{tuple(axes)}, got {', '.join(map(str, avals)) or 'none'}"
        )
    if any(not dtypes.is_integer(a.dtype) for a in avals):
        raise DtypeError(
            f"index_take: idxs must be integers, got {', '.join(map(str, avals))}"
        )
    lengths = [aval.shape[axis] for axis in along]
    if not all(lengths):
        raise ShapeError(f"index_take: an axis of {tuple(axes)} of {aval} is empty")
    columns = [_wrapped(a, n) for a, n in zip(arrays, lengths, strict=True)]
    kept = aval.ndim - len(along)
    return gather(
        src,
        stack(columns, 1),
        GatherDimensionNumbers(
            offset_dims=tuple(range(1, 1 + kept)),
            collapsed_slice_dims=tuple(sorted(along)),
            start_index_map=tuple(along),
        ),
        [1 if d in along else n for d, n in enumerate(aval.shape)],
        mode=GatherScatterMode.PROMISE_IN_BOUNDS,
    )


def _wrapped(index: Any, length: int) -> Any:
    wide = convert_element_type(index, dtypes.int32)
    left = rem(wide, arith.constant(length, dtypes.int32))
    moved = add(left, arith.constant(length, dtypes.int32))
    return select(lt(left, arith.constant(0, dtypes.int32)), moved, left)
