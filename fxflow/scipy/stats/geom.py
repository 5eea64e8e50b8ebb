"""The geometric distribution: the first success is the k-th trial."""

from __future__ import annotations

import math
from typing import Final

from fxflow import lax
from fxflow.core.arrays.array import Array
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special._operands import safe
from fxflow.scipy.special.entropies import xlog1py
from fxflow.scipy.stats._functions import (
    Distribution,
    inside,
    is_whole,
    moved,
    probability,
    with_nan,
)

__all__ = ["logpmf", "pmf"]

_of = Distribution(p=probability)


@_of
def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Returns the logarithm of the probability of a number."""
    k, p = moved("geom.logpmf", k, loc, p)
    within = (k >= 1) & is_whole(k)
    value = xlog1py(safe(within, k, 1) - 1, -p) + lax.log(p)
    return with_nan(k, inside(within, value, -math.inf))


pmf: Final = _of.exp(logpmf)
