"""Laplace's distribution."""

from __future__ import annotations

from typing import Final

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays.array import Array
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special._operands import safe
from fxflow.scipy.stats._functions import Distribution, standard, with_nan

__all__ = ["cdf", "logpdf", "pdf"]

_of = Distribution()


@_of
def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Returns the logarithm of the probability density."""
    z, scale = standard("laplace.logpdf", x, loc, scale)
    return -lax.abs(z) - lax.log(2 * scale)


pdf: Final = _of.exp(logpdf)


@_of
def cdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
    """Returns the distribution function: the probability of at most that."""
    z, _ = standard("laplace.cdf", x, loc, scale)
    below = 0.5 * lax.exp(safe(z <= 0, z, 0))
    above = 1 - 0.5 * lax.exp(-safe(z > 0, z, 0))
    return with_nan(z, fnp.where(z > 0, above, below))
