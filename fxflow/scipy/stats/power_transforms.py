"""Transformations that make samples normal: Box–Cox and Yeo–Johnson, with their λ."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.errors import ArgumentError, ShapeError
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.optimize.scalar_minimization import minimize_scalar
from fxflow.scipy.optimize.scalar_roots import brentq
from fxflow.scipy.special.combinatorics import boxcox as transform
from fxflow.scipy.special.inverses import chdtri
from fxflow.scipy.special.normal import ndtri
from fxflow.scipy.stats._samples import (
    Sample,
    operands,
    require_choice,
    statistic,
    taken,
)


def order_medians(n: int, dtype: Any) -> Any:
    """Returns Filliben's medians of the order statistics of n uniform numbers."""
    i = fnp.arange(1, n + 1, dtype=dtype)
    last = 0.5 ** (1 / n)
    middle = (i - 0.3175) / (n + 0.365)
    return fnp.where(i == n, last, fnp.where(i == 1, 1 - last, middle))


def _row(name: str, x: Any) -> tuple[Any, Any]:
    (x,), dtype = operands(name, x)
    if x.aval.ndim != 1 or not x.aval.size:
        raise ShapeError(
            f"{name}: the sample must be a row of at least one element, got {x.aval}"
        )
    return x, dtype


def _boxcox_likelihood(lmb: Any, x: Sample) -> Any:
    """Returns the log-likelihood of λ: float[..., 1]."""
    logs = lax.log(x.values)
    # The variance of xᵏ/k is that of (xᵏ - 1)/k, which has a limit at 0, and that of
    # (x/m)ᵏ times m²ᵏ, with which no power overflows.
    middle = x.mean(logs)
    powers = transform(lax.exp(logs - middle), lmb)
    spread = lax.log(x.but(powers).var(0)) + 2 * lmb * middle
    return (lmb - 1) * x.sum(logs) - x.n / 2 * spread


@statistic("axis", "keepdims")
def boxcox_llf(
    lmb: ArrayLike,
    data: ArrayLike,
    *,
    axis: Any = 0,
    keepdims: bool = False,
    nan_policy: str = "propagate",
) -> Array:
    """Returns the log-likelihood of the parameter of a Box–Cox transformation.

    Args:
      lmb: a real number: the parameter.
      data: positive real array-like[...]: the sample.

    Example:
      >>> boxcox_llf(0.0, np.array([1.0, 2.0, 4.0])).round(4)
      Array(-0.3717, dtype=float32)
    """
    (x,), done = taken("boxcox_llf", (data,), axis, nan_policy, keepdims)
    return done(_boxcox_likelihood(fnp.asarray(lmb, x.dtype), x))


def _negative_correlation(x: Any) -> Callable[[Any], Any]:
    """Returns a function of λ: 1 less the correlation of the probability plot."""
    quantiles = ndtri(order_medians(x.aval.shape[0], x.aval.dtype))
    ranked = fnp.sort(x)
    wide = lax.sqrt(fnp.sum(quantiles * quantiles))

    def distance(lmb: Any) -> Any:
        y = transform(ranked, lmb)
        y = y - fnp.mean(y)
        return 1 - fnp.sum(y * quantiles) / (wide * lax.sqrt(fnp.sum(y * y)))

    return distance


def _ends(name: str, brack: Any, row: Any) -> tuple[Any, ...]:
    """Returns the ends of a bracket in the dtype of the sample."""
    if not isinstance(brack, tuple | list) or len(brack) not in (2, 3):
        raise ArgumentError(f"{name}: brack must be two or three numbers, got {brack}")
    return tuple(fnp.asarray(end, row.aval.dtype) for end in brack)


_NORMMAX = ("pearsonr", "mle", "all")


