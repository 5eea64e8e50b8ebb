"""The gamma function and its family."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.arrays.aval import require_room
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError
from fxflow.lax.axes import integer
from fxflow.lax.gamma_ratios import (
    LANCZOS_SHIFT,
    lanczos_sum,
    log_beta,
    log_gamma_ratio,
)
from fxflow.numpy._operands import ArrayLike, convert
from fxflow.numpy.selection import choose_between
from fxflow.scipy.special._derivatives import by_forward
from fxflow.scipy.special._operands import operands, safe, special_docs
from fxflow.transforms.custom_jvp import custom_jvp


@library()
@special_docs
def gammaln(x: ArrayLike) -> Array:
    """Logarithm of the absolute value of the gamma function.

    Special cases:
      0 and negative integers → inf.

    Example:
      >>> gammaln(4.0).round(4)
      Array(1.7918, dtype=float32)
    """
    (x,) = operands("gammaln", x)
    return lax.lgamma(x)


@library()
@special_docs
def gammasgn(x: ArrayLike) -> Array:
    """Sign of the gamma function.

    Special cases:
      Negative integers → nan; ±0 → ±1.

    Example:
      >>> gammasgn(np.array([-0.5, 2.0]))
      Array([-1.,  1.], dtype=float32)
    """
    (x,) = operands("gammasgn", x)
    whole = lax.floor(x)
    odd = whole - 2 * lax.floor(whole / 2) != 0
    below = choose_between(odd, lax.full_like(x, -1), lax.full_like(x, 1))
    below = choose_between(whole == x, lax.full_like(x, math.nan), below)
    zero = lax.sign(1 / x)
    out = choose_between(
        x < 0, below, choose_between(x == 0, zero, lax.full_like(x, 1))
    )
    out = choose_between(x == -math.inf, lax.full_like(x, math.nan), out)
    return choose_between(x != x, x, out)


@library()
@special_docs
def gamma(x: ArrayLike) -> Array:
    """Gamma function.

    Special cases:
      Integers from 1 to 10 → exact factorials; negative integers → nan; ±0 → ±inf.

    Example:
      >>> gamma(5.0)
      Array(24., dtype=float32)
    """
    (x,) = operands("gamma", x)
    dtype = x.aval.dtype
    wide = convert(x, dtypes.float32) if dtypes.bits(dtype) < 32 else x
    return convert(_gamma(wide), dtype)


def gamma_quotient(z: Any, base: float = 1.0) -> Any:
    """Returns Γ(z) / base^z for z > 0, to some units of the last place."""
    # Its error cancels in the quotient of power and exponential.
    shifted = z + LANCZOS_SHIFT
    # In two factors, the first of which overflows late.
    root = lax.pow(shifted / base, 0.5 * z - 0.25)
    return base**-0.5 * lanczos_sum(z) * (root / lax.exp(shifted)) * root


@custom_jvp
def _gamma(x: Any) -> Any:
    negative = x < 0
    size = lax.abs(x)
    far = size > (200 if dtypes.bits(x.aval.dtype) == 64 else 40)
    value = gamma_quotient(safe(~far, size, 1))
    value = choose_between(far, lax.full_like(x, math.inf), value)
    whole = lax.floor(size)
    # Factorials are integers, as long as the error is far below one.
    near = value < 0.05 / float(fnp.finfo(x.aval.dtype).eps)
    value = choose_between((whole == size) & near, lax.round(value), value)
    # Γ(-z) = -π / (z sin(π z) Γ(z)), which is nan at poles.
    part = size - whole
    sine = lax.sin(math.pi * choose_between(part > 0.5, 1 - part, part))
    odd = whole - 2 * lax.floor(0.5 * whole) == 1
    sine = choose_between(odd, -sine, sine)
    finite = safe(negative & (size < math.inf), size, 0.5)
    below = -math.pi / (sine * (finite * value))
    below = choose_between(part == 0, lax.full_like(x, math.nan), below)
    below = choose_between(size == math.inf, lax.full_like(x, math.nan), below)
    out = choose_between(negative, below, value)
    out = choose_between(x == 0, 1 / x, out)
    return choose_between(x != x, x, out)


_gamma.defjvps(lambda t, out, x: t * (out * lax.digamma(x)))


@library("exact")
@special_docs
def factorial(n: ArrayLike, exact: bool = False) -> Array:
    """Factorial, by the gamma function of n + 1.

    Args:
      n: real array-like.
      exact: not supported: the integers of arrays have a fixed width.

    Returns:
      Float array of the shape of `n`.

    Raises:
      ArgumentError: an argument is not an array, or `exact` is asked for.

    Special cases:
      Negative numbers → 0.

    Example:
      >>> factorial(np.array([0, 3, 5]))
      Array([  1.,   6., 120.], dtype=float32)
    """
    if exact:
        raise ArgumentError(
            "factorial: exact=True is not supported, because integers here have a "
            "fixed width: use math.factorial"
        )
    (x,) = operands("factorial", n)
    value = gamma(safe(x >= 0, x, 0) + 1)
    return choose_between(x < 0, lax.full_like(x, 0), value)


@library()
@special_docs
def beta(a: ArrayLike, b: ArrayLike) -> Array:
    """Beta function.

    Args:
      a: real array-like.

    Example:
      >>> beta(2.0, 3.0) * 12
      Array(0.99999994, dtype=float32)
    """
    x, y = operands("beta", a, b)
    kind = _beta_poles(x, y)
    sign = gammasgn(kind.x) * gammasgn(kind.y) * gammasgn(kind.x + kind.y)
    odd = lax.floor(kind.y / 2) * 2 != kind.y
    sign = choose_between(kind.turned & odd, -sign, sign)
    value = sign * lax.exp(_log_beta(kind.x, kind.y))
    value = choose_between(kind.pole, lax.full_like(x, math.inf), value)
    return choose_between(kind.zero, lax.full_like(x, 0), value)


class _BetaKind(NamedTuple):
    """Arguments of the beta function that are not poles of its factors.

    Attributes:
      x: the first argument.
      y: the second one.
      turned: where both are those of a pole whose ratio to another has a limit.
      pole: where it is infinite.
      zero: where it is 0.
    """

    x: Any
    y: Any
    turned: Any
    pole: Any
    zero: Any


# B₂ₖ / 2k, of the asymptotic series of ψ (DLMF 5.11.2), exact for x ≥ 10.
_PSI_SERIES = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)


def _sinpi(x: Any) -> Any:
    return lax.sin(math.pi * (x - 2 * lax.round(x / 2)))


def _digamma_change(a: Any, b: Any) -> Any:
    """Returns ψ(a + b) - ψ(a), with all digits where a and a + b have one sign."""
    dtype = a.aval.dtype
    if dtypes.bits(dtype) < 32:
        wide = (convert(v, dtypes.float32) for v in (a, b))
        return convert(_digamma_change(*wide), dtype)
    left = (a < 0) & (a + b < 0)
    known = left | ((a > 0) & (a + b > 0))
    known = known & (lax.abs(a + b) < math.inf)
    other = lax.digamma(safe(~known, a + b, 1)) - lax.digamma(safe(~known, a, 1))
    # ψ(x) = ψ(1 - x) - π / tan(π x); the difference of two such terms is a product.
    both = _sinpi(safe(left, a, 0.5)) * _sinpi(safe(left, a + b, 0.5))
    turned = math.pi * _sinpi(safe(left, b, 0)) / both
    a = choose_between(left, 1 - a, safe(known, a, 1))
    b = choose_between(left, -b, safe(known, b, 1))
    total = a + b
    out = turned
    for k in range(10):
        out = out + b / (total + k) / (a + k)
    p, q = 1 / (a + 10), 1 / (total + 10)
    out = out + lax.log1p(b * p) + 0.5 * b * q * p
    # The difference of the series in p² and in q², divided by that of these.
    value, slope = lax.full_like(p, 0), lax.full_like(p, 0)
    for c in reversed(_PSI_SERIES):
        slope = slope * (q * q) + value
        value = value * (p * p) + c
    # With c₀ = 0.
    slope = slope * (q * q) + value
    out = out + b * q * p * (p + q) * slope
    return choose_between(known, out, other)


_digamma_rise = by_forward(
    _digamma_change, None, lambda a, b: lax.polygamma(lax.full_like(a, 1), a + b)
)


@custom_jvp
def _log_beta(x: Any, y: Any) -> Any:
    return log_beta(x, y)


_log_beta.defjvps(
    lambda t, out, x, y: -t * _digamma_rise(x, y),
    lambda t, out, x, y: -t * _digamma_rise(y, x),
)


@custom_jvp
def _log_ratio(m: Any, z: Any) -> Any:
    return log_gamma_ratio(m, z)


_log_ratio.defjvps(
    lambda t, out, m, z: t * lax.digamma(z + m),
    lambda t, out, m, z: t * _digamma_rise(z, m),
)


def _is_pole(x: Any) -> Any:
    """Returns where the gamma function has its poles."""
    return (x <= 0) & (lax.floor(x) == x) & (x > -math.inf)


def _beta_poles(x: Any, y: Any) -> _BetaKind:
    first, second = _is_pole(x), _is_pole(y)
    some = first | second
    p, q = choose_between(first, x, y), choose_between(first, y, x)
    # B(-n, q) is (-1)^q B(n + 1 - q, q) for q = 1, …, n.
    turned = some & ~(first & second) & (q > 0) & (lax.floor(q) == q) & (p + q <= 0)
    a = choose_between(turned, 1 - p - q, safe(~some, x, 1))
    b = choose_between(turned, q, safe(~some, y, 1))
    zero = ~some & _is_pole(x + y)
    return _BetaKind(safe(~zero, a, 1), safe(~zero, b, 1), turned, some & ~turned, zero)


@library()
@special_docs
def betaln(a: ArrayLike, b: ArrayLike) -> Array:
    """Logarithm of the absolute value of the beta function.

    Args:
      a: real array-like.

    Example:
      >>> betaln(2.0, 3.0).round(4)
      Array(-2.4849, dtype=float32)
    """
    x, y = operands("betaln", a, b)
    kind = _beta_poles(x, y)
    value = _log_beta(kind.x, kind.y)
    value = choose_between(kind.pole, lax.full_like(x, math.inf), value)
    return choose_between(kind.zero, lax.full_like(x, -math.inf), value)


@library()
@special_docs
def gammainc(a: Any, x: Any) -> Array:
    """Regularized lower incomplete gamma function.

    Args:
      x: non-negative real array-like.

    Example:
      >>> gammainc(2.0, np.array([0.0, 1.0])).round(4)
      Array([0.    , 0.2642], dtype=float32)
    """
    a, x = operands("gammainc", a, x)
    return lax.igamma(a, x)


@library()
@special_docs
def gammaincc(a: Any, x: Any) -> Array:
    """Regularized upper incomplete gamma function.

    Args:
      x: non-negative real array-like.

    Example:
      >>> gammaincc(2.0, np.array([0.0, 1.0])).round(4)
      Array([1.    , 0.7358], dtype=float32)
    """
    a, x = operands("gammaincc", a, x)
    return lax.igammac(a, x)


@library()
@special_docs
def poch(z: ArrayLike, m: ArrayLike) -> Array:
    """Rising factorial: gamma(z + m) / gamma(z).

    Args:
      z: real array-like.
      m: real array-like.

    Example:
      >>> poch(np.array([1.0, 2.0]), 3.0).round(4)
      Array([ 6., 24.], dtype=float32)
    """
    z, m = operands("poch", z, m)
    # At a pole of the denominator it is a product of whole numbers, or 0.
    pole = (z <= 0) & (z == lax.floor(z))
    whole = pole & (m == lax.floor(m)) & (z + m <= 0)
    x, k = safe(whole, 1 - z, 1), safe(whole, m, 0)
    even = k == 2 * lax.floor(k / 2)
    size = lax.exp(gammaln(x) - gammaln(x - k))
    at_pole = choose_between(even, size, -size)
    at_pole = choose_between(whole, at_pole, lax.full_like(at_pole, 0))
    z, m = safe(~pole, z, 1), safe(~pole, m, 0)
    sign = gammasgn(z) * gammasgn(z + m)
    return choose_between(pole, at_pole, sign * lax.exp(_log_ratio(m, z)))


@library()
@special_docs
def digamma(x: ArrayLike) -> Array:
    """Derivative of the logarithm of the gamma function.

    Special cases:
      0 and negative integers → nan.

    Example:
      >>> digamma(np.array([1.0, 2.0])).round(4)
      Array([-0.5772,  0.4228], dtype=float32)
    """
    (x,) = operands("digamma", x)
    return lax.digamma(x)


psi = digamma


@library()
@special_docs
def polygamma(n: Any, x: ArrayLike) -> Array:
    """Derivatives of the digamma function.

    Args:
      n: non-negative integers, array-like: which.

    Example:
      >>> polygamma(1, np.array([1.0, 2.0])).round(4)
      Array([1.6449, 0.6449], dtype=float32)
    """
    n, x = operands("polygamma", n, x)
    return lax.polygamma(n, x)


# At most this many terms are written out, more are an axis.
_UNROLLED = 64


@library("d")
def multigammaln(a: ArrayLike, d: int) -> Array:
    """Logarithm of the multivariate gamma function.

    Args:
      a: real array-like, above (d - 1) / 2.
      d: dimension.

    Returns:
      Float array of the shape of `a`.

    Raises:
      ArgumentError: `d` is not an integer.
      DtypeError: `a` is complex.

    Example:
      >>> multigammaln(np.array([3.0, 4.0]), 2).round(4)
      Array([1.5502, 3.5651], dtype=float32)

    Source: `scipy.special.multigammaln`.
    """
    d = integer("multigammaln", "d", d)
    (a,) = operands("multigammaln", a)
    require_room((*a.aval.shape, d), a.aval.dtype)
    out = lax.full_like(a, d * (d - 1) / 4 * math.log(math.pi))
    if d > _UNROLLED:
        shape = (*a.aval.shape, d)
        halves = lax.mul(lax.broadcasted_iota(a.aval.dtype, shape, len(shape) - 1), 0.5)
        wide = lax.broadcast_in_dim(a, shape, tuple(range(a.aval.ndim)))
        terms = lax.lgamma(lax.sub(wide, halves))
        return out + lax.reduce_sum(terms, (len(shape) - 1,))
    for i in range(d):
        out = out + lax.lgamma(a - i / 2)
    return out
