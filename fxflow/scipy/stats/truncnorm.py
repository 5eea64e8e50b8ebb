"""The normal distribution between two bounds."""

from __future__ import annotations

import math
from typing import Any, Final

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays.array import Array
from fxflow.nn.activations import log1mexp
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special._operands import safe
from fxflow.scipy.special.normal import log_ndtr, ndtr
from fxflow.scipy.stats._functions import LOG_2PI, Distribution, inside, standard

__all__ = ["cdf", "logcdf", "logpdf", "logsf", "pdf", "sf"]

_of = Distribution("""
a: real array-like: the lower bound, in units of `scale` from `loc`.
b: real array-like: the upper bound.
""")


def _log_mass(a: Any, b: Any) -> Any:
    """Returns the logarithm of the normal probability of a … b, exact in the tails."""
    # Above 0 the mirrored interval is the same, and its ends are small numbers.
    above = a > 0
    a, b = fnp.where(above, -b, a), fnp.where(above, -a, b)
    below = b <= 0
    low, high = log_ndtr(safe(below, a, -1)), log_ndtr(safe(below, b, 0))
    tail = high + log1mexp(high - low)
    middle = lax.log1p(-ndtr(safe(~below, a, -1)) - ndtr(-safe(~below, b, 1)))
    return fnp.where(below, tail, middle)


def _between(name: str, x: Any, a: Any, b: Any, loc: Any, scale: Any) -> Any:
    """Returns z, moved inside, the bounds, the scale, and where z is."""
    z, scale, a, b = standard(name, x, loc, scale, a, b)
    within = (z > a) & (z < b)
    known = (a < b) & (z == z)
    # Where the bounds are not an interval the result is nan.
    a, b = safe(known, a, -1), safe(known, b, 1)
    middle = fnp.where(fnp.isfinite(a), a, fnp.where(fnp.isfinite(b), b, 0 * scale))
    return z, fnp.where(within, z, middle), a, b, scale, known


@_of
def logpdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """Returns the logarithm of the probability density."""
    z, y, a, b, scale, known = _between("truncnorm.logpdf", x, a, b, loc, scale)
    y = fnp.where((z >= a) & (z <= b), z, y)
    value = -0.5 * (y * y + LOG_2PI) - _log_mass(a, b) - lax.log(scale)
    value = inside((z >= a) & (z <= b), value, -math.inf)
    return inside(known, value, math.nan)


pdf: Final = _of.exp(logpdf)


@_of
def logcdf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """Returns the logarithm of the distribution function."""
    z, y, a, b, _, known = _between("truncnorm.logcdf", x, a, b, loc, scale)
    within = (z > a) & (z < b)
    value = _log_mass(fnp.where(within, a, y - 1), y) - _log_mass(a, b)
    value = fnp.where(z <= a, lax.full_like(z, -math.inf), value)
    value = fnp.where(z >= b, lax.full_like(z, 0), value)
    return inside(known, value, math.nan)


cdf: Final = _of.exp(logcdf)


@_of
def logsf(
    x: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1
) -> Array:
    """Returns the logarithm of the survival function."""
    z, y, a, b, _, known = _between("truncnorm.logsf", x, a, b, loc, scale)
    within = (z > a) & (z < b)
    value = _log_mass(y, fnp.where(within, b, y + 1)) - _log_mass(a, b)
    value = fnp.where(z <= a, lax.full_like(z, 0), value)
    value = fnp.where(z >= b, lax.full_like(z, -math.inf), value)
    return inside(known, value, math.nan)


sf: Final = _of.exp(logsf)
