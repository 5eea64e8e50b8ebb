"""Gumbel's distribution of least values: skewed to the left."""

from __future__ import annotations

from typing import Final

from fxflow import lax
from fxflow.core.arrays.array import Array
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special._operands import operands
from fxflow.scipy.stats import gumbel_r
from fxflow.scipy.stats._functions import Distribution

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]

_of = Distribution()


@_of
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Returns the logarithm of the probability density."""
    x, loc, scale = operands("gumbel_l.logpdf", x, loc, scale)
    return gumbel_r.logpdf(-x, -loc, scale)


pdf: Final = _of.exp(logpdf)


@_of
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Returns the logarithm of the distribution function."""
    x, loc, scale = operands("gumbel_l.logcdf", x, loc, scale)
    return gumbel_r.logsf(-x, -loc, scale)


@_of
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Returns the distribution function: the probability of at most that."""
    x, loc, scale = operands("gumbel_l.cdf", x, loc, scale)
    return gumbel_r.sf(-x, -loc, scale)


@_of
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Returns the logarithm of the survival function."""
    x, loc, scale = operands("gumbel_l.logsf", x, loc, scale)
    return gumbel_r.logcdf(-x, -loc, scale)


sf: Final = _of.exp(logsf)


@_of
def ppf(p: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Returns the quantile function: the inverse of `cdf`."""
    p, loc, scale = operands("gumbel_l.ppf", p, loc, scale)
    return loc + scale * lax.log(-lax.log1p(-p))
