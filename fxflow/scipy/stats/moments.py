"""Moments of samples and what is made of them: skewness, kurtosis, k-statistics."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.docs import shared
from fxflow.errors import ArgumentError, ShapeError
from fxflow.lax.axes import integer
from fxflow.numpy._operands import ArrayLike, array_of, convert
from fxflow.scipy.stats._samples import (
    Sample,
    operands,
    require_choice,
    statistic,
    taken,
)


class DescribeResult(NamedTuple):
    """What `describe` returns.

    Attributes:
      nobs: how many elements a sample has: a number, or one for each where nan is left
        out.
      minmax: the least and the greatest elements.
      mean: the means.
      variance: the variances.
      skewness: as `skew` has it.
      kurtosis: as `kurtosis` has it.
    """

    nobs: Any
    minmax: tuple[Array, Array]
    mean: Array
    variance: Array
    skewness: Array
    kurtosis: Array


def standardized(x: Sample, order: int) -> tuple[Any, Any]:
    """Returns a central moment over a power of the variance, and where that is 0.

    Args:
      x: the sample.
      order: order of the moment.
    """
    second = x.central(2)
    eps = float(fnp.finfo(x.dtype).eps)
    flat = second <= (eps * x.mean()) ** 2
    safe = fnp.where(flat, 1, second)
    return x.central(order) / safe ** (order / 2), flat


def skewness(x: Sample, bias: bool = True) -> Any:
    """Returns the skewness of samples: float[..., 1]."""
    value, flat = standardized(x, 3)
    if not bias:
        n = fnp.where(x.n > 2, x.n, 3)
        value = fnp.where(x.n > 2, value * lax.sqrt((n - 1) * n) / (n - 2), value)
    return fnp.where(flat, math.nan, value)


def excess(x: Sample, bias: bool = True) -> Any:
    """Returns the kurtosis of samples less that of a normal one: float[..., 1]."""
    value, flat = standardized(x, 4)
    if not bias:
        n = fnp.where(x.n > 3, x.n, 4)
        better = ((n * n - 1) * value - 3 * (n - 1) ** 2) / ((n - 2) * (n - 3)) + 3
        value = fnp.where(x.n > 3, better, value)
    return fnp.where(flat, math.nan, value - 3)


@statistic("axis", "ddof", "bias")
def describe(
    a: ArrayLike,
    axis: Any = 0,
    ddof: int = 1,
    bias: bool = True,
    nan_policy: str = "propagate",
) -> DescribeResult:
    """Returns the size, range, mean, variance, skewness and kurtosis of a sample.

    Args:
      bias: whether skewness and kurtosis are those of the sample; False corrects them
        for its size.

    Returns:
      A named tuple of float arrays without the axis.

    Example:
      >>> describe(np.array([1.0, 2.0, 6.0])).mean
      Array(3., dtype=float32)
    """
    (x,), done = taken("describe", (a,), axis, nan_policy)
    count: Any = fnp.asarray(x.size) if x.kept is None else done(x.n)
    return DescribeResult(
        count,
        (done(x.min()), done(x.max())),
        done(x.mean()),
        done(x.var(ddof)),
        done(skewness(x, bias)),
        done(excess(x, bias)),
    )


@statistic("order", "axis", "keepdims")
def moment(
    a: ArrayLike,
    order: Any = 1,
    axis: Any = 0,
    nan_policy: str = "propagate",
    *,
    center: ArrayLike | None = None,
    keepdims: bool = False,
) -> Array:
    """Returns moments of a sample: the mean of powers of differences from a center.

    Args:
      order: a non-negative integer, or several, which are a new first axis.
      center: real array-like that broadcasts with the result; None is the mean.

    Example:
      >>> moment(np.array([1.0, 2.0, 6.0]), order=2).round(3)
      Array(4.667, dtype=float32)
    """
    orders = np.atleast_1d(np.asarray(order))
    if orders.ndim > 1 or (orders.size and (orders != np.round(orders)).any()):
        raise ArgumentError(f"moment: order must be an integer, got {order!r}")
    if (orders < 0).any():
        raise ArgumentError(f"moment: order must not be negative, got {order!r}")
    (x,), done = taken("moment", (a,), axis, nan_policy, keepdims)
    if center is None:
        apart = x.apart()
    else:
        middle = fnp.asarray(center, x.dtype)
        apart = x.values - (middle if not middle.aval.ndim else middle[..., None])
    out = []
    for k in orders.tolist():
        value = x.mean(apart ** int(k))
        if k == 1 and center is None:
            value = fnp.where(value == value, 0, value)
        out.append(done(value))
    return out[0] if np.ndim(order) == 0 else fnp.stack(out)


_docs_of_shapes = shared("""
    Args:
      bias: whether it is that of the sample; False corrects it for the sample's size.

    Special cases:
      nan, if all elements are equal.
