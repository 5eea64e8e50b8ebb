"""Counting elements: percentiles of scores, cumulative and binned numbers."""

from __future__ import annotations

import math
import operator
from typing import Any, NamedTuple, SupportsIndex

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.docs import shared
from fxflow.errors import ArgumentError, ShapeError
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.stats._samples import Sample, operands, require_choice, statistic

_KINDS = ("rank", "strict", "weak", "mean")


@statistic()
def percentileofscore(
    a: ArrayLike, score: ArrayLike, kind: str = "rank", nan_policy: str = "propagate"
) -> Array:
    """Returns which percentage of a sample is below scores.

    Args:
      a: real array-like[n]: the sample.
      score: real array-like[...].
      kind: how elements equal to a score count: "strict": not; "weak": as those below;
        "mean": half; "rank": as the mean of their ranks.

    Returns:
      Float array of the shape of `score`.

    Example:
      >>> percentileofscore(np.array([1.0, 2.0, 3.0, 4.0]), 3.0)
      Array(75., dtype=float32)
    """
    name = "percentileofscore"
    require_choice(name, "kind", kind, _KINDS)
    require_choice(name, "nan_policy", nan_policy, ("propagate", "omit"))
    (x, at), dtype = operands(name, a, score)
    if x.aval.ndim != 1:
        raise ShapeError(f"{name}: the sample must be a row, got {x.aval}")
    s = Sample(x, x == x if nan_policy == "omit" else None)
    at = at[..., None]
    below = s.sum(fnp.where(s.values < at, 1.0, 0.0).astype(s.dtype))
    upto = s.sum(fnp.where(s.values <= at, 1.0, 0.0).astype(s.dtype))
    if kind == "rank":
        count = (below + upto + fnp.where(below < upto, 1, 0)) / 2
    else:
        count = {"strict": below, "weak": upto, "mean": (below + upto) / 2}[kind]
    lost = s.lost | (at != at) | (s.n == 0)
    value = fnp.where(lost, math.nan, count * (100 / fnp.maximum(s.n, 1)))
    return value[..., 0].astype(dtype)


@statistic("axis")
def scoreatpercentile(
    a: ArrayLike,
    per: ArrayLike,
    limit: Any = (),
    interpolation_method: str = "fraction",
    axis: Any = None,
) -> Array:
    """Returns the scores below which percentages of a sample are.

    Args:
      per: real array-like, percentages; its axes come first in the result.
      limit: a pair of numbers: elements beyond are left out; () is that there are none.
      interpolation_method: between two elements: "fraction", "lower" or "higher".

    Example:
      >>> scoreatpercentile(np.array([1.0, 2.0, 3.0, 4.0]), 50)
      Array(2.5, dtype=float32)
    """
    name = "scoreatpercentile"
    methods = {"fraction": "linear", "lower": "lower", "higher": "higher"}
    require_choice(name, "interpolation_method", interpolation_method, tuple(methods))
    (x, q), dtype = operands(name, a, per)
    if not isinstance(limit, tuple | list) or len(limit) not in (0, 2):
        raise ArgumentError(f"{name}: limit must be a pair or (), got {limit!r}")
    method = methods[interpolation_method]
    if len(limit):
        low, high = (fnp.asarray(v, x.aval.dtype) for v in limit)
        x = fnp.where((x >= low) & (x <= high), x, math.nan)
        value = fnp.nanquantile(x, q / 100, axis=axis, method=method)
    else:
        value = fnp.quantile(x, q / 100, axis=axis, method=method)
    return fnp.where((q >= 0) & (q <= 100), value.T, math.nan).T.astype(dtype)


# -- histograms ------------------------------------------------------------------------


class CumfreqResult(NamedTuple):
    """What `cumfreq` returns.

    Attributes:
      cumcount: how many elements are in a bin and those before.
      lowerlimit: the lower end of the first bin.
      binsize: how wide bins are.
      extrapoints: how many elements are in no bin.
    """

    cumcount: Array
    lowerlimit: Array
    binsize: Array
    extrapoints: Array


class RelfreqResult(NamedTuple):
    """What `relfreq` returns.

    Attributes:
      frequency: which part of the elements is in a bin.
      lowerlimit: the lower end of the first bin.
      binsize: how wide bins are.
      extrapoints: how many elements are in no bin.
    """

    frequency: Array
    lowerlimit: Array
    binsize: Array
    extrapoints: Array


_docs_of_bins = shared("""
    Args:
      numbins: the number of bins.
      defaultreallimits: the ends, a pair; None is a little wider than the sample.
      weights: real array-like, like `a`: what each element counts; None is 1.
""")


