"""Bernoulli's distribution: one trial, 1 with probability p."""

from __future__ import annotations

import math
from typing import Final

from fxflow import numpy as fnp
from fxflow.core.arrays.array import Array
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special._operands import operands, safe
from fxflow.scipy.special.entropies import xlog1py, xlogy
from fxflow.scipy.stats._functions import (
    Distribution,
    inside,
    moved,
    probability,
    with_nan,
)

__all__ = ["cdf", "logpmf", "pmf", "ppf"]

_of = Distribution(p=probability)


@_of
def logpmf(k: ArrayLike, p: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Returns the logarithm of the probability of a number."""
    k, p = moved("bernoulli.logpmf", k, loc, p)
    known = (k == 0) | (k == 1)
    y = safe(known, k, 0)
    value = xlogy(y, p) + xlog1py(1 - y, -p)
    return with_nan(k, inside(known, value, -math.inf))


pmf: Final = _of.exp(logpmf)


@_of
def cdf(k: ArrayLike, p: ArrayLike) -> Array:
    """Returns the distribution function: the probability of at most that."""
    k, p = operands("bernoulli.cdf", k, p)
    value = fnp.where(k < 0, 0 * p, fnp.where(k < 1, 1 - p, 1 + 0 * p))
    return with_nan(k, value)


@_of
def ppf(q: ArrayLike, p: ArrayLike) -> Array:
    """Returns the quantile function: the inverse of `cdf`."""
    q, p = operands("bernoulli.ppf", q, p)
    value = fnp.where(q <= 1 - p, 0 * p, 1 + 0 * p)
    return inside((q >= 0) & (q <= 1), value, math.nan)
