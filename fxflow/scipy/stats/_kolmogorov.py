"""Distributions of Kolmogorov's and Smirnov's distances.

The one-sided distance has a sum; the two-sided one of few elements is found by the
probability that a path of counts stays between two lines, of many by Pelz and Good's
expansion; the distance of two samples by the paths of a lattice.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import dtypes
from fxflow.scipy.special.entropies import xlogy
from fxflow.scipy.special.gammas import gammaln

_FEW = 140


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
      n: how many.
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


def two_sided_sf(n: int, x: Any) -> Any:
    """Returns the survival function of the two-sided distance of n elements.

    Args:
      n: how many.
      x: float[...].
    """
    inside = (x > 0.5 / n) & (x < 1)
    d = fnp.where(inside, x, 0.75)
    twice = fnp.minimum(2 * one_sided_sf(n, d), 1)
    square = n * d * d
    if n <= _FEW:
        # Beyond, at most one of the two one-sided distances is as great.
        sure = (d >= 0.5) | (square > 4)
        other = 1 - _inside_lines(n, fnp.where(sure, 0.6, d))
    else:
        sure = square >= 2.2
        other = 1 - _pelz_good(n, fnp.where(sure, 1 / math.sqrt(n), d))
    value = fnp.clip(fnp.where(sure, twice, other), 0, 1)
    return fnp.where(inside, value, fnp.where(x < 1, 1, 0))


def _inside_lines(n: int, d: Any) -> Any:
    """Returns the probability that the distance of n elements is less, by counting.

    At each time where a bound of the number of elements up to it changes, there is the
    probability of each number so far, with those beyond the bounds taken away.
    """
    dtype = d.dtype
    shape = d.shape
    flat = fnp.reshape(d, (-1, 1))
    i = fnp.arange(1, n + 1, dtype=dtype)
    # Element i lies between the two times.
    first = fnp.clip(i / n - flat, 0, 1)
    last = fnp.clip((i - 1) / n + flat, 0, 1)
    times = fnp.sort(fnp.concatenate([first, last], axis=-1), axis=-1)
    times = fnp.concatenate([times, fnp.ones_like(flat)], axis=-1)
    steps = fnp.diff(times, axis=-1, prepend=fnp.zeros_like(flat))
    counts = np.arange(n + 1)
    shift = counts[:, None] - counts[None, :]
    valid = shift >= 0
    shift = np.where(valid, shift, 0)
    jumps = fnp.arange(n + 1, dtype=dtype)
    logs = gammaln(jumps + 1)
    places = fnp.arange(n + 1, dtype=dtype)

    def step(chances: Any, at: Any) -> Any:
        time, wide = at
        mean = n * wide[:, None]
        weights = lax.exp(xlogy(jumps, mean) - mean - logs)
        table = fnp.where(valid, weights[:, shift], 0)
        chances = fnp.sum(table * chances[:, None, :], axis=-1)
        least = fnp.sum(last <= time[:, None], axis=-1, keepdims=True)
        most = fnp.sum(first < time[:, None], axis=-1, keepdims=True)
        kept = (places >= least) & (places <= most)
        return fnp.where(kept, chances, 0), None

    start = fnp.where(places == 0, 1, fnp.zeros((*flat.shape[:1], n + 1), dtype))
    chances, _ = lax.scan(step, start, (times.T, steps.T))
    whole = math.exp(n * math.log(n) - n - math.lgamma(n + 1))
    return fnp.reshape(fnp.clip(chances[:, n] / whole, 0, 1), shape)


def _pelz_good(n: int, d: Any) -> Any:
    """Returns the distribution function of the distance of n elements, for great n."""
    z = (math.sqrt(n) * d)[..., None]
    z = fnp.maximum(z, 0.05)
    square = z * z
    pi2 = math.pi**2
    odd = fnp.asarray(np.arange(1, 20, 2) ** 2, d.dtype)
    q = lax.exp(-pi2 / 8 / square * odd)
    p2, p4, p6, p8 = square, square**2, square**3, square**4
    first = -p2 + pi2 / 4 * odd
    second = 6 * p6 + 2 * p4 + (2 * p4 - 5 * p2) * pi2 / 4 * odd
    second = second + pi2**2 * (1 - 2 * p2) / 16 * odd**2
    third = -30 * p6 - 90 * p8 + pi2 * (135 * p4 - 96 * p6) / 4 * odd
    third = third + pi2**2 * (-60 * p2 + 212 * p4) / 16 * odd**2
    third = third + pi2**3 * (5 - 30 * p2) / 64 * odd**3
    root = math.sqrt(2 * math.pi)
    over: Any = lambda t: root * fnp.sum(t * q, axis=-1)
    z1 = z[..., 0]
    parts = [
        over(fnp.ones_like(q)) / z1,
        over(first) / (6 * z1**4),
        over(second) / (72 * z1**7),
        over(third) / (6480 * z1**10),
    ]
    k = fnp.asarray(np.arange(1, 11) ** 2, d.dtype)
    r = lax.exp(-pi2 / 2 / square * k)
    parts[2] = parts[2] - pi2 * root / (36 * z1**3) * fnp.sum(k * r, axis=-1)
    more = fnp.sum((3 * square - pi2 * k) * k * r, axis=-1)
    parts[3] = parts[3] + pi2 * root / (216 * z1**6) * more
    return sum(part / n ** (i / 2) for i, part in enumerate(parts))


def two_samples_sf(n1: int, n2: int, d: Any, alternative: str) -> Any:
    """Returns the probability that the distance of two samples is at least as great.

    All orders of the elements are paths of a lattice, along which one sample is drawn
    after the other; those that leave the lines are summed where they leave.

    Args:
      n1: how many elements there are in the first sample.
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
