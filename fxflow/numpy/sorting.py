"""Sorting, and searching in what is sorted."""

from __future__ import annotations

from typing import Any

from fxflow import lax
from fxflow.core.arrays import Array, dtypes
from fxflow.core.docs import shared
from fxflow.core.ir.arith import repeated
from fxflow.core.runtime.library import library
from fxflow.core.sizes import is_at_least
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.lax.axes import canonical_axis
from fxflow.lax.ordered_bits import sorts_before
from fxflow.numpy._operands import (
    ArrayLike,
    DTypeLike,
    array_of,
    convert,
    promote_dtypes,
)
from fxflow.numpy.comparisons import less
from fxflow.numpy.index_functions import take
from fxflow.numpy.number_kinds import isnan
from fxflow.numpy.reductions import sum
from fxflow.numpy.selection import choose_between

# Up to this many comparisons, comparing each with each is faster than a loop.
_COMPARE_ALL = 1 << 14


def _prepared(name: str, a: Any, axis: Any, kind: Any, order: Any) -> tuple[Any, int]:
    if kind is not None:
        raise ArgumentError(
            f"{name}: kind= has no meaning, there is one algorithm; see stable="
        )
    if order is not None:
        raise ArgumentError(
            f"{name}: order= is for structured arrays, which do not exist"
        )
    array = array_of(a, name)
    if axis is None:
        return lax.reshape(array, (array.aval.size,)), 0
    return array, canonical_axis(name, axis, array.aval.ndim)


_sort_docs = shared("""
    Args:
      a: array-like[...].
      axis: the axis; None flattens the array first.
      kind: not supported; there is one algorithm.
      order: not supported; it is for structured arrays.
      stable: whether equal elements keep their order.
      descending: whether the greatest comes first.

    Raises:
      AxisError: the axis is out of range.
      ArgumentError: `kind` or `order` is given.

    Source: `numpy.{name}`.
""")


@library("axis", "kind", "order", "stable", "descending")
@_sort_docs
def sort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
) -> Array:
    """Sorts along an axis.

    Returns:
      Array of the shape of `a`.

    Special cases:
      nan comes last (first, if descending). Complex numbers are ordered by real, then
      imaginary part.

    Example:
      >>> sort(np.array([3, 1, 2]))
      Array([1, 2, 3], dtype=int32)
    """
    array, axis = _prepared("sort", a, axis, kind, order)
    out = lax.sort(array, axis, stable)
    return lax.rev(out, (axis,)) if descending else out


@library("axis", "kind", "order", "stable", "descending", "dtype")
@_sort_docs
def argsort(
    a: ArrayLike,
    axis: int | None = -1,
    *,
    kind: None = None,
    order: None = None,
    stable: bool = True,
    descending: bool = False,
    dtype: DTypeLike | None = None,
) -> Array:
    """Returns the indices that sort an array along an axis.

    Args:
      dtype: dtype of the indices; None is the default integer.

    Returns:
      Integer array of the shape of `a`.

    Example:
      >>> argsort(np.array([3, 1, 2]))
      Array([1, 2, 0], dtype=int32)
    """
    array, axis = _prepared("argsort", a, axis, kind, order)
    result = dtypes.default_int() if dtype is None else dtypes.dtype(dtype)
    if not descending:
        return convert(lax.argsort(array, axis, stable), result)
    # Reversed before and after, so that equal elements keep their order.
    index = lax.argsort(lax.rev(array, (axis,)), axis, stable)
    last = array.aval.shape[axis] - 1
    return convert(last - lax.rev(index, (axis,)), result)


@library()
def sort_complex(a: ArrayLike) -> Array:
    """Sorts along the last axis and makes the result complex.

    Args:
      a: array-like[..., n].

    Returns:
      Complex array of the shape of `a`, ordered by real, then imaginary part.

    Raises:
      ArgumentError: `a` is not an array.

    Example:
      >>> sort_complex(np.array([2, 1]))
      Array([1.+0.j, 2.+0.j], dtype=complex64)

    Source: `numpy.sort_complex`.
    """
    array = array_of(a, "sort_complex")
    dtype = dtypes.to_complex(dtypes.to_inexact(array.aval.dtype))
    out: Array = lax.sort(convert(array, dtype), array.aval.ndim - 1)
    return out


