"""The binomial distribution: of n trials with probability p each."""

from __future__ import annotations

import math
from typing import Final

from fxflow import lax
from fxflow.core.arrays.array import Array
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special._operands import safe
from fxflow.scipy.special.entropies import xlog1py, xlogy
from fxflow.scipy.special.gammas import betaln
from fxflow.scipy.stats._functions import (
    Distribution,
    count,
    inside,
    is_whole,
    moved,
    probability,
    with_nan,
)

__all__ = ["logpmf", "pmf"]

_of = Distribution(
    "n: non-negative integers, array-like: how many trials.", n=count, p=probability
)


@_of
def logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Returns the logarithm of the probability of a number."""
    k, n, p = moved("binom.logpmf", k, loc, n, p)
    within = (k >= 0) & (k <= n) & is_whole(k)
    y, m = safe(within, k, 0), safe(within, n, 1)
    chosen = -lax.log1p(m) - betaln(m - y + 1, y + 1)
    value = chosen + xlogy(y, p) + xlog1py(m - y, -p)
    return with_nan(k, inside(within, value, -math.inf))


pmf: Final = _of.exp(logpmf)
