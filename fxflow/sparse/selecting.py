"""Rows, columns and blocks of sparse arrays."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from fxflow.core.ir.trace import Tracer
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.sparse_products import take
from fxflow.sparse.pattern import Pattern, Regrouping, device_array


def positions(index: Any, length: int) -> np.ndarray | int:
    """Returns an index of one axis as positions, or one position.

    Args:
      index: an integer, a slice, or an array of integers or bools, known when tracing.
      length: length of the axis.

    Raises:
      ArgumentError: it is something else.
      IndexError: it is out of bounds.
    """
    if isinstance(index, slice):
        return np.arange(length)[index]
    if isinstance(index, Tracer):
        raise ArgumentError(
            "an index of a sparse array is part of the pattern of the result, which "
            "must be known when tracing: index outside of jit, or multiply by a dense "
            "array"
        )
    found = np.asarray(index)
    if found.dtype == bool:
        if found.shape != (length,):
            raise IndexError(
                f"a mask of shape {list(found.shape)} does not fit an axis of length "
                f"{length} of a sparse array"
            )
        return np.flatnonzero(found)
    if found.dtype.kind not in "iu" and found.size:
        raise ArgumentError(
            "an index of a sparse array must be integers, bools or slices, got "
            f"{index!r}"
        )
    found = found.astype(np.int64)
    if found.size and (found.min() < -length or found.max() >= length):
        raise IndexError(
            f"index {index!r} is out of bounds for an axis of length {length} of a "
            "sparse array"
        )
    found = np.where(found < 0, found + length, found)
    return int(found) if not found.ndim else found


def selection(pattern: Pattern, rows: np.ndarray, cols: np.ndarray) -> Regrouping:
    """Returns the array of some rows and columns, in their order.

    Args:
      pattern: canonical.
      rows: positions.
      cols: positions.
    """
    row, at = _rows(pattern.arrays["indptr"].astype(np.int64), rows)
    col = pattern.arrays["indices"][at]
    # Each column of the array may be chosen several times.
    order = np.argsort(cols, kind="stable")
    starts = np.searchsorted(cols[order], np.arange(pattern.shape[1] + 1))
    which, found = _rows(starts, col)
    row, at, col = row[which], at[which], order[found]
    shape = len(rows), len(cols)
    made = Pattern("coo", shape, (row, col), row.shape)
    way = made.to_csr()
    source = at.astype(np.int32)
    if way.source is not None:
        source = source[np.asarray(way.source)]
    return Regrouping(way.pattern, source)


def _rows(starts: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns for each entry of chosen rows the number of the row, and its position."""
    lengths = np.diff(starts)[rows]
    which = np.repeat(np.arange(len(rows)), lengths)
    begin = np.cumsum(lengths) - lengths
    return which, np.arange(len(which)) - begin[which] + starts[rows[which]]


def lookup(pattern: Pattern, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
    """Returns where the values of elements lie, behind the last if they have none.

    Args:
      pattern: canonical.
      rows: int64, of any shape.
      cols: of the same shape.
    """
    keys = rows.astype(np.int64) * pattern.shape[1] + cols
    own = pattern.keys
    if not len(own):
        return np.zeros(keys.shape, np.int32)
    at = np.minimum(np.searchsorted(own, keys), len(own) - 1)
    return np.where(own[at] == keys, at, len(own)).astype(np.int32)


def reshaped(pattern: Pattern, shape: tuple[Any, ...]) -> Pattern:
    """Returns the coo pattern of the elements, row by row, in another shape.

    Args:
      pattern: coo.
      shape: two numbers; one may be -1.

    Raises:
      ShapeError: there are not as many elements.
    """
    try:
        # Elements of no bytes: it takes no memory.
        empty = np.empty(pattern.shape, [])
        wanted = empty.reshape(tuple(map(operator.index, shape))).shape
    except (TypeError, ValueError):
        wanted = ()
    if len(wanted) != 2:
        raise ShapeError(
            f"reshape: {list(pattern.shape)} does not become {list(shape)!r}, two axes "
            "of as many elements"
        )
    width = max(wanted[1], 1)
    arrays = pattern.keys // width, pattern.keys % width
    return Pattern("coo", wanted, arrays, pattern.values_shape)


def resized(A: Any, shape: Any) -> Any:
    """Returns an array cut, or with rows and columns of zeros at its ends.

    Args:
      A: the array.
      shape: a pair of numbers; blocks that do not fit become csr.

    Raises:
      ShapeError: it is something else.
    """
    try:
        m, n = (operator.index(k) for k in shape)
    except (TypeError, ValueError):
        m = n = -1
    if m < 0 or n < 0:
        raise ShapeError(f"resize: shape must be two numbers, got {shape!r}")
    held = A.tocoo()
    row, col = held.coords
    kept = np.flatnonzero((row < m) & (col < n))
    pattern = Pattern("coo", (m, n), (row[kept], col[kept]), kept.shape)
    found = type(A)(pattern, take(held.values, device_array(kept.astype(np.int32)), 0))
    if A.format != "bsr":
        return found.asformat(A.format)
    r, c = A.blocksize
    return found.tobsr((r, c)) if m % r == n % c == 0 else found.tocsr()