def lexsort(keys: Any, axis: int = -1) -> Array:
    """Returns the indices that sort by several keys, the last one first.

    Args:
      keys: sequence of array-likes[...] of one shape, or an array of them.
      axis: the axis.

    Returns:
      Default integer array of the shape of a key.

    Raises:
      ArgumentError: there are no keys.
      ShapeError: the keys have different shapes.
      AxisError: the axis is out of range.

    Example:
      >>> lexsort((np.array([2, 1, 3]), np.array([1, 1, 0])))
      Array([2, 1, 0], dtype=int32)

    Source: `numpy.lexsort`.
    """
    given = (
        list(keys)
        if isinstance(keys, list | tuple)
        else list(array_of(keys, "lexsort"))
    )
    if not given:
        raise ArgumentError("lexsort: takes at least one key")
    return _lexsort(axis, *given)


@library("axis")
def _lexsort(axis: int, *keys: Any) -> Array:
    arrays = [array_of(k, "lexsort") for k in keys]
    shape = arrays[0].aval.shape
    for a in arrays:
        if a.aval.shape != shape:
            raise ShapeError(
                f"lexsort: keys must have one shape, got {arrays[0].aval} and {a.aval}"
            )
    if not shape:
        return lax.full((), 0, dtypes.default_int())
    axis = canonical_axis("lexsort", axis, len(shape))
    numbers = lax.broadcasted_iota(dtypes.default_int(), shape, axis)
    order: Array = lax.sort((*reversed(arrays), numbers), axis, True, len(arrays))[-1]
    return order


_partition_docs = shared("""
    Args:
      a: array-like[...].
      kth: index of the element that comes to its place; negative from the end.
      axis: the axis.

    Raises:
      AxisError: the axis or `kth` is out of range.

    Source: `numpy.{name}`.
""")


@library("kth", "axis")
@_partition_docs
def partition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """Moves smaller elements before the k-th smallest, greater ones behind.

    Returns:
      Array of the shape of `a`; it is sorted, which is more than is asked for.

    Example:
      >>> partition(np.array([3, 1, 2]), 1)[1]
      Array(2, dtype=int32)
    """
    array = array_of(a, "partition")
    axis = canonical_axis("partition", axis, array.aval.ndim)
    canonical_axis("partition", kth, array.aval.shape[axis], "kth")
    # XLA has no selection, and a sorted array is partitioned at every k.
    out: Array = lax.sort(array, axis)
    return out


@library("kth", "axis")
@_partition_docs
def argpartition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """Returns the indices that `partition` an array.

    Returns:
      Default integer array of the shape of `a`.

    Example:
      >>> argpartition(np.array([3, 1, 2]), 1)[1]
      Array(2, dtype=int32)
    """
    array = array_of(a, "argpartition")
    axis = canonical_axis("argpartition", axis, array.aval.ndim)
    canonical_axis("argpartition", kth, array.aval.shape[axis], "kth")
    return convert(lax.argsort(array, axis), dtypes.default_int())


# -- searching -------------------------------------------------------------------------

_METHODS = ("default", "compare_all", "scan", "scan_unrolled", "sort")


def _before(x: Any, y: Any) -> Any:
    """Returns whether `x` is sorted before `y`; nan comes last."""
    if dtypes.is_floating(x.aval.dtype):
        return sorts_before(x, y)
    if not dtypes.is_inexact(x.aval.dtype):
        return less(x, y)
    return less(x, y) | (isnan(y) & ~isnan(x))


@library("side", "method")
def searchsorted(
    a: ArrayLike,
    v: ArrayLike,
    side: str = "left",
    sorter: ArrayLike | None = None,
    *,
    method: str = "default",
) -> Array:
    """Returns where values would have to be put into a sorted array.

    Args:
      a: array-like[n], ascending.
      v: array-like[...].
      side: "left" of equal elements, or "right".
      sorter: integer array-like[n] that sorts `a`.
      method: how: "compare_all" with each element, "scan" (binary search in a loop),
        "scan_unrolled", "sort" both together, or "default", chosen by the sizes.

    Returns:
      Default integer array of the shape of `v`: i with a[i-1] < v ≤ a[i] on the left,
      a[i-1] ≤ v < a[i] on the right.

    Raises:
      ShapeError: `a` does not have one axis.
      ArgumentError: unknown side or method.

    Special cases:
      nan comes after all numbers.

    Example:
      >>> searchsorted(np.array([1, 2, 2, 3]), np.array([2, 9]))
      Array([1, 4], dtype=int32)

    Source: `numpy.searchsorted`.
    """
    if side not in ("left", "right"):
        raise ArgumentError(
            f'searchsorted: side must be "left" or "right", got {side!r}'
        )
    if method not in _METHODS:
        raise ArgumentError(
            f"searchsorted: method must be one of {', '.join(_METHODS)}, got {method!r}"
        )
    table, values = promote_dtypes("searchsorted", a, v)
    if table.aval.ndim != 1:
        raise ShapeError(f"searchsorted: a must have one axis, got {table.aval}")
    if sorter is not None:
        order = array_of(sorter, "searchsorted")
        if order.aval.ndim != 1:
            raise ShapeError(
                f"searchsorted: sorter must have one axis, got {order.aval}"
            )
        table = take(table, order, mode="clip")
    n, result = table.aval.shape[0], dtypes.default_int()
    if not n or not values.aval.size:
        return lax.full(values.aval.shape, 0, result)
    if method == "default":
        small = is_at_least(_COMPARE_ALL, n * values.aval.size)
        method = "compare_all" if small else "scan"
    if method == "compare_all":
        indices = _by_comparing(table, values, side)
    elif method == "sort":
        indices = _by_sorting(table, values, side)
    else:
        indices = _by_halving(table, values, side, unroll=method == "scan_unrolled")
    return convert(indices, result)


