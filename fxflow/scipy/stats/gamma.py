"""The gamma distribution."""

from __future__ import annotations

import math
from typing import Final

from fxflow import lax
from fxflow.core.arrays.array import Array
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special._operands import safe
from fxflow.scipy.special.entropies import xlogy
from fxflow.scipy.special.gammas import gammainc, gammaincc, gammaln
from fxflow.scipy.stats._functions import (
    Distribution,
    inside,
    positive,
    standard,
    with_nan,
)

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]

_of = Distribution("a: positive real array-like: the shape.", a=positive)


@_of
def logpdf(
    x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """Returns the logarithm of the probability density."""
    z, scale, a = standard("gamma.logpdf", x, loc, scale, a)
    y = safe(z >= 0, z, 1)
    value = xlogy(a - 1, y) - y - gammaln(a) - lax.log(scale)
    value = inside(y != math.inf, value, -math.inf)
    return with_nan(z, inside(z >= 0, value, -math.inf))


pdf: Final = _of.exp(logpdf)


@_of
def cdf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Returns the distribution function: the probability of at most that."""
    z, _, a = standard("gamma.cdf", x, loc, scale, a)
    return with_nan(z, inside(z > 0, gammainc(a, safe(z > 0, z, 1)), 0))


logcdf: Final = _of.log(cdf)


@_of
def sf(x: ArrayLike, a: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Returns the survival function: the probability of more than that."""
    z, _, a = standard("gamma.sf", x, loc, scale, a)
    return with_nan(z, inside(z > 0, gammaincc(a, safe(z > 0, z, 1)), 1))


logsf: Final = _of.log(sf)
