"""Exponential integrals: exp(-t) / t and its like, from x to infinity.

Series near 0, continued fractions far from it (DLMF 6.6, 6.9, 8.19), in as many terms
as 64 bits ask for.
"""

from __future__ import annotations

import math
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.runtime.library import library
from fxflow.lax._last_terms import count_of_terms, digits, from_last_term
from fxflow.lax.gammas import EULER
from fxflow.numpy._operands import ArrayLike, convert
from fxflow.scipy.special._operands import operands, safe, special_docs
from fxflow.transforms.custom_jvp import custom_jvp


def _in_32_bits(x: Any) -> Any:
    """Returns an array in at least 32 bits."""
    narrow = dtypes.bits(x.aval.dtype) < 32
    return convert(x, dtypes.float32) if narrow else x


def _loop(count: int, step: Any, *start: Any) -> Any:
    """Returns the state after steps with k = 1, 2, …."""
    dtype = start[0].aval.dtype
    body = lambda i, state: step(convert(i, dtype) + 1, *state)
    return lax.fori_loop(0, count, body, start)


def _series(x: Any) -> Any:
    """Returns the sum of x^k / (k k!) from k = 1, to the rounding of exp(x)."""
    dtype = x.aval.dtype

    def enough(n: Any) -> Any:
        # n! is at least (n/e)ⁿ.
        return n / math.e >= lax.abs(x) * lax.exp((digits(dtype) - x) / n)

    term = lambda k, rest: 1 / k + x * (1 / (k + 1)) * rest
    return x * from_last_term(term, count_of_terms(enough, dtype), fnp.zeros_like(x))


def _fraction(n: Any, x: Any, count: int) -> Any:
    """Returns exp(x) E_n(x), by `count` terms, a multiple of 8, of the fraction."""
    # 1 / (x + n - 1 n / (x + n + 2 - 2 (n + 1) / (x + n + 4 - …
    term = lambda k, tail: x + n + 2 * (k - 1) - k * (n + k - 1) / tail
    number = fnp.asarray(float(count), x.aval.dtype)
    return 1 / from_last_term(term, number, x + n + 2 * number)


@custom_jvp
def _exp1(x: Any) -> Any:
    near = x < 2
    low = safe(near & (x > 0), x, 1)
    below = -EULER - lax.log(low) - _series(-low)
    high = safe(~near & (x < math.inf), x, 2)
    above = lax.exp(-high) * _fraction(fnp.ones_like(x), high, 64)
    out = fnp.where(near, below, above)
    out = fnp.where(x == 0, math.inf, fnp.where(x < 0, math.nan, out))
    return fnp.where(x == math.inf, 0, fnp.where(x != x, x, out))


_exp1.defjvps(lambda t, out, x: -t * lax.exp(-x) / x)


@custom_jvp
def _expi(x: Any) -> Any:
    wide = dtypes.bits(x.aval.dtype) == 64
    limit = 40.0 if wide else 18.0
    near = (x > 0) & (x < limit)
    low = safe(near, x, 1)
    below = EULER + lax.log(low) + _series(low)
    high = safe(x >= limit, x, limit)

    # The asymptotic series, up to its smallest term.
    count = fnp.asarray(40.0 if wide else 16.0, x.aval.dtype)
    inverse, one = 1 / high, fnp.ones_like(x)
    total = from_last_term(lambda k, rest: 1 + k * inverse * rest, count, one)
    # In two factors, the first of which overflows late.
    half = lax.exp(high / 2)
    above = half * (half / high * total)
    out = fnp.where(near, below, fnp.where(x > 0, above, -_exp1(safe(x < 0, -x, 1))))
    out = fnp.where(x == 0, -math.inf, out)
    out = fnp.where(x == math.inf, math.inf, out)
    return fnp.where(x != x, x, out)


_expi.defjvps(lambda t, out, x: t * lax.exp(x) / x)


@library()
@special_docs
def exp1(x: ArrayLike) -> Array:
    """Exponential integral E₁: of exp(-t) / t from `x` to infinity.

    Special cases:
      0 → inf; negative numbers → nan.

    Example:
      >>> exp1(1.0).round(4)
      Array(0.2194, dtype=float32)
    """
    (x,) = operands("exp1", x)
    return convert(_exp1(_in_32_bits(x)), x.aval.dtype)


@library()
@special_docs
def expi(x: ArrayLike) -> Array:
    """Exponential integral Ei: of exp(t) / t from minus infinity to `x`.

    Special cases:
      ±0 → -inf, -inf → 0. Near the zero at 0.3725 the error is an absolute one.

    Example:
      >>> expi(1.0).round(4)
      Array(1.8951, dtype=float32)
    """
    (x,) = operands("expi", x)
    return convert(_expi(_in_32_bits(x)), x.aval.dtype)