def _goes_behind(item: Any, value: Any, side: str) -> Any:
    return _before(item, value) if side == "left" else ~_before(value, item)


def _by_comparing(table: Any, values: Any, side: str) -> Any:
    shape = (*values.aval.shape, table.aval.shape[0])
    value = lax.broadcast_in_dim(values, shape, tuple(range(values.aval.ndim)))
    item = lax.broadcast_in_dim(table, shape, (values.aval.ndim,))
    return sum(_goes_behind(item, value, side), axis=-1)


def _by_halving(table: Any, values: Any, side: str, *, unroll: bool) -> Any:
    n = table.aval.shape[0]
    low = lax.full_like(values, 0, dtypes.int32)
    high = lax.full_like(values, n, dtypes.int32)

    def halve(_: Any, bounds: Any) -> Any:
        low, high = bounds
        middle = low + (high - low) // 2
        item = take(table, middle, mode="clip")
        behind = _goes_behind(item, values, side) & (low < high)
        return (
            choose_between(behind, middle + 1, low),
            choose_between(behind, high, middle),
        )

    # More steps than needed change nothing.
    steps = n.bit_length() if isinstance(n, int) else 31
    if unroll:
        for i in range(steps):
            low, high = halve(i, (low, high))
        return low
    return lax.fori_loop(0, steps, halve, (low, high))[0]


def _by_sorting(table: Any, values: Any, side: str) -> Any:
    n, m = table.aval.shape[0], values.aval.size
    flat = lax.reshape(values, (m,))
    # The sort is stable: of equal elements those of the first part come first.
    parts = [flat, table] if side == "left" else [table, flat]
    start = 0 if side == "left" else n
    order = lax.argsort(lax.concatenate(parts, 0))
    # Sorting the order gives each element's rank.
    rank = lax.argsort(order)
    mine = lax.slice_in_dim(rank, start, start + m)
    # Rank among all less rank among the values: how many of the table come before.
    among = lax.argsort(lax.argsort(flat))
    return lax.reshape(mine - among, values.aval.shape)


@library("right", "method")
def digitize(
    x: ArrayLike, bins: ArrayLike, right: bool = False, *, method: str = "default"
) -> Array:
    """Returns in which bin each value lies.

    Args:
      x: real array-like[...].
      bins: array-like[n], ascending or descending edges.
      right: whether a bin includes its right edge rather than its left.
      method: see `searchsorted`.

    Returns:
      Default integer array of the shape of `x`, from 0 (before all edges) to n.

    Raises:
      ShapeError: `bins` does not have one axis.
      DtypeError: `x` is complex.

    Example:
      >>> digitize(np.array([0.5, 2.5]), np.array([1.0, 2.0]))
      Array([0, 2], dtype=int32)

    Source: `numpy.digitize`.
    """
    value, edges = promote_dtypes("digitize", x, bins)
    if dtypes.is_complex(value.aval.dtype):
        raise DtypeError(f"digitize: complex numbers have no order, got {value.aval}")
    if edges.aval.ndim != 1:
        raise ShapeError(f"digitize: bins must have one axis, got {edges.aval}")
    n = edges.aval.shape[0]
    if not n:
        return lax.full(value.aval.shape, 0, dtypes.default_int())
    side = "left" if right else "right"
    up = searchsorted(edges, value, side, method=method)
    down = n - searchsorted(lax.rev(edges, (0,)), value, side, method=method)
    ascending = lax.index_in_dim(edges, 0, 0, False) <= lax.index_in_dim(
        edges, n - 1, 0, False
    )
    return choose_between(repeated(ascending, up.aval.shape), up, down)
