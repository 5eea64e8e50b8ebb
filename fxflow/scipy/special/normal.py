"""The error function and the normal distribution."""

from __future__ import annotations

import math
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError
from fxflow.numpy._operands import ArrayLike, convert
from fxflow.numpy.selection import choose_between
from fxflow.scipy.special._cylinder import polynomial
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
    """Complement of the error function.

    Example:
      >>> erfc(np.array([0.0, 1.0])).round(4)
      Array([1.    , 0.1573], dtype=float32)
    """
    (x,) = operands("erfc", x)
    return lax.erfc(x)


@library()
@special_docs
def erfinv(x: ArrayLike) -> Array:
    """Inverse of the error function.

    Special cases:
      ±1 → ±inf; outside → nan.

    Example:
      >>> erfinv(np.array([0.0, 0.5])).round(4)
      Array([0.    , 0.4769], dtype=float32)
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

    Example:
      >>> log_ndtr(np.array([0.0, -40.0])).round(3)
      Array([-6.93000e-01, -8.04608e+02], dtype=float32)
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


# Coefficients of numerators and denominators: Wichura's PPND16.
# fmt: off
_CENTRAL = (
    (3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
     1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
     3.3430575583588128105e4, 2.5090809287301226727e3),
    (1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
     2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4,
     5.2264952788528545610e3),
)
_NEAR = (
    (1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
     3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
     2.27238449892691845833e-2, 7.74545014278341407640e-4),
    (1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
     1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
     1.05075007164441684324e-9),
)
_FAR = (
    (6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0,
     2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
     2.71155556874348757815e-5, 2.01033439929228813265e-7),
    (1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1,
     1.48753612908506148525e-2, 7.86869131145613259100e-4, 1.84631831751005468180e-5,
     1.42151175831644588870e-7, 2.04426310338993978564e-15),
)
# fmt: on


# log(2) and what is left of it after its rounding, by the number of bits.
_LOG_2 = {
    32: (0.693147182464599609375, -1.904654299957768e-09),
    64: (0.6931471805599453, 2.3190468138462996e-17),
}


def _rational(x: Any, coefficients: Any) -> Any:
    top, bottom = (polynomial(x, row) for row in coefficients)
    return top / bottom


def _single(function: Any, x: Array) -> Array:
    """Calls a function with at least 32 bits, and returns the operand's dtype."""
    dtype = x.aval.dtype
    if dtypes.bits(dtype) >= 32:
        return function(x)  # type: ignore[no-any-return]
    return convert(function(convert(x, dtypes.float32)), dtype)


def _of_root(r: Any) -> Any:
    """Returns the quantile of exp(-r²) below 0.075, for r up to 27."""
    far = r > 5
    near = _rational(fnp.where(far, 5, r) - 1.6, _NEAR)
    beyond = _rational(fnp.where(far, r, 5) - 5, _FAR)
    return -fnp.where(far, beyond, near)


def _of_far_log(logq: Any) -> Any:
    """Returns the quantile of a logarithm below -729, by Halley's steps."""
    root = lax.sqrt(-2 * logq)
    x = -lax.sqrt(lax.square(root) - 2 * (lax.log(root) + LOG_SQRT_2PI))
    for _ in range(2):
        inverse = 1 / x
        square = inverse * inverse
        # The asymptotic series of Mills' ratio.
        series = polynomial(square, (1, -1, 3, -15, 105))
        slope = -x / series
        gap = -0.5 * x * x - lax.log(-x) - LOG_SQRT_2PI + lax.log(series) - logq
        bend = -slope * (x + slope)
        x = x - 2 * gap * slope / (2 * slope * slope - gap * bend)
    return x


@custom_jvp
def _ndtri(p: Any) -> Array:
    """By Wichura's rational functions (algorithm AS 241, 1988)."""
    q = p - 0.5
    middle = lax.abs(q) <= 0.425
    part = safe(middle, q, 0)
    central = part * _rational(0.180625 - part * part, _CENTRAL)
    tail = fnp.where(q < 0, p, 1 - p)
    inside = (tail > 0) & ~middle
    out = _of_root(lax.sqrt(-lax.log(safe(inside, tail, 0.05))))
    out = fnp.where(tail == 0, -math.inf, out)
    out = fnp.where(q < 0, out, -out)
    out = fnp.where(middle, central, out)
    return fnp.where((p >= 0) & (p <= 1), out, math.nan)


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
    return _single(_ndtri, *operands("ndtri", p))


@custom_jvp
def _ndtri_exp(y: Any) -> Array:
    inside = (y < 0) & (y > -math.inf)
    # exp(y) - 1/2, with all digits where it is small.
    first, rest = _LOG_2[dtypes.bits(y.aval.dtype)]
    q = 0.5 * lax.expm1((fnp.clip(y, -4, 0) + first) + rest)
    middle = lax.abs(q) <= 0.425
    part = safe(middle, q, 0)
    central = part * _rational(0.180625 - part * part, _CENTRAL)
    upper = lax.log(-lax.expm1(safe(inside & (q > 0), y, -0.05)))
    t = lax.sqrt(-fnp.where(q > 0, upper, safe(inside, y, -4)))
    tail = _of_root(fnp.minimum(t, 27))
    x = fnp.where(middle, central, fnp.where(q > 0, -tail, tail))
    x = fnp.where(t > 27, _of_far_log(safe(inside & (t > 27), y, -800)), x)
    # The square of a larger number would overflow.
    x = fnp.where(y < -1e30, -math.sqrt(2) * lax.sqrt(-safe(inside, y, -1)), x)
    edge = fnp.where(y == 0, math.inf, fnp.where(y == -math.inf, y, math.nan))
    return fnp.where(inside, x, edge)


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
    return _single(_ndtri_exp, *operands("ndtri_exp", y))
