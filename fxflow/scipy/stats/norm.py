"""The normal distribution."""

from __future__ import annotations

from typing import Final

from fxflow import lax
from fxflow.core.arrays.array import Array
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special._operands import operands
from fxflow.scipy.special.normal import log_ndtr, ndtr, ndtri
from fxflow.scipy.stats._functions import LOG_2PI, Distribution, standard

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]

_of = Distribution()


@_of
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Returns the logarithm of the probability density.

    Example:
      >>> logpdf(0.0).round(4)
      Array(-0.9189, dtype=float32)
    """
    z, scale = standard("norm.logpdf", x, loc, scale)
    return -0.5 * (z * z + LOG_2PI) - lax.log(scale)


pdf: Final = _of.exp(logpdf)


@_of
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Returns the distribution function: the probability of at most that."""
    z, _ = standard("norm.cdf", x, loc, scale)
    return ndtr(z)


@_of
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Returns the logarithm of the distribution function."""
    z, _ = standard("norm.logcdf", x, loc, scale)
    return log_ndtr(z)


@_of
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Returns the survival function: the probability of more than that."""
    z, _ = standard("norm.sf", x, loc, scale)
    return ndtr(-z)


@_of
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Returns the logarithm of the survival function."""
    z, _ = standard("norm.logsf", x, loc, scale)
    return log_ndtr(-z)


@_of
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Returns the quantile function: the inverse of `cdf`."""
    q, loc, scale = operands("norm.ppf", q, loc, scale)
    return ndtri(q) * scale + loc


@_of
def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Returns the inverse of the survival function."""
    q, loc, scale = operands("norm.isf", q, loc, scale)
    return loc - ndtri(q) * scale
