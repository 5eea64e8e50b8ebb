"""Inverses of the incomplete gamma functions, and chi² probabilities.

The logarithm of either tail of the gamma distribution is a concave function of log(x),
for which Newton's method converges. It is applied to the smaller tail, with Halley's
correction.
"""

from __future__ import annotations

import math
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.runtime.library import library
from fxflow.lax.incomplete_gamma import smaller_part
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special._derivatives import partial
from fxflow.scipy.special._operands import docs_of, in_64_bits, operands
from fxflow.scipy.special.normal import ndtri
from fxflow.transforms.custom_jvp import custom_jvp

_STEPS = 24

_docs = docs_of(
    """
a: positive real array-like.
y: real array-like from 0 to 1.
v: positive real array-like: degrees of freedom.
x: real array-like.
p: real array-like from 0 to 1: the probability.
""",
    ", with derivatives with respect to all arguments",
)


# -- gamma -----------------------------------------------------------------------------


def _small_start(a: Any, p: Any, q: Any, size: Any) -> Any:
    """Returns an approximation for a < 1 (DiDonato and Morris 1986, 21 to 25)."""
    log_b = lax.log(q) + size - lax.log(a)
    # Far: by the asymptotic series of Q.
    y = fnp.maximum(-log_b, 0.2)
    rest = 1 - a
    u = fnp.maximum(y - rest * lax.log(y), 0.05)
    far = y - rest * lax.log(u) - lax.log1p(rest / (1 + u))
    # Near 0: by the first terms of the series of P.
    first = (lax.log(p) + size) / a
    first = fnp.where(p < 1, first, -q / a - 0.5772156649015329)
    power = lax.exp(fnp.minimum(first, 0))
    near = first - lax.log1p(-fnp.minimum(power, 0.9) / (a + 1))
    t = lax.exp(-0.5772156649015329 - lax.exp(fnp.minimum(log_b, 1)))
    middle = lax.log(t) + t * lax.exp(t)
    out = fnp.where(log_b < -1.05, lax.log(far), near)
    return fnp.where((a < 0.3) & (log_b >= -1.05) & (log_b < -0.51), middle, out)


def _large_start(a: Any, p: Any, q: Any, size: Any) -> Any:
    """Returns an approximation for a ≥ 1."""
    # By Wilson and Hilferty, and where the series' first terms are all.
    lower = p <= q
    normal = ndtri(fnp.where(lower, p, q))
    normal = fnp.where(lower, normal, -normal)
    cube = 1 - 1 / (9 * a) + normal / (3 * lax.sqrt(a))
    hilferty = lax.log(a) + 3 * lax.log(fnp.maximum(cube, 1e-8))
    size = lax.log(p) + size
    first = size / a
    x = fnp.minimum(lax.exp(first), a)
    moved = (size + x - lax.log1p(x / (a + 1) * (1 + x / (a + 2)))) / a
    return fnp.where(lower & (x < 0.3 * a), fnp.maximum(first, moved), hilferty)


def _gamma_root(a: Any, p: Any, q: Any) -> Any:
    """Returns x with P(a, x) = p, Q(a, x) = q, for tails inside (0, 1)."""
    lower = p <= q
    target = fnp.where(lower, p, q)
    small = a < 1
    size = lax.lgamma(a + 1)
    start = fnp.where(
        small,
        _small_start(fnp.where(small, a, 0.5), p, q, size),
        _large_start(fnp.where(small, 1, a), p, q, size),
    )

    def going(state: Any) -> Any:
        return (state[0] < _STEPS) & fnp.any(state[2])

    def step(state: Any) -> Any:
        k, x, _ = state
        part, is_lower, density = smaller_part(a, x, size)
        tail = fnp.where(is_lower ^ lower, 1 - part, part)
        slope = density / tail
        slope = fnp.where(lower, slope, -slope)
        move = lax.log(target / tail) / slope
        bend = 0.5 * move * (a - x - slope)
        # By Halley's method; the error after a step is about the cube of it.
        rough = lax.abs(move) + lax.abs(bend) > 3e-6
        move = move / fnp.clip(1 + bend, 0.5, 2)
        move = fnp.where(move - move == 0, fnp.clip(move, -50, 50), 0)
        return k + 1, x * lax.exp(move), rough

    state = (fnp.int32(0), lax.exp(start), start == start)
    return lax.while_loop(going, step, state)[1]


