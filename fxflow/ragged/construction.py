"""Ragged arrays from lists, padded arrays, masks and row numbers; and joined ones."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.ragged.array import (
    RaggedArray,
    gathered,
    is_concrete,
    made,
    require_room,
)


def array(
    rows: Sequence[Any], dtype: Any = None, capacity: int | None = None
) -> RaggedArray:
    """Returns a ragged array of rows.

    Args:
      rows: array-likes[length, ...] that differ in the first axis only; an empty list
        is an empty row.
      dtype: dtype of the values; None is what they promote to.
      capacity: how many values there is room for; None is as many as there are.

    Returns:
      A `RaggedArray` whose values are on the default device.

    Raises:
      ArgumentError: the rows have more values than `capacity`.
      ShapeError: the rows differ in another axis, or one is 0-d.

    Example:
      >>> array([[1.0, 2.0], [], [3.0]], capacity=4)
      RaggedArray(f32[3,(2, 0, 1)], capacity=4)
    """
    parts = [fnp.asarray(row) for row in rows]
    for number, part in enumerate(parts):
        if not part.ndim:
            raise ShapeError(
                f"ragged.array: row {number} must have an axis of values, got "
                f"{typeof(part)}"
            )
    full = [part for part in parts if part.size or part.ndim > 1] or parts[:1]
    for part in full:
        if part.shape[1:] != full[0].shape[1:]:
            raise ShapeError(
                "ragged.array: rows may differ in their first axis only, got "
                f"{typeof(full[0])} and {typeof(part)}"
            )
    lengths = np.array([part.shape[0] for part in parts], np.int32)
    values = fnp.concatenate(full) if full else fnp.zeros(0)
    if dtype is not None:
        values = values.astype(dtype)
    out = RaggedArray(values, lengths)
    return out if capacity is None else out.with_capacity(operator.index(capacity))


def from_padded(x: Any, lengths: Any, capacity: int | None = None) -> RaggedArray:
    """Returns the first values of the rows of an array.

    Args:
      x: array-like[rows, length, ...].
      lengths: integer array-like[rows]: how many values of each row there are.
      capacity: how many values there is room for; None is rows · length.

    Returns:
      A `RaggedArray` of these rows.

    Raises:
      ArgumentError: a length is known to be negative or larger than the row, or the
        rows have more values than `capacity`.
      ShapeError: the shapes are incompatible.

    Example:
      >>> from_padded(fnp.arange(6).reshape(2, 3), [1, 2]).tolist()
      [[0], [3, 4]]
    """
    x, lengths = fnp.asarray(x), fnp.asarray(lengths)
    if x.ndim < 2 or lengths.shape != x.shape[:1]:
        raise ShapeError(
            "from_padded: x must have rows of values, and lengths one integer for each "
            f"row, got {typeof(x)} and {typeof(lengths)}"
        )
    if not dtypes.is_integer(lengths.dtype):
        raise DtypeError(
            f"from_padded: lengths must be integers, got {typeof(lengths)}"
        )
    rows, length = x.shape[:2]
    if is_concrete(lengths) and (np.asarray(lengths) > length).any():
        raise ArgumentError(
            f"from_padded: the rows of {typeof(x)} have {length} values, got a length "
            f"of {np.asarray(lengths).max()}"
        )
    room = rows * length if capacity is None else operator.index(capacity)
    values = x.reshape(rows * length, *x.shape[2:])
    starts = np.arange(rows, dtype=np.int32) * length
    return gathered(values, fnp.asarray(starts), lengths.astype(np.int32), room)


def from_mask(x: Any, mask: Any, capacity: int | None = None) -> RaggedArray:
    """Returns the values of each row that a mask selects, in their order.

    Args:
      x: array-like[rows, length, ...].
      mask: bool array-like[rows, length].
      capacity: how many values there is room for; None is rows · length.

    Returns:
      A `RaggedArray` of as many rows.

    Raises:
      ArgumentError: the mask is known to select more values than `capacity`.
      ShapeError: the shapes are incompatible.

    Example:
      >>> from_mask(fnp.arange(4).reshape(2, 2), [[True, True], [False, True]]).tolist()
      [[0, 1], [3]]
    """
    x, mask = fnp.asarray(x), fnp.asarray(mask)
    if x.ndim < 2 or mask.shape != x.shape[:2] or mask.dtype != np.bool_:
        raise ShapeError(
            "from_mask: mask must be bool[rows, length] of x[rows, length, ...], got "
            f"{typeof(mask)} and {typeof(x)}"
        )
    rows, length = mask.shape
    room = rows * length if capacity is None else operator.index(capacity)
    lengths = fnp.sum(mask, axis=1, dtype=np.int32)
    require_room("from_mask", lengths, room)
    places = fnp.nonzero(mask.reshape(-1), size=room, fill_value=0)[0]
    values = x.reshape(rows * length, *x.shape[2:])
    if not rows * length:
        return made(fnp.zeros((room, *x.shape[2:]), x.dtype), lengths)
    return made(values[places], lengths)


def from_row_ids(values: Any, row_ids: Any, rows: int) -> RaggedArray:
    """Returns a ragged array of values and the number of the row of each.

    Args:
      values: array-like[capacity, ...].
      row_ids: integer array-like[capacity], ascending; `rows` and more for values that
        are in no row.
      rows: the number of rows.

    Returns:
      A `RaggedArray` of these values.

    Raises:
      ArgumentError: row ids are known not to ascend, or to be negative.
      ShapeError: there is not one row id for each value.

    Example:
      >>> from_row_ids(fnp.arange(3), [0, 2, 2], 3).tolist()
      [[0], [], [1, 2]]
    """
    values, row_ids = fnp.asarray(values), fnp.asarray(row_ids)
    if not values.ndim or row_ids.shape != values.shape[:1]:
        raise ShapeError(
            "from_row_ids: there must be one row id for each value, got "
            f"{typeof(row_ids)} for {typeof(values)}"
        )
    if is_concrete(row_ids):
        known = np.asarray(row_ids)
        if (np.diff(known) < 0).any() or (known < 0).any():
            raise ArgumentError(
                "from_row_ids: row ids must ascend from 0: sort the values by them"
            )
    lengths = fnp.zeros(rows, np.int32).at[row_ids].add(1, mode="drop")
    return made(values, lengths)


def pad_and_stack(
    arrays: Sequence[Any], length: int | None = None, fill_value: Any = 0
) -> tuple[Array, Array]:
    """Stacks arrays of different lengths, padded at their ends, with their lengths.

    Args:
      arrays: array-likes[n, ...] that differ in the first axis only.
      length: length of the rows of the result; None: that of the longest.
      fill_value: what to pad with.

    Returns:
      The stack, array[rows, length, ...], and the lengths, int32[rows].

    Raises:
      ArgumentError: an array is longer than `length`, or there is none.
      ShapeError: the arrays differ in another axis, or one is 0-d.

    Example:
      >>> pad_and_stack([[1], [2, 3]])[0].tolist()
      [[1, 0], [2, 3]]
    """
    if not len(arrays):
        raise ArgumentError("pad_and_stack: needs at least one array")
    ragged = array(arrays)
    return ragged.to_padded(length, fill_value), ragged.lengths


def concatenate(
    arrays: Sequence[RaggedArray], axis: int = 0, capacity: int | None = None
) -> RaggedArray:
    """Joins ragged arrays: their rows one after the other, or row by row.

    Args:
      arrays: ragged arrays with values of one shape.
      axis: 0: the rows of the first, then those of the second, …; 1: row i of the
        result is row i of the first, followed by row i of the second, ….
      capacity: of the result; None is the sum of theirs.

    Returns:
      A `RaggedArray` of all their rows, or of the joined ones.

    Raises:
      ArgumentError: `axis` is neither 0 nor 1, there is no array, or the rows have more
        values than `capacity`.
      ShapeError: the shapes are incompatible.

    Example:
      >>> x, y = array([[1], [2, 3]]), array([[4, 5], [6]])
      >>> concatenate([x, y], axis=1).tolist()
      [[1, 4, 5], [2, 3, 6]]
    """
    if axis not in (0, 1) or not len(arrays):
        raise ArgumentError(
            f"ragged.concatenate: joins one array or more along axis 0 or 1, got "
            f"{len(arrays)} arrays and axis={axis!r}"
        )
    for x in arrays:
        if not isinstance(x, RaggedArray):
            raise ArgumentError(f"ragged.concatenate: joins ragged arrays, got {x!r}")
        if axis == 1 and x.rows != arrays[0].rows:
            raise ShapeError(
                "ragged.concatenate: along axis 1 arrays must have as many rows, got "
                f"{arrays[0]!r} and {x!r}"
            )
    values = fnp.concatenate([x.values for x in arrays])
    room = sum(x.capacity for x in arrays) if capacity is None else capacity
    bases = np.cumsum([0, *(x.capacity for x in arrays[:-1])]).tolist()
    starts = [x.offsets[:-1] + base for x, base in zip(arrays, bases, strict=True)]
    lengths = [x.lengths for x in arrays]
    if axis == 0:
        whole = fnp.concatenate(lengths)
        return gathered(values, fnp.concatenate(starts), whole, room)
    # The parts of a row one after the other are rows of their own.
    parts = gathered(
        values,
        fnp.stack(starts, 1).reshape(-1),
        fnp.stack(lengths, 1).reshape(-1),
        room,
    )
    return made(parts.values, fnp.sum(fnp.stack(lengths), 0, dtype=np.int32))
