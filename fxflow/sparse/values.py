"""Operations on the values of sparse arrays, whose patterns are static.

These are functions of arrays and patterns: `fxflow.sparse.array` puts them behind one
class. A pattern's indices enter a program as operands, never as constants in its text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.core.runtime.library import library
from fxflow.errors import ShapeError
from fxflow.lax.sparse_products import SampledProduct, SparseProduct, add_at, take
from fxflow.sparse.pattern import Merge, Pattern, Regrouping, device_array


def index_of(pattern: Pattern, key: Any, make: Callable[[], np.ndarray]) -> Any:
    """Returns indices that are derived from a pattern, as an operand of programs.

    Args:
      pattern: where the array is remembered.
      key: under which.
      make: derives the int32 array.
    """
    return pattern.remembered(("array", key), lambda: device_array(make()))


def flat(pattern: Pattern, values: Any) -> Any:
    """Returns the values as a vector."""
    if typeof(values).shape != pattern.values_shape:
        raise ShapeError(
            f"this is a batch of sparse arrays ({typeof(values)} for one pattern of "
            f"{list(pattern.values_shape)} values): use it under vmap"
        )
    if len(pattern.values_shape) == 1:
        return values
    return fnp.reshape(values, (pattern.size,))


@library("pattern")
def entry_values(pattern: Pattern, values: Any) -> Any:
    """Returns the value of each entry, in the order of `pattern.coords`."""
    values = flat(pattern, values)
    place = pattern.coords.at
    if place is None:
        return values
    return take(values, index_of(pattern, "at", lambda: place), 0)


@library("pattern", "way")
def regroup(pattern: Pattern, values: Any, way: Regrouping) -> Any:
    """Returns the values of another pattern.

    Args:
      pattern: of the values.
      values: of the array.
      way: how the other ones are made.
    """
    values = flat(pattern, values)
    new = way.pattern
    if way.source is not None:
        values = take(values, way.source, 0)
    if way.target is not None:
        values = _sums(values, way.target, new.size)
    return fnp.reshape(values, new.values_shape)


def product(pattern: Pattern, values: Any, x: Any) -> Any:
    """Returns the product of a sparse matrix and a dense array.

    Args:
      pattern: of the matrix, (m, n).
      values: of the matrix.
      x: (n,) or (..., n, k).
    """
    values, x = _common(flat(pattern, values), x)
    shape = typeof(x).shape
    m, n = pattern.shape
    axis = -2 if len(shape) > 1 else 0
    if not shape or shape[axis] != n:
        raise ShapeError(
            f"matmul: axis 1 of a sparse array of shape [{m},{n}] and axis {axis} of "
            f"{typeof(x)} are multiplied and summed over, but their lengths differ"
        )
    if len(shape) > 2:
        x = fnp.reshape(fnp.moveaxis(x, -2, 0), (n, -1))
    was_bool = x.dtype == dtypes.bool_
    if was_bool:
        values, x = values.astype(dtypes.int32), x.astype(dtypes.int32)
    out = SparseProduct.bind(values, x, *pattern.operands, layout=pattern.layout)
    if was_bool:
        out = out != 0
    if len(shape) > 2:
        return fnp.moveaxis(fnp.reshape(out, (m, *shape[:-2], shape[-1])), 0, -2)
    return out


@library("pattern")
def sampled(pattern: Pattern, x: Any, y: Any) -> Any:
    """Returns the values of x yᵀ at the entries of a pattern.

    Args:
      pattern: of the result, (m, n).
      x: (m,) or (m, k).
      y: (n,) or (n, k).
    """
    x, y = _common(x, y)
    if typeof(x).ndim == 1:
        x, y = fnp.expand_dims(x, 1), fnp.expand_dims(y, 1)
    out = SampledProduct.bind(x, y, *pattern.operands, layout=pattern.layout)
    return fnp.reshape(out, pattern.values_shape)


@library("pattern")
def dense(pattern: Pattern, values: Any) -> Any:
    """Returns the dense array."""
    m, n = pattern.shape
    values = entry_values(pattern, values)
    keys = pattern.keys
    if m * n > 2**31 - 1:
        raise ShapeError(f"todense: [{m},{n}] has too many elements for a dense array")
    at = index_of(pattern, "keys", lambda: keys.astype(np.int32))
    out = _sums(values, at, m * n)
    return fnp.reshape(out, (m, n))


@library("pattern")
def sample_dense(pattern: Pattern, x: Any) -> Any:
    """Returns the values of a dense array at the entries of a pattern.

    Args:
      pattern: of the result.
      x: broadcasts to the shape of the pattern.
    """
    m, n = pattern.shape
    row, col = rows_of(pattern), columns_of(pattern)
    if typeof(x).ndim == 0:
        found = fnp.broadcast_to(x, (len(pattern.coords.row),))
    else:
        x = fnp.atleast_2d(x)
        a, b = typeof(x).shape
        if a not in (1, m) or b not in (1, n) or typeof(x).ndim > 2:
            raise ShapeError(
                f"{typeof(x)} does not broadcast to a sparse array of shape [{m},{n}]"
            )
        if a == 1 or b == 1:
            index = col if a == 1 else row
            line = fnp.reshape(x, (-1,))
            if a == b == 1:
                found = fnp.broadcast_to(line[0], typeof(index).shape)
            else:
                found = take(line, index, 0)
        else:
            found = x.at[row, col].get(mode="promise_in_bounds")
    return _placed(pattern, found)


def rows_of(pattern: Pattern) -> Any:
    """Returns the rows of the entries as an operand of programs."""
    return index_of(pattern, "row", lambda: pattern.coords.row)


def columns_of(pattern: Pattern) -> Any:
    """Returns the columns of the entries as an operand of programs."""
    return index_of(pattern, "col", lambda: pattern.coords.col)


def _placed(pattern: Pattern, found: Any) -> Any:
    """Returns the values of an array whose entries have these."""
    place = pattern.coords.at
    if place is not None:
        at = index_of(pattern, "at", lambda: place)
        found = add_at(lax.full((pattern.size,), 0, found.dtype), at, found, 0)
    return fnp.reshape(found, pattern.values_shape)


@library("pattern", "axis")
def total(pattern: Pattern, values: Any, axis: int | None) -> Any:
    """Returns sums: of all entries, of each column (axis 0) or each row (1)."""
    values = entry_values(pattern, values)
    kind = fnp.sum(values[:0]).dtype
    if axis is None:
        return fnp.sum(values)
    if axis == 1:
        values = values.astype(kind)
        return _sums(values, rows_of(pattern), pattern.shape[0])
    return _sums(values.astype(kind), columns_of(pattern), pattern.shape[1])


def _sums(values: Any, index: Any, count: int) -> Any:
    if values.dtype == dtypes.bool_:
        return _sums(values.astype(dtypes.int32), index, count) != 0
    return add_at(lax.full((count,), 0, values.dtype), index, values, 0)


@library("pattern", "axis", "name")
def extreme(pattern: Pattern, values: Any, axis: int | None, name: str) -> Any:
    """Returns maxima or minima, in which elements without an entry are 0.

    Args:
      pattern: without duplicates.
      values: of the array.
      axis: 0, 1 or None.
      name: "max" or "min".
    """
    values = entry_values(pattern, values)
    m, n = pattern.shape
    if axis is None:
        top = getattr(fnp, name)(values) if typeof(values).size else values.sum()
        if typeof(values).size < m * n and typeof(values).size:
            top = getattr(fnp, name + "imum")(top, lax.full((), 0, values.dtype))
        return top
    row, col, _ = pattern.coords
    index, count, length = (col, n, m) if axis == 0 else (row, m, n)
    held = np.bincount(index, minlength=count)
    out = lax.full((count,), 0, values.dtype)
    at = columns_of(pattern) if axis == 0 else rows_of(pattern)
    if not typeof(values).size:
        return out
    # Lines without a gap have no zero.
    full = np.asarray(held == length)
    found = segment_extreme(values, at, count, name)
    both = getattr(fnp, name + "imum")(found, out)
    return fnp.where(full, found, fnp.where(np.asarray(held == 0), out, both))


def segment_extreme(values: Any, at: Any, count: int, name: str) -> Any:
    """Returns the largest or smallest values of each segment.

    Args:
      values: array[n].
      at: the segment of each, int32[n].
      count: the number of segments.
      name: "max" or "min".

    Returns:
      array[count]; what is not beyond any value of the dtype for an empty segment.
    """
    largest = name == "max"
    dtype = typeof(values).dtype
    if dtypes.is_inexact(dtype):
        start: Any = -np.inf if largest else np.inf
    elif dtypes.is_bool(dtype):
        start = not largest
    else:
        start = dtypes.iinfo(dtype).min if largest else dtypes.iinfo(dtype).max
    return getattr(lax.full((count,), start, dtype).at[at], name)(values)


@library("left", "right", "way", "kind")
def merged(left: Pattern, right: Pattern, x: Any, y: Any, way: Merge, kind: str) -> Any:
    """Returns the values of an elementwise function of two arrays.

    Args:
      left: canonical pattern of one.
      right: of the other.
      x: values of the one.
      y: values of the other.
      way: which entries the result has.
      kind: "add", "subtract", "multiply", "maximum" or "minimum".
    """
    x, y = _common(flat(left, x), flat(right, y))
    zero = lax.full((1,), 0, x.dtype)
    found = [
        values if at is None else take(fnp.concatenate([values, zero]), at, 0)
        for values, at in ((x, way.left), (y, way.right))
    ]
    return getattr(fnp, kind)(*found)


def _common(x: Any, y: Any) -> tuple[Any, Any]:
    """Returns two operands of their common dtype."""
    if isinstance(x, Array) and isinstance(y, Array) and x.dtype == y.dtype:
        return x, y
    dtype = fnp.result_type(x, y)
    return fnp.asarray(x, dtype), fnp.asarray(y, dtype)
