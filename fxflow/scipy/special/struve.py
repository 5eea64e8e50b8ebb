"""Struve functions H and L (DLMF 11)."""

from __future__ import annotations

import math
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.runtime.library import library
from fxflow.lax._last_terms import count_of_terms, digits, from_last_term
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special._cylinder import FAR, far_j_and_y, high_y
from fxflow.scipy.special._derivatives import by_forward
from fxflow.scipy.special._neumann_series import FARTHEST, neumann_sums
from fxflow.scipy.special._operands import docs_of, in_64_bits

_docs = docs_of(
    """
v: real array-like: the order.
x: real array-like.
""",
    ", with derivatives with respect to all arguments; DLMF 11",
)
_NODES = 70


def _series(v: Any, x: Any, sign: int) -> Any:
    """Returns ∑ (sign x²/4)ᵏ Γ(3/2) Γ(v + 3/2) / (Γ(k + 3/2) Γ(k + v + 3/2))."""
    quarter = sign * x * x / 4
    size = lax.stop_gradient(0.5 * x)

    def enough(n: Any) -> Any:
        # The mean of the logarithms of a + k, 0 < k < n, is at least that of a + n/e.
        rise = (0.5 + n / math.e) * (v + 0.5 + n / math.e)
        return rise >= lax.square(size * lax.exp(0.5 * digits(dtypes.float64) / n))

    def term(k: Any, rest: Any) -> Any:
        return 1 + quarter / ((k + 0.5) * (k + v + 0.5)) * rest

    return from_last_term(term, count_of_terms(enough, dtypes.float64), 1 + 0 * (x + v))


def _head(v: Any, x: Any) -> Any:
    """Returns (x/2)ᵛ⁺¹ / (Γ(3/2) Γ(v + 3/2))."""
    log = (v + 1) * lax.log(x / 2) - lax.lgamma(v + 1.5)
    return lax.exp(log) * (2 / math.sqrt(math.pi))


def _integral(v: Any, x: Any) -> Any:
    """Returns ∫ exp(-s) (1 + s²/x²)^(v - 1/2) ds over s > 0.

    By the trapezoidal rule, with s = exp(w - exp(-w)).
    """
    low, high = -3.6, 0 * x + lax.log(45 + 2 * fnp.maximum(v, 0)) + 0.4
    h = lax.stop_gradient((high - low) / _NODES)

    def step(k: Any, total: Any) -> Any:
        w = low + h * fnp.asarray(k, x.dtype)
        small = lax.exp(-w)
        s = lax.exp(w - small)
        power = (v - 0.5) * lax.log1p(lax.square(s / x))
        return total + lax.exp(power - s) * s * (1 + small)

    return h * lax.fori_loop(0, _NODES + 1, step, 0 * x)


def _rest_series(v: Any, x: Any) -> Any:
    """Returns what `_integral` does, for large x (DLMF 11.6.1)."""
    square, total = 4 / (x * x), 1 + 0 * (v + x)
    for k in range(20, -1, -1):
        total = 1 + (k + 0.5) * (v - 0.5 - k) * square * total
    return total


def _beyond(v: Any, x: Any) -> Any:
    """Returns H where x is large, and v, too."""
    return high_y(v, x) + _rest_head(v, x) * _integral(v, x)


def _rest_head(v: Any, x: Any) -> Any:
    """Returns (x/2)ᵛ⁻¹ / (√π Γ(v + 1/2)), with which H - Y begins."""
    log = (v - 1) * lax.log(x / 2) - lax.lgamma(v + 0.5)
    return lax.exp(log) / math.sqrt(math.pi)


def _struve_values(v: Any, x: Any) -> Any:
    size = lax.abs(x)
    known = (v > -0.5) & (v <= 1000) & (size < math.inf)
    inside = known & (size > 0)
    order = fnp.where(known, v, 0)
    near = inside & (size < 4 + 0.7 * lax.abs(order))
    far = inside & ~near & (size > FAR) & (size > 0.5 * order * order)
    middle = inside & ~near & ~far & (size <= FARTHEST)
    beyond = inside & ~near & ~far & (size > FARTHEST)

    def where(region: Any, place: float) -> tuple[Any, Any]:
        return fnp.where(region, order, 0), fnp.where(region, size, place)

    low, at = where(near, 1)
    out = _series(low, at, -1)
    mid, at = where(middle, 4)
    factor = lambda k: (2 * mid + 1) / ((2 * k + 1) * (2 * (mid + k) + 1))
    out = fnp.where(middle, neumann_sums(mid + 1, at, factor)[1], out)
    low, at = fnp.where(far | beyond, 0, order), fnp.where(near | middle, size, 1)
    out = out * _head(low, at)
    # H - Y is an integral of one sign (DLMF 11.5.2).
    high, at = where(far, 1e3)
    value = far_j_and_y(high, at)[1] + _rest_head(high, at) * _rest_series(high, at)
    out = fnp.where(far, value, out)
    nothing = lambda v, x: 0 * x
    rare = lax.cond(fnp.any(beyond), _beyond, nothing, *where(beyond, 1e3))
    out = fnp.where(beyond, rare, out)
    return _at_zero(v, x, known, out)


def _at_zero(v: Any, x: Any, known: Any, out: Any) -> Any:
    zero = fnp.where(v > -1, 0.0, math.nan)
    out = fnp.where(x == 0, zero, out)
    whole = lax.floor(v)
    even = whole == 2 * lax.floor(v / 2)
    turned = fnp.where(whole == v, fnp.where(even, -out, out), math.nan)
    return fnp.where(known, fnp.where(x < 0, turned, out), math.nan)


def _modstruve_values(v: Any, x: Any) -> Any:
    size = lax.abs(x)
    known = (v > -0.5) & (v <= 1000) & (size <= 700)
    inside = known & (size > 0)
    order, at = fnp.where(inside, v, 0), fnp.where(inside, size, 1)
    return _at_zero(v, x, known, _head(order, at) * _series(order, at, 1))


_struve: Any = by_forward(_struve_values, None, None)
_modstruve: Any = by_forward(_modstruve_values, None, None)


@library(quick=True)
@_docs
def struve(v: ArrayLike, x: ArrayLike) -> Array:
    """The Struve function H of an order above -1/2.

    Accurate to a few units in the last place, relative to its amplitude.

    Special cases:
      Negative `x` → nan, unless `v` is an integer; `v` not above -1/2, or above 1000:
      nan.

    Example:
      >>> struve(0.0, 1.0).round(4)
      Array(0.5687, dtype=float32)
    """
    return in_64_bits(_struve, "struve", v, x)


@library(quick=True)
@_docs
def modstruve(v: ArrayLike, x: ArrayLike) -> Array:
    """Modified Struve function L of an order above -1/2.

    Special cases:
      Negative `x` → nan, unless `v` is an integer; `v` not above -1/2, or above 1000:
      nan; `x` beyond ±700: nan.

    Example:
      >>> modstruve(0.0, 1.0).round(4)
      Array(0.7102, dtype=float32)
    """
    return in_64_bits(_modstruve, "modstruve", v, x)
