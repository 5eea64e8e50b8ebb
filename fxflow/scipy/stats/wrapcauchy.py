"""Cauchy's distribution wrapped around the circle, of angles in 0 … 2π."""

from __future__ import annotations

import math
from typing import Final

from fxflow import lax
from fxflow.core.arrays.array import Array
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special._operands import operands
from fxflow.scipy.stats._functions import LOG_2PI, Distribution, inside, with_nan

__all__ = ["logpdf", "pdf"]

_of = Distribution("c: real array-like between 0 and 1: how narrow it is.")


@_of
def logpdf(x: ArrayLike, c: ArrayLike) -> Array:
    """Returns the logarithm of the probability density."""
    x, c = operands("wrapcauchy.logpdf", x, c)
    within = (x >= 0) & (x <= 2 * math.pi)
    # 1 + c² - 2 c cos x as a sum of squares.
    bottom = lax.square(1 - c) + 4 * c * lax.square(lax.sin(x / 2))
    value = lax.log((1 - c) * (1 + c) / bottom) - LOG_2PI
    value = inside((c > 0) & (c < 1), value, math.nan)
    return with_nan(x + c, inside(within | (c <= 0) | (c >= 1), value, -math.inf))


pdf: Final = _of.exp(logpdf)