@custom_jvp
def _expn(n: Any, x: Any) -> Any:
    known = (n >= 0) & (lax.floor(n) == n) & (x >= 0)
    m = safe(known & (n > 0), n, 1)
    near = (x > 0) & (x < 1)
    low = safe(near, x, 0.5)

    def step(k: Any, term: Any, total: Any) -> Any:
        j = k - 1  # the terms are (-x)^j / (j! (j - n + 1)), but for j = n - 1
        gap = j - m + 1
        total = total - fnp.where(gap == 0, 0, term / safe(gap != 0, gap, 1))
        return term * -low / k, total

    rest = _loop(24, step, fnp.ones_like(x), fnp.zeros_like(x))[1]
    size = lax.exp((m - 1) * lax.log(low) - lax.lgamma(m))
    odd = fnp.where(fnp.mod(m, 2) == 0, -1, 1)
    below = odd * size * (lax.digamma(m) - lax.log(low)) + rest
    high = safe((x >= 1) & (x < math.inf), x, 1)
    above = lax.exp(-high) * _fraction(m, high, 88)
    out = fnp.where(near, below, above)
    out = fnp.where(n == 0, lax.exp(-x) / x, out)
    at_0 = fnp.where(n > 1, 1 / safe(n > 1, n - 1, 1), math.inf)
    out = fnp.where(x == 0, at_0, fnp.where(x == math.inf, 0, out))
    return fnp.where(known, out, fnp.where(x != x, x, math.nan))


def _expn_slope(primals: Any, tangents: Any) -> Any:
    (n, x), (_, dx) = primals, tangents
    out = _expn(n, x)
    # E_{-1} of a derivative of E_0.
    less = fnp.where(n > 0, n - 1, 0)
    slope = -_expn(lax.stop_gradient(less), x)
    first = -lax.exp(-x) * (1 + 1 / x) / x
    return out, dx * fnp.where(n > 0, slope, first)


_expn.defjvp(_expn_slope)


@library()
@special_docs
def expn(n: ArrayLike, x: ArrayLike) -> Array:
    """Generalized exponential integral: of exp(-x t) / tⁿ from 1 to infinity.

    Args:
      n: non-negative integers, array-like. There is no derivative with respect to them.
      x: non-negative real array-like.

    Special cases:
      nan where `n` is not such an integer, or `x` is negative; of 0: 1 / (n - 1), or
      inf.

    Example:
      >>> expn(2, 1.0).round(4)
      Array(0.1485, dtype=float32)
    """
    n, x = operands("expn", n, x)
    dtype = x.aval.dtype
    return convert(_expn(_in_32_bits(n), _in_32_bits(x)), dtype)


# -- hyperbolic sine and cosine integrals ----------------------------------------------


@custom_jvp
def _shi(x: Any) -> Any:
    size = lax.abs(x)
    near = size < 3
    low, high = safe(near, x, 0), safe(~near, size, 3)
    square = low * low

    def step(k: Any, term: Any, total: Any) -> Any:
        term = term * square / (2 * k * (2 * k + 1))
        return term, total + term / (2 * k + 1)

    below = _loop(13, step, low, low)[1]
    above = lax.sign(x) * (0.5 * (_expi(high) + _exp1(high)))
    return fnp.where(near, below, above)


@custom_jvp
def _chi(x: Any) -> Any:
    size = lax.abs(x)
    near = size < 3
    low, high = safe(near & (size > 0), size, 1), safe(~near, size, 3)
    square = low * low

    def step(k: Any, term: Any, total: Any) -> Any:
        term = term * square / (2 * k * (2 * k - 1))
        return term, total + term / (2 * k)

    start = fnp.ones_like(low), EULER + lax.log(low)
    below = fnp.where(size == 0, -math.inf, _loop(13, step, *start)[1])
    return fnp.where(near, below, 0.5 * (_expi(high) - _exp1(high)))


_shi.defjvps(
    lambda t, out, x: t * fnp.where(x == 0, 1, lax.sinh(x) / safe(x != 0, x, 1))
)
_chi.defjvps(lambda t, out, x: t * lax.cosh(x) / x)


@library()
def shichi(x: ArrayLike) -> tuple[Array, Array]:
    """Hyperbolic sine and cosine integrals Shi and Chi.

    Args:
      x: real array-like.

    Returns:
      Two float arrays of the shape of `x`: Shi and Chi.

    Raises:
      ArgumentError: an argument is not an array.
      DtypeError: an argument is complex.

    Special cases:
      Shi is odd; Chi of negative numbers is that of their absolute value; 0 → 0, -inf;
      inf → inf, inf. Near the zero of Chi at 0.5238 the error is an absolute one.

    Example:
      >>> shi, chi = shichi(1.0)
      >>> shi.round(4), chi.round(4)
      (Array(1.0573, dtype=float32), Array(0.8379, dtype=float32))

    Source: `scipy.special.shichi`; DLMF 6.2.
    """
    (x,) = operands("shichi", x)
    dtype, wide = x.aval.dtype, _in_32_bits(x)
    return convert(_shi(wide), dtype), convert(_chi(wide), dtype)
