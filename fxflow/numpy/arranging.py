"""Rearranging elements: repeating, reversing, rolling."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from fxflow import lax
from fxflow.core.arrays import Array, as_array, dtypes, unwrapped
from fxflow.core.ir.arith import repeated
from fxflow.core.ir.trace import Tracer
from fxflow.core.runtime.eager import open_layouts
from fxflow.core.runtime.library import library
from fxflow.errors import (
    ArgumentError,
    ConcretizationError,
    DtypeError,
    ShapeError,
)
from fxflow.lax.axes import canonical_axes, canonical_axis, shape_or_length
from fxflow.lax.transfer import laid_out
from fxflow.numpy._operands import ArrayLike, array_of, convert
from fxflow.numpy.creation import asarray
from fxflow.numpy.index_functions import take
from fxflow.numpy.index_update import At
from fxflow.numpy.shapes import ravel, reshape

# -- repeating -------------------------------------------------------------------------


def tile(A: ArrayLike, reps: Any) -> Array:
    """Repeats a whole array side by side.

    Args:
      A: array-like.
      reps: int or sequence of ints: how often along each axis, counted from the last.

    Returns:
      Array.

    Raises:
      ShapeError: a number is negative.

    Example:
      >>> tile(np.array([1, 2]), 2)
      Array([1, 2, 1, 2], dtype=int32)

    Source: `numpy.tile`.
    """
    return _tile(A, shape_or_length("tile", reps, "reps"))


@library("reps")
def _tile(A: Any, reps: tuple[int, ...]) -> Array:
    x = array_of(A, "tile")
    ndim = max(x.aval.ndim, len(reps))
    shape = (1,) * (ndim - x.aval.ndim) + x.aval.shape
    times = (1,) * (ndim - len(reps)) + reps
    # Each axis becomes a pair: how often, and the axis itself.
    pairs = tuple(n for pair in zip(times, shape, strict=True) for n in pair)
    wide = lax.broadcast_in_dim(
        lax.reshape(x, shape), pairs, tuple(range(1, 2 * ndim, 2))
    )
    return lax.reshape(wide, tuple(n * m for n, m in zip(times, shape, strict=True)))


def repeat(
    a: Any,
    repeats: Any,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
    out_sharding: Any = None,
) -> Array:
    """Repeats each element along an axis.

    Args:
      a: array-like.
      repeats: int, or integers for each element along the axis.
      axis: the axis; None flattens `a` first, as do 0 and -1 for a 0-d `a`.
      total_repeat_length: length of the result, needed if `repeats` is traced: the
        result is cut off there, or its last element goes on.
      out_sharding: a `Sharding`, or a `PartitionSpec` over the current mesh: how the
        result is laid out.

    Returns:
      Array.

    Raises:
      ConcretizationError: `repeats` is traced and the length is not given.
      ShapeError: `repeats` does not fit the axis, or is negative.
      PlacementError: the result cannot be laid out as `out_sharding` specifies.

    Example:
      >>> repeat(np.array([1, 2]), np.array([2, 1]))
      Array([1, 1, 2], dtype=int32)

    Source: `numpy.repeat`.
    """
    if out_sharding is not None:
        with open_layouts(out_sharding):
            out = repeat(a, repeats, axis, total_repeat_length=total_repeat_length)
        return laid_out("repeat", out, out_sharding)
    x = array_of(asarray(a) if isinstance(a, list | tuple) else a, "repeat")
    if axis is None or (not x.ndim and axis in (0, -1)):  # as NumPy has it
        x, axis = ravel(x), 0
    axis = canonical_axis("repeat", axis, x.ndim)
    length = x.shape[axis]
    repeats = unwrapped(repeats)
    if isinstance(repeats, list | tuple):
        repeats = np.asarray(repeats)
    if isinstance(repeats, Tracer):
        if total_repeat_length is None:
            raise ConcretizationError(
                f"repeat: the shape of the result depends on `repeats`, and "
                f"{repeats.aval} is traced. {repeats.origin()} Pass "
                "total_repeat_length=..."
            )
        counts: Any = repeats
    else:
        counts = np.asarray(repeats)
        if counts.dtype.kind not in "iub":
            raise DtypeError(f"repeat: repeats must be integers, got {repeats!r}")
        if counts.size and counts.min() < 0:
            raise ShapeError(f"repeat: repeats must not be negative, got {repeats!r}")
    if counts.ndim > 1 or (counts.ndim and counts.shape[0] not in (1, length)):
        raise ShapeError(
            f"repeat: repeats of shape {counts.shape} do not fit axis {axis} of "
            f"{x.aval}: "
            "they must be one number or one for each element"
        )
    if not isinstance(counts, Tracer) and counts.size == 1:
        times = int(counts.reshape(()))
        out = _each_repeated(x, times, axis)
        if total_repeat_length is None or total_repeat_length == length * times:
            return out
    if total_repeat_length is not None and isinstance(counts, Tracer):
        total = operator.index(total_repeat_length)
        counts = repeated(convert(counts, dtypes.int32), (length,))
        ends = lax.cumsum(counts, 0)
        # Each slot counts how many elements end before it.
        marks = lax.full((total + 1,), 0, dtypes.int32)
        slots = lax.min(lax.max(ends, 0), total)
        marks = At(marks)[slots].add(1)
        indices = lax.cumsum(marks, 0)[:total]
    else:
        every = np.repeat(
            np.arange(length, dtype=np.int32), np.broadcast_to(counts, (length,))
        )
        if total_repeat_length is not None:
            total = operator.index(total_repeat_length)
            more = max(0, total - len(every))
            every = np.concatenate([every, np.full(more, max(length - 1, 0), np.int32)])
            every = every[:total]
        indices = as_array(every)
    return take(x, indices, axis, mode="clip")


@library("times", "axis")
def _each_repeated(x: Array, times: int, axis: int) -> Array:
    shape = x.aval.shape
    long = (*shape[: axis + 1], times, *shape[axis + 1 :])
    dims = tuple(d + (d > axis) for d in range(len(shape)))
    wide = lax.broadcast_in_dim(x, long, dims)
    return lax.reshape(wide, (*shape[:axis], shape[axis] * times, *shape[axis + 1 :]))


def resize(a: ArrayLike, new_shape: Any) -> Array:
    """Gives an array another shape, repeating or leaving out elements.

    Args:
      a: array-like.
      new_shape: int or sequence of ints.

    Returns:
      Array of that shape.

    Raises:
      ShapeError: a length is negative.

    Example:
      >>> resize(np.array([1, 2, 3]), (2, 4))
      Array([[1, 2, 3, 1],
             [2, 3, 1, 2]], dtype=int32)

    Source: `numpy.resize`.
    """
    shape = shape_or_length("resize", new_shape, "new_shape")
    flat = ravel(array_of(a, "resize"))
    total = math.prod(shape)
    if not flat.size or not total:
        return lax.full(shape, 0, flat.dtype)
    times = -(-total // flat.size)
    return reshape(tile(flat, times)[:total], shape)


# -- reversing and rolling -------------------------------------------------------------


def flip(m: ArrayLike, axis: Any = None) -> Array:
    """Reverses the order of the elements along axes.

    Args:
      m: array-like.
      axis: int or sequence of ints; None means all.

    Returns:
      Array of the type of `m`.

    Raises:
      AxisError: an axis is out of range.

    Example:
      >>> flip(np.array([[1, 2], [3, 4]]), axis=1)
      Array([[2, 1],
             [4, 3]], dtype=int32)

    Source: `numpy.flip`.
    """
    return _flip(m, tuple(axis) if isinstance(axis, list) else axis)


@library("axis")
def _flip(m: Any, axis: Any) -> Array:
    x = array_of(m, "flip")
    return lax.rev(x, canonical_axes("flip", axis, x.aval.ndim))


def flipud(m: ArrayLike) -> Array:
    """Reverses the order of the rows.

    Args:
      m: array-like of one axis or more.

    Returns:
      Array of the type of `m`.

    Raises:
      AxisError: `m` is 0-d.

    Example:
      >>> flipud(np.array([[1, 2], [3, 4]]))
      Array([[3, 4],
             [1, 2]], dtype=int32)

    Source: `numpy.flipud`.
    """
    return flip(m, 0)


def fliplr(m: ArrayLike) -> Array:
    """Reverses the order of the columns.

    Args:
      m: array-like of two axes or more.

    Returns:
      Array of the type of `m`.

    Raises:
      AxisError: `m` has fewer axes.

    Example:
      >>> fliplr(np.array([[1, 2], [3, 4]]))
      Array([[2, 1],
             [4, 3]], dtype=int32)

    Source: `numpy.fliplr`.
    """
    return flip(m, 1)


@library("k", "axes")
def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """Turns an array by multiples of 90 degrees, from the first axis to the second.

    Args:
      m: array-like of two axes or more.
      k: how often.
      axes: the two axes.

    Returns:
      Array.

    Raises:
      AxisError: an axis is out of range or repeated.

    Example:
      >>> rot90(np.array([[1, 2], [3, 4]]))
      Array([[2, 4],
             [1, 3]], dtype=int32)

    Source: `numpy.rot90`.
    """
    x = array_of(m, "rot90")
    first, second = canonical_axes("rot90", tuple(axes), x.aval.ndim, "axes")
    order = list(range(x.aval.ndim))
    order[first], order[second] = second, first
    match k % 4:
        case 0:
            return x
        case 1:
            return lax.transpose(lax.rev(x, (second,)), order)
        case 2:
            return lax.rev(x, (first, second))
        case _:
            return lax.rev(lax.transpose(x, order), (second,))


def roll(a: ArrayLike, shift: int | Sequence[int] | Array, axis: Any = None) -> Array:
    """Moves elements along axes; what leaves at one end comes in at the other.

    Args:
      a: array-like.
      shift: by how much: an int (or an integer array, which may be traced), or one for
        each axis.
      axis: int or sequence of ints; None takes `a` as one axis and restores its shape.

    Returns:
      Array of the type of `a`.

    Raises:
      AxisError: an axis is out of range.
      ArgumentError: the numbers of shifts and axes do not fit.

    Example:
      >>> roll(np.arange(5), 2)
      Array([3, 4, 0, 1, 2], dtype=int32)

    Source: `numpy.roll`.
    """
    x = array_of(a, "roll")
    shift = unwrapped(shift)
    if axis is None:
        if np.ndim(shift) or isinstance(shift, list | tuple):
            shift = sum(cast(Any, shift))
        return reshape(roll(ravel(x), shift, 0), x.shape)
    axes = tuple(axis) if isinstance(axis, tuple | list) else (axis,)
    if isinstance(shift, Array | np.ndarray) and shift.ndim:
        shifts: list[Any] = [shift[i] for i in range(shift.shape[0])]
    else:
        shifts = list(shift) if isinstance(shift, tuple | list) else [shift]
    if len(shifts) == 1:
        shifts = shifts * len(axes)
    elif len(axes) == 1:
        axes = axes * len(shifts)
    if len(shifts) != len(axes):
        raise ArgumentError(f"roll: {len(shifts)} shifts do not fit {len(axes)} axes")
    for d, by in zip(axes, shifts, strict=True):
        axis_ = canonical_axis("roll", d, x.ndim)
        length = x.shape[axis_]
        if not length:
            continue
        if isinstance(by, int | np.integer):
            x = _roll_static(x, int(by) % length, axis_)
        else:
            x = _roll_dynamic(x, by, axis_)
    return x


@library("by", "axis")
def _roll_static(x: Any, by: int, axis: int) -> Any:
    if not by:
        return x
    length = x.aval.shape[axis]
    tail = lax.slice_in_dim(x, length - by, length, axis=axis)
    head = lax.slice_in_dim(x, 0, length - by, axis=axis)
    return lax.concatenate([tail, head], axis)


@library("axis")
def _roll_dynamic(x: Any, by: Any, axis: int) -> Any:
    length = x.aval.shape[axis]
    by = convert(array_of(by, "roll"), dtypes.int32)
    rest = lax.rem(by, length)
    rest = lax.select(lax.lt(rest, 0), lax.add(rest, length), rest)
    # One slice of static length, where two pieces would have computed ones.
    twice = lax.concatenate([x, x], axis)
    return lax.dynamic_slice_in_dim(twice, lax.sub(length, rest), length, axis)