""")


@statistic("axis", "bias", "keepdims")
@_docs_of_shapes
def skew(
    a: ArrayLike,
    axis: Any = 0,
    bias: bool = True,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Array:
    """Returns the skewness: the third central moment over the variance's power 3/2.

    Example:
      >>> skew(np.array([1.0, 2.0, 6.0])).round(4)
      Array(0.5952, dtype=float32)
    """
    (x,), done = taken("skew", (a,), axis, nan_policy, keepdims)
    return done(skewness(x, bias))


@statistic("axis", "fisher", "bias", "keepdims")
@_docs_of_shapes
def kurtosis(
    a: ArrayLike,
    axis: Any = 0,
    fisher: bool = True,
    bias: bool = True,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> Array:
    """Returns the kurtosis: the fourth central moment over the variance's square.

    Args:
      fisher: whether 3, that of a normal distribution, is subtracted.

    Example:
      >>> kurtosis(np.array([1.0, 2.0, 6.0, 7.0])).round(4)
      Array(-1.8521, dtype=float32)
    """
    (x,), done = taken("kurtosis", (a,), axis, nan_policy, keepdims)
    return done(excess(x, bias) + (0 if fisher else 3))


def _k_statistic(x: Sample, n: int) -> Any:
    if n == 1:
        return x.mean()
    size = x.n
    second = x.central(2)
    if n == 2:
        return size / (size - 1) * second
    if n == 3:
        return size * size / ((size - 1) * (size - 2)) * x.central(3)
    head = size * size / ((size - 1) * (size - 2) * (size - 3))
    return head * ((size + 1) * x.central(4) - 3 * (size - 1) * second * second)


@statistic("n", "axis", "keepdims")
def kstat(
    data: ArrayLike,
    n: int = 2,
    *,
    axis: Any = None,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Array:
    """Returns a k-statistic: the symmetric unbiased estimate of a cumulant.

    Args:
      data: real array-like[...]: the sample.
      n: which one: 1 to 4.

    Example:
      >>> kstat(np.array([1.0, 2.0, 6.0]), 3)
      Array(27., dtype=float32)
    """
    require_choice("kstat", "n", n, (1, 2, 3, 4))
    (x,), done = taken("kstat", (data,), axis, nan_policy, keepdims)
    return done(_k_statistic(x, int(n)))


@statistic("n", "axis", "keepdims")
def kstatvar(
    data: ArrayLike,
    n: int = 2,
    *,
    axis: Any = None,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Array:
    """Returns an unbiased estimate of the variance of a k-statistic.

    Args:
      data: real array-like[...]: the sample.
      n: the order of the k-statistic: 1 or 2.

    Example:
      >>> kstatvar(np.array([1.0, 2.0, 6.0]), 1).round(4)
      Array(2.3333, dtype=float32)
    """
    require_choice("kstatvar", "n", n, (1, 2))
    (x,), done = taken("kstatvar", (data,), axis, nan_policy, keepdims)
    size, second = x.n, _k_statistic(x, 2)
    if n == 1:
        return done(second / size)
    fourth = _k_statistic(x, 4)
    top = 2 * size * second * second + (size - 1) * fourth
    return done(top / (size * (size + 1)))


@statistic("axis", "ddof", "keepdims")
def variation(
    a: ArrayLike,
    axis: Any = 0,
    nan_policy: str = "propagate",
    ddof: int = 0,
    *,
    keepdims: bool = False,
) -> Array:
    """Returns the coefficient of variation: the standard deviation over the mean.

    Example:
      >>> variation(np.array([1.0, 2.0, 3.0])).round(4)
      Array(0.4082, dtype=float32)
    """
    (x,), done = taken("variation", (a,), axis, nan_policy, keepdims)
    return done(lax.sqrt(x.var(ddof)) / x.mean())


# -- means -----------------------------------------------------------------------------


_docs_of_means = shared("""
    Args:
      dtype: dtype of the computation; None: that of `a`.
      weights: non-negative real array-like, like `a` or one number for each place
        along the axis; None is equal ones.
