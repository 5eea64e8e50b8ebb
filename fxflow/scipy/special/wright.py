"""Wright's generalized Bessel function, and its logarithm (DLMF 10.46).

The sum of xᵏ / (k! Γ(a k + b)), of positive terms, around the largest one. Where that
is very far off, the first term of the asymptotic series (E. Wright 1935) is all.
"""

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

_docs = docs_of(
    """
a: non-negative real array-like.
b: non-negative real array-like.
x: non-negative real array-like.
""",
    ", with derivatives with respect to all arguments; DLMF 10.46",
)

_FAR, _MOST = 1e7, 1e9


def _largest(a: Any, b: Any, x: Any) -> Any:
    """Returns about the index of the largest term, the root of k (1 + b + a k)ᵃ = x."""
    # By Newton's method on log k.
    log_x = lax.log(x)

    def step(_: Any, u: Any) -> Any:
        size = a * lax.exp(u)
        whole = 1 + b + size
        f = u + a * lax.log(whole) - log_x
        return u - f / (1 + a * size / whole)

    return lax.exp(fnp.clip(lax.fori_loop(0, 12, step, log_x / (1 + a)), -1, 700))


def _sum(a: Any, b: Any, x: Any) -> tuple[Any, Any]:
    """Returns the logarithm of the largest term, and the sum over it."""
    center = lax.stop_gradient(_largest(a, b, x))
    center = fnp.where(center <= _MOST, center, 0)
    reach = 12 * lax.sqrt(center / (1 + a)) + 30
    low = lax.floor(fnp.maximum(center - reach, 0))
    count = lax.ceil(center + reach) - low
    log_x = lax.log(x)

    def log_term(k: Any) -> Any:
        # 1 / Γ(z) is z / Γ(z + 1), of which z is a factor outside.
        return k * log_x - lax.lgamma(k + 1) - lax.lgamma(a * k + b + 1)

    shift = lax.stop_gradient(log_term(lax.floor(center)))

    def going(state: Any) -> Any:
        return fnp.any(state[0] <= count)

    def step(state: Any) -> Any:
        j, total = state
        k = low + j
        term = (a * k + b) * lax.exp(log_term(k) - shift)
        return j + 1, total + fnp.where(j <= count, term, 0)

    return shift, lax.while_loop(going, step, (0 * x, 0 * x))[1]


def _log_values(a: Any, b: Any, x: Any) -> Any:
    finite = (a < math.inf) & (b < math.inf) & (x < math.inf)
    known = (a >= 0) & (b >= 0) & (x >= 0) & finite
    a, b = fnp.where(known, a, 1), fnp.where(known, b, 1)
    inside = known & (x > 0)
    y = fnp.where(inside, x, 1)
    flat = a == 0
    z = lax.exp(lax.log(fnp.where(flat, 1, a) * y) / (1 + a))
    far = ~flat & (z > _FAR * (1 + b))
    large = fnp.where(far, z, 1)
    growth = (1 + a) / fnp.where(flat, 1, a) * large
    tail = (0.5 - b) * lax.log(large) + growth - 0.5 * lax.log(2 * math.pi * (1 + a))
    # Without a it is exp(x) / Γ(b).
    simple = flat | (x == 0)
    shift, total = _sum(a, b, fnp.where(far | flat, 1, y))
    log = shift + lax.log(total)
    first = lax.log(b) - lax.lgamma(b + 1) + fnp.where(inside, y, 0)
    out = fnp.where(simple, first, fnp.where(far, tail, log))
    # Between both there are too many terms.
    between = (_largest(a, b, y) > _MOST) & ~far & ~flat
    out = fnp.where(between, math.nan, out)
    return fnp.where(known, out, fnp.where(x + a + b == x + a + b, math.nan, x + a + b))


def _log_slope(a: Any, b: Any, x: Any) -> Any:
    return lax.exp(_log_wright(a, b + a, x) - _log_wright(a, b, x))


def _values(a: Any, b: Any, x: Any) -> Any:
    return lax.exp(_log_values(a, b, x))


_log_wright: Any = by_forward(_log_values, None, None, _log_slope)
_wright: Any = by_forward(_values, None, None, lambda a, b, x: _wright(a, b + a, x))


@library(quick=True)
@_docs
def wright_bessel(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Wright's generalized Bessel function, the sum of xᵏ / (k! Γ(a k + b)).

    Special cases:
      Negative or infinite arguments → nan.

    Example:
      >>> wright_bessel(1.5, 1.1, 2.0).round(4)
      Array(2.7661, dtype=float32)
    """
    return in_64_bits(_wright, "wright_bessel", a, b, x)


@library(quick=True)
@_docs
def log_wright_bessel(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Logarithm of `wright_bessel(a, b, x)`, also where that overflows.

    Special cases:
      Negative or infinite arguments → nan; `b` and `x` of 0, or `a` and `b` → -inf.

    Example:
      >>> log_wright_bessel(1.5, 1.1, 2000.0).round(3)
      Array(37.696, dtype=float32)
    """
    return in_64_bits(_log_wright, "log_wright_bessel", a, b, x)