def _counted(name: str, a: Any, bins: Any, limits: Any, weights: Any) -> Any:
    (x, *w), _ = operands(name, a, *(() if weights is None else (weights,)))
    if type(bins) is not int or bins < 1:
        raise ArgumentError(f"{name}: numbins must be a positive int, got {bins!r}")
    x = fnp.ravel(x)
    if limits is not None:
        _require_pair(name, "defaultreallimits", limits)
        low, high = (fnp.asarray(v, x.aval.dtype) for v in limits)
    elif not x.aval.size:
        low, high = (fnp.asarray(v, x.aval.dtype) for v in (0, 1))
    else:
        low, high = fnp.min(x), fnp.max(x)
        wider = (high - low) / (2 * max(bins - 1.0, 1e-30))
        low, high = low - wider, high + wider
    ends: Any = fnp.stack([low, high])
    count, edges = fnp.histogram(
        x, bins, range=ends, weights=fnp.ravel(w[0]) if w else None
    )
    extra = fnp.sum((x < low) | (x > high))
    return count.astype(x.aval.dtype), low, edges[1] - edges[0], extra


@statistic("numbins")
@_docs_of_bins
def cumfreq(
    a: ArrayLike,
    numbins: int = 10,
    defaultreallimits: Any = None,
    weights: ArrayLike | None = None,
) -> CumfreqResult:
    """Counts the elements in each bin of equal width and in those before it.

    Returns:
      A named tuple of `cumcount`, float[numbins], and the bins.

    Example:
      >>> cumfreq(np.array([1.0, 4.0, 2.0, 1.0, 3.0, 1.0]), 4).cumcount
      Array([3., 4., 5., 6.], dtype=float32)
    """
    count, *rest = _counted("cumfreq", a, numbins, defaultreallimits, weights)
    return CumfreqResult(fnp.cumsum(count), *rest)


@statistic("numbins")
@_docs_of_bins
def relfreq(
    a: ArrayLike,
    numbins: int = 10,
    defaultreallimits: Any = None,
    weights: ArrayLike | None = None,
) -> RelfreqResult:
    """Returns which part of the elements is in each bin of equal width.

    Returns:
      A named tuple of `frequency`, float[numbins], and the bins.

    Example:
      >>> relfreq(np.array([1.0, 4.0, 2.0, 1.0]), 4).frequency
      Array([0.5 , 0.25, 0.  , 0.25], dtype=float32)
    """
    count, *rest = _counted("relfreq", a, numbins, defaultreallimits, weights)
    n = fnp.shape(a)[0] if fnp.ndim(a) else 1
    return RelfreqResult(count / n, *rest)


class BinnedStatisticResult(NamedTuple):
    """What `binned_statistic` returns.

    Attributes:
      statistic: of the values in each bin.
      bin_edges: the ends of bins, one more than bins.
      binnumber: in which bin each element is, from 1; 0 and one more than bins for
        those in none.
    """

    statistic: Array
    bin_edges: Array
    binnumber: Array


class BinnedStatistic2dResult(NamedTuple):
    """What `binned_statistic_2d` returns.

    Attributes:
      statistic: of the values in each bin.
      x_edge: the ends of bins along the first axis.
      y_edge: the ends of bins along the second axis.
      binnumber: in which bin each element is: one number, or two with
        `expand_binnumbers`, those at the borders being for elements in no bin.
    """

    statistic: Array
    x_edge: Array
    y_edge: Array
    binnumber: Array


_STATISTICS = ("mean", "std", "median", "count", "sum", "min", "max")


def _edges(name: str, x: Any, bins: Any, limits: Any) -> Any:
    if limits is not None:
        _require_pair(name, "range", limits)
    if np.ndim(bins) == 0 and isinstance(bins, SupportsIndex):
        bins = operator.index(bins)
        return fnp.histogram_bin_edges(x, bins, range=limits).astype(x.aval.dtype)
    edges = fnp.asarray(bins, x.aval.dtype)
    if edges.aval.ndim != 1 or edges.aval.shape[0] < 2:
        raise ArgumentError(
            f"{name}: bins must be a number or a row of at least 2 ends, got "
            f"{edges.aval}"
        )
    return edges


def _require_pair(name: str, argument: str, value: Any) -> None:
    if not isinstance(value, tuple | list | np.ndarray) or len(value) != 2:
        raise ArgumentError(f"{name}: {argument} must be a pair, got {value!r}")


def _number(x: Any, edges: Any) -> Any:
    """Returns in which bin elements are; the last one has its end."""
    number = fnp.searchsorted(edges, x, side="right").astype(dtypes.int32)
    return fnp.where(x == edges[-1], edges.aval.shape[0] - 1, number)


def _summed(rows: Any, number: Any, count: int) -> Any:
    """Returns the sum of the rows of each number."""
    zero = lax.full((count, *rows.aval.shape[1:]), 0, rows.aval.dtype)
    return zero.at[number].add(rows)