def _inverse_values(a: Any, y: Any, upper: bool) -> Any:
    inside = (a > 0) & (a < math.inf) & (y > 0) & (y < 1)
    shape, value = fnp.where(inside, a, 1), fnp.where(inside, y, 0.5)
    p, q = (1 - value, value) if upper else (value, 1 - value)
    out = fnp.where(inside, _gamma_root(shape, p, q), math.nan)
    valid = a >= 0
    out = fnp.where(valid & (y == 0), math.inf if upper else 0.0, out)
    return fnp.where(valid & (y == 1), 0.0 if upper else math.inf, out)


@custom_jvp
def gammaincinv_of(a: Any, y: Any) -> Any:
    """Returns `gammaincinv` of arrays of 64 bits."""
    return _inverse_values(a, y, False)


@custom_jvp
def gammainccinv_of(a: Any, y: Any) -> Any:
    """Returns `gammainccinv` of arrays of 64 bits."""
    return _inverse_values(a, y, True)


def _by_value(a: Any, x: Any) -> Any:
    """Returns the derivative of x with respect to P(a, x)."""
    # x over the density of log(x), which is 0 / 0 at the ends.
    power = (1 - a) * lax.log(fnp.where((a == 1) | (x == math.inf), 1, x))
    out = lax.exp(power + x + lax.lgamma(a))
    return fnp.where(x == math.inf, math.inf, out)


# By the theorem of implicit functions.
gammaincinv_of.defjvps(
    lambda t, x, a, y: -t * partial(lax.igamma, 0, a, x) * _by_value(a, x),
    lambda t, x, a, y: t * _by_value(a, x),
)
gammainccinv_of.defjvps(
    lambda t, x, a, y: t * partial(lax.igammac, 0, a, x) * _by_value(a, x),
    lambda t, x, a, y: -t * _by_value(a, x),
)


@library(quick=True)
@_docs
def gammaincinv(a: ArrayLike, y: ArrayLike) -> Array:
    """Inverse of the lower incomplete gamma function `gammainc(a, x)` in `x`.

    For `y` near 1 `gammainccinv` of 1 - y keeps more digits. Exact for `a` from 0.03 to
    1e5 and `y` of at least 1e-100.

    Special cases:
      0 → 0; 1 → inf; outside [0, 1], or `a` negative: nan.

    Example:
      >>> gammaincinv(2.0, 0.5).round(4)
      Array(1.6783, dtype=float32)
    """
    return in_64_bits(gammaincinv_of, "gammaincinv", a, y)


@library(quick=True)
@_docs
def gammainccinv(a: ArrayLike, y: ArrayLike) -> Array:
    """Inverse of the upper incomplete gamma function `gammaincc(a, x)` in `x`.

    Exact for `a` from 0.03 to 1e5 and `y` of at least 1e-100.

    Special cases:
      0 → inf; 1 → 0; outside [0, 1], or `a` negative: nan.

    Example:
      >>> gammainccinv(2.0, 0.5).round(4)
      Array(1.6783, dtype=float32)
    """
    return in_64_bits(gammainccinv_of, "gammainccinv", a, y)


# -- chi² ------------------------------------------------------------------------------


@library(quick=True)
@_docs
def chdtr(v: ArrayLike, x: ArrayLike) -> Array:
    """Probability that a chi² variable is at most `x`.

    Special cases:
      Negative `x` → nan.

    Example:
      >>> chdtr(2.0, 1.0).round(4)
      Array(0.3935, dtype=float32)
    """
    v, x = operands("chdtr", v, x)
    return lax.igamma(0.5 * v, 0.5 * x)


@library(quick=True)
@_docs
def chdtrc(v: ArrayLike, x: ArrayLike) -> Array:
    """Probability that a chi² variable is above `x`.

    Special cases:
      Negative `x` → nan.

    Example:
      >>> chdtrc(2.0, 1.0).round(4)
      Array(0.6065, dtype=float32)
    """
    v, x = operands("chdtrc", v, x)
    return fnp.where(x < 0, math.nan, lax.igammac(0.5 * v, 0.5 * x))


@library(quick=True)
@_docs
def chdtri(v: ArrayLike, p: ArrayLike) -> Array:
    """Inverse of `chdtrc(v, x)` in `x`.

    Special cases:
      0 → inf; 1 → 0; outside [0, 1], or `v` negative: nan.

    Example:
      >>> chdtri(2.0, 0.5).round(4)
      Array(1.3863, dtype=float32)
    """
    inverse = lambda v, p: 2 * gammainccinv_of(0.5 * v, p)
    return in_64_bits(inverse, "chdtri", v, p)
