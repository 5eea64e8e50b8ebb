"""Rearranging elements: repeating, reversing, rolling, inserting, deleting."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxflow import lax
from fxflow.core import dtypes
from fxflow.core.array import Array
from fxflow.core.convert import as_array
from fxflow.core.eager import library
from fxflow.core.errors import (
    ArgumentError,
    ConcretizationError,
    DtypeError,
    ShapeError,
)
from fxflow.core.trace import Tracer
from fxflow.numpy._operands import array_of, constant, convert, repeated
from fxflow.numpy.creation import as_shape, asarray
from fxflow.numpy.index_functions import take
from fxflow.numpy.index_update import At
from fxflow.numpy.indexing import OutOfRangeError
from fxflow.numpy.joining import concatenate
from fxflow.numpy.selection import choose_between
from fxflow.numpy.shapes import (
    canonical_axes,
    canonical_axis,
    expand_dims,
    moveaxis,
    ravel,
    reshape,
)
from fxflow.transforms.vmap import vmap

# -- repeating -------------------------------------------------------------------------


def tile(A: Any, reps: Any) -> Array:
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
    return _tile(A, as_shape("tile", reps))


@library("reps")
def _tile(A: Any, reps: tuple[int, ...]) -> Any:
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
) -> Array:
    """Repeats each element along an axis.

    Args:
      a: array-like.
      repeats: int, or integers for each element along the axis.
      axis: along which; None takes `a` as one axis.
      total_repeat_length: length of the result, needed if `repeats` is traced: the
        result is cut off there, or its last element goes on.

    Returns:
      Array.

    Raises:
      ConcretizationError: `repeats` is traced and the length is not given.
      ShapeError: `repeats` does not fit the axis, or is negative.

    Example:
      >>> repeat(np.array([1, 2]), np.array([2, 1]))
      Array([1, 1, 2], dtype=int32)

    Source: `numpy.repeat`.
    """
    x = array_of(asarray(a) if isinstance(a, list | tuple) else a, "repeat")
    if axis is None:
        x, axis = ravel(x), 0
    axis = canonical_axis("repeat", axis, x.ndim)
    length = x.shape[axis]
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
    if isinstance(counts, Tracer):
        total = operator.index(total_repeat_length)
        counts = repeated(convert(counts, dtypes.int32), (length,))
        ends = lax.cumsum(counts, 0)
        # Each slot counts how many elements end before it.
        marks = lax.full((total + 1,), 0, dtypes.int32)
        slots = lax.min(lax.max(ends, 0), total)
        marks = At(marks)[slots].add(1)
        places = lax.cumsum(marks, 0)[:total]
    else:
        every = np.repeat(
            np.arange(length, dtype=np.int32), np.broadcast_to(counts, (length,))
        )
        if total_repeat_length is not None:
            total = operator.index(total_repeat_length)
            more = max(0, total - len(every))
            every = np.concatenate([every, np.full(more, max(length - 1, 0), np.int32)])
            every = every[:total]
        places = as_array(every)
    return take(x, places, axis, mode="clip")


@library("times", "axis")
def _each_repeated(x: Any, times: int, axis: int) -> Any:
    shape = x.aval.shape
    long = (*shape[: axis + 1], times, *shape[axis + 1 :])
    dims = tuple(d + (d > axis) for d in range(len(shape)))
    wide = lax.broadcast_in_dim(x, long, dims)
    return lax.reshape(wide, (*shape[:axis], shape[axis] * times, *shape[axis + 1 :]))


def resize(a: Any, new_shape: Any) -> Array:
    """Gives an array another shape, repeating or leaving out elements.

    Args:
      a: array-like.
      new_shape: int or sequence of ints.

    Returns:
      Array of that shape.

    Raises:
      ShapeError: a length is negative.

    Source: `numpy.resize`.
    """
    shape = as_shape("resize", new_shape)
    flat = ravel(array_of(a, "resize"))
    total = math.prod(shape)
    if not flat.size or not total:
        return lax.full(shape, 0, flat.dtype)
    times = -(-total // flat.size)
    return reshape(tile(flat, times)[:total], shape)


# -- reversing and rolling -------------------------------------------------------------


def flip(m: Any, axis: Any = None) -> Array:
    """Reverses the order of the elements along axes.

    Args:
      m: array-like.
      axis: int or sequence of ints; None means all.

    Returns:
      Array of the type of `m`.

    Raises:
      AxisError: there is no such axis.

    Source: `numpy.flip`.
    """
    return _flip(m, tuple(axis) if isinstance(axis, list) else axis)


@library("axis")
def _flip(m: Any, axis: Any) -> Any:
    x = array_of(m, "flip")
    return lax.rev(x, canonical_axes("flip", axis, x.aval.ndim))


def flipud(m: Any) -> Array:
    """Reverses the order of the rows.

    Args:
      m: array-like of one axis or more.

    Returns:
      Array of the type of `m`.

    Raises:
      AxisError: `m` is 0-d.

    Source: `numpy.flipud`.
    """
    return flip(m, 0)


def fliplr(m: Any) -> Array:
    """Reverses the order of the columns.

    Args:
      m: array-like of two axes or more.

    Returns:
      Array of the type of `m`.

    Raises:
      AxisError: `m` has fewer axes.

    Source: `numpy.fliplr`.
    """
    return flip(m, 1)


@library("k", "axes")
def rot90(m: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """Turns an array by multiples of 90 degrees, from the first axis to the second.

    Args:
      m: array-like of two axes or more.
      k: how often.
      axes: the two axes.

    Returns:
      Array.

    Raises:
      AxisError: there is no such axis, or the two are one.

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