def _by_bin(statistic: str, v: Any, number: Any, count: int) -> Any:
    """Returns a statistic of the last axis of values for each of `count` bins."""
    number = fnp.asarray(number)
    ones = lax.full(number.aval.shape, 1, v.aval.dtype)
    total = _summed(ones, number, count)
    rows = fnp.moveaxis(v, -1, 0)
    wide = fnp.reshape(total, (-1, *[1] * (v.aval.ndim - 1)))
    safe = fnp.maximum(wide, 1)
    if statistic == "count":
        out = fnp.broadcast_to(wide, (count, *v.aval.shape[:-1]))
        return fnp.moveaxis(out, 0, -1)
    if statistic == "median":
        out = _medians(rows, number, total, count)
    elif statistic in ("min", "max"):
        least = statistic == "min"
        none = math.inf if least else -math.inf
        out = lax.full((count, *rows.aval.shape[1:]), none, rows.aval.dtype)
        out = out.at[number].min(rows) if least else out.at[number].max(rows)
    else:
        out = _summed(rows, number, count)
        if statistic != "sum":
            out = out / safe
        if statistic == "std":
            apart = rows - out[number]
            out = lax.sqrt(_summed(apart * apart, number, count) / safe)
    if statistic != "sum":
        out = fnp.where(wide > 0, out, math.nan)
    return fnp.moveaxis(out, 0, -1)


def _medians(rows: Any, number: Any, total: Any, count: int) -> Any:
    starts = (fnp.cumsum(total) - total).astype(dtypes.int32)
    most = rows.aval.shape[0] - 1
    flat = fnp.reshape(rows, (rows.aval.shape[0], -1))
    out = []
    for k in range(flat.aval.shape[1]):
        ranked = flat[:, k][fnp.lexsort((flat[:, k], number))]
        whole = total.astype(dtypes.int32)
        low, high = starts + (whole - 1) // 2, starts + whole // 2
        first, second = (ranked[fnp.clip(at, 0, most)] for at in (low, high))
        out.append((first + second) / 2)
    return fnp.reshape(fnp.stack(out, -1), (count, *rows.aval.shape[1:]))


@statistic("bins", "range")
def binned_statistic(
    x: ArrayLike,
    values: ArrayLike,
    statistic: str = "mean",
    bins: Any = 10,
    range: Any = None,
) -> BinnedStatisticResult:
    """Returns a statistic of the values in each bin.

    Args:
      x: real array-like[n]: which bin each value is in.
      values: real array-like[..., n].
      statistic: "mean", "std", "median", "count", "sum", "min" or "max".
      bins: how many, or their ends, which ascend.
      range: the ends of all bins, a pair; None is those of `x`.

    Returns:
      A named tuple of `statistic`, float[..., bins], `bin_edges` and `binnumber`.

    Special cases:
      nan for a bin without values; 0 for "count" and "sum".

    Example:
      >>> x, v = np.array([0.1, 0.2, 0.9]), np.array([1.0, 3.0, 5.0])
      >>> binned_statistic(x, v, "mean", 2, (0, 1)).statistic
      Array([2., 5.], dtype=float32)
    """
    name = "binned_statistic"
    require_choice(name, "statistic", statistic, _STATISTICS)
    (at, v), _ = operands(name, x, values)
    if at.aval.ndim != 1 or v.aval.shape[-1:] != at.aval.shape:
        raise ShapeError(
            f"{name}: there must be a value for each x, got {at.aval} and {v.aval}"
        )
    edges = _edges(name, at, bins, range)
    number = _number(at, edges)
    found = _by_bin(statistic, v, number, edges.aval.shape[0] + 1)[..., 1:-1]
    return BinnedStatisticResult(found, edges, number)


@statistic("bins", "range", "expand_binnumbers")
def binned_statistic_2d(
    x: ArrayLike,
    y: ArrayLike,
    values: ArrayLike,
    statistic: str = "mean",
    bins: Any = 10,
    range: Any = None,
    expand_binnumbers: bool = False,
) -> BinnedStatistic2dResult:
    """Returns a statistic of the values in each rectangle.

    Args:
      x: real array-like[n].
      y: real array-like[n].
      values: real array-like[..., n].
      statistic: "mean", "std", "median", "count", "sum", "min" or "max".
      bins: how many along each axis, ends for both, or a pair of either.
      range: the ends of all bins, a pair of pairs; None is those of the points.
      expand_binnumbers: whether `binnumber` has a row for each axis.

    Returns:
      A named tuple of `statistic`, float[..., nx, ny], the ends and `binnumber`.

    Special cases:
      nan for a bin without values; 0 for "count" and "sum".

    Example:
      >>> x, y, v = np.array([[0.1, 0.2, 0.9], [0.1, 0.1, 0.8], [1.0, 3.0, 5.0]])
      >>> binned_statistic_2d(x, y, v, "sum", 2, ((0, 1), (0, 1))).statistic
      Array([[4., 0.],
             [0., 5.]], dtype=float32)
    """
    name = "binned_statistic_2d"
    require_choice(name, "statistic", statistic, _STATISTICS)
    (at, to, v), _ = operands(name, x, y, values)
    if at.aval.ndim != 1 or {to.aval.shape, v.aval.shape[-1:]} != {at.aval.shape}:
        raise ShapeError(
            f"{name}: there must be a value for each point, got {at.aval}, {to.aval} "
            f"and {v.aval}"
        )
    pair = isinstance(bins, tuple | list) and len(bins) == 2
    each = tuple(bins) if pair else (bins, bins)
    if range is not None:
        _require_pair(name, "range", range)
    limits = (None, None) if range is None else tuple(range)
    edges, numbers = _along(name, (at, to), each, limits)
    found, number = _by_box(statistic, v, numbers, edges)
    shown = fnp.stack(numbers) if expand_binnumbers else number
    return BinnedStatistic2dResult(found, edges[0], edges[1], shown)


