"""Arrays as sets: distinct elements, and what several arrays have in common.

How many elements come out depends on the data, so under `jit` the number is to be given
(`size`); without it the functions look at the data, and need concrete arrays.
"""

from __future__ import annotations

import functools
import math
import operator
from typing import Any, NamedTuple

from fxflow import lax
from fxflow.core.arrays import Array, dtypes
from fxflow.core.docs import shared
from fxflow.core.ir.arith import constant
from fxflow.core.ir.trace import Tracer
from fxflow.core.runtime.library import library
from fxflow.core.sizes import is_at_least
from fxflow.errors import ArgumentError, ConcretizationError
from fxflow.lax.axes import canonical_axis, integer
from fxflow.lax.ordered_bits import sorts_before
from fxflow.numpy._operands import ArrayLike, array_of, convert, promote_dtypes, size_of
from fxflow.numpy.axis_order import moveaxis
from fxflow.numpy.concatenation import concatenate
from fxflow.numpy.index_functions import take
from fxflow.numpy.number_kinds import isnan
from fxflow.numpy.reductions import any, sum
from fxflow.numpy.searching import nonzero
from fxflow.numpy.selection import choose_between
from fxflow.numpy.shapes import ravel, reshape
from fxflow.numpy.sorting import searchsorted


class UniqueAll(NamedTuple):
    """What `unique_all` returns."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """What `unique_counts` returns."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """What `unique_inverse` returns."""

    values: Array
    inverse_indices: Array


# -- distinct elements -----------------------------------------------------------------


@library("equal_nan")
def _grouped(rows: Any, equal_nan: bool) -> Any:
    """Sorts rows and finds the first of each kind.

    Args:
      rows: array[n] or [n, k].
      equal_nan: whether nan equals nan.

    Returns:
      The indices that sort the rows, and whether each sorted row differs from the one
      before.
    """
    n = rows.aval.shape[0]
    numbers = lax.iota(dtypes.int32, n)
    if rows.aval.ndim == 1:
        columns = [rows]
    else:
        count = rows.aval.shape[1]
        columns = [lax.index_in_dim(rows, i, 1, False) for i in range(count)]
    if not columns or not n:
        # Rows of nothing are all equal.
        return numbers, lax.eq(numbers, lax.full_like(numbers, 0))
    parts = [part for column in columns for part in _parts(column)]
    # Lexicographic over all columns. The row numbers ride along and become the
    # permutation; the sort is stable, so each group begins with its lowest index.
    *ordered, perm = lax.sort((*parts, numbers), 0, True, len(parts))
    differs = lax.full((max(n - 1, 0),), False, dtypes.bool_)
    for part in ordered:
        differs = differs | _differ(
            lax.slice_in_dim(part, 1, n), lax.slice_in_dim(part, 0, n - 1)
        )
    if not equal_nan and dtypes.is_inexact(rows.aval.dtype):
        has_nan = functools.reduce(operator.or_, map(isnan, columns))
        differs = differs | lax.slice_in_dim(take(has_nan, perm, mode="clip"), 1, n)
    first = lax.full((1,), True, dtypes.bool_)
    return perm, lax.concatenate([first, differs], 0)


def _parts(column: Any) -> list[Any]:
    """Returns real numbers by which elements are compared, one after the other."""
    if not dtypes.is_complex(column.aval.dtype):
        return [column]
    column = _nan_last(column)
    return [lax.real(column), lax.imag(column)]


def _differ(x: Any, y: Any) -> Any:
    """Returns whether real numbers differ; nan is nan."""
    if dtypes.is_floating(x.aval.dtype):
        return sorts_before(x, y) | sorts_before(y, x)
    return x != y


def _nan_last(column: Any) -> Any:
    """Returns complex numbers all of whose nan are one, greater than the others."""
    dtype = column.aval.dtype
    if not dtypes.is_complex(dtype):
        return column
    return choose_between(isnan(column), constant(complex(math.nan, 0), dtype), column)


def _size(name: str, mask: Any, size: Any) -> int:
    if size is not None:
        return integer(name, "size", size)
    count = sum(mask)
    if isinstance(count, Tracer):
        raise ConcretizationError(
            f"{name}: the number of results depends on the values, and they are "
            f"traced. {count.origin()} Pass size=..., which pads or cuts the results."
        )
    return int(count)


def unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: Any = None,
    sorted: bool = True,
) -> Any:
    """Returns the distinct elements, sorted.

    Args:
      ar: array-like.
      return_index: whether to return where each comes first.
      return_inverse: whether to return which of them each element is.
      return_counts: whether to return how often each comes.
      axis: the axis along which slices are compared; None compares elements.
      equal_nan: whether nan equals nan.
      size: the number to return; needed under `jit`. More are cut off, and fewer filled
        up.
      fill_value: to fill up with; None is the least element.
      sorted: has no effect: they always are.

    Special cases:
      nan comes last; of several that are equal the first stands for all. A complex
      number is nan if one of its parts is. 0.0 and -0.0 are equal.

    Returns:
      Array, or a tuple of it and of integer arrays: indices, inverse (of the shape of
      `ar`, or as long as the axis), counts.

    Raises:
      AxisError: the axis is out of range.
      ConcretizationError: the array is traced, and `size` is not given.

    Example:
      >>> unique(np.array([3, 1, 3]), return_counts=True)
      (Array([1, 3], dtype=int32), Array([1, 2], dtype=int32))

    Source: `numpy.unique`.
    """
    array = array_of(ar, "unique")
    shape = array.aval.shape
    if axis is None:
        rows = ravel(array)
    else:
        axis = canonical_axis("unique", axis, len(shape))
        rows = moveaxis(array, axis, 0)
    n = rows.aval.shape[0]
    flat = rows
    if rows.aval.ndim > 1:
        flat = reshape(rows, (n, size_of(rows.aval.shape[1:])))
    perm, mask = _grouped(flat, equal_nan)
    count = _size("unique", mask, size)
    starts = nonzero(mask, size=count, fill_value=n)[0]
    out = [_values(rows, perm, starts, fill_value)]
    if axis is not None:
        out[0] = moveaxis(out[0], 0, axis)
    if return_index:
        index = take(perm, starts, mode="clip") if n else starts
        if size is not None and n:
            # Filled up like the values: with the least element's index.
            index = choose_between(starts < n, index, perm[0] + 0 * index)
        out.append(convert(index, dtypes.default_int()))
    if return_inverse:
        # Starts of groups counted up to a row: its group's number. Scattering through
        # the permutation undoes the sort.
        kinds = lax.cumsum(convert(mask, dtypes.int32)) - 1
        inverse = lax.full((n,), 0, dtypes.int32)
        inverse = inverse.at[perm].set(kinds) if n else inverse
        inverse = convert(inverse, dtypes.default_int())
        out.append(reshape(inverse, shape) if axis is None else inverse)
    if return_counts:
        ends = concatenate([starts, lax.full((1,), n, starts.aval.dtype)])
        out.append(ends[1:] - starts)
    return out[0] if len(out) == 1 else tuple(out)


def _values(rows: Any, perm: Any, starts: Any, fill_value: Any) -> Array:
    """Returns the rows that begin a group; where there are none, what to fill with."""
    n = rows.aval.shape[0]
    if not n:
        shape = (starts.aval.shape[0], *rows.aval.shape[1:])
        return lax.full(shape, 0 if fill_value is None else fill_value, rows.aval.dtype)
    found = take(rows, take(perm, starts, mode="clip"), axis=0, mode="clip")
    missing = reshape(starts >= n, (-1,) + (1,) * (rows.aval.ndim - 1))
    if fill_value is None:
        fill = take(rows, perm[:1], axis=0, mode="clip")
    else:
        fill = convert(array_of(fill_value, "unique"), rows.aval.dtype)
    return choose_between(missing, fill, found)


_unique_docs = shared("""
    Args:
      x: array-like.
      size: the number to return; needed under `jit`.
      fill_value: to fill up with; None is the least element.

    Raises:
      ConcretizationError: the array is traced, and `size` is not given.

    Source: the array API standard.
