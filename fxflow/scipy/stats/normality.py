"""Tests of whether a sample is normal."""

from __future__ import annotations

import math
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.errors import ShapeError
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special.normal import ndtr, ndtri
from fxflow.scipy.stats._samples import (
    Sample,
    normal_pvalue,
    require_alternative,
    require_choice,
    statistic,
    taken,
)
from fxflow.scipy.stats.moments import excess, skewness
from fxflow.scipy.stats.results import SignificanceResult


def _skewness_score(x: Sample) -> Any:
    """Returns D'Agostino's score of the skewness: float[..., 1]."""
    n = fnp.where(x.n < 8, math.nan, x.n)
    y = skewness(x) * lax.sqrt((n + 1) * (n + 3) / (6 * (n - 2)))
    top = 3 * (n * n + 27 * n - 70) * (n + 1) * (n + 3)
    beta = top / ((n - 2) * (n + 5) * (n + 7) * (n + 9))
    w = lax.sqrt(2 * (beta - 1)) - 1
    delta = 1 / lax.sqrt(0.5 * lax.log(w))
    alpha = lax.sqrt(2 / (w - 1))
    return delta * lax.asinh(y / alpha)


def _kurtosis_score(x: Sample) -> Any:
    """Returns Anscombe and Glynn's score of the kurtosis: float[..., 1]."""
    n = fnp.where(x.n < 5, math.nan, x.n)
    mean = 3 * (n - 1) / (n + 1)
    var = 24 * n * (n - 2) * (n - 3) / ((n + 1) * (n + 1) * (n + 3) * (n + 5))
    z = (excess(x) + 3 - mean) / lax.sqrt(var)
    root = lax.sqrt(6 * (n + 3) * (n + 5) / (n * (n - 2) * (n - 3)))
    skewed = 6 * (n * n - 5 * n + 2) / ((n + 7) * (n + 9)) * root
    a = 6 + 8 / skewed * (2 / skewed + lax.sqrt(1 + 4 / skewed**2))
    under = 1 + z * lax.sqrt(2 / (a - 4))
    under = fnp.where(under == 0, math.nan, under)
    term = fnp.sign(under) * lax.cbrt((1 - 2 / a) / abs(under))
    return (1 - 2 / (9 * a) - term) / lax.sqrt(2 / (9 * a))


@statistic("axis", "keepdims")
def skewtest(
    a: ArrayLike,
    axis: Any = 0,
    nan_policy: str = "propagate",
    alternative: str = "two-sided",
    *,
    keepdims: bool = False,
) -> SignificanceResult:
    """Tests whether the skewness is that of a normal distribution.

    Returns:
      A named tuple of `statistic`, which is normal, and `pvalue`.

    Special cases:
      nan for less than 8 elements. 0 for a skewness of 0, where SciPy's statistic has a
      jump.

    Example:
      >>> skewtest(np.array([1.0, 2, 3, 4, 5, 6, 7, 80])).pvalue.round(4)
      Array(0.0004, dtype=float32)
    """
    require_alternative("skewtest", alternative)
    (x,), done = taken("skewtest", (a,), axis, nan_policy, keepdims)
    z = _skewness_score(x)
    return SignificanceResult(done(z), done(normal_pvalue(z, alternative)))


@statistic("axis", "keepdims")
def kurtosistest(
    a: ArrayLike,
    axis: Any = 0,
    nan_policy: str = "propagate",
    alternative: str = "two-sided",
    *,
    keepdims: bool = False,
) -> SignificanceResult:
    """Tests whether the kurtosis is that of a normal distribution.

    Returns:
      A named tuple of `statistic`, which is normal, and `pvalue`.

    Special cases:
      nan for less than 5 elements.

    Example:
      >>> kurtosistest(np.arange(20.0)).pvalue.round(4)
      Array(0.088, dtype=float32)
    """
    require_alternative("kurtosistest", alternative)
    (x,), done = taken("kurtosistest", (a,), axis, nan_policy, keepdims)
    z = _kurtosis_score(x)
    return SignificanceResult(done(z), done(normal_pvalue(z, alternative)))


@statistic("axis", "keepdims")
def normaltest(
    a: ArrayLike,
    axis: Any = 0,
    nan_policy: str = "propagate",
    *,
    keepdims: bool = False,
) -> SignificanceResult:
    """Tests whether a sample is normal, by D'Agostino and Pearson's K².

    Returns:
      A named tuple of `statistic`, χ² with two degrees of freedom, and `pvalue`.

    Special cases:
      nan for less than 8 elements.

    Example:
      >>> normaltest(np.arange(20.0)).pvalue.round(4)
      Array(0.2334, dtype=float32)
    """
    (x,), done = taken("normaltest", (a,), axis, nan_policy, keepdims)
    value = _skewness_score(x) ** 2 + _kurtosis_score(x) ** 2
    # The tail of χ² with two degrees is an exponential.
    return SignificanceResult(done(value), done(lax.exp(-value / 2)))


