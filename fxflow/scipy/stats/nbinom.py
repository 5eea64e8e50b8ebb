"""The negative binomial distribution: failures before the n-th success."""

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
    inside,
    is_whole,
    moved,
    positive,
    probability,
    with_nan,
)

__all__ = ["logpmf", "pmf"]

_of = Distribution(
    "n: positive real array-like: how many successes.", n=positive, p=probability
)


@_of
def logpmf(k: ArrayLike, n: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Returns the logarithm of the probability of a number."""
    k, n, p = moved("nbinom.logpmf", k, loc, n, p)
    within = (k >= 0) & is_whole(k) & (k != math.inf)
    y = safe(within, k, 0)
    chosen = -lax.log(n + y) - betaln(n, y + 1)
    value = chosen + xlogy(n, p) + xlog1py(y, -p)
    return with_nan(k, inside(within, value, -math.inf))


pmf: Final = _of.exp(logpmf)
