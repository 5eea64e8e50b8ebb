"""Counting, and histograms."""

from __future__ import annotations

import operator
from collections.abc import Sequence, Sized
from typing import Any, cast

import numpy as np

from fxflow import lax
from fxflow.core.arrays import Array, dtypes
from fxflow.core.runtime.library import library
from fxflow.core.sizes import length_of
from fxflow.errors import (
    ArgumentError,
    ConcretizationError,
    DtypeError,
    ShapeError,
)
from fxflow.lax.transfer import laid_out
from fxflow.numpy._operands import (
    ArrayLike,
    array_of,
    convert,
    promote_dtypes,
    promote_inexact,
)
from fxflow.numpy.calculus import diff
from fxflow.numpy.creation import asarray
from fxflow.numpy.index_update import At
from fxflow.numpy.ranges import linspace
from fxflow.numpy.reductions import max, min, sum
from fxflow.numpy.selection import choose_between, clip
from fxflow.numpy.shapes import atleast_2d, ravel, reshape
from fxflow.numpy.sorting import searchsorted


def bincount(
    x: ArrayLike,
    weights: ArrayLike | None = None,
    minlength: int = 0,
    *,
    length: int | None = None,
    out_sharding: Any = None,
) -> Array:
    """Counts how often each integer comes.

    Args:
      x: integer array-like[n]; negative numbers count as 0.
      weights: array-like[n] to add up in place of ones.
      minlength: least length of the result.
      length: length of the result; needed under `jit`. Greater integers are left out.
      out_sharding: a `Sharding`, or a `PartitionSpec` over the current mesh: how the
        result is laid out.

    Returns:
      Array[length]: default integers, or the dtype of the weights.

    Raises:
      ConcretizationError: `x` is traced, and `length` is not given.
      DtypeError: `x` are not integers.
      ShapeError: `x` does not have one axis.
      PlacementError: the result cannot be laid out as `out_sharding` specifies.

    Example:
      >>> bincount(np.array([1, 3, 1]))
      Array([0, 2, 0, 1], dtype=int32)

    Source: `numpy.bincount`.
    """
    array = array_of(x, "bincount")
    if array.aval.ndim != 1:
        raise ShapeError(f"bincount: x must have one axis, got {array.aval}")
    if not (dtypes.is_integer(array.aval.dtype) or dtypes.is_bool(array.aval.dtype)):
        raise DtypeError(f"bincount: x must be integers, got {array.aval}")
    if length is None:
        needed = 0
        if array.aval.size:
            try:
                needed = int(max(array)) + 1
            except ConcretizationError as error:
                raise type(error)(
                    "bincount: the length of the result depends on traced data: give "
                    f"length=. {error}"
                ) from None
        length = needed if needed > minlength else minlength
    out = _bincount(array, weights, length_of(length))
    return out if out_sharding is None else laid_out("bincount", out, out_sharding)


@library("length")
def _bincount(x: Any, weights: Any, length: int) -> Array:
    # As in JAX, negative numbers count as 0.
    bins = clip(convert(x, dtypes.int32), 0)
    if weights is None:
        start = lax.full((length,), 0, dtypes.default_int())
        return At(start)[bins].add(1, mode="drop")
    scale = array_of(weights, "bincount")
    if scale.aval.shape != x.aval.shape:
        raise ShapeError(
            f"bincount: weights {scale.aval} must have the shape of x, {x.aval}"
        )
    start = lax.full((length,), 0, scale.aval.dtype)
    return At(start)[bins].add(scale, mode="drop")


# -- histograms ------------------------------------------------------------------------