@statistic("axis", "keepdims")
def jarque_bera(
    x: ArrayLike,
    *,
    axis: Any = None,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> SignificanceResult:
    """Tests whether skewness and kurtosis are those of a normal distribution.

    Returns:
      A named tuple of `statistic`, χ² with two degrees of freedom, and `pvalue`.

    Example:
      >>> jarque_bera(np.arange(20.0)).pvalue.round(4)
      Array(0.5455, dtype=float32)
    """
    (s,), done = taken("jarque_bera", (x,), axis, nan_policy, keepdims)
    value = s.n / 6 * (skewness(s) ** 2 + excess(s) ** 2 / 4)
    return SignificanceResult(done(value), done(lax.exp(-value / 2)))


def _polynomial(c: tuple[float, ...], x: float) -> float:
    return math.fsum(a * x**i for i, a in enumerate(c))


def _weights(n: int, dtype: Any) -> Any:
    """Returns Royston's coefficients of the lesser half of the order statistics."""
    if n == 3:
        return fnp.asarray([math.sqrt(0.5)], dtype)
    half = n // 2
    m = ndtri((fnp.arange(1, half + 1, dtype=dtype) - 0.375) / (n + 0.25))
    total = 2 * fnp.sum(m * m)
    root = 1 / math.sqrt(n)
    first = (0.0, 0.221157, -0.147981, -2.07119, 4.434685, -2.706056)
    second = (0.0, 0.042981, -0.293762, -1.752461, 5.682633, -3.582633)
    a1 = _polynomial(first, root) - m[0] / lax.sqrt(total)
    if n <= 5:
        rest = lax.sqrt((total - 2 * m[0] ** 2) / (1 - 2 * a1**2))
        return fnp.concatenate([a1[None], -m[1:] / rest])
    a2 = _polynomial(second, root) - m[1] / lax.sqrt(total)
    top = total - 2 * m[0] ** 2 - 2 * m[1] ** 2
    rest = lax.sqrt(top / (1 - 2 * a1**2 - 2 * a2**2))
    return fnp.concatenate([a1[None], a2[None], -m[2:] / rest])


@statistic("axis", "keepdims")
def shapiro(
    x: ArrayLike,
    *,
    axis: Any = None,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> SignificanceResult:
    """Tests whether a sample is normal, by Shapiro and Wilk's W.

    Args:
      x: real array-like[...]: the sample, of at least 3 elements; the p-value is made
        for at most 5000.
      nan_policy: "propagate" or "raise": the coefficients depend on how many elements
        there are.

    Example:
      >>> w, p = shapiro(np.array([1.0, 2, 3, 4, 5, 6, 7, 80]))
      >>> w.round(4), (1e6 * p).round()
      (Array(0.4912, dtype=float32), Array(8., dtype=float32))

    Source: `scipy.stats.shapiro`; P. Royston, algorithm AS R94, 1995.
    """
    name = "shapiro"
    require_choice(name, "nan_policy", nan_policy, ("propagate", "raise"))
    (s,), done = taken(name, (x,), axis, nan_policy, keepdims)
    n = s.size
    if n < 3:
        raise ShapeError(f"{name}: takes at least 3 elements, got {n}")
    ordered = s.sorted()
    half = _weights(n, s.dtype)
    middle = fnp.zeros((n % 2,), s.dtype)
    a = fnp.concatenate([-half, middle, half[::-1]])
    spread = ordered[..., -1:] - ordered[..., :1]
    flat = spread == 0
    v = ordered / fnp.where(flat, 1, spread)
    v = v - fnp.mean(v, axis=-1, keepdims=True)
    over: Any = lambda t: fnp.sum(t, axis=-1, keepdims=True)
    product, squares = over(a * v), over(v * v)
    whole = fnp.sum(a * a)
    root = lax.sqrt(whole * fnp.where(flat, 1, squares))
    less = (root - product) * (root + product) / fnp.where(flat, 1, squares * whole)
    less = fnp.where(flat, 0, less)
    w = 1 - less
    if n == 3:
        p = 6 / math.pi * (lax.asin(lax.sqrt(w)) - math.asin(math.sqrt(0.75)))
        p = fnp.clip(p, 0, 1)
    else:
        tiny = float(fnp.finfo(s.dtype).tiny)
        y = lax.log(fnp.maximum(less, tiny))
        logs = math.log(n)
        if n <= 11:
            gamma = _polynomial((-2.273, 0.459), n)
            beyond = y >= gamma
            y = -lax.log(fnp.where(beyond, 1, gamma - y))
            mean = _polynomial((0.5440, -0.39978, 0.025054, -6.714e-4), n)
            wide = math.exp(_polynomial((1.3822, -0.77857, 0.062767, -0.0020322), n))
        else:
            beyond = fnp.zeros_like(y, dtype=bool)
            mean = _polynomial((-1.5861, -0.31082, -0.083751, 0.0038915), logs)
            wide = math.exp(_polynomial((-0.4803, -0.082676, 0.0030302), logs))
        p = fnp.where(beyond, 1e-19, ndtr(-(y - mean) / wide))
    w, p = fnp.where(flat, 1, w), fnp.where(flat, 1, p)
    lost = s.lost
    w, p = (fnp.where(lost, math.nan, v) for v in (w, p))
    return SignificanceResult(done(w), done(p))
