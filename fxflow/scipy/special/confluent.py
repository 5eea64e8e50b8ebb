"""Confluent hypergeometric functions: ₀F₁, and Tricomi's U of positive numbers.

₀F₁ by its series, and as Bessel's J where its terms alternate and cancel (DLMF 16.6.6
and 10.16.9). U by the trapezoidal rule for an integral of one sign (DLMF 13.4.4) at a
large parameter `a`, and from there by the recurrence in `a`, which is stable downwards
(N. Temme 1983; DLMF 13.3.7).
"""

from __future__ import annotations

import math
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.runtime.library import library
from fxflow.lax._last_terms import count_of_terms, digits, from_last_term
from fxflow.numpy._operands import ArrayLike, convert
from fxflow.scipy.special._derivatives import by_forward
from fxflow.scipy.special._neumann_series import FARTHEST, neumann_sums
from fxflow.scipy.special._operands import docs_of, in_64_bits
from fxflow.scipy.special.cylinder import jv_of
from fxflow.scipy.special.gammas import gammasgn

_docs = docs_of(
    """
a: real array-like.
b: real array-like.
v: real array-like.
x: real array-like.
z: real array-like.
""",
    ", with derivatives with respect to all arguments; DLMF 13, 16",
)


def _series(v: Any, z: Any) -> Any:
    """Returns ₀F₁ by its series, from the last term."""
    size, below = lax.abs(z), lax.stop_gradient(fnp.maximum(-lax.floor(v), 0))

    def enough(n: Any) -> Any:
        # The mean of the logarithms of a + k, 0 < k < n, is at least that of a + n/e;
        # counted from where v + k is positive.
        k = fnp.maximum(n - below, 0.5)
        rise = (below + k / math.e) * (fnp.maximum(v, 0) + k / math.e)
        return rise >= size * lax.exp(digits(dtypes.float64) / k)

    def term(k: Any, rest: Any) -> Any:
        return 1 + z / (k * (v + (k - 1))) * rest

    return from_last_term(term, count_of_terms(enough, dtypes.float64), 1 + 0 * z)


def _beyond(v: Any, z: Any) -> Any:
    """Returns ₀F₁ of z < 0 by J."""
    size = lax.lgamma(v) - 0.5 * (v - 1) * lax.log(-z)
    return gammasgn(v) * lax.exp(size) * jv_of(v - 1, 2 * lax.sqrt(-z))


def _hyp0f1_values(v: Any, z: Any) -> Any:
    pole = (v <= 0) & (lax.floor(v) == v)
    known = ~pole & (v - v == 0) & (z - z == 0)
    v, z = fnp.where(known, v, 1), fnp.where(known, z, 0)
    waves = z < -1 - lax.abs(v)
    near = _series(fnp.where(waves, 1, v), fnp.where(waves, 0, z))
    summed = waves & (v > 0) & (z > -0.25 * FARTHEST**2)
    order, place = fnp.where(summed, v, 1) - 1, fnp.where(summed, -z, 1)
    # The other sum is not used.
    far = neumann_sums(order, 2 * lax.sqrt(place), lambda k: k)[0]
    out = fnp.where(summed, far, near)
    rare = waves & ~summed
    order, place = fnp.where(rare, v, 1), fnp.where(rare, z, -1)
    nothing = lambda v, z: 0 * z
    beyond = lax.cond(fnp.any(rare), _beyond, nothing, order, place)
    return fnp.where(known, fnp.where(rare, beyond, out), math.nan)


_hyp0f1: Any = by_forward(_hyp0f1_values, None, lambda v, z: _hyp0f1(v + 1, z) / v)


@library(quick=True)
@_docs
def hyp0f1(v: ArrayLike, z: ArrayLike) -> Array:
    """Confluent hypergeometric limit function ₀F₁(; v; z).

    Accurate to a few units in the last place, relative to its amplitude where it
    oscillates.

    Special cases:
      nan where `v` is 0 or a negative integer, and of infinite arguments.

    Example:
      >>> hyp0f1(1.5, 2.0).round(4)
      Array(2.9804, dtype=float32)
    """
    return in_64_bits(_hyp0f1, "hyp0f1", v, z)


# -- Tricomi's function ----------------------------------------------------------------

# The integral is taken for a ≥ 4, where its integrand falls fast at 0.
_LEAST, _NODES, _DEPTH = 4.0, 120, 40.0
_MOST_STEPS = 2000


