"""Poisson's distribution."""

from __future__ import annotations

import math
from typing import Any, Final

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays.array import Array
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special._operands import operands, safe
from fxflow.scipy.special.entropies import xlogy
from fxflow.scipy.special.gammas import gammaincc, gammaln
from fxflow.scipy.stats._functions import (
    LOG_2PI,
    Distribution,
    inside,
    is_whole,
    moved,
    not_negative,
    with_nan,
)

__all__ = ["cdf", "entropy", "logpmf", "pmf"]

_of = Distribution("mu: positive real array-like: the mean.", mu=not_negative)


@_of
def logpmf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Returns the logarithm of the probability of a number."""
    k, mu = moved("poisson.logpmf", k, loc, mu)
    within = (k >= 0) & is_whole(k) & (k != math.inf)
    y = safe(within, k, 0)
    value = xlogy(y, mu) - mu - gammaln(y + 1)
    return with_nan(k, inside(within, value, -math.inf))


pmf: Final = _of.exp(logpmf)


@_of
def cdf(k: ArrayLike, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Returns the distribution function: the probability of at most that."""
    k, mu = moved("poisson.cdf", k, loc, mu)
    value = gammaincc(lax.floor(safe(k >= 0, k, 0)) + 1, mu)
    return with_nan(k, inside(k >= 0, inside(k != math.inf, value, 1), 0))


# Up to this mean the sum is taken, over as many numbers as matter in 64 bits.
_SUMMED = 40.0
_TERMS = 128


@_of
def entropy(mu: ArrayLike, loc: ArrayLike = 0) -> Array:
    """Returns the entropy, in nats.

    Special cases:
      0 → 0; negative means → nan.
    """
    # A shift does not change it.
    mu, _ = operands("poisson.entropy", mu, loc)
    near = mu < _SUMMED
    m = safe(near & (mu > 0), mu, 1)

    def add(carry: Any, k: Any) -> Any:
        total, term = carry
        # The terms are p(k) log k!.
        total = total + term * gammaln(k + 1)
        return (total, term * m / (k + 1)), None

    ks = lax.iota(m.aval.dtype, _TERMS)
    (total, _), _ = lax.scan(add, (lax.full_like(m, 0), lax.exp(-m)), ks)
    summed = m - m * lax.log(m) + total
    # The asymptotic series (Evans and Boersma 1988, "The entropy of a Poisson
    # distribution").
    y = 1 / safe(mu >= _SUMMED, mu, _SUMMED)
    series = y * (1 / 12 + y * (1 / 24 + y * (19 / 360 + y * (9 / 80))))
    series = series + y**5 * (863 / 2520 + y * (1375 / 1008 + y * (33953 / 5040)))
    large = 0.5 * (LOG_2PI + 1 - lax.log(y)) - series
    return inside(mu != 0, fnp.where(near, summed, large), 0)
