"""Inserting and deleting elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow import lax
from fxflow.core.arrays import Array, dtypes, unwrapped
from fxflow.core.ir.arith import repeated
from fxflow.core.ir.trace import Tracer
from fxflow.core.sizes import is_symbolic
from fxflow.errors import (
    ArgumentError,
    ConcretizationError,
    DtypeError,
    OutOfRangeError,
    ShapeError,
)
from fxflow.lax.axes import canonical_axes, canonical_axis
from fxflow.numpy._operands import array_of, convert
from fxflow.numpy.axis_order import moveaxis
from fxflow.numpy.concatenation import concatenate
from fxflow.numpy.creation import asarray
from fxflow.numpy.index_functions import take
from fxflow.numpy.selection import choose_between
from fxflow.numpy.shapes import ravel, reshape


def _static_indices(name: str, obj: Any, length: int, end: int) -> Any:
    """Returns indices along an axis as NumPy integers, negative ones wrapped.

    Args:
      name: of the function, for messages.
      obj: slice, int, or sequence of ints or bools; concrete.
      length: length of the axis.
      end: one past the largest index that is in bounds.
    """
    if isinstance(obj, slice):
        return (
            np.arange(length)[obj] if end == length else np.arange(*obj.indices(length))
        )
    if isinstance(obj, Tracer):
        raise ConcretizationError(
            f"{name}: indices must be known when tracing, but {obj.aval} is traced. "
            f"{obj.origin()}"
        )
    indices = np.asarray(obj)
    if indices.dtype == np.bool_ and indices.ndim:
        if indices.shape != (length,):
            raise OutOfRangeError(
                f"{name}: a boolean mask of shape {indices.shape} does not fit an axis "
                "of "
                f"length {length}"
            )
        return np.flatnonzero(indices)
    if not indices.size:
        indices = indices.astype(np.int64)
    if indices.dtype.kind not in "iu":
        raise DtypeError(f"{name}: indices must be integers, got {obj!r}")
    bad = (indices < -length) | (indices >= end)
    if bad.any():
        raise OutOfRangeError(
            f"{name}: index {np.atleast_1d(indices)[bad].flat[0]} is out of range for "
            f"an axis of length {length}"
        )
    return np.where(indices < 0, indices + length, indices)


def _around(name: str, x: Any, obj: Any, axis: int) -> tuple[Any, Any]:
    """Returns what is before one index of an axis of symbolic length, and behind it.

    Args:
      name: of the function, for messages.
      x: the array.
      obj: the index.
      axis: of that length.
    """
    length = x.shape[axis]
    if not isinstance(obj, int | np.integer):
        raise ConcretizationError(
            f"{name}: along an axis of symbolic length ({length}) one integer is "
            f"taken, got {obj!r}"
        )
    index: Any = obj + length if obj < 0 else obj
    if not 0 <= index < length:
        raise OutOfRangeError(
            f"{name}: index {obj} is out of range for an axis of length {length}"
        )
    return (
        lax.slice_in_dim(x, 0, index, axis=axis),
        lax.slice_in_dim(x, index + 1, length, axis=axis),
    )


def delete(
    arr: Any, obj: Any, axis: int | None = None, *, assume_unique_indices: bool = False
) -> Array:
    """Leaves out slices along an axis.

    Args:
      arr: array-like.
      obj: which: slice, int, or sequence of ints or bools.
      axis: the axis; None flattens `arr` first.
      assume_unique_indices: a promise that no index comes twice; then `obj` may be
        traced.

    Returns:
      Array.

    Raises:
      OutOfRangeError: (an IndexError) an index is out of bounds.
      ConcretizationError: `obj` is traced without the promise.

    Example:
      >>> delete(np.array([[1, 2, 3], [4, 5, 6]]), 1, axis=1)
      Array([[1, 3],
             [4, 6]], dtype=int32)

    Source: `numpy.delete`.
    """
    x = array_of(asarray(arr) if isinstance(arr, list | tuple) else arr, "delete")
    obj = unwrapped(obj)
    if axis is None:
        x, axis = ravel(x), 0
    axis = canonical_axis("delete", axis, x.ndim)
    length = x.shape[axis]
    if isinstance(obj, Tracer) and (assume_unique_indices or not obj.ndim):
        if not dtypes.is_integer(obj.dtype):
            raise DtypeError(f"delete: indices must be integers, got {obj.aval}")
        gone = ravel(obj)
        gone = choose_between(gone < 0, gone + length, gone)
        kept = length - gone.size
        # The i-th index kept is i plus the number of deleted ones at or before it.
        order = lax.sub(lax.sort(gone), lax.iota(gone.dtype, gone.size))
        ranks = lax.broadcasted_iota(gone.dtype, (kept, gone.size), 0)
        before = lax.ge(ranks, lax.broadcast_in_dim(order, (kept, gone.size), (1,)))
        moved = lax.reduce_sum(lax.convert_element_type(before, gone.dtype), (1,))
        return take(x, lax.add(lax.iota(gone.dtype, kept), moved), axis, mode="clip")
    if is_symbolic((length,)):
        return concatenate(_around("delete", x, obj, axis), axis)
    indices = _static_indices("delete", obj, length, length)
    keep = np.ones(length, np.bool_)
    keep[indices] = False
    return take(x, np.flatnonzero(keep).astype(np.int32), axis, mode="clip")


def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Array:
    """Inserts values before given indices along an axis.

    Args:
      arr: array-like.
      obj: which indices: slice, int, or sequence of ints or bools; concrete.
      values: array-like that broadcasts to what is inserted.
      axis: the axis; None flattens `arr` first.

    Returns:
      Array of the dtype of `arr`.

    Raises:
      OutOfRangeError: (an IndexError) an index is out of bounds.
      ShapeError: the values have incompatible shapes.

    Example:
      >>> insert(np.array([1, 2, 5]), 2, np.array([3, 4]))
      Array([1, 2, 3, 4, 5], dtype=int32)

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
    indices = _static_indices("insert", unwrapped(obj), length, length + 1)
    new = convert(new, x.dtype, x.aval.weak_type)
    if not indices.ndim:
        # At a single index the values' first axis counts the slices, as in NumPy.
        if new.ndim > x.ndim:
            raise ShapeError(f"insert: values {new.aval} do not fit {x.aval}")
        new = reshape(new, (1,) * (x.ndim - new.ndim) + new.shape)
        new = moveaxis(new, 0, axis)
        indices = np.full(new.shape[axis], indices)
    count = len(indices)
    order = np.argsort(indices, kind="stable")
    slots = indices.copy()
    # What is inserted before moves the later ones; equal indices keep their order.
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

    Example:
      >>> trim_zeros(np.array([0, 0, 1, 2, 0]))
      Array([1, 2], dtype=int32)

    Source: `numpy.trim_zeros`.
    """
    x = asarray(filt)
    sides = trim.lower()
    if sides not in ("f", "b", "fb", "bf"):
        raise ArgumentError(f"trim_zeros: trim must be 'f', 'b' or 'fb', got {trim!r}")
    axes = canonical_axes("trim_zeros", axis, x.ndim)
    if not x.ndim:
        return x  # there is no end to cut off
    indices = np.asarray(x).nonzero()
    index: list[slice] = [slice(None)] * x.ndim
    for d in axes:
        if not len(indices[d]):
            index[d] = slice(0, 0)
            continue
        start = int(indices[d].min()) if "f" in sides else None
        stop = int(indices[d].max()) + 1 if "b" in sides else None
        index[d] = slice(start, stop)
    return x[tuple(index)]