""")


def _weighted(
    name: str, a: Any, axis: Any, weights: Any, nan_policy: str, keepdims: bool
) -> tuple[Sample, Any, Callable[[Any], Array]]:
    """Returns a sample, its weights, and what puts results in place."""
    if weights is None:
        (x,), done = taken(name, (a,), axis, nan_policy, keepdims)
        return x, 1, done
    shape = array_of(a, name).aval.shape
    weights = array_of(weights, name)
    if weights.aval.shape != shape:
        # One number for each place along the axis.
        if axis is not None and weights.aval.ndim == 1 and np.ndim(axis) == 0:
            weights = fnp.reshape(
                weights, (-1, *[1] * (len(shape) - 1 - axis % len(shape)))
            )
        weights = fnp.broadcast_to(weights, shape)
    (x, w), done = taken(name, (a, weights), axis, nan_policy, keepdims, paired=True)
    return x, w.values, done


def _average(x: Sample, v: Any, w: Any) -> Any:
    return x.mean(v) if type(w) is int else x.sum(v * w) / x.sum(w)


@statistic("axis", "dtype", "keepdims")
@_docs_of_means
def gmean(
    a: ArrayLike,
    axis: Any = 0,
    dtype: Any = None,
    weights: ArrayLike | None = None,
    *,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Array:
    """Returns the geometric mean: the n-th root of the product of n elements.

    Example:
      >>> gmean(np.array([1.0, 4.0])).round(4)
      Array(2., dtype=float32)
    """
    a = a if dtype is None else fnp.asarray(a, dtype)
    x, w, done = _weighted("gmean", a, axis, weights, nan_policy, keepdims)
    return done(lax.exp(_average(x, lax.log(x.values), w)))


@statistic("axis", "dtype", "keepdims")
@_docs_of_means
def hmean(
    a: ArrayLike,
    axis: Any = 0,
    dtype: Any = None,
    *,
    weights: ArrayLike | None = None,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Array:
    """Returns the harmonic mean: n over the sum of the reciprocals of n elements.

    Special cases:
      0, if an element is 0; nan, if one is negative.

    Example:
      >>> hmean(np.array([1.0, 3.0]))
      Array(1.5, dtype=float32)
    """
    a = a if dtype is None else fnp.asarray(a, dtype)
    x, w, done = _weighted("hmean", a, axis, weights, nan_policy, keepdims)
    value = 1 / _average(x, 1 / x.values, w)
    return done(fnp.where(x.min() < 0, math.nan, value))


@statistic("axis", "dtype", "keepdims")
@_docs_of_means
def pmean(
    a: ArrayLike,
    p: ArrayLike,
    *,
    axis: Any = 0,
    dtype: Any = None,
    weights: ArrayLike | None = None,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Array:
    """Returns the power mean: the p-th root of the mean of p-th powers.

    Args:
      p: a real number; 0 gives the geometric mean.

    Special cases:
      nan, if an element is negative.

    Example:
      >>> pmean(np.array([1.0, 7.0]), 2)
      Array(5., dtype=float32)
    """
    a = a if dtype is None else fnp.asarray(a, dtype)
    x, w, done = _weighted("pmean", a, axis, weights, nan_policy, keepdims)
    power = fnp.asarray(p, x.dtype)
    if power.aval.ndim:
        raise ArgumentError(f"pmean: p must be a number, got {power.aval}")
    flat = power == 0
    power = fnp.where(flat, 1, power)
    value = _average(x, x.values**power, w) ** (1 / power)
    value = fnp.where(flat, lax.exp(_average(x, lax.log(x.values), w)), value)
    return done(fnp.where(x.min() < 0, math.nan, value))


@statistic("axis", "ddof", "keepdims")
def gstd(
    a: ArrayLike,
    axis: Any = 0,
    ddof: int = 1,
    *,
    keepdims: bool = False,
    nan_policy: str = "propagate",
) -> Array:
    """Returns the geometric standard deviation: exp of that of the logarithms.

    Special cases:
      nan, if an element is negative or 0.

    Example:
      >>> gstd(np.array([1.0, np.e])).round(4)
      Array(2.0281, dtype=float32)
    """
    (x,), done = taken("gstd", (a,), axis, nan_policy, keepdims)
    value = lax.exp(lax.sqrt(x.but(lax.log(x.values)).var(ddof)))
    return done(fnp.where(x.min() <= 0, math.nan, value))


# -- standard scores -------------------------------------------------------------------


def _scored(name: str, scores: Any, a: Any, axis: Any, ddof: int, policy: str) -> Any:
    require_choice(name, "nan_policy", policy, ("propagate", "omit", "raise"))
    scores, a = (array_of(v, name) for v in (scores, a))
    (x,), done = taken(name, (a,), axis, policy, keepdims=True)
    flat = x.min() == x.max()
    wide = lax.sqrt(fnp.where(flat, 1, x.var(ddof)))
    middle, wide = done(x.mean()), done(fnp.where(flat, math.nan, wide))
    if axis is None:
        middle, wide = (fnp.reshape(v, ()) for v in (middle, wide))
    return (scores - middle) / wide


@statistic("axis", "ddof")
def zscore(
    a: ArrayLike, axis: Any = 0, ddof: int = 0, nan_policy: str = "propagate"
) -> Array:
    """Returns how many standard deviations elements are above the mean.

    Returns:
      Float array of the shape of `a`.

    Special cases:
      nan, if all elements are equal.

    Example:
      >>> zscore(np.array([1.0, 2.0, 3.0])).round(4)
      Array([-1.2247,  0.    ,  1.2247], dtype=float32)
    """
    found: Array = _scored("zscore", a, a, axis, ddof, nan_policy)
    return found


@statistic("axis", "ddof")
def zmap(
    scores: ArrayLike,
    compare: ArrayLike,
    axis: Any = 0,
    ddof: int = 0,
    nan_policy: str = "propagate",
) -> Array:
    """Returns z-scores of numbers, relative to the mean and deviation of a sample.

    Args:
      scores: real array-like that broadcasts with the means of `compare`.
      compare: real array-like[...]: the sample.

    Returns:
      Float array of the shape of `scores`, broadcast.

    Example:
      >>> zmap(np.array([2.0, 4.0]), np.array([1.0, 2.0, 3.0])).round(4)
      Array([0.    , 2.4495], dtype=float32)
    """
    found: Array = _scored("zmap", scores, compare, axis, ddof, nan_policy)
    return found


@statistic("axis", "ddof")
def gzscore(
    a: ArrayLike, *, axis: Any = 0, ddof: int = 0, nan_policy: str = "propagate"
) -> Array:
    """Returns the standard scores of the logarithms of a sample.

    Returns:
      Float array of the shape of `a`.

    Example:
      >>> gzscore(np.array([1.0, 10.0, 100.0])).round(4)
      Array([-1.2247,  0.    ,  1.2247], dtype=float32)
    """
    logs = fnp.log(array_of(a, "gzscore"))
    found: Array = _scored("gzscore", logs, logs, axis, ddof, nan_policy)
    return found


# -- of the order statistics -----------------------------------------------------------


@statistic("order", "axis", "sorted", "standardize", "keepdims")
def lmoment(
    sample: ArrayLike,
    order: Any = None,
    *,
    axis: Any = 0,
    sorted: bool = False,
    standardize: bool = True,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Array:
    """Returns L-moments of samples: means of combinations of order statistics.

    Args:
      sample: real array-like[...]: the sample.
      order: a positive integer, or several; None is 1, 2, 3, 4.
      sorted: whether the sample is in increasing order already.
      standardize: whether those of order 3 and more are divided by the second.

    Returns:
      Float array without the axis; with a first axis for several orders.

    Special cases:
      nan, if a sample has fewer elements than the order.

    Example:
      >>> lmoment(np.array([1.0, 2.0, 4.0, 9.0]), [1, 2]).round(4)
      Array([4.    , 2.1667], dtype=float32)
    """
    name = "lmoment"
    orders = (1, 2, 3, 4) if order is None else order
    several = isinstance(orders, tuple | list | range | np.ndarray)
    listed = [integer(name, "order", r) for r in (orders if several else (orders,))]
    if not listed or min(listed) < 1:
        raise ArgumentError(f"{name}: order must be positive integers, got {order!r}")
    (x,), done = taken(name, (sample,), axis, nan_policy, keepdims)
    rows = x.values if sorted and x.kept is None else x.sorted()
    at = fnp.arange(x.size, dtype=x.dtype)
    n = x.n
    rows = fnp.where(at < n, rows, 0)
    found: dict[int, Any] = {}
    weighted, weight = [], 1 / n + 0 * rows
    for k in range(max(*listed, 2)):
        weighted.append(fnp.sum(weight * rows, axis=-1, keepdims=True))
        weight = weight * (at - k) / (n - 1 - k)
    for r in {*listed, 2}:
        value = sum(
            (-1) ** (r - 1 - k) * math.comb(r - 1, k) * math.comb(r - 1 + k, k) * b
            for k, b in enumerate(weighted[:r])
        )
        found[r] = fnp.where((n >= r) & ~x.lost, value, math.nan)
    if standardize:
        found |= {r: v / found[2] for r, v in found.items() if r > 2}
    parts = [done(found[r]) for r in listed]
    return fnp.stack(parts) if several else parts[0]


@statistic("axis", "keepdims")
def expectile(
    a: ArrayLike,
    alpha: ArrayLike = 0.5,
    *,
    weights: ArrayLike | None = None,
    axis: Any = None,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Array:
    """Returns an expectile: where deviations above count alpha, those below the rest.

    It is to the mean what a quantile is to the median.

    Args:
      a: real array-like[...]: the sample.
      alpha: a number between 0 and 1.
      weights: non-negative real array-like of the shape of `a`, or None: equal ones.

    Returns:
      Float array without the axis.

    Special cases:
      nan, if the level is not between 0 and 1.

    Example:
      >>> expectile(np.array([1.0, 2.0, 6.0]), 0.8).round(4)
      Array(4.5, dtype=float32)
    """
    name = "expectile"
    (level, *given), _ = operands(
        name, *(v for v in (alpha, a, weights) if v is not None)
    )
    if weights is not None and given[0].aval.shape != given[1].aval.shape:
        raise ShapeError(
            f"{name}: weights must have the shape of a, got {given[1].aval} and "
            f"{given[0].aval}"
        )
    if level.aval.ndim:
        raise ShapeError(f"{name}: alpha must be a number, got {level.aval}")
    x, w, done = _weighted(name, a, axis, weights, nan_policy, keepdims)
    level = convert(level, x.dtype)
    order = fnp.argsort(lax.stop_gradient(x.only(x.values, math.inf)), axis=-1)
    mass = x.only(fnp.broadcast_to(fnp.asarray(w, x.dtype), x.values.shape))
    values, mass = (
        fnp.take_along_axis(v, order, axis=-1) for v in (x.only(x.values), mass)
    )
    zero = fnp.zeros((*mass.shape[:-1], 1), x.dtype)
    # With k elements below: the expectile is the greatest such mean for a level above
    # 1/2, or the least one.
    below, part = (
        fnp.concatenate([zero, fnp.cumsum(v, axis=-1)], axis=-1)
        for v in (mass, mass * values)
    )
    top = level * (part[..., -1:] - part) + (1 - level) * part
    means = top / (level * (below[..., -1:] - below) + (1 - level) * below)
    most, least = (f(means, axis=-1, keepdims=True) for f in (fnp.max, fnp.min))
    value = fnp.where(level >= 0.5, most, least)
    return done(fnp.where((level > 0) & (level < 1), value, math.nan))
