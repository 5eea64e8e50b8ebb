"""The logistic distribution."""

from __future__ import annotations

from typing import Final

from fxflow import lax
from fxflow.core.arrays.array import Array
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special._operands import operands
from fxflow.scipy.special.entropies import logit
from fxflow.scipy.stats._functions import Distribution, standard

__all__ = ["cdf", "isf", "logpdf", "pdf", "ppf", "sf"]

_of = Distribution()


@_of
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Returns the logarithm of the probability density."""
    z, scale = standard("logistic.logpdf", x, loc, scale)
    # Even in z: from one side nothing overflows.
    near = z * lax.sign(z)
    return -near - 2 * lax.log1p(lax.exp(-near)) - lax.log(scale)


pdf: Final = _of.exp(logpdf)


@_of
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Returns the distribution function: the probability of at most that."""
    z, _ = standard("logistic.cdf", x, loc, scale)
    return lax.logistic(z)


@_of
def sf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Returns the survival function: the probability of more than that."""
    z, _ = standard("logistic.sf", x, loc, scale)
    return lax.logistic(-z)


@_of
def ppf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Returns the quantile function: the inverse of `cdf`."""
    x, loc, scale = operands("logistic.ppf", x, loc, scale)
    return loc + scale * logit(x)


@_of
def isf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Returns the inverse of the survival function."""
    x, loc, scale = operands("logistic.isf", x, loc, scale)
    return loc - scale * logit(x)
