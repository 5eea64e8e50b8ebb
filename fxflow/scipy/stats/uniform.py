"""The uniform distribution, from `loc` to `loc + scale`."""

from __future__ import annotations

import math
from typing import Final

from fxflow import lax
from fxflow.core.arrays.array import Array
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special._operands import operands, safe
from fxflow.scipy.stats._functions import Distribution, inside, standard, with_nan

__all__ = ["cdf", "logpdf", "pdf", "ppf"]

_of = Distribution()


@_of
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Returns the logarithm of the probability density."""
    z, scale = standard("uniform.logpdf", x, loc, scale)
    value = inside((z >= 0) & (z <= 1), -lax.log(scale), -math.inf)
    return with_nan(z, value)


pdf: Final = _of.exp(logpdf)


@_of
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Returns the distribution function: the probability of at most that."""
    z, _ = standard("uniform.cdf", x, loc, scale)
    value = inside(z <= 1, safe(z >= 0, z, 0), 1)
    return with_nan(z, value)


@_of
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Returns the quantile function: the inverse of `cdf`."""
    q, loc, scale = operands("uniform.ppf", q, loc, scale)
    return inside((q >= 0) & (q <= 1), loc + q * scale, math.nan)