@statistic("brack", "optimizer")
def boxcox_normmax(
    x: ArrayLike,
    brack: Any = None,
    method: str = "pearsonr",
    optimizer: Callable[..., Any] | None = None,
    *,
    ymax: Any = None,
) -> Array:
    """Returns the parameter of the Box–Cox transformation that suits a sample best.

    It has an implicit derivative with respect to the sample.

    Args:
      x: positive real array-like[n]: the sample.
      brack: two or three numbers where the search begins; None is (-2, 2).
      method: "mle" maximizes the likelihood, "pearsonr" the correlation of the
        probability plot; "all" is both.
      optimizer: called with a function of one number; returns an object whose `x` is
        where the function is least. None is Brent's method.
      ymax: the transformed sample is not to exceed it; None is that it does not
        overflow.

    Returns:
      A float; two of them for "all".

    Special cases:
      nan, if an element is not positive or not finite.

    Example:
      >>> boxcox_normmax(np.array([1.0, 2.0, 4.0, 8.0, 32.0]), method="mle").round(2)
      Array(-0.12, dtype=float32)
    """
    name = "boxcox_normmax"
    require_choice(name, "method", method, _NORMMAX)
    if optimizer is not None and brack is not None:
        raise ArgumentError(f"{name}: brack must be None with an optimizer")
    row, dtype = _row(name, x)
    valid = fnp.all((row > 0) & (row < math.inf))
    row = fnp.where(valid, row, fnp.arange(1, row.aval.shape[0] + 1))
    limit = float(fnp.finfo(row.aval.dtype).max) / 10000 if ymax is None else ymax
    limit = fnp.asarray(limit, row.aval.dtype)

    ends = _ends(name, (-2.0, 2.0) if brack is None else brack, row)

    def best(fun: Callable[[Any], Any]) -> Any:
        if optimizer is not None:
            found = optimizer(fun)
            if not hasattr(found, "x"):
                raise ArgumentError(
                    f"{name}: optimizer must return an object with `x`, got {found!r}"
                )
            return found.x
        return minimize_scalar(fun, bracket=ends).x

    found = []
    if method != "mle":
        found.append(best(_negative_correlation(row)))
    if method != "pearsonr":
        sample = Sample(row)
        found.append(best(lambda lmb: -_boxcox_likelihood(lmb, sample)[0]))
    most, least = fnp.max(row), fnp.min(row)
    kept = []
    for lmb in found:
        # Which end is farther out; the transformation grows with λ above 1.
        up = transform(most, lmb) > abs(transform(least, lmb))
        up = (least >= 1) | ((most > 1) & up)
        end = fnp.where(up, most, least)
        over = abs(transform(end, lmb)) > limit
        kept.append(fnp.where(over, _greatest_power(end, limit), lmb))
    out = fnp.stack(kept) if method == "all" else kept[0]
    return fnp.where(valid, out, math.nan).astype(dtype)


def _greatest_power(x: Any, limit: Any) -> Any:
    """Returns λ at which |xᵏ - 1|/k of an x is a limit, by bisection in log λ."""
    up = x >= 1
    logs = abs(lax.log(x))
    logs = fnp.where(logs == 0, 1, logs)
    # k·|log x| - log k = log limit, with a root beyond 1/|log x|.
    goal = lax.log(limit)
    gap: Any = lambda k: k * logs - lax.log(k) - goal
    low = lax.stop_gradient(1 / logs)
    high = lax.stop_gradient((2 * abs(goal) + 50) / logs + 1)
    power = brentq(lambda k: fnp.where(gap(low) > 0, k - low, gap(k)), low, high)
    return fnp.where(up, power, -power)


@statistic("alpha", "optimizer")
def boxcox(
    x: ArrayLike,
    lmbda: ArrayLike | None = None,
    alpha: float | None = None,
    optimizer: Callable[..., Any] | None = None,
) -> Any:
    """Transforms a positive sample by (xᵏ - 1)/k, which is log x for k = 0.

    Args:
      x: positive real array-like[n]: the sample.
      lmbda: the power k; None is the one that maximizes the likelihood.
      alpha: if given, the interval of confidence 1 - alpha of the power is returned.
      optimizer: as `boxcox_normmax` takes it; None is Brent's method.

    Returns:
      The transformed sample, float[n]; without `lmbda` a tuple of it and the power, and
      with `alpha` a pair of numbers besides.

    Example:
      >>> boxcox(np.array([1.0, 2.0, 3.0]), 2.0)
      Array([0. , 1.5, 4. ], dtype=float32)
    """
    row, dtype = _row("boxcox", x)
    if lmbda is not None:
        return transform(row, fnp.asarray(lmbda, row.aval.dtype)).astype(dtype)
    best = boxcox_normmax(row, method="mle", optimizer=optimizer)
    out = transform(row, best).astype(dtype)
    if alpha is None:
        return out, best.astype(dtype)
    if not isinstance(alpha, int | float) or not 0 < alpha < 1:
        raise ArgumentError(f"boxcox: alpha must be between 0 and 1, got {alpha!r}")
    sample = Sample(row)
    fall = 0.5 * chdtri(1.0, alpha).astype(row.aval.dtype)
    least = _boxcox_likelihood(best, sample)[0] - fall
    gap: Any = lambda k: _boxcox_likelihood(k, sample)[0] - least
    # The likelihood is concave enough: the ends are sought in steps that double.
    ends = []
    for side in (-1.0, 1.0):

        def above(s: Any, side: float = side) -> Any:
            return (gap(best + side * s) > 0) & (s < 500)

        first = fnp.asarray(0.1, row.aval.dtype)
        far = lax.while_loop(above, lambda s: 2 * s, first)
        ends.append(brentq(gap, best, best + side * far).astype(dtype))
    return out, best.astype(dtype), (ends[0], ends[1])


# -- Yeo and Johnson -------------------------------------------------------------------