def _along(name: str, points: Any, bins: Any, limits: Any) -> tuple[Any, Any]:
    """Returns the ends of bins along each axis, and the numbers of those of points."""
    edges = [
        _edges(name, p, b, r) for p, b, r in zip(points, bins, limits, strict=True)
    ]
    return edges, [_number(p, e) for p, e in zip(points, edges, strict=True)]


def _by_box(statistic: str, v: Any, numbers: Any, edges: Any) -> tuple[Any, Any]:
    """Returns a statistic of the values in each box, and the boxes' numbers."""
    sizes = [e.aval.shape[0] + 1 for e in edges]
    number = numbers[0]
    for more, size in zip(numbers[1:], sizes[1:], strict=True):
        number = number * size + more
    found = _by_bin(statistic, v, number, math.prod(sizes))
    found = fnp.reshape(found, (*found.aval.shape[:-1], *sizes))
    return found[(..., *[slice(1, -1)] * len(sizes))], number


class BinnedStatisticddResult(NamedTuple):
    """What `binned_statistic_dd` returns.

    Attributes:
      statistic: of the values in each bin.
      bin_edges: a tuple of the ends of bins along each axis.
      binnumber: in which bin each element is: one number, or one for each axis with
        `expand_binnumbers`, those at the borders being for elements in no bin.
    """

    statistic: Array
    bin_edges: tuple[Array, ...]
    binnumber: Array


@statistic("bins", "range", "expand_binnumbers")
def binned_statistic_dd(
    sample: ArrayLike,
    values: ArrayLike,
    statistic: str = "mean",
    bins: Any = 10,
    range: Any = None,
    expand_binnumbers: bool = False,
) -> BinnedStatisticddResult:
    """Returns a statistic of the values in each box of a space of d axes.

    Args:
      sample: real array-like[n, d]: the points.
      values: real array-like[..., n].
      statistic: "mean", "std", "median", "count", "sum", "min" or "max".
      bins: how many along every axis, or a sequence of numbers or ends, one for each.
      range: a pair of ends, or None, for each axis; None is those of the points.
      expand_binnumbers: whether `binnumber` has a row for each axis.

    Returns:
      A named tuple of `statistic`, float[..., n1, …, nd], `bin_edges`, a tuple of d
      arrays, and `binnumber`.

    Special cases:
      nan for a bin without values; 0 for "count" and "sum".

    Example:
      >>> x = np.array([[0.1, 0.1], [0.2, 0.1], [0.9, 0.8]])
      >>> v = np.array([1.0, 3.0, 5.0])
      >>> binned_statistic_dd(x, v, "sum", 2, ((0, 1), (0, 1))).statistic
      Array([[4., 0.],
             [0., 5.]], dtype=float32)
    """
    name = "binned_statistic_dd"
    require_choice(name, "statistic", statistic, _STATISTICS)
    (points, v), _ = operands(name, sample, values)
    if points.aval.ndim != 2 or v.aval.shape[-1:] != points.aval.shape[:1]:
        raise ShapeError(
            f"{name}: sample must be f32[n, d], with a value for each point, got "
            f"{points.aval} and {v.aval}"
        )
    d = points.aval.shape[1]
    each = [bins] * d if isinstance(bins, int | np.integer) else list(bins)
    limits = [None] * d if range is None else list(range)
    for what, given in (("bins", each), ("range", limits)):
        if len(given) != d or not d:
            raise ArgumentError(
                f"{name}: {what} must have one entry for each of the {d} axes, got "
                f"{len(given)}"
            )
    edges, numbers = _along(name, [points[:, i] for i in np.arange(d)], each, limits)
    found, number = _by_box(statistic, v, numbers, edges)
    shown = fnp.stack(numbers) if expand_binnumbers else number
    return BinnedStatisticddResult(found, tuple(edges), shown)
