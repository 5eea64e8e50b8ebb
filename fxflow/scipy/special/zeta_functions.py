"""Zeta functions: Hurwitz's as the compiler has it, and Riemann's of all real numbers.

Riemann's by the Euler-Maclaurin formula, which continues the sum below 1, and by
reflection for negative numbers (DLMF 25.2.9, 25.4.1).
"""

from __future__ import annotations

import math
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.runtime.library import library
from fxflow.lax.gammas import ZETA_CORRECTIONS, ZETA_TERMS
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special._cylinder import sinpi
from fxflow.scipy.special._derivatives import by_forward
from fxflow.scipy.special._operands import in_64_bits, operands, special_docs
from fxflow.scipy.special.gammas import gamma_quotient


def _less_one(s: Any, gap: Any) -> Any:
    """Returns ζ(s) - 1 for s ≥ 0, where the gap is s - 1, not 0."""
    # What the exponential of a large product loses does not count beside 2⁻ˢ.
    powers = {2: fnp.power(2.0 + 0 * s, -s)}
    powers |= {n: lax.exp(-math.log(n) * s) for n in (3, 5, 7)}
    for n in range(4, ZETA_TERMS + 1):
        factor = 2 if n % 2 == 0 else 3
        if n not in powers:
            powers[n] = powers[factor] * powers[n // factor]
    total = 0 * s
    for n in range(ZETA_TERMS - 1, 1, -1):
        total = total + powers[n]
    last = powers[ZETA_TERMS]
    total = total + last * (ZETA_TERMS / gap + 0.5)
    factor = last * s / ZETA_TERMS
    for k, c in enumerate(ZETA_CORRECTIONS):
        total = total + c * factor
        factor = factor * (s + 2 * k + 1) * (s + 2 * k + 2) / ZETA_TERMS**2
    return total


def _reflected(s: Any) -> Any:
    """Returns ζ(s) for s < 0."""
    t = fnp.where((s < 0) & (s > -math.inf), -s, 1)
    # ζ(-t) = -2 sin(π t / 2) (2 π)⁻ᵗ⁻¹ Γ(1 + t) ζ(1 + t).
    sine = -2 * sinpi(0.5 * t)
    size = gamma_quotient(1 + fnp.minimum(t, 400), 2 * math.pi)
    out = sine * (1 + _less_one(1 + t, t)) * size
    return fnp.where(size == math.inf, fnp.where(sine == 0, 0, out), out)


def _above(s: Any) -> Any:
    """Returns ζ(s) - 1 for s ≥ 0."""
    high = fnp.where((s >= 0) & (s != 1) & (s < 2000), s, 2)
    out = fnp.where(s >= 2000, 0, _less_one(high, high - 1))
    return fnp.where(s == 1, math.inf, out)


def _completed(s: Any, less: float, high: Any) -> Any:
    """Returns ζ(s) - less, which is `high` for s ≥ 0."""
    below = s < 0
    low = lax.cond(fnp.any(below), _reflected, lambda s: 0 * s, s)
    out = fnp.where(below, low - less, high)
    return fnp.where((s == s) & (s > -math.inf), out, math.nan)


_zeta: Any = by_forward(lambda s: _completed(s, 0.0, 1 + _above(s)), None)
_zetac: Any = by_forward(lambda s: _completed(s, 1.0, _above(s)), None)


@special_docs
def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Array:
    """The Riemann zeta function; with `q` Hurwitz's, the sum of (n + q)⁻ˣ.

    Riemann's has derivatives; Hurwitz's by `q` only.

    Args:
      x: real array-like.
      q: real array-like, or None for the Riemann zeta function.

    Special cases:
      1 → inf; `x` below 1 with `q` → nan: that sum is not continued.

    Example:
      >>> zeta(2.0).round(4), zeta(-1.0).round(4)
      (Array(1.6449, dtype=float32), Array(-0.0833, dtype=float32))
    """
    return _riemann(x) if q is None else _hurwitz(x, q)


@library()
def _hurwitz(x: Any, q: Any) -> Array:
    return lax.zeta(*operands("zeta", x, q))


@library()
def _riemann(x: Any) -> Array:
    return in_64_bits(_zeta, "zeta", x)


@library()
@special_docs
def zetac(x: ArrayLike) -> Array:
    """The Riemann zeta function minus 1, exact where that is small.

    Special cases:
      1 → inf; inf → 0; -inf → nan.

    Example:
      >>> zetac(10.0).round(7)
      Array(0.0009946, dtype=float32)
    """
    return in_64_bits(_zetac, "zetac", x)
