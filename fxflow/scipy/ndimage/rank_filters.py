"""Filters by rank: the least, the greatest, the median of neighbourhoods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.docs import shared
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError
from fxflow.lax.axes import canonical_axis, integer, natural, number
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.ndimage._neighbourhoods import (
    bits_of,
    neighbourhood,
    ranked,
    real_operand,
    running,
    views,
)
from fxflow.scipy.ndimage.filters import _result

_CHOICES = {"minimum": fnp.minimum, "maximum": fnp.maximum}

_docs = shared("""
    Args:
      input: real array-like[...].
      size: size of the neighbourhood: one or one for each of `axes`.
      axis: the axis.
      footprint: bool array-like, True at the elements of the neighbourhood, in place of
        `size`.
      output: dtype of the result; None: that of `input`.
      mode: how the array is extended beyond its edges, as for `correlate`: one or one
        for each axis.
      cval: a number, for "constant".
      origin: offset of the neighbourhood in elements: one or one for each axis.
      axes: the axes; None is all.

    Returns:
      Array of the shape of `input`.

    Raises:
      ArgumentError: neither a size nor a footprint is given, it has no elements, the
        mode is unknown, or `origin` is beyond the neighbourhood.
      AxisError: an axis is out of range.
      DtypeError: `input` is complex.
      ShapeError: the footprint has the wrong number of axes.

    Special cases:
      The derivative goes to the chosen element; equal ones share it.

    Source: `scipy.ndimage.{name}`.
