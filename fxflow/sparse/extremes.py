"""Extremes of sparse arrays and where they lie, and diagonals that are replaced."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes, is_arraylike, typeof
from fxflow.core.docs import shared
from fxflow.core.ir.trace import Tracer
from fxflow.errors import ArgumentError, ShapeError
from fxflow.sparse import values as on_values
from fxflow.sparse.interchange import is_scipy, scipy_parts
from fxflow.sparse.pattern import Pattern

_docs_of_values = shared("""
    Args:
      axis: 0: of each column; 1: of each row; None: of all.
      explicit: whether only entries count; then `axis` must be None.
""")
_docs_of_places = shared("""
    Args:
      axis: 0: of each column, a row; 1: of each row, a column; None: of all, the
        position in the elements row by row.
      explicit: whether only entries count: each row or column must have one.
""")


class Extremes:
    """Methods of `SparseArray` that compare elements."""

    pattern: Pattern
    values: Any

    @_docs_of_values
    def max(self: Any, axis: int | None = None, *, explicit: bool = False) -> Array:
        """Returns the largest elements."""
        found: Array = _extreme(self, "max", axis, explicit)
        return found

    @_docs_of_values
    def min(self: Any, axis: int | None = None, *, explicit: bool = False) -> Array:
        """Returns the smallest elements."""
        found: Array = _extreme(self, "min", axis, explicit)
        return found

    @_docs_of_values
    def nanmax(self: Any, axis: int | None = None, *, explicit: bool = False) -> Array:
        """Returns the largest elements, leaving out nan; nan where all are."""
        found: Array = _without_nan(self, "max", axis, explicit)
        return found

    @_docs_of_values
    def nanmin(self: Any, axis: int | None = None, *, explicit: bool = False) -> Array:
        """Returns the smallest elements, leaving out nan; nan where all are."""
        found: Array = _without_nan(self, "min", axis, explicit)
        return found

    def __eq__(self: Any, other: object) -> Any:
        """Returns where elements equal a number that is not 0, or a dense array's."""
        return _compared(self, other, "equal")

    def __ne__(self: Any, other: object) -> Any:
        """Returns where elements differ: sparse, or dense with a dense array."""
        return _compared(self, other, "not_equal")

    def __lt__(self: Any, other: Any) -> Any:
        """Returns where elements are less: sparse, or dense with a dense array."""
        return _compared(self, other, "less")

    def __le__(self: Any, other: Any) -> Any:
        """Returns where elements are at most a negative number, or a dense array's."""
        return _compared(self, other, "less_equal")

    def __gt__(self: Any, other: Any) -> Any:
        """Returns where elements are greater: sparse, or dense with a dense array."""
        return _compared(self, other, "greater")

    def __ge__(self: Any, other: Any) -> Any:
        """Returns where elements are at least a positive number, or a dense array's."""
        return _compared(self, other, "greater_equal")

    __hash__ = None  # type: ignore[assignment]

    @_docs_of_places
    def argmax(self: Any, axis: int | None = None, *, explicit: bool = False) -> Array:
        """Returns where the first largest elements are."""
        return _place(self, "argmax", axis, explicit)

    @_docs_of_places
    def argmin(self: Any, axis: int | None = None, *, explicit: bool = False) -> Array:
        """Returns where the first smallest elements are."""
        return _place(self, "argmin", axis, explicit)

    def setdiag(self: Any, values: Any, k: int = 0) -> Any:
        """Returns the array with another diagonal; this one stays as it is.

        Args:
          values: a number, or a vector of the first elements; more than fit are left
            out.
          k: which diagonal; positive ones are above the main one.

        Returns:
          An array of the same format, csr for dia and bsr.
        """
        m, n = self.shape
        k = operator.index(k)
        count = min(m + min(k, 0), n - max(k, 0))
        if count <= 0:
            raise ArgumentError(
                f"setdiag: diagonal {k} is outside of {list(self.shape)}"
            )
        given = fnp.asarray(values)
        if typeof(given).ndim > 1:
            raise ShapeError(f"setdiag: values must be a vector, got {typeof(given)}")
        if typeof(given).ndim:
            count = min(count, typeof(given).size)
            given = given[:count]
        given = fnp.broadcast_to(given, (count,)).astype(self.dtype)
        held = self.tocsr()
        row, col = held.coords
        rows = np.arange(count) + max(-k, 0)
        replaced = (col.astype(np.int64) - row == k) & (row < rows[-1:].sum() + 1)
        kept = np.flatnonzero(~replaced)
        both = np.concatenate([row[kept], rows]), np.concatenate([col[kept], rows + k])
        order = np.lexsort(both[::-1])
        pattern = Pattern.of_coords(both[0][order], both[1][order], self.shape)
        joined = fnp.concatenate([held.values[kept], given])[order]
        found = type(self)(pattern, joined)
        return found if self.format in ("dia", "bsr") else found.asformat(self.format)


def axis_of(name: str, axis: Any) -> int | None:
    """Returns an axis of a matrix as 0, 1 or None.

    Args:
      name: of the function, for the message.
      axis: as given.

    Raises:
      ArgumentError: there is no such axis.
    """
    if axis is None:
        return None
    found = operator.index(axis)
    if not -2 <= found < 2:
        raise ArgumentError(f"{name}: axis of a sparse array is 0, 1 or None: {axis!r}")
    return found % 2