""")


@_unique_docs
def unique_all(
    x: ArrayLike, /, *, size: int | None = None, fill_value: Any = None
) -> UniqueAll:
    """Returns the distinct elements, their first indices, the inverse, the counts.

    Returns:
      Named tuple `(values, indices, inverse_indices, counts)`.

    Example:
      >>> unique_all(np.array([3, 1, 3])).counts
      Array([1, 2], dtype=int32)
    """
    found = unique(
        x, True, True, True, equal_nan=False, size=size, fill_value=fill_value
    )
    return UniqueAll(*found)


@_unique_docs
def unique_counts(
    x: ArrayLike, /, *, size: int | None = None, fill_value: Any = None
) -> UniqueCounts:
    """Returns the distinct elements and how often they come.

    Returns:
      Named tuple `(values, counts)`.

    Example:
      >>> unique_counts(np.array([3, 1, 3])).values
      Array([1, 3], dtype=int32)
    """
    found = unique(
        x, return_counts=True, equal_nan=False, size=size, fill_value=fill_value
    )
    return UniqueCounts(*found)


@_unique_docs
def unique_inverse(
    x: ArrayLike, /, *, size: int | None = None, fill_value: Any = None
) -> UniqueInverse:
    """Returns the distinct elements and which of them each element is.

    Returns:
      Named tuple `(values, inverse_indices)`.

    Example:
      >>> unique_inverse(np.array([3, 1, 3])).inverse_indices
      Array([1, 0, 1], dtype=int32)
    """
    found = unique(
        x, return_inverse=True, equal_nan=False, size=size, fill_value=fill_value
    )
    return UniqueInverse(*found)


@_unique_docs
def unique_values(
    x: ArrayLike, /, *, size: int | None = None, fill_value: Any = None
) -> Array:
    """Returns the distinct elements.

    Returns:
      Array.

    Example:
      >>> unique_values(np.array([3, 1, 3]))
      Array([1, 3], dtype=int32)
    """
    values: Array = unique(x, equal_nan=False, size=size, fill_value=fill_value)
    return values


# -- two sets --------------------------------------------------------------------------


@library("assume_unique", "invert", "method")
def isin(
    element: ArrayLike,
    test_elements: ArrayLike,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    method: str = "auto",
) -> Array:
    """Returns which elements are among others.

    Args:
      element: array-like[...].
      test_elements: array-like.
      assume_unique: has no effect.
      invert: whether to return which are not.
      method: "compare_all", "binary_search", "sort", or "auto".

    Returns:
      bool array of the shape of `element`.

    Raises:
      ArgumentError: unknown method.

    Special cases:
      nan is in nothing.

    Example:
      >>> isin(np.array([1, 2, 3]), np.array([2, 9]))
      Array([False,  True, False], dtype=bool)

    Source: `numpy.isin`.
    """
    ways = {"auto": "default", "binary_search": "scan", "compare_all": "compare_all"}
    ways["sort"] = "sort"
    if method not in ways:
        raise ArgumentError(
            f"isin: method must be one of {', '.join(ways)}, got {method!r}"
        )
    x, others = promote_dtypes("isin", element, test_elements)
    count = others.aval.size
    if not count:
        return lax.full(x.aval.shape, invert, dtypes.bool_)
    ordered = lax.sort(_nan_last(ravel(others)), 0)
    if method == "compare_all" or (method == "auto" and is_at_least(16, count)):
        shape = (*x.aval.shape, count)
        left = lax.broadcast_in_dim(x, shape, tuple(range(x.aval.ndim)))
        right = lax.broadcast_in_dim(ordered, shape, (x.aval.ndim,))
        found = any(left == right, axis=-1)
    else:
        index = searchsorted(ordered, x, method=ways[method])
        found = take(ordered, index, mode="clip") == x
    return ~found if invert else found


def _compressed(
    name: str,
    x: Any,
    mask: Any,
    size: int | None,
    fill_value: Any,
    fill_with_first: bool = True,
) -> tuple[Array, Array]:
    """Returns the elements under a mask, and where they are.

    Without a fill value the first of them fills up, or 0 if there is none.
    """
    n = x.aval.shape[0]
    count = _size(name, mask, size)
    indices = nonzero(mask, size=count, fill_value=n)[0]
    fill = convert(
        array_of(0 if fill_value is None else fill_value, name), x.aval.dtype
    )
    if not n:
        return lax.full((count,), fill, x.aval.dtype), indices
    found = take(x, indices, mode="clip")
    if size is not None:
        if fill_value is None and fill_with_first and count:
            fill = choose_between(indices[0] < n, found[0], fill)
        found = choose_between(indices < n, found, fill)
    return found, indices


def _two(name: str, ar1: Any, ar2: Any) -> list[Any]:
    return [ravel(a) for a in promote_dtypes(name, ar1, ar2)]


_set_docs = shared("""
    Args:
      ar1: array-like.
      ar2: array-like.
      size: the number to return; needed under `jit`.
      assume_unique: has no effect.

    Returns:
      Array with one axis.

    Raises:
      ConcretizationError: an array is traced, and `size` is not given.

    Source: `numpy.{name}`.
