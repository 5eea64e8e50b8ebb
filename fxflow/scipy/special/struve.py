"""Struve's functions H and L (DLMF 11)."""

from __future__ import annotations

import math
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.runtime.library import library
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special._derivatives import by_forward
from fxflow.scipy.special._operands import docs_of, in_64_bits
from fxflow.scipy.special.cylinder import yv_of

_docs = docs_of(
    """
v: real array-like: the order.
x: real array-like.
""",
    ", with derivatives with respect to all arguments; DLMF 11",
)
_NODES = 70
_MOST_STEPS = 2000


def _series(v: Any, x: Any, sign: int) -> Any:
    """Returns ∑ (sign x²/4)ᵏ Γ(3/2) Γ(v + 3/2) / (Γ(k + 3/2) Γ(k + v + 3/2))."""
    quarter = sign * x * x / 4

    def going(state: Any) -> Any:
        k, term, total = state
        return (k[()] < _MOST_STEPS) & fnp.any(lax.abs(term) > 1e-17 * lax.abs(total))

    def step(state: Any) -> Any:
        k, term, total = state
        term = term * quarter / ((k + 1.5) * (k + v + 1.5))
        return k + 1, term, total + term

    one = 1 + 0 * (x + v)
    return lax.while_loop(going, step, (fnp.zeros((), x.dtype), one, one))[2]


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


def _struve_values(v: Any, x: Any) -> Any:
    size = lax.abs(x)
    known = (v > -0.5) & (v <= 1000) & (size < math.inf)
    order = fnp.where(known, v, 0)
    near = known & (size > 0) & (size < 4 + 0.7 * lax.abs(order))
    far = known & ~near & (size > 0)
    low, high = fnp.where(near, size, 1), fnp.where(far, size, 10)
    below = _head(order, low) * _series(fnp.where(near, order, 0), low, -1)
    # H - Y is an integral of one sign (DLMF 11.5.2).
    log = (order - 1) * lax.log(high / 2) - lax.lgamma(order + 0.5)
    rest = lax.exp(log) / math.sqrt(math.pi) * _integral(order, high)
    out = fnp.where(near, below, yv_of(order, high) + rest)
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


@library()
@_docs
def struve(v: ArrayLike, x: ArrayLike) -> Array:
    """Struve's function H of an order above -1/2.

    Accurate to a few units in the last place, relative to its amplitude.

    Special cases:
      Negative `x` → nan, unless `v` is whole; `v` not above -1/2, or above 1000: nan.

    Example:
      >>> struve(0.0, 1.0).round(4)
      Array(0.5687, dtype=float32)
    """
    return in_64_bits(_struve, "struve", v, x)


@library()
@_docs
def modstruve(v: ArrayLike, x: ArrayLike) -> Array:
    """Modified Struve function L of an order above -1/2.

    Special cases:
      Negative `x` → nan, unless `v` is whole; `v` not above -1/2, or above 1000: nan;
      `x` beyond ±700: nan.

    Example:
      >>> modstruve(0.0, 1.0).round(4)
      Array(0.7102, dtype=float32)
    """
    return in_64_bits(_modstruve, "modstruve", v, x)
