"""The beta distribution."""

from __future__ import annotations

import math
from typing import Final

from fxflow import lax
from fxflow.core.arrays.array import Array
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special._operands import safe
from fxflow.scipy.special.entropies import xlog1py, xlogy
from fxflow.scipy.special.gammas import betaln
from fxflow.scipy.special.incomplete_beta import betainc
from fxflow.scipy.stats._functions import (
    Distribution,
    inside,
    positive,
    standard,
    with_nan,
)

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]

_of = Distribution(
    """
a: positive real array-like: the shape at 0.
b: positive real array-like: the shape at 1.
""",
    a=positive,
    b=positive,
)


@_of
def logpdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """Returns the logarithm of the probability density."""
    z, scale, a, b = standard("beta.logpdf", x, loc, scale, a, b)
    within = (z >= 0) & (z <= 1)
    y = safe(within, z, 0.5)
    value = xlogy(a - 1, y) + xlog1py(b - 1, -y) - betaln(a, b) - lax.log(scale)
    return with_nan(z, inside(within, value, -math.inf))


pdf: Final = _of.exp(logpdf)


@_of
def cdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """Returns the distribution function: the probability of at most that."""
    z, _, a, b = standard("beta.cdf", x, loc, scale, a, b)
    within = (z > 0) & (z < 1)
    value = betainc(a, b, safe(within, z, 0.5))
    return with_nan(z, inside(z > 0, inside(z < 1, value, 1), 0))


logcdf: Final = _of.log(cdf)


@_of
def sf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """Returns the survival function: the probability of more than that."""
    z, _, a, b = standard("beta.sf", x, loc, scale, a, b)
    within = (z > 0) & (z < 1)
    value = betainc(b, a, 1 - safe(within, z, 0.5))
    return with_nan(z, inside(z > 0, inside(z < 1, value, 0), 1))


logsf: Final = _of.log(sf)