""")


@_set_docs
def union1d(
    ar1: ArrayLike, ar2: ArrayLike, *, size: int | None = None, fill_value: Any = None
) -> Array:
    """Returns the elements of two arrays, sorted, each once.

    Args:
      fill_value: to fill up with; None is the least element.

    Example:
      >>> union1d(np.array([3, 1]), np.array([2, 3]))
      Array([1, 2, 3], dtype=int32)
    """
    both = concatenate(_two("union1d", ar1, ar2))
    values: Array = unique(both, size=size, fill_value=fill_value)
    return values


@_set_docs
def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """Returns the elements that two arrays have in common, sorted, each once.

    Args:
      return_indices: whether to return where they come first in each array.
      fill_value: to fill up with; None is the least element of the result, or 0.

    Returns:
      Array with one axis, or a tuple of it and of two integer arrays.

    Special cases:
      nan is in nothing.

    Example:
      >>> intersect1d(np.array([3, 1, 3]), np.array([2, 3]))
      Array([3], dtype=int32)
    """
    x, y = _two("intersect1d", ar1, ar2)
    perm, first = _grouped(x, True)
    ordered = take(x, perm, mode="clip") if x.aval.size else x
    mask = first & isin(ordered, y)
    out, indices = _compressed("intersect1d", ordered, mask, size, fill_value)
    if not return_indices:
        return out
    # Past the end, for what fills up.
    n, m = x.aval.size, y.aval.size
    left = take(
        concatenate([perm, lax.full((1,), n, perm.aval.dtype)]), indices, mode="clip"
    )
    order = lax.argsort(y)
    right = searchsorted(y, out, sorter=order) if m else 0 * indices
    right = take(order, right, mode="clip") if m else right
    right = choose_between(indices < n, convert(right, left.aval.dtype), 0 * left + m)
    return out, left, right


@_set_docs
def setdiff1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Array:
    """Returns the elements of one array that are not in another.

    Args:
      assume_unique: whether `ar1` has each element once; its order is kept then.
      fill_value: to fill up with; None is 0.

    Returns:
      Array of the dtype of `ar1` with one axis, sorted unless `assume_unique`.

    Example:
      >>> setdiff1d(np.array([3, 1, 3]), np.array([1, 2]))
      Array([3], dtype=int32)
    """
    x = ravel(array_of(ar1, "setdiff1d"))
    if assume_unique:
        mask = isin(x, ar2, invert=True)
    else:
        x, first = _ordered(x)
        mask = first & isin(x, ar2, invert=True)
    return _compressed("setdiff1d", x, mask, size, fill_value, False)[0]


def _ordered(x: Any) -> tuple[Any, Any]:
    """Returns elements sorted, and whether each is the first of its kind."""
    perm, first = _grouped(x, True)
    return (take(x, perm, mode="clip") if x.aval.size else x), first


@_set_docs
def setxor1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Array:
    """Returns the elements that are in one of two arrays only, sorted, each once.

    Args:
      fill_value: to fill up with; None is the least element of the result, or 0.

    Special cases:
      nan is in nothing: of each array that has one it is in the result.

    Example:
      >>> setxor1d(np.array([3, 1, 3]), np.array([1, 2]))
      Array([2, 3], dtype=int32)
    """
    x, y = _two("setxor1d", ar1, ar2)
    (x, first_x), (y, first_y) = _ordered(x), _ordered(y)
    both = concatenate([x, y])
    alone = concatenate(
        [first_x & isin(x, y, invert=True), first_y & isin(y, x, invert=True)]
    )
    if both.aval.size:
        perm, _ = _grouped(both, True)
        both = take(both, perm, mode="clip")
        alone = take(alone, perm, mode="clip")
    return _compressed("setxor1d", both, alone, size, fill_value)[0]