""")


@library("size", "axis", "output", "mode", "origin", "which")
def _extreme1d(
    input: Any,
    size: int,
    axis: int,
    output: Any,
    mode: str,
    cval: Any,
    origin: int,
    which: str,
) -> Array:
    name = f"{which}_filter1d"
    x = real_operand(name, input)
    axis = canonical_axis(name, axis, x.aval.ndim)
    size = natural(name, "size", size)
    out = running(name, x, size, axis, origin, mode, cval, _CHOICES[which])
    return _result(name, out, output)


@_docs
def minimum_filter1d(
    input: ArrayLike,
    size: int,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: ArrayLike = 0.0,
    origin: int = 0,
) -> Array:
    """Returns the least elements of neighbourhoods along one axis.

    Example:
      >>> minimum_filter1d(np.array([3, 1, 4, 1, 5]), 3)
      Array([1, 1, 1, 1, 1], dtype=int32)
    """
    return _extreme1d(input, size, axis, output, mode, cval, origin, "minimum")


@_docs
def maximum_filter1d(
    input: ArrayLike,
    size: int,
    axis: int = -1,
    output: Any = None,
    mode: str = "reflect",
    cval: ArrayLike = 0.0,
    origin: int = 0,
) -> Array:
    """Returns the greatest elements of neighbourhoods along one axis.

    Example:
      >>> maximum_filter1d(np.array([3, 1, 4, 1, 5]), 3)
      Array([3, 4, 4, 5, 5], dtype=int32)
    """
    return _extreme1d(input, size, axis, output, mode, cval, origin, "maximum")


@library("footprint", "origins", "modes", "output", "which")
def _extreme(
    x: Any, footprint: Any, origins: Any, modes: Any, cval: Any, output: Any, which: str
) -> Array:
    name, choose = f"{which}_filter", _CHOICES[which]
    bits = bits_of(footprint)
    if not bits.all():
        rows = views(name, x, footprint, origins, modes, cval)
        out = ranked(rows, 0 if which == "minimum" else len(rows) - 1)
        return _result(name, out, output)
    for axis, size in enumerate(bits.shape):
        if size > 1:
            how = (origins[axis], modes[axis], cval)
            x = running(name, x, size, axis, *how, choose)
    return _result(name, x, output)


def _of_least_or_greatest(
    which: str,
    input: Any,
    size: Any,
    footprint: Any,
    output: Any,
    mode: Any,
    cval: Any,
    origin: Any,
    axes: Any,
) -> Array:
    name = f"{which}_filter"
    x = real_operand(name, input)
    around = neighbourhood(name, x, axes, size, footprint, origin, mode)
    return _extreme(x, *around, cval, output, which)


@_docs
def minimum_filter(
    input: ArrayLike,
    size: int | Sequence[int] | None = None,
    footprint: Any = None,
    output: Any = None,
    mode: str | Sequence[str] = "reflect",
    cval: ArrayLike = 0.0,
    origin: int | Sequence[int] = 0,
    *,
    axes: Any = None,
) -> Array:
    """Returns the least elements of neighbourhoods.

    Example:
      >>> minimum_filter(np.array([[3, 1], [4, 1]]), 2)
      Array([[3, 1],
             [3, 1]], dtype=int32)
    """
    return _of_least_or_greatest(
        "minimum", input, size, footprint, output, mode, cval, origin, axes
    )


@_docs
def maximum_filter(
    input: ArrayLike,
    size: int | Sequence[int] | None = None,
    footprint: Any = None,
    output: Any = None,
    mode: str | Sequence[str] = "reflect",
    cval: ArrayLike = 0.0,
    origin: int | Sequence[int] = 0,
    *,
    axes: Any = None,
) -> Array:
    """Returns the greatest elements of neighbourhoods.

    Example:
      >>> maximum_filter(np.array([[3, 1], [4, 1]]), 2)
      Array([[3, 3],
             [4, 4]], dtype=int32)
    """
    return _of_least_or_greatest(
        "maximum", input, size, footprint, output, mode, cval, origin, axes
    )


@library("name", "footprint", "origins", "modes", "output", "rank")
def _of_rank(
    name: str,
    x: Any,
    footprint: Any,
    origins: Any,
    modes: Any,
    cval: Any,
    output: Any,
    rank: int,
) -> Array:
    rows = views(name, x, footprint, origins, modes, cval)
    out = ranked(rows, rank) if x.aval.size else x
    return _result(name, out, output)


def _filtered_by_rank(
    name: str,
    input: Any,
    size: Any,
    footprint: Any,
    output: Any,
    mode: Any,
    cval: Any,
    origin: Any,
    axes: Any,
    rank: Any,
) -> Array:
    """Filters by the rank that a function of the number of elements gives."""
    x = real_operand(name, input)
    around = neighbourhood(name, x, axes, size, footprint, origin, mode)
    count = int(bits_of(around[0]).sum())
    return _of_rank(name, x, *around, cval, output, rank(count))


@_docs
def median_filter(
    input: ArrayLike,
    size: int | Sequence[int] | None = None,
    footprint: Any = None,
    output: Any = None,
    mode: str | Sequence[str] = "reflect",
    cval: ArrayLike = 0.0,
    origin: int | Sequence[int] = 0,
    *,
    axes: Any = None,
) -> Array:
    """Returns the medians of neighbourhoods, of an even number the greater one.

    Example:
      >>> median_filter(np.array([3, 1, 4, 1, 5]), 3)
      Array([3, 3, 1, 4, 5], dtype=int32)
    """
    options = (size, footprint, output, mode, cval, origin, axes)
    return _filtered_by_rank("median_filter", input, *options, lambda n: n // 2)


@_docs
def rank_filter(
    input: ArrayLike,
    rank: int,
    size: int | Sequence[int] | None = None,
    footprint: Any = None,
    output: Any = None,
    mode: str | Sequence[str] = "reflect",
    cval: ArrayLike = 0.0,
    origin: int | Sequence[int] = 0,
    *,
    axes: Any = None,
) -> Array:
    """Returns the elements of a rank in neighbourhoods.

    Args:
      rank: 0 is the least element, -1 the greatest one.

    Raises:
      ArgumentError: there are not as many elements, neither a size nor a footprint is
        given, the mode is unknown, or `origin` is beyond the neighbourhood.

    Example:
      >>> rank_filter(np.array([3, 1, 4, 1, 5]), -1, 3)
      Array([3, 4, 4, 5, 5], dtype=int32)
    """
    name = "rank_filter"

    def of(count: int) -> int:
        asked = integer(name, "rank", rank)
        found = asked + count if asked < 0 else asked
        if not 0 <= found < count:
            raise ArgumentError(
                f"{name}: rank must be in {-count} … {count - 1} for {count} elements, "
                f"got {asked}"
            )
        return found

    options = (size, footprint, output, mode, cval, origin, axes)
    return _filtered_by_rank(name, input, *options, of)


@_docs
def percentile_filter(
    input: ArrayLike,
    percentile: float,
    size: int | Sequence[int] | None = None,
    footprint: Any = None,
    output: Any = None,
    mode: str | Sequence[str] = "reflect",
    cval: ArrayLike = 0.0,
    origin: int | Sequence[int] = 0,
    *,
    axes: Any = None,
) -> Array:
    """Returns percentiles of neighbourhoods, each an element.

    Args:
      percentile: 0 is the least element, 100 the greatest; negative ones count from
        100.

    Raises:
      ArgumentError: it is not in -100 … 100, neither a size nor a footprint is given,
        the mode is unknown, or `origin` is beyond the neighbourhood.

    Example:
      >>> percentile_filter(np.array([3, 1, 4, 1, 5]), 20, 3)
      Array([1, 1, 1, 1, 1], dtype=int32)
    """
    name = "percentile_filter"
    share = number(name, "percentile", percentile)
    if not -100 <= share <= 100:
        raise ArgumentError(f"{name}: percentile must be in -100 … 100, got {share}")
    share = share + 100 if share < 0 else share
    options = (size, footprint, output, mode, cval, origin, axes)
    return _filtered_by_rank(
        name, input, *options, lambda n: min(int(float(n) * share / 100), n - 1)
    )