def roll(a: Any, shift: Any, axis: Any = None) -> Array:
    """Moves elements along axes; what leaves at one end comes in at the other.

    Args:
      a: array-like.
      shift: by how much: an int (or an integer array, which may be traced), or one for
        each axis.
      axis: int or sequence of ints; None takes `a` as one axis and restores its shape.

    Returns:
      Array of the type of `a`.

    Raises:
      AxisError: there is no such axis.
      ArgumentError: the numbers of shifts and axes do not fit.

    Example:
      >>> roll(np.arange(5), 2)
      Array([3, 4, 0, 1, 2], dtype=int32)

    Source: `numpy.roll`.
    """
    x = array_of(a, "roll")
    if axis is None:
        if np.ndim(shift) or isinstance(shift, list | tuple):
            shift = sum(shift)
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
    twice = lax.concatenate([x, x], axis)
    return lax.dynamic_slice_in_dim(twice, lax.sub(length, rest), length, axis)


# -- inserting and deleting ------------------------------------------------------------


def _static_places(name: str, obj: Any, length: int, end: int) -> Any:
    """Returns places along an axis as NumPy integers, negative ones counted back.

    Args:
      name: of the function, for messages.
      obj: slice, int, or sequence of ints or bools; concrete.
      length: of the axis.
      end: behind the last place that is allowed.
    """
    if isinstance(obj, slice):
        return (
            np.arange(length)[obj] if end == length else np.arange(*obj.indices(length))
        )
    if isinstance(obj, Tracer):
        raise ConcretizationError(
            f"{name}: places must be known when tracing, but {obj.aval} is traced. "
            f"{obj.origin()}"
        )
    places = np.asarray(obj)
    if places.dtype == np.bool_ and places.ndim:
        if places.shape != (length,):
            raise OutOfRangeError(
                f"{name}: a boolean mask of shape {places.shape} does not fit an axis "
                "of "
                f"length {length}"
            )
        return np.flatnonzero(places)
    if not places.size:
        places = places.astype(np.int64)
    if places.dtype.kind not in "iu":
        raise DtypeError(f"{name}: places must be integers, got {obj!r}")
    bad = (places < -length) | (places >= end)
    if bad.any():
        raise OutOfRangeError(
            f"{name}: place {places[bad].flat[0] if places.ndim else places} is out of "
            f"range for an axis of length {length}"
        )
    return np.where(places < 0, places + length, places)


def delete(
    arr: Any, obj: Any, axis: int | None = None, *, assume_unique_indices: bool = False
) -> Array:
    """Leaves out slices along an axis.

    Args:
      arr: array-like.
      obj: which: slice, int, or sequence of ints or bools.
      axis: along which; None takes `arr` as one axis.
      assume_unique_indices: a promise that no index comes twice; then `obj` may be
        traced.

    Returns:
      Array.

    Raises:
      OutOfRangeError: (an IndexError) there is no such place.
      ConcretizationError: `obj` is traced without the promise.

    Source: `numpy.delete`.
    """
    x = array_of(asarray(arr) if isinstance(arr, list | tuple) else arr, "delete")
    if axis is None:
        x, axis = ravel(x), 0
    axis = canonical_axis("delete", axis, x.ndim)
    length = x.shape[axis]
    if isinstance(obj, Tracer) and (assume_unique_indices or not obj.ndim):
        if not dtypes.is_integer(obj.dtype):
            raise DtypeError(f"delete: places must be integers, got {obj.aval}")
        gone = ravel(obj)
        gone = choose_between(gone < 0, gone + length, gone)
        kept = length - gone.size
        # The i-th kept place is i plus the deleted ones at or before it.
        order = lax.sub(lax.sort(gone), lax.iota(gone.dtype, gone.size))
        ranks = lax.broadcasted_iota(gone.dtype, (kept, gone.size), 0)
        before = lax.ge(ranks, lax.broadcast_in_dim(order, (kept, gone.size), (1,)))
        moved = lax.reduce_sum(lax.convert_element_type(before, gone.dtype), (1,))
        return take(x, lax.add(lax.iota(gone.dtype, kept), moved), axis, mode="clip")
    places = _static_places("delete", obj, length, length)
    keep = np.ones(length, np.bool_)
    keep[places] = False
    return take(x, np.flatnonzero(keep).astype(np.int32), axis, mode="clip")


