"""The chi-squared distribution: of the sum of squares of df normal numbers."""

from __future__ import annotations

from typing import Final

from fxflow.core.arrays.array import Array
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special._operands import operands
from fxflow.scipy.stats import gamma
from fxflow.scipy.stats._functions import Distribution

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]

_of = Distribution("df: positive real array-like: degrees of freedom.")


@_of
def logpdf(
    x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """Returns the logarithm of the probability density."""
    x, df, loc, scale = operands("chi2.logpdf", x, df, loc, scale)
    return gamma.logpdf(x, df / 2, loc, 2 * scale)


pdf: Final = _of.exp(logpdf)


@_of
def cdf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Returns the distribution function: the probability of at most that."""
    x, df, loc, scale = operands("chi2.cdf", x, df, loc, scale)
    return gamma.cdf(x, df / 2, loc, 2 * scale)


logcdf: Final = _of.log(cdf)


@_of
def sf(x: ArrayLike, df: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Returns the survival function: the probability of more than that."""
    x, df, loc, scale = operands("chi2.sf", x, df, loc, scale)
    return gamma.sf(x, df / 2, loc, 2 * scale)


logsf: Final = _of.log(sf)