def histogram_bin_edges(
    a: ArrayLike,
    bins: int | str | Sequence[Any] | Array = 10,
    range: Sequence[Any] | None = None,
    weights: Any = None,
) -> Array:
    """Returns the edges of the bins of a histogram.

    Args:
      a: real array-like.
      bins: number of bins of one width, edges, or the name of one of NumPy's rules
        ("auto", "fd", "scott", …), for which the data must be concrete.
      range: pair: lower and upper end; None: that of the data.
      weights: used only by NumPy's rules.

    Returns:
      Float array[bins + 1].

    Raises:
      ArgumentError: `bins` or `range` is of another form.
      ShapeError: the edges do not have one axis.

    Special cases:
      No data: from 0 to 1. Equal data: half a unit around.

    Example:
      >>> histogram_bin_edges(np.array([0.0, 4.0]), 2)
      Array([0., 2., 4.], dtype=float32)

    Source: `numpy.histogram_bin_edges`.
    """
    (data,) = promote_inexact("histogram", array_of(a, "histogram"))
    if isinstance(bins, str):
        weighted = None if weights is None else np.asarray(weights)
        edges = np.histogram_bin_edges(
            np.asarray(data), bins, cast(Any, range), weighted
        )
        return asarray(edges, data.aval.dtype)
    if not isinstance(bins, int | np.integer):
        given = asarray(bins)
        if given.ndim:
            if given.ndim != 1:
                raise ShapeError(
                    f"histogram: edges must have one axis, got {given.aval}"
                )
            return given
        bins = operator.index(given)
    if bins < 1:
        raise ArgumentError(f"histogram: there must be at least one bin, got {bins}")
    if range is not None and (not isinstance(range, Sized) or len(range) != 2):
        raise ArgumentError(f"histogram: range must be a pair, got {range!r}")
    return _edges(data, int(bins), None if range is None else tuple(range))


@library("bins")
def _edges(data: Any, bins: int, range: Any) -> Array:
    dtype = data.aval.dtype
    if range is not None:
        low, high = (convert(array_of(r, "histogram"), dtype) for r in range)
    elif not data.aval.size:
        low, high = lax.full((), 0, dtype), lax.full((), 1, dtype)
    else:
        low, high = min(data), max(data)
    same = low == high
    # As NumPy: one value alone is in the middle of bins of total length 1.
    low = choose_between(same, low - 0.5, low)
    high = choose_between(same, high + 0.5, high)
    return linspace(low, high, bins + 1, dtype=dtype)


def _cells(value: Any, edges: Any) -> Any:
    """Returns the bin of each value, from 1; outside, 0 or the number of edges."""
    value, edges = promote_dtypes("histogram", value, edges)
    n = edges.aval.shape[0]
    index = searchsorted(edges, value, side="right")
    # The last bin includes its right edge.
    return choose_between(value == edges[n - 1], lax.full_like(index, n - 1), index)


def histogram(
    a: ArrayLike,
    bins: int | str | Sequence[Any] | Array = 10,
    range: Sequence[Any] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, Array]:
    """Counts data in bins.

    Args:
      a: real array-like.
      bins: see `histogram_bin_edges`.
      range: pair: lower and upper end; None: that of the data.
      weights: array-like of the shape of `a` to add up in place of ones.
      density: whether to divide so that the integral is 1.

    Returns:
      Array[bins], of floats (integers, if the data is), and the edges, [bins + 1].

    Raises:
      ShapeError: the weights have the wrong shape.
      ArgumentError: `bins` or `range` is of no known form.

    Example:
      >>> histogram(np.array([1.0, 2.0, 2.5]), np.array([0.0, 2.0, 4.0]))[0]
      Array([1., 2.], dtype=float32)

    Source: `numpy.histogram`.
    """
    edges = histogram_bin_edges(a, bins, range, weights)
    return _histogram(a, edges, weights, bool(density))


@library("density")
def _histogram(a: Any, edges: Any, weights: Any, density: bool) -> tuple[Array, Array]:
    data = array_of(a, "histogram")
    if weights is None:
        scale = lax.full_like(data, 1)
        if dtypes.is_bool(scale.aval.dtype):
            scale = convert(scale, dtypes.default_int())
    else:
        _, scale = promote_dtypes("histogram", data, weights)
        if data.aval.shape != scale.aval.shape:
            raise ShapeError(
                f"histogram: weights {scale.aval} must have the shape of the data, "
                f"{data.aval}"
            )
    n = edges.aval.shape[0]
    if not n:
        return lax.full((0,), 0, scale.aval.dtype), edges
    counts = lax.full((n,), 0, scale.aval.dtype)
    # Index 0 takes what lies below the first edge; what lies above the last is dropped.
    counts = At(counts)[ravel(_cells(data, edges))].add(ravel(scale), mode="drop")[1:]
    if density:
        counts = counts / diff(edges) / sum(counts)
    return counts, edges


def histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    bins: int | str | Sequence[Any] | Array = 10,
    range: Sequence[Any] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, Array, Array]:
    """Counts pairs in cells of two axes.

    Args:
      x: real array-like[n].
      y: real array-like[n].
      bins: number of bins or edges, the same for both; or a pair of them.
      range: pair of pairs: lower and upper ends; None: that of the data.
      weights: array-like[n] to add up in place of ones.
      density: whether to divide so that the integral is 1.

    Returns:
      Array[bins of x, bins of y], the edges of x, and those of y.

    Raises:
      ShapeError: the shapes are incompatible.
      ArgumentError: `bins` or `range` is of no known form.

    Example:
      >>> x = np.array([0.0, 1.0, 1.0])
      >>> histogram2d(x, x, 2)[0]
      Array([[1., 0.],
             [0., 2.]], dtype=float32)

    Source: `numpy.histogram2d`.
    """
    x, y = array_of(x, "histogram2d"), array_of(y, "histogram2d")
    if x.aval.shape != y.aval.shape or x.aval.ndim != 1:
        raise ShapeError(
            f"histogram2d: x and y must have one axis of one length, got {x.aval} and "
            f"{y.aval}"
        )
    if not isinstance(bins, int | np.integer) and len(bins) != 2:
        edges = asarray(bins)
        bins = [edges, edges]
    counts, (first, second) = histogramdd([x, y], bins, range, weights, density)
    return counts, first, second


def histogramdd(
    sample: Any,
    bins: int | str | Sequence[Any] | Array = 10,
    range: Sequence[Any] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, list[Array]]:
    """Counts points in cells of several axes.

    Args:
      sample: real array-like[n, d], or a sequence of d arrays[n].
      bins: number of bins for all axes, or a sequence of numbers or edges, one for
        each.
      range: sequence of pairs (or None): lower and upper ends, one for each axis.
      weights: array-like[n] to add up in place of ones.
      density: whether to divide so that the integral is 1.

    Returns:
      Array with an axis of the bins of each, and the list of edges.

    Raises:
      ShapeError: the shapes are incompatible.
      ArgumentError: `bins` or `range` is of no known form.

    Example:
      >>> histogramdd(np.array([[0.0, 0.0], [1.0, 1.0]]), 2)[0]
      Array([[1., 0.],
             [0., 1.]], dtype=float32)

    Source: `numpy.histogramdd`.
    """
    if isinstance(sample, list | tuple):
        columns = [ravel(array_of(s, "histogramdd")) for s in sample]
    else:
        array = atleast_2d(array_of(sample, "histogramdd"))
        if array_of(sample, "histogramdd").aval.ndim == 1:
            array = array.T
        if array.ndim != 2:
            raise ShapeError(
                f"histogramdd: sample must have two axes, got {array.aval}"
            )
        columns = [array[:, i] for i in np.arange(array.shape[1]).tolist()]
    count = len(columns)
    if not count:
        raise ArgumentError("histogramdd: sample must have one column at least")
    each: Sequence[Any] = bins if isinstance(bins, list | tuple) else [bins] * count
    if not isinstance(bins, list | tuple | int | np.integer):
        each = list(asarray(bins))
    ends = [None] * count if range is None else list(range)
    if len(each) != count or len(ends) != count:
        raise ArgumentError(
            f"histogramdd: bins and range must be given for {count} axes, got "
            f"{len(each)} and {len(ends)}"
        )
    edges = [
        histogram_bin_edges(column, b, r)
        for column, b, r in zip(columns, each, ends, strict=True)
    ]
    return _histogramdd(columns, edges, weights, bool(density)), edges


@library("density")
def _histogramdd(columns: Any, edges: Any, weights: Any, density: bool) -> Any:
    shape = tuple(e.aval.shape[0] for e in edges)
    cells = tuple(_cells(c, e) for c, e in zip(columns, edges, strict=True))
    (example,) = promote_inexact("histogramdd", columns[0])
    scale = lax.full_like(example, 1)
    if weights is not None:
        scale = array_of(weights, "histogramdd")
        if scale.aval.shape != example.aval.shape:
            raise ShapeError(
                f"histogramdd: weights {scale.aval} must be as long as the sample, "
                f"{example.aval}"
            )
    counts = lax.full(shape, 0, scale.aval.dtype)
    counts = At(counts)[cells].add(scale, mode="drop")
    counts = counts[(slice(1, None),) * len(shape)]
    if density:
        counts = counts / sum(counts)
        for i, e in enumerate(edges):
            wide = [1] * len(shape)
            wide[i] = -1
            counts = counts / reshape(diff(e), tuple(wide))
    return counts
