"""Gumbel's distribution of greatest values: skewed to the right."""

from __future__ import annotations

import math
from typing import Final

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays.array import Array
from fxflow.nn.activations import log1mexp
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special._operands import operands, safe
from fxflow.scipy.stats._functions import Distribution, inside, standard

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "ppf", "sf"]

_of = Distribution()


@_of
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Returns the logarithm of the probability density."""
    z, scale = standard("gumbel_r.logpdf", x, loc, scale)
    value = inside(z != -math.inf, -(z + lax.exp(-z)), -math.inf)
    return value - lax.log(scale)


pdf: Final = _of.exp(logpdf)


@_of
def logcdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Returns the logarithm of the distribution function."""
    z, _ = standard("gumbel_r.logcdf", x, loc, scale)
    return -lax.exp(-z)


cdf: Final = _of.exp(logcdf)


@_of
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Returns the survival function: the probability of more than that."""
    z, _ = standard("gumbel_r.sf", x, loc, scale)
    return -lax.expm1(-lax.exp(-z))


@_of
def logsf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Returns the logarithm of the survival function."""
    z, _ = standard("gumbel_r.logsf", x, loc, scale)
    # exp(-z) is lost in the tail, where the survival function is equal to it.
    tail = z > 80
    value = log1mexp(lax.exp(-safe(~tail, z, 0)))
    return fnp.where(tail, -z, value)


@_of
def ppf(p: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Returns the quantile function: the inverse of `cdf`."""
    p, loc, scale = operands("gumbel_r.ppf", p, loc, scale)
    return loc - scale * lax.log(-lax.log(p))
