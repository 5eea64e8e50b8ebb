"""Distributions of Kolmogorov's and Smirnov's distances.

The one-sided distance has a sum, that of two samples the paths of a lattice. The module
`_two_sided` has the two-sided distance.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import dtypes
from fxflow.scipy.special.gammas import gammaln


def limit_sf(x: Any) -> Any:
    """Returns the survival function of the limit of √n times the two-sided distance."""
    small = x < 0.82
    near = fnp.where(small, fnp.maximum(x, 0.04), 1)[..., None]
    odd = np.arange(1, 14, 2)
    powers = lax.exp(-(np.pi**2) / 8 * fnp.asarray(odd**2, x.dtype) / near**2)
    low = 1 - math.sqrt(2 * math.pi) / near[..., 0] * fnp.sum(powers, axis=-1)
    far = fnp.where(small, 1, x)[..., None]
    k = np.arange(1, 9)
    terms = lax.exp(-2 * fnp.asarray(k * k, x.dtype) * far**2)
    high = 2 * fnp.sum(fnp.asarray((-1.0) ** (k - 1), x.dtype) * terms, axis=-1)
    return fnp.where(small, fnp.where(x <= 0.04, 1, low), high)


def one_sided_sf(n: int, x: Any) -> Any:
    """Returns the survival function of the one-sided distance of n elements.

    Args:
      n: the number of elements.
      x: float[...].
    """
    inside = (x > 0) & (x < 1)
    d = fnp.where(inside, x, 0.5)[..., None]
    j = fnp.arange(n, dtype=x.dtype)
    left = d + j / n
    right = 1 - left
    counts = right > 0
    safe = fnp.where(counts, right, 1)
    ways = gammaln(fnp.asarray(n + 1.0, x.dtype)) - gammaln(j + 1) - gammaln(n - j + 1)
    logs = ways + (j - 1) * lax.log(left) + (n - j) * lax.log(safe)
    total = fnp.sum(fnp.where(counts, lax.exp(logs), 0), axis=-1) * d[..., 0]
    return fnp.where(inside, fnp.clip(total, 0, 1), fnp.where(x <= 0, 1, 0))


def two_samples_sf(n1: int, n2: int, d: Any, alternative: str) -> Any:
    """Returns the probability that the distance of two samples is at least as great.

    All orders of the elements are paths of a lattice, along which one sample is drawn
    after the other; those that leave the lines are summed where they leave.

    Args:
      n1: the number of elements in the first sample.
      n2: in the second one.
      d: the distance: float[...].
      alternative: "greater" is that the first distribution function is above.
    """
    g = math.gcd(n1, n2)
    first, second = n2 // g, n1 // g
    level = fnp.round(d * (n1 * first)).astype(dtypes.int32)[..., None]
    i = fnp.arange(n1 + 1, dtype=dtypes.int32)
    whole = n1 + n2

    def step(state: Any, s: Any) -> Any:
        chances, left = state
        j = s - i
        rest = (whole - s).astype(d.dtype)
        stay = fnp.clip(n2 - j, 0, n2).astype(d.dtype) / rest * chances
        move = (n1 - i).astype(d.dtype) / rest * chances
        chances = stay + fnp.roll(move, 1, axis=-1)
        gap = i * first - (s + 1 - i) * second
        if alternative == "two-sided":
            gap = abs(gap)
        elif alternative == "less":
            gap = -gap
        out = gap >= level
        left = left + fnp.sum(fnp.where(out, chances, 0), axis=-1)
        return (fnp.where(out, 0, chances), left), None

    shape = (*fnp.shape(d), n1 + 1)
    start = fnp.broadcast_to((i == 0).astype(d.dtype), shape)
    (_, left), _ = lax.scan(
        step, (start, fnp.zeros(fnp.shape(d), d.dtype)), fnp.arange(whole)
    )
    return fnp.clip(fnp.where(level[..., 0] <= 0, 1, left), 0, 1)
