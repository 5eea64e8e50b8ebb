"""The beta-binomial distribution: of n trials with a beta distributed p."""

from __future__ import annotations

import math
from typing import Final

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays.array import Array
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special._operands import safe
from fxflow.scipy.special.gammas import betaln
from fxflow.scipy.stats._functions import (
    Distribution,
    count,
    inside,
    is_whole,
    moved,
    positive,
    with_nan,
)

__all__ = ["logpmf", "pmf"]

_of = Distribution(
    """
n: non-negative integers, array-like: how many trials.
a: positive real array-like: the shape at 0.
b: positive real array-like: the shape at 1.
""",
    n=count,
    a=positive,
    b=positive,
)


@_of
def logpmf(
    k: ArrayLike, n: ArrayLike, a: ArrayLike, b: ArrayLike, loc: ArrayLike = 0
) -> Array:
    """Returns the logarithm of the probability of a number."""
    k, n, a, b = moved("betabinom.logpmf", k, loc, n, a, b)
    within = (k >= 0) & (k <= n) & is_whole(k)
    y = safe(within, k, 0)
    m = fnp.where(within, n, 1 + 0 * n)
    chosen = -lax.log1p(m) - betaln(m - y + 1, y + 1)
    value = chosen + betaln(y + a, m - y + b) - betaln(a, b)
    return with_nan(k, inside(within, value, -math.inf))


pmf: Final = _of.exp(logpmf)
