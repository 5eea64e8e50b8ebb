"""The exponential distribution."""

from __future__ import annotations

import math
from typing import Final

from fxflow import lax
from fxflow.core.arrays.array import Array
from fxflow.nn.activations import log1mexp
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special._operands import operands, safe
from fxflow.scipy.stats._functions import Distribution, inside, standard, with_nan

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]

_of = Distribution()


@_of
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Returns the logarithm of the probability density."""
    z, scale = standard("expon.logpdf", x, loc, scale)
    value = -safe(z >= 0, z, 0) - lax.log(scale)
    return with_nan(z, inside(z >= 0, value, -math.inf))


pdf: Final = _of.exp(logpdf)


@_of
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Returns the distribution function: the probability of at most that."""
    z, _ = standard("expon.cdf", x, loc, scale)
    return with_nan(z, -lax.expm1(-safe(z >= 0, z, 0)))


@_of
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Returns the logarithm of the distribution function."""
    z, _ = standard("expon.logcdf", x, loc, scale)
    value = log1mexp(safe(z > 0, z, 1))
    return with_nan(z, inside(z > 0, value, -math.inf))


@_of
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Returns the logarithm of the survival function."""
    z, _ = standard("expon.logsf", x, loc, scale)
    return with_nan(z, -safe(z >= 0, z, 0))


sf: Final = _of.exp(logsf)


@_of
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Returns the quantile function: the inverse of `cdf`."""
    q, loc, scale = operands("expon.ppf", q, loc, scale)
    known = (q >= 0) & (q <= 1)
    return inside(known, loc - scale * lax.log1p(-safe(known, q, 0)), math.nan)
