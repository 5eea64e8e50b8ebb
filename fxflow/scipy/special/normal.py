"""The error function and the normal distribution."""

from __future__ import annotations

import math
from typing import Any

from fxflow import lax
from fxflow.core.arrays import Array, dtypes
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError
from fxflow.numpy._operands import ArrayLike
from fxflow.numpy.selection import choose_between
from fxflow.scipy.special._operands import (
    LOG_SQRT_2PI,
    operands,
    safe,
    special_docs,
)
from fxflow.scipy.special.error_functions import erfcx
from fxflow.transforms.custom_jvp import custom_jvp


@library()
@special_docs
def erf(x: ArrayLike) -> Array:
    """Error function.

    Example:
      >>> erf(0.0)
      Array(0., dtype=float32, weak_type=True)
    """
    (x,) = operands("erf", x)
    return lax.erf(x)


@library()
@special_docs
def erfc(x: ArrayLike) -> Array:
    """Complement of the error function."""
    (x,) = operands("erfc", x)
    return lax.erfc(x)


@library()
@special_docs
def erfinv(x: ArrayLike) -> Array:
    """Inverse of the error function.

    Special cases:
      ±1 → ±inf; outside → nan.
    """
    (x,) = operands("erfinv", x)
    return lax.erf_inv(x)


@library()
@special_docs
def ndtr(x: ArrayLike) -> Array:
    """Distribution function of the standard normal distribution.

    Example:
      >>> ndtr(0.0)
      Array(0.5, dtype=float32, weak_type=True)
    """
    (x,) = operands("ndtr", x)
    w = x * math.sqrt(0.5)
    z = lax.abs(w)
    # Each branch is exact where it is taken: erf near 0, erfc in the tails.
    half = 0.5 * lax.erfc(z)
    tails = choose_between(w > 0, 1 - half, half)
    return choose_between(z < math.sqrt(0.5), 0.5 + 0.5 * lax.erf(w), tails)


@library("series_order")
@special_docs
def log_ndtr(x: ArrayLike, series_order: int = 6) -> Array:
    """Logarithm of the normal distribution function, exact in the tails.

    Args:
      series_order: how many terms the series of the lower tail has, after the first.

    Raises:
      ArgumentError: an argument is not an array, or `series_order` no number of terms.
    """
    (x,) = operands("log_ndtr", x)
    if not isinstance(series_order, int) or not 0 <= series_order <= 30:
        raise ArgumentError(
            "log_ndtr: series_order must be an integer from 0 to 30, got "
            f"{series_order!r}"
        )
    wide = dtypes.bits(x.aval.dtype) == 64
    low, high = (-20.0, 8.0) if wide else (-10.0, 5.0)
    inside = safe((x > low) & (x < high), x, 0)
    # Above 0 the logarithm is that of 1 less a tail.
    middle = choose_between(
        inside > 0,
        lax.log1p(-ndtr(-safe(inside > 0, inside, 1))),
        lax.log(ndtr(safe(inside <= 0, inside, 0))),
    )
    upper = -ndtr(-safe(x >= high, x, high))
    y = safe(x <= low, x, low)
    square = y * y
    # The asymptotic series of Mills' ratio.
    series, term = lax.full_like(y, 1), lax.full_like(y, 1)
    for k in range(1, series_order + 1):
        term = term * -(2 * k - 1) / square
        series = series + term
    lower = -0.5 * square - lax.log(-y) - LOG_SQRT_2PI + lax.log(series)
    out = choose_between(x <= low, lower, choose_between(x >= high, upper, middle))
    return choose_between(x != x, x, out)


def _of_log(logq: Any) -> Array:
    """Returns the quantile of a probability up to a half, from its logarithm."""
    t = lax.sqrt(-2 * logq)
    # Abramowitz and Stegun 26.2.23, to 4.5e-4; then Halley's steps in logarithms.
    top = 2.515517 + t * (0.802853 + t * 0.010328)
    bottom = 1 + t * (1.432788 + t * (0.189269 + t * 0.001308))
    x = top / bottom - t
    for _ in range(3):
        now = log_ndtr(x)
        slope = lax.exp(-0.5 * x * x - LOG_SQRT_2PI - now)
        gap = now - logq
        bend = -slope * (x + slope)
        x = x - 2 * gap * slope / (2 * slope * slope - gap * bend)
    return x


@custom_jvp
def _ndtri(p: Any) -> Array:
    q = choose_between(p < 0.5, p, 1 - p)
    inside = q > 0
    x = _of_log(lax.log(safe(inside, q, 0.5)))
    x = choose_between(inside, x, lax.full_like(x, -math.inf))
    x = choose_between(p < 0.5, x, -x)
    x = choose_between(p == 0.5, lax.full_like(x, 0), x)
    return choose_between((p >= 0) & (p <= 1), x, lax.full_like(x, math.nan))


def _ndtri_slope(primals: Any, tangents: Any) -> Any:
    (p,), (dp,) = primals, tangents
    x = _ndtri(p)
    # 1/φ(x) by Mills' ratio, since exp(x²/2) would lose digits in the tails.
    q = choose_between(p < 0.5, p, 1 - p)
    ratio = math.sqrt(math.pi / 2) * erfcx(math.sqrt(0.5) * lax.abs(x))
    slope = ratio / choose_between(q > 0, q, lax.full_like(q, 1))
    return x, dp * choose_between(q > 0, slope, lax.full_like(q, math.inf))


_ndtri.defjvp(_ndtri_slope)


@library()
@special_docs
def ndtri(p: ArrayLike) -> Array:
    """Inverse of the normal distribution function.

    Special cases:
      0 → -inf, 1 → inf; outside → nan.

    Example:
      >>> ndtri(0.5)
      Array(0., dtype=float32, weak_type=True)
    """
    (p,) = operands("ndtri", p)
    found: Array = _ndtri(p)
    return found


@custom_jvp
def _ndtri_exp(y: Any) -> Array:
    inside = (y < 0) & (y > -math.inf)
    low = inside & (y < -math.log(2))
    upper = lax.log(-lax.expm1(safe(inside & ~low, y, -0.5)))
    x = _of_log(choose_between(low, y, upper))
    x = choose_between(low, x, -x)
    # The square of a larger number would overflow.
    x = choose_between(y < -1e30, -math.sqrt(2) * lax.sqrt(-safe(low, y, -1)), x)
    edge = lax.full_like(y, math.nan)
    edge = choose_between(y == 0, lax.full_like(y, math.inf), edge)
    edge = choose_between(y == -math.inf, y, edge)
    return choose_between(inside, x, edge)


# exp(y) over the density, by Mills' ratio.
_ndtri_exp.defjvps(
    lambda t, x, y: t * math.sqrt(math.pi / 2) * erfcx(-math.sqrt(0.5) * x)
)


@library()
@special_docs
def ndtri_exp(y: ArrayLike) -> Array:
    """Inverse of `log_ndtr`: the normal quantile of the probability exp(y).

    Args:
      y: real array-like, not positive: the logarithm of the probability.

    Special cases:
      -inf → -inf; 0 → inf; above 0: nan.

    Example:
      >>> ndtri_exp(-1000.0).round(3)
      Array(-44.616, dtype=float32)
    """
    (y,) = operands("ndtri_exp", y)
    found: Array = _ndtri_exp(y)
    return found