def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Array:
    """Puts values before places along an axis.

    Args:
      arr: array-like.
      obj: which places: slice, int, or sequence of ints or bools; concrete.
      values: array-like that broadcasts to what is inserted.
      axis: along which; None takes `arr` as one axis.

    Returns:
      Array of the dtype of `arr`.

    Raises:
      OutOfRangeError: (an IndexError) there is no such place.
      ShapeError: the values do not fit.

    Source: `numpy.insert`.
    """
    x = array_of(asarray(arr) if isinstance(arr, list | tuple) else arr, "insert")
    new = array_of(
        asarray(values) if isinstance(values, list | tuple) else values, "insert"
    )
    if axis is None:
        x, axis = ravel(x), 0
    axis = canonical_axis("insert", axis, x.ndim)
    length = x.shape[axis]
    places = _static_places("insert", obj, length, length + 1)
    new = convert(new, x.dtype)
    if not places.ndim:
        # At one place the values' first axis counts the slices, as in NumPy.
        if new.ndim > x.ndim:
            raise ShapeError(f"insert: values {new.aval} do not fit {x.aval}")
        new = reshape(new, (1,) * (x.ndim - new.ndim) + new.shape)
        new = moveaxis(new, 0, axis)
        places = np.full(new.shape[axis], places)
    count = len(places)
    order = np.argsort(places, kind="stable")
    slots = places.copy()
    slots[order] += np.arange(count)
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    fits = new.ndim <= len(shape) and all(
        n in (1, m) for n, m in zip(new.shape[::-1], shape[::-1], strict=False)
    )
    if not fits:
        raise ShapeError(
            f"insert: values {new.aval} do not broadcast to {shape}, the shape of "
            "what is "
            "inserted"
        )
    total = length + count
    source = np.empty(total, np.int32)
    old = np.ones(total, np.bool_)
    old[slots] = False
    source[old] = np.arange(length)
    source[slots] = length + np.arange(count)
    joined = concatenate([x, repeated(new, shape)], axis)
    return take(joined, source, axis, mode="clip")


def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Array:
    """Cuts zeros off the ends.

    Args:
      filt: concrete array-like.
      trim: "f" for the front, "b" for the back, "fb" for both.
      axis: int or sequence of ints: along which; None means all.

    Returns:
      Array.

    Raises:
      ConcretizationError: `filt` is traced.
      ArgumentError: unknown `trim`.

    Source: `numpy.trim_zeros`.
    """
    x = asarray(filt)
    sides = trim.lower()
    if sides not in ("f", "b", "fb", "bf"):
        raise ArgumentError(f"trim_zeros: trim must be 'f', 'b' or 'fb', got {trim!r}")
    axes = canonical_axes("trim_zeros", axis, x.ndim)
    places = np.asarray(x).nonzero()
    index: list[slice] = [slice(None)] * x.ndim
    for d in axes:
        if not len(places[d]):
            index[d] = slice(0, 0)
            continue
        start = int(places[d].min()) if "f" in sides else None
        stop = int(places[d].max()) + 1 if "b" in sides else None
        index[d] = slice(start, stop)
    return x[tuple(index)]


# -- numbering -------------------------------------------------------------------------


def unravel_index(indices: Any, shape: Any) -> tuple[Array, ...]:
    """Turns numbers of elements, counted in order, into indices along each axis.

    Args:
      indices: array-like of integers; those out of range are clipped.
      shape: int or sequence of ints.

    Returns:
      For each axis an array of the shape of `indices`.

    Raises:
      DtypeError: `indices` are not integers.

    Source: `numpy.unravel_index`.
    """
    return _unravel_index(  # type: ignore[no-any-return]
        asarray(indices) if isinstance(indices, list | tuple) else indices,
        as_shape("unravel_index", shape),
    )


@library("shape")
def _unravel_index(indices: Any, shape: tuple[int, ...]) -> Any:
    x = array_of(indices, "unravel_index")
    if not dtypes.is_integer(x.aval.dtype):
        raise DtypeError(f"unravel_index: takes integers, got {x.aval}")
    total = math.prod(shape)
    if dtypes.is_signed(x.aval.dtype):
        x = lax.select(lax.lt(x, 0), lax.add(x, total), x)
    x = lax.clamp(0, x, max(total - 1, 0))
    out = []
    for length in shape[::-1]:
        out.append(lax.rem(x, max(length, 1)))
        x = lax.div(x, max(length, 1))
    return tuple(out[::-1])