def _yeojohnson(x: Any, lmb: Any) -> Any:
    """Returns the transformed numbers: Box–Cox's of 1 + x, or of 1 - x with 2 - λ."""
    up = x >= 0
    near = fnp.where(up, x, -x)
    power = fnp.where(up, lmb, 2 - lmb)
    logs = lax.log1p(near)
    flat = abs(power) < float(fnp.finfo(logs.aval.dtype).eps)
    safe = fnp.where(flat, 1, power)
    out = fnp.where(flat, logs, lax.expm1(safe * logs) / safe)
    return fnp.where(up, out, -out)


def _yeojohnson_likelihood(lmb: Any, x: Sample) -> Any:
    spread = x.but(_yeojohnson(x.values, lmb)).var(0)
    tiny = float(fnp.finfo(x.dtype).tiny)
    jacobian = x.sum(fnp.sign(x.values) * lax.log1p(abs(x.values)))
    value = -x.n / 2 * lax.log(fnp.maximum(spread, tiny)) + (lmb - 1) * jacobian
    return fnp.where(spread < tiny, math.inf, value)


@statistic("axis", "keepdims")
def yeojohnson_llf(
    lmb: ArrayLike,
    data: ArrayLike,
    *,
    axis: Any = 0,
    nan_policy: str = "propagate",
    keepdims: bool = False,
) -> Array:
    """Returns the log-likelihood of the parameter of a Yeo–Johnson transformation.

    Args:
      lmb: a real number: the parameter.
      data: real array-like[...]: the sample.

    Example:
      >>> yeojohnson_llf(1.0, np.array([-1.0, 0.0, 1.0])).round(4)
      Array(0.6082, dtype=float32)
    """
    (x,), done = taken("yeojohnson_llf", (data,), axis, nan_policy, keepdims)
    return done(_yeojohnson_likelihood(fnp.asarray(lmb, x.dtype), x))


@statistic("brack")
def yeojohnson_normmax(x: ArrayLike, brack: Any = None) -> Array:
    """Returns the parameter of the most likely Yeo–Johnson transformation.

    It has an implicit derivative with respect to the sample.

    Args:
      x: real array-like[n]: the sample.
      brack: two or three numbers where the search begins; None searches all that do not
        overflow.

    Returns:
      A float.

    Special cases:
      nan, if an element is not finite; 1, if all are 0.

    Example:
      >>> yeojohnson_normmax(np.array([-3.0, -1.0, 0.0, 1.0, 2.0, 4.0])).round(2)
      Array(0.99, dtype=float32)
    """
    name = "yeojohnson_normmax"
    row, dtype = _row(name, x)
    valid = fnp.all(abs(row) < math.inf)
    zero = fnp.all(row == 0)
    row = fnp.where(valid & ~zero, row, fnp.arange(row.aval.shape[0]))
    sample = Sample(row)

    def fun(lmb: Any) -> Any:
        value = -_yeojohnson_likelihood(lmb, sample)[0]
        return fnp.where(value == -math.inf, math.inf, value)

    if brack is not None:
        found = minimize_scalar(fun, bracket=_ends(name, brack, row)).x
    else:
        info = fnp.finfo(row.aval.dtype)
        most = lax.log1p(20 * lax.stop_gradient(fnp.max(abs(row))))
        most = fnp.where(most == 0, 1, most)
        eps = math.log(float(info.eps))
        low = (math.log(float(info.tiny)) - eps) / 2 / most
        high = (math.log(float(info.max)) + eps) / 2 / most
        below, some = fnp.all(row < 0), fnp.any(row < 0)
        bottom = fnp.where(
            below, 2 - high, fnp.where(some, fnp.maximum(2 - high, low), low)
        )
        top = fnp.where(
            below, 2 - low, fnp.where(some, fnp.minimum(2 - low, high), high)
        )
        found = minimize_scalar(fun, bounds=(bottom, top), options={"xatol": 1.48e-8}).x
    found = fnp.where(zero, 1, fnp.where(valid, found, math.nan))
    return found.astype(dtype)


@statistic()
def yeojohnson(x: ArrayLike, lmbda: ArrayLike | None = None) -> Any:
    """Transforms a sample by Yeo and Johnson's powers, which take any real numbers.

    Args:
      x: real array-like[n]: the sample.
      lmbda: the parameter; None is the one that maximizes the likelihood.

    Returns:
      The transformed sample, float[n]; without `lmbda` a tuple of it and the parameter.

    Example:
      >>> yeojohnson(np.array([-1.0, 0.0, 1.0]), 2.0).round(4)
      Array([-0.6931,  0.    ,  1.5   ], dtype=float32)
    """
    if lmbda is not None:
        (row,), dtype = operands("yeojohnson", x)
        return _yeojohnson(row, fnp.asarray(lmbda, row.aval.dtype)).astype(dtype)
    row, dtype = _row("yeojohnson", x)
    best = yeojohnson_normmax(row)
    return _yeojohnson(row, best).astype(dtype), best.astype(dtype)
