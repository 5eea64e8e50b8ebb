"""Statistics of one sample: most frequent values, ranks, the error of the mean."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import canonical_axis
from fxflow.numpy._operands import ArrayLike, array_of, promote_inexact
from fxflow.scipy.stats._samples import operands, statistic

_METHODS = ("average", "min", "max", "dense", "ordinal")


class ModeResult(NamedTuple):
    """What `mode` returns.

    Attributes:
      mode: the most frequent values.
      count: how often each occurs.
    """

    mode: Array
    count: Array  # type: ignore[assignment] # a tuple's method


def _require_policy(name: str, policy: str, *known: str) -> None:
    if policy not in known:
        listed = " or ".join(f'"{k}"' for k in known)
        raise ArgumentError(f"{name}: nan_policy must be {listed}, got {policy!r}")


def _along(name: str, a: Any, axis: int | None) -> tuple[Any, int]:
    """Returns an array and the axis, None being that of all elements in one row."""
    x = array_of(a, name)
    if axis is None:
        return fnp.ravel(x), 0
    if not x.aval.ndim:
        x = x[None]
    return x, canonical_axis(name, axis, x.aval.ndim)


@library("axis", "keepdims")
def mode(
    a: ArrayLike,
    axis: int | None = 0,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> ModeResult:
    """Returns the most frequent value along an axis; of several, the least.

    Args:
      a: real array-like[...].
      axis: the axis; None flattens the array first.
      nan_policy: "propagate": nan is a value like others.
      keepdims: whether to keep the reduced axis, with length 1.

    Returns:
      `mode` of the dtype of `a`, and `count`, integers: a named tuple.

    Raises:
      ArgumentError: unknown policy.
      AxisError: an axis is out of range.

    Special cases:
      No elements: nan (0 for integers), 0 times. All nan are one value, the
      greatest.

    Example:
      >>> mode(np.array([3, 1, 3, 1, 2]))
      ModeResult(mode=Array(1, dtype=int32), count=Array(2, dtype=int32))

    Source: `scipy.stats.mode`.
    """
    _require_policy("mode", nan_policy, "propagate")
    ndim = array_of(a, "mode").aval.ndim
    x, along = _along("mode", a, axis)
    n = x.aval.shape[along]
    if not n:
        shape = (*x.aval.shape[:along], 1, *x.aval.shape[along + 1 :])
        none = math.nan if dtypes.is_inexact(x.aval.dtype) else 0
        value = lax.full(shape, none, x.aval.dtype)
        count = lax.full(shape, 0, dtypes.default_int())
    else:
        ranked = fnp.sort(x, axis=along)
        # In sorted order a value's number is how many stand up to its last one, less
        # those in front of its first.
        first = _is_first(ranked, along)
        places = lax.broadcasted_iota(dtypes.int32, ranked.aval.shape, along)
        starts = lax.cummax(fnp.where(first, places, 0), axis=along)
        length = places - starts + 1
        at = fnp.argmax(length, axis=along, keepdims=True)
        value = fnp.take_along_axis(ranked, at, axis=along)
        count = fnp.max(length, axis=along, keepdims=True)
        count = count.astype(dtypes.default_int())
    if axis is None and keepdims:
        value, count = (fnp.reshape(v, (1,) * ndim) for v in (value, count))
    if not keepdims:
        value, count = (fnp.squeeze(v, along) for v in (value, count))
    return ModeResult(value, count)


def _is_first(ranked: Any, axis: int) -> Any:
    """Returns whether elements of a sorted array differ from those in front."""
    n = ranked.aval.shape[axis]
    here = lax.slice_in_dim(ranked, 1, n, axis=axis)
    before = lax.slice_in_dim(ranked, 0, n - 1, axis=axis)
    differs = (here != before) & ((here == here) | (before == before))
    start = lax.full(lax.slice_in_dim(ranked, 0, 1, axis=axis).shape, True)
    return fnp.concatenate([start, differs], axis=axis)


def equals(x: Any, axis: int) -> tuple[Any, Any]:
    """Returns the first and the last place, in order, of the equals of each element.

    All nan are one value, the greatest.

    Args:
      x: real[...] with at least one element.
      axis: along which elements are compared.

    Returns:
      Two int32[...]; their difference and 1 is how many equals there are.
    """
    shape, n = x.aval.shape, x.aval.shape[axis]
    order = fnp.argsort(x, axis=axis, stable=True)
    back = fnp.argsort(order, axis=axis, stable=True)
    places = lax.broadcasted_iota(dtypes.int32, shape, axis)
    first = _is_first(fnp.take_along_axis(x, order, axis=axis), axis)
    low = lax.cummax(fnp.where(first, places, 0), axis=axis)
    ends = fnp.flip(fnp.roll(first, -1, axis=axis), axis)
    high = lax.cummax(fnp.where(ends, places, 0), axis=axis)
    high = n - 1 - fnp.flip(high, axis)
    low, high = (fnp.take_along_axis(v, back, axis=axis) for v in (low, high))
    return low, high


@library("axis")
def rankdata(
    a: ArrayLike,
    method: str = "average",
    *,
    axis: int | None = None,
    nan_policy: str = "propagate",
) -> Array:
    """Returns the ranks of elements: 1 for the least.

    Args:
      a: real array-like[...].
      method: which rank equal elements have: "average", "min" or "max" of theirs,
        "dense" (the ranks have no gaps) or "ordinal" (each another, in their order).
      axis: along which elements are compared; None flattens the array first.
      nan_policy: "propagate": where there is a nan all ranks are nan.

    Returns:
      Float array of the shape of `a`; a vector, if `axis` is None.

    Raises:
      ArgumentError: unknown method or policy.
      AxisError: an axis is out of range.

    Example:
      >>> rankdata(np.array([0, 2, 3, 2]))
      Array([1. , 2.5, 4. , 2.5], dtype=float32)

    Source: `scipy.stats.rankdata`.
    """
    _require_policy("rankdata", nan_policy, "propagate")
    if method not in _METHODS:
        listed = ", ".join(f'"{m}"' for m in _METHODS)
        raise ArgumentError(f"rankdata: method must be {listed}, got {method!r}")
    x, along = _along("rankdata", a, axis)
    shape = x.aval.shape
    real = dtypes.to_inexact(x.aval.dtype)
    if not x.aval.size:
        return lax.full(shape, 0, real)
    if method in ("ordinal", "dense"):
        order = fnp.argsort(x, axis=along, stable=True)
        back = fnp.argsort(order, axis=along, stable=True)
        ranks = back + 1
        if method == "dense":
            first = _is_first(fnp.take_along_axis(x, order, axis=along), along)
            ranks = fnp.cumsum(first, axis=along)
            ranks = fnp.take_along_axis(ranks, back, axis=along)
        out = ranks.astype(real)
    else:
        low, high = equals(x, along)
        ranks = {"min": low + 1, "max": high + 1}.get(method, low + high)
        out = ranks.astype(real)
        if method == "average":
            out = (out + 2) / 2
    lost = fnp.any(x != x, axis=along, keepdims=True)
    return fnp.where(lost, math.nan, out)


@library("axis", "ddof", "keepdims")
def sem(
    a: ArrayLike,
    axis: int | None = 0,
    ddof: int = 1,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Array:
    """Returns the standard error of the mean: the deviation over the root of n.

    Args:
      a: array-like[...].
      axis: the axis; None is all elements.
      ddof: delta degrees of freedom: the variance divides by n minus this.
      nan_policy: "propagate", or "omit": nans are ignored.
      keepdims: whether to keep the reduced axis, with length 1.

    Returns:
      Float array without the axis; of complex numbers the error is real.

    Raises:
      ArgumentError: unknown policy.
      AxisError: an axis is out of range.

    Special cases:
      nan, if there are no more than `ddof` elements.

    Example:
      >>> sem(np.array([1.0, 2.0, 3.0])).round(4)
      Array(0.5774, dtype=float32)

    Source: `scipy.stats.sem`.
    """
    _require_policy("sem", nan_policy, "propagate", "omit")
    (x,) = promote_inexact("sem", a)
    x = x if x.aval.ndim else x[None]
    where = (x == x) if nan_policy == "omit" else None
    options: Any = {"axis": axis, "keepdims": keepdims, "where": where}
    ones = fnp.ones(x.aval.shape, dtypes.to_real(x.aval.dtype))
    count = fnp.sum(ones, **options)
    return fnp.std(x, ddof=ddof, **options) / lax.sqrt(count)


@statistic()
def tiecorrect(rankvals: ArrayLike) -> Array:
    """Returns the factor by which ties lessen the variance of rank tests.

    Args:
      rankvals: real array-like[n]: ranks, as `rankdata` returns them.

    Returns:
      A float: 1 less the sum of t³ - t over ties of t elements, over n³ - n; 1 for
      fewer than 2 elements.

    Raises:
      ShapeError: `rankvals` is not a row.

    Example:
      >>> tiecorrect(np.array([1.0, 2.5, 2.5, 4.0]))
      Array(0.9, dtype=float32)
    """
    (ranks,), dtype = operands("tiecorrect", rankvals)
    if ranks.aval.ndim != 1:
        raise ShapeError(f"tiecorrect: rankvals must be a row, got {ranks.aval}")
    n = ranks.aval.shape[0]
    if n < 2:
        return fnp.ones((), dtype)
    ordered = fnp.sort(ranks)
    count = fnp.searchsorted(ordered, ordered, side="right") - fnp.searchsorted(
        ordered, ordered, side="left"
    )
    count = count.astype(ranks.aval.dtype)
    ties = fnp.sum((count - 1) * (count + 1))
    factor: Array = (1 - ties / (float(n) ** 3 - n)).astype(dtype)
    return factor
