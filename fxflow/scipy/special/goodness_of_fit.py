"""Distributions of Kolmogorov's and Smirnov's statistics, and their inverses."""

from __future__ import annotations

import math
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.runtime.library import library
from fxflow.lax.incomplete_beta import log_head
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special._derivatives import by_forward
from fxflow.scipy.special._operands import docs_of, in_64_bits, safe
from fxflow.scipy.special._roots import inverse_by

_docs = docs_of("""
y: real array-like.
n: positive integers, array-like: the size of the sample.
d: real array-like from 0 to 1: the deviation.
p: real array-like from 0 to 1: the probability.
""")


# -- the limit -------------------------------------------------------------------------


def _kolmogorov_values(y: Any) -> Any:
    far = y >= 0.82
    # Theta functions: of exp(-2 y²) far from 0, of its conjugate near (DLMF 20.7.32).
    high = safe(far, fnp.minimum(y, 30), 1)
    q = lax.exp(-2 * high * high)
    above = 2 * q * (1 - q**3 * (1 - q**5 * (1 - q**7 * (1 - q**9))))
    low = safe(~far & (y > 0.03), y, 0.5)
    r = lax.exp(-(math.pi**2) / (8 * low * low))
    tail = r * (1 + r**8 * (1 + r**16 * (1 + r**24)))
    below = 1 - math.sqrt(2 * math.pi) / low * tail
    out = fnp.where(far, above, fnp.where(y > 0.03, below, 1))
    return fnp.where(y == y, fnp.where(y > 30, 0, out), math.nan)


def _kolmogorov_density(y: Any) -> Any:
    """Returns the derivative, which is negative."""
    far = y >= 0.82
    high = safe(far, fnp.minimum(y, 30), 1)
    above, below = 0 * y, 0 * y
    for k in (5, 4, 3, 2, 1):
        above = above + (-1) ** k * k * k * lax.exp(-2 * k * k * high * high)
    above = 8 * high * above
    low = safe(~far & (y > 0.03), y, 0.5)
    for k in (7, 5, 3, 1):
        c = k * k * math.pi**2 / 4
        below = below + (c / low**4 - 1 / low**2) * lax.exp(-c / (2 * low * low))
    below = -math.sqrt(2 * math.pi) * below
    out = fnp.where(far, above, fnp.where(y > 0.03, below, 0))
    return fnp.where(y == y, fnp.where(y > 30, 0, out), math.nan)


kolmogorov_of: Any = by_forward(
    _kolmogorov_values, by_forward(_kolmogorov_density, None)
)
_kolmogi = inverse_by(kolmogorov_of, "positive", rising=False)


def _ends(p: Any, at_zero: Any, at_one: Any, value: Any) -> Any:
    value = fnp.where(p == 0, at_zero, value)
    return fnp.where(p == 1, at_one, value)


@library(quick=True)
@_docs
def kolmogorov(y: ArrayLike) -> Array:
    """Probability that Kolmogorov's statistic exceeds `y`, for large samples.

    In the limit. The statistic is √n times the largest difference of the empirical
    distribution function and the true one.

    Special cases:
      Negative numbers and 0 → 1.

    Example:
      >>> kolmogorov(1.0).round(4)
      Array(0.27, dtype=float32)
    """
    return in_64_bits(kolmogorov_of, "kolmogorov", y)


@library(quick=True)
@_docs
def kolmogi(p: ArrayLike) -> Array:
    """Inverse of `kolmogorov`.

    Special cases:
      0 → inf; 1 → 0; outside: nan.

    Example:
      >>> kolmogi(0.27).round(4)
      Array(1., dtype=float32)
    """
    of = lambda p: _ends(p, math.inf, 0.0, _kolmogi(p))
    return in_64_bits(of, "kolmogi", p)


# -- finite samples --------------------------------------------------------------------


def _smirnov_sum(d: Any, n: Any) -> Any:
    """Returns d ∑ C(n, j) (d + j/n)ʲ⁻¹ (1 - d - j/n)ⁿ⁻ʲ over 0 ≤ j ≤ n (1 - d)."""
    last = lax.stop_gradient(lax.floor(n * (1 - d)))

    def going(state: Any) -> Any:
        return state[0] <= fnp.max(last, initial=0)

    def step(state: Any) -> Any:
        j, total = state
        x = d + j / n
        inside = (j <= last) & (x < 1)
        x = fnp.where(inside, x, 0.5)
        count = fnp.where(inside, j, 0)
        log = log_head(count + 1, n - count + 1, x, 1 - x)
        term = lax.exp(log) / ((n + 1) * x * x * (1 - x))
        return j + 1, total + fnp.where(inside, term, 0)

    start = (fnp.zeros((), d.aval.dtype), 0 * d)
    return d * lax.while_loop(going, step, start)[1]


def _smirnov_values(d: Any, n: Any) -> Any:
    n = lax.stop_gradient(n)
    usual = (n >= 1) & (n == lax.floor(n)) & (n < math.inf)
    inside = usual & (d > 0) & (d < 1)
    out = _smirnov_sum(fnp.where(inside, d, 0.5), fnp.where(inside, n, 1))
    edge = fnp.where(d == 0, 1.0, fnp.where(d == 1, 0.0, math.nan))
    return fnp.where(inside, out, fnp.where(usual, edge, math.nan))


smirnov_of: Any = by_forward(_smirnov_values, None, lambda d, n: 0 * d)
_smirnovi = inverse_by(smirnov_of, "unit", rising=False)


@library(quick=True)
@_docs
def smirnov(n: ArrayLike, d: ArrayLike) -> Array:
    """Probability that the one-sided statistic D⁺ of `n` numbers is at least `d`.

    A sum of at most `n` terms.

    Special cases:
      `n` not an integer, or `d` outside [0, 1]: nan.

    Example:
      >>> smirnov(5.0, 0.4).round(4)
      Array(0.1546, dtype=float32)
    """
    return in_64_bits(lambda n, d: smirnov_of(d, n), "smirnov", n, d)


@library(quick=True)
@_docs
def smirnovi(n: ArrayLike, p: ArrayLike) -> Array:
    """Inverse of `smirnov(n, d)` in `d`.

    Special cases:
      0 → 1; 1 → 0; outside, or `n` not an integer: nan.

    Example:
      >>> smirnovi(5.0, 0.1546).round(3)
      Array(0.4, dtype=float32)
    """

    def of(n: Any, p: Any) -> Any:
        usual = (n >= 1) & (n == lax.floor(n)) & (n < math.inf)
        out = _ends(p, 1.0, 0.0, _smirnovi(p, fnp.where(usual, n, 1)))
        # Near it, p is 1 - d (1 + d)ⁿ⁻¹.
        rest = 1 - p
        out = fnp.where(p == 1, rest - (n - 1) * rest * rest, out)
        return fnp.where(usual, out, math.nan)

    return in_64_bits(of, "smirnovi", n, p)