def ravel_multi_index(
    multi_index: Any,
    dims: Any,
    mode: str | tuple[str, ...] = "raise",
    order: str = "C",
    *,
    dtype: Any = None,
) -> Array:
    """Turns indices along each axis into numbers of elements, counted in order.

    Args:
      multi_index: sequence of array-likes of integers, one for each axis.
      dims: lengths of the axes.
      mode: what indices out of range mean: "raise" (an error; they must be concrete),
        "wrap" or "clip"; or one of these for each axis.
      order: "C" (last axis fastest) or "F" (first axis fastest).
      dtype: of the result (default: that of the indices).

    Returns:
      Array of the shape to which the indices broadcast.

    Raises:
      ArgumentError: an index is out of range, or unknown mode or order.
      DtypeError: an index is not of integers.

    Source: `numpy.ravel_multi_index`.
    """
    shape = as_shape("ravel_multi_index", dims)
    given = [asarray(i) for i in multi_index]
    modes = (mode,) * len(shape) if isinstance(mode, str) else tuple(mode)
    if len(given) != len(shape) or len(modes) != len(shape):
        raise ArgumentError(
            f"ravel_multi_index: {len(given)} index arrays and {len(modes)} modes do "
            "not "
            f"fit {len(shape)} axes"
        )
    if order not in ("C", "F"):
        raise ArgumentError(
            f"ravel_multi_index: order must be 'C' or 'F', got {order!r}"
        )
    out: Any = None
    for d in range(len(shape)):
        i, length = given[d], shape[d]
        if not dtypes.is_integer(i.dtype):
            raise DtypeError(f"ravel_multi_index: takes integers, got {i.aval}")
        if modes[d] == "raise":
            values = np.asarray(i)
            if values.size and (values.min() < 0 or values.max() >= length):
                raise ArgumentError(
                    f"ravel_multi_index: an index is out of range for axis {d} of "
                    "length "
                    f"{length}: pass mode='wrap' or mode='clip'"
                )
        elif modes[d] == "clip":
            i = lax.clamp(0, i, length - 1)
        elif modes[d] == "wrap":
            i = i % length
        else:
            raise ArgumentError(
                "ravel_multi_index: mode must be 'raise', 'wrap' or 'clip', got "
                f"{modes[d]!r}"
            )
        rest = shape[d + 1 :] if order == "C" else shape[:d]
        term = i * math.prod(rest)
        out = term if out is None else out + term
    if out is None:
        out = constant(0, dtypes.default_int())
    return out if dtype is None else convert(out, dtypes.dtype(dtype))


# -- functions along axes --------------------------------------------------------------


def apply_along_axis(
    func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any
) -> Array:
    """Applies a function to each vector along an axis.

    Args:
      func1d: of a vector (and what follows); it is vectorised.
      axis: along which.
      arr: array-like.
      *args: passed to the function.
      **kwargs: passed to the function.

    Returns:
      Array in which what the function returns takes the place of the axis.

    Raises:
      AxisError: there is no such axis.

    Source: `numpy.apply_along_axis`.
    """
    x = asarray(arr)
    axis = canonical_axis("apply_along_axis", axis, x.ndim)
    mapped: Callable[..., Any] = lambda vector: func1d(vector, *args, **kwargs)
    # Axes behind are mapped to the end, those in front to the front.
    for d in range(1, x.ndim - axis):
        mapped = vmap(mapped, in_axes=d, out_axes=-1)
    for _ in range(axis):
        mapped = vmap(mapped, in_axes=0, out_axes=0)
    return mapped(x)  # type: ignore[no-any-return]


def apply_over_axes(
    func: Callable[[Any, int], Any], a: Any, axes: int | Sequence[int]
) -> Array:
    """Applies a function that reduces an axis, for several axes in turn.

    Args:
      func: of an array and an axis; if the axis disappears, it comes back as length 1.
      a: array-like.
      axes: int or sequence of ints.

    Returns:
      Array with as many axes as `a`.

    Raises:
      ShapeError: the function returns another number of axes.

    Source: `numpy.apply_over_axes`.
    """
    x = asarray(a)
    for d in canonical_axes("apply_over_axes", axes, x.ndim, "axes"):
        out = func(x, d)
        if out.ndim == x.ndim - 1:
            out = expand_dims(out, d)
        if out.ndim != x.ndim:
            raise ShapeError(
                f"apply_over_axes: the function made {out.aval} of {x.aval}; it must "
                "keep "
                "the axis, or drop that axis alone"
            )
        x = out
    return x