def _nonempty(array: Any, name: str, axis: Any) -> int | None:
    if 0 in array.shape:
        raise ShapeError(f"{name}: the array {list(array.shape)} has no elements")
    return axis_of(name, axis)


def _compared(A: Any, other: Any, kind: str) -> Any:
    """Returns a comparison of elements, which must be False where both are 0."""
    if is_scipy(other):
        pattern, values = scipy_parts(other)
        other = type(A)(pattern, values)
    sparse = isinstance(other, type(A))
    if not sparse and not is_arraylike(other):
        return NotImplemented
    compare = getattr(fnp, kind)
    if not sparse and typeof(other).ndim:
        return compare(A.todense(), other)
    if sparse:
        true_of_zeros = kind in ("equal", "less_equal", "greater_equal")
    elif isinstance(other, Tracer):
        raise ArgumentError(
            f"{kind}: a sparse array is compared with a known number, got a traced "
            f"{other.aval}: whether zeros count depends on it"
        )
    else:
        true_of_zeros = bool(getattr(np, kind)(0, np.asarray(other)))
    if true_of_zeros:
        zeros = "both are 0" if sparse else f"elements are 0, beside {other!r}"
        raise ArgumentError(
            f"{kind}: the result is True where {zeros}, so that it is dense: use "
            "todense(), or the opposite comparison"
        )
    return A._merged(other, kind) if sparse else A._map(lambda v: compare(v, other))


def _extreme(array: Any, name: str, axis: Any, explicit: bool) -> Any:
    axis = _nonempty(array, name, axis)
    held = array._single()
    if explicit:
        if axis is not None:
            raise ArgumentError(f"{name}: explicit=True needs axis=None")
        return getattr(fnp, name)(held.values)
    return on_values.extreme(held.pattern, held.values, axis, name)


def _without_nan(array: Any, name: str, axis: Any, explicit: bool) -> Any:
    axis = _nonempty(array, f"nan{name}", axis)
    held = array.tocsr()
    values = held.values
    if not dtypes.is_inexact(typeof(values).dtype):
        return _extreme(held, name, axis, explicit)
    lost = values != values
    # What is left out takes the least value; a line of nothing else is nan.
    least = -np.inf if name == "max" else np.inf
    found = _extreme(held._with(fnp.where(lost, least, values)), name, axis, explicit)
    counts = held._with(lost.astype(dtypes.int32)).sum(None if explicit else axis)
    m, n = array.shape
    length = held.nnz if explicit else m * n if axis is None else (m, n)[axis]
    return fnp.where(counts == length, fnp.nan, found)


def _place(array: Any, name: str, axis: Any, explicit: bool) -> Array:
    axis = _nonempty(array, name, axis)
    m, n = array.shape
    held = array.transpose().tocsr() if axis == 0 else array.tocsr()
    row, col = (x.astype(np.int64) for x in held.coords)
    count, length = (n, m) if axis == 0 else (m, n)
    if axis is None:
        row, col, count, length = 0 * row, row * n + col, 1, m * n
    if length >= 2**31:
        raise ArgumentError(
            f"{name}: positions in {list(array.shape)} do not fit int32: give an axis"
        )
    filled = np.bincount(row, minlength=count)
    if explicit and not filled.all():
        raise ArgumentError(f"{name}: explicit=True needs an entry in each row, column")
    values = held.values
    at = fnp.asarray(row.astype(np.int32))
    largest = name == "argmax"
    top = on_values.segment_extreme(values, at, count, "max" if largest else "min")
    lost = values != values
    # nan comes first, as in NumPy.
    some = _counted(lost, at, count) > 0
    best = fnp.where(some[at], lost, values == top[at])
    none = np.iinfo(np.int32).max
    places = fnp.where(best, fnp.asarray(col.astype(np.int32)), none)
    first = fnp.full(count, none, dtypes.int32).at[at].min(places)
    if not explicit:
        zero = fnp.asarray(_first_missing(row, col, filled, length).astype(np.int32))
        missing = fnp.asarray(filled < length)
        nothing = fnp.asarray(filled == 0)
        better = missing & ~some & (nothing | ((top < 0) if largest else (top > 0)))
        alike = missing & ~some & ~nothing & (top == 0)
        first = fnp.where(better, zero, first)
        first = fnp.where(alike, fnp.minimum(zero, first), first)
    return first[0] if axis is None else first


def _counted(flags: Any, at: Any, count: int) -> Any:
    return fnp.zeros(count, dtypes.int32).at[at].add(flags.astype(dtypes.int32))


def _first_missing(
    row: np.ndarray, col: np.ndarray, filled: np.ndarray, length: int
) -> np.ndarray:
    """Returns the first position of each row without an entry; `length` if none."""
    starts = np.concatenate([[0], np.cumsum(filled)])
    # In ascending order, entry i of a row without gaps before it is at position i.
    gap = col != np.arange(len(col)) - starts[row]
    out = filled.astype(np.int64).copy()
    where = np.flatnonzero(gap)[::-1]
    out[row[where]] = where - starts[row[where]]
    return out