def _bounded(height: Any, inside: Any, outside: Any) -> Any:
    """Returns where a height falls below -40 between two places."""

    def step(_: Any, state: Any) -> Any:
        inner, outer = state
        middle = 0.5 * (inner + outer)
        low = height(middle) < -_DEPTH
        return fnp.where(low, inner, middle), fnp.where(low, middle, outer)

    return lax.fori_loop(0, 24, step, (inside, outside))[1]


def _integral(a: Any, b: Any, x: Any) -> Any:
    """Returns U for a ≥ 4 and x > 0, by an integral over t = exp(s)."""

    def exponent(s: Any) -> Any:
        return a * s - x * lax.exp(s) + (b - a - 1) * lax.log1p(lax.exp(s))

    # The one maximum: x t² + (x + 1 - b) t - a = 0.
    p = 0.5 * (x + 1 - b)
    root = lax.sqrt(p * p + a * x)
    t = fnp.where(p > 0, a / (p + root), (root - p) / x)
    peak = lax.stop_gradient(lax.log(t))
    top = lax.stop_gradient(exponent(peak))
    height = lambda s: lax.stop_gradient(exponent(s)) - top
    low = _bounded(height, peak, peak - 50)
    high = _bounded(height, peak, peak + 10 + lax.log1p(100 / (x * lax.exp(peak))))
    h = lax.stop_gradient((high - low) / _NODES)

    def step(k: Any, total: Any) -> Any:
        s = low + h * convert(k, dtypes.float64)
        return total + lax.exp(exponent(s) - top)

    total = lax.fori_loop(0, _NODES + 1, step, 0 * x + 0 * a + 0 * b)
    return h * total * lax.exp(top - lax.lgamma(a))


def _hyperu_values(a: Any, b: Any, x: Any) -> Any:
    known = (x > 0) & (x < math.inf) & (a - a == 0) & (b - b == 0)
    known = known & (lax.abs(a) <= _MOST_STEPS)
    a, b = fnp.where(known, a, 1), fnp.where(known, b, 1)
    at = fnp.where(known, x, 1)
    # Kummer's transformation: U(a, b, x) = x¹⁻ᵇ U(a - b + 1, 2 - b, x).
    turned = b > 1
    p, q = fnp.where(turned, a - b + 1, a), fnp.where(turned, 2 - b, b)
    direct = turned & (a >= _LEAST)
    p, q = fnp.where(direct, a, p), fnp.where(direct, b, q)
    steps = lax.stop_gradient(fnp.maximum(lax.ceil(_LEAST - p), 0))
    both = _integral(
        fnp.stack([p + steps, p + steps + 1]), fnp.stack([q, q]), fnp.stack([at, at])
    )

    def going(state: Any) -> Any:
        k, *_ = state
        return (k < _MOST_STEPS) & fnp.any(convert(k, dtypes.float64) < steps)

    def step(state: Any) -> Any:
        k, now, above = state
        active = convert(k, dtypes.float64) < steps
        c = p + (steps - convert(k, dtypes.float64))
        # U(c - 1) = (2 c - q + x) U(c) - c (c - q + 1) U(c + 1).
        new = (2 * c - q + at) * now - c * (c - q + 1) * above
        return k + 1, fnp.where(active, new, now), fnp.where(active, now, above)

    value = lax.while_loop(going, step, (fnp.int32(0), both[0], both[1]))[1]
    power = fnp.where(turned & ~direct, 1 - b, 0)
    return fnp.where(known, value * lax.exp(power * lax.log(at)), math.nan)


_hyperu: Any = by_forward(
    _hyperu_values, None, None, lambda a, b, x: -a * _hyperu(a + 1, b + 1, x)
)


@library(quick=True)
@_docs
def hyperu(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The Tricomi confluent hypergeometric function U(a, b, x) of positive `x`.

    To some tens of units of the last place, and as far as rounding the arguments does
    not matter. Digits are lost where `a` is negative, `b` large and `x` small: half of
    64 bits' at a = -8, b = 11, x = 0.03.

    Special cases:
      `x` not positive, infinite arguments, abs(a) above 2000: nan.

    Example:
      >>> hyperu(1.0, 2.0, 4.0).round(4)
      Array(0.25, dtype=float32)
    """
    return in_64_bits(_hyperu, "hyperu", a, b, x)
