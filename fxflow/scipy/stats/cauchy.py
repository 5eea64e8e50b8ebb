"""Cauchy's distribution."""

from __future__ import annotations

import math
from typing import Any, Final

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays.array import Array
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special._operands import operands, safe
from fxflow.scipy.stats._functions import Distribution, inside, standard

__all__ = ["cdf", "isf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]

_of = Distribution()


@_of
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Returns the logarithm of the probability density."""
    z, scale = standard("cauchy.logpdf", x, loc, scale)
    # log(1 + z²) without an overflow of the square.
    far = lax.abs(z) > 1e4
    near = lax.log1p(lax.square(safe(far, z, 1) * 0 + safe(~far, z, 0)))
    tail = 2 * lax.log(lax.abs(safe(far, z, 1)))
    return -fnp.where(far, tail, near) - lax.log(math.pi * scale)


pdf: Final = _of.exp(logpdf)


@_of
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Returns the distribution function: the probability of at most that."""
    z, _ = standard("cauchy.cdf", x, loc, scale)
    return lax.atan2(lax.full_like(z, 1), -z) / math.pi


logcdf: Final = _of.log(cdf)


@_of
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Returns the survival function: the probability of more than that."""
    z, _ = standard("cauchy.sf", x, loc, scale)
    return lax.atan2(lax.full_like(z, 1), z) / math.pi


logsf: Final = _of.log(sf)


def _quantile(q: Any) -> Array:
    """Returns tan(π (q - 1/2)), exact in both tails."""
    low, high = q < 0.25, q > 0.75
    end = 1 / lax.tan(math.pi * fnp.where(low, q, 1 - safe(high, q, 0.75)))
    middle = lax.tan(math.pi * (safe(~(low | high), q, 0.5) - 0.5))
    value = fnp.where(low, -end, fnp.where(high, end, middle))
    return inside((q >= 0) & (q <= 1), value, math.nan)


@_of
def ppf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Returns the quantile function: the inverse of `cdf`."""
    q, loc, scale = operands("cauchy.ppf", q, loc, scale)
    return loc + scale * _quantile(q)


@_of
def isf(q: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Returns the inverse of the survival function."""
    q, loc, scale = operands("cauchy.isf", q, loc, scale)
    return loc - scale * _quantile(q)
