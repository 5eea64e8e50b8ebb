"""Pareto's distribution."""

from __future__ import annotations

import math
from typing import Final

from fxflow import lax
from fxflow.core.arrays.array import Array
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special._operands import operands, safe
from fxflow.scipy.stats._functions import (
    Distribution,
    inside,
    positive,
    standard,
    with_nan,
)

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]

_of = Distribution("b: positive real array-like: the shape.", b=positive)


@_of
def logpdf(
    x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """Returns the logarithm of the probability density."""
    z, scale, b = standard("pareto.logpdf", x, loc, scale, b)
    value = lax.log(b) - (b + 1) * lax.log(safe(z >= 1, z, 1)) - lax.log(scale)
    return with_nan(z, inside(z >= 1, value, -math.inf))


pdf: Final = _of.exp(logpdf)


@_of
def logsf(
    x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """Returns the logarithm of the survival function."""
    z, _, b = standard("pareto.logsf", x, loc, scale, b)
    return with_nan(z, -b * lax.log(safe(z >= 1, z, 1)))


sf: Final = _of.exp(logsf)


@_of
def cdf(x: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Returns the distribution function: the probability of at most that."""
    z, _, b = standard("pareto.cdf", x, loc, scale, b)
    return with_nan(z, -lax.expm1(-b * lax.log(safe(z >= 1, z, 1))))


logcdf: Final = _of.log(cdf)


@_of
def ppf(q: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Returns the quantile function: the inverse of `cdf`."""
    q, b, loc, scale = operands("pareto.ppf", q, b, loc, scale)
    known = (q >= 0) & (q <= 1)
    value = lax.exp(-lax.log1p(-safe(known, q, 0)) / b)
    return inside(known, loc + scale * value, math.nan)
