"""Relatives of the error function: scaled, of imaginary and of complex numbers."""

from __future__ import annotations

import math
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.runtime.library import library
from fxflow.numpy._operands import ArrayLike, convert
from fxflow.scipy.special._operands import operands, safe, special_docs
from fxflow.transforms.custom_jvp import custom_jvp

_ROOT_PI = math.sqrt(math.pi)


@library()
@special_docs
def erfcx(x: ArrayLike) -> Array:
    """Scaled complement of the error function: exp(x²) erfc(x).

    Special cases:
      inf → 0; below about -26, or -9 in 32 bits: inf.

    Example:
      >>> erfcx(100.0).round(5)
      Array(0.00564, dtype=float32)
    """
    out: Array = _erfcx(*operands("erfcx", x))
    return out


def _erfcx_parts(x: Any) -> tuple[Any, Any, Any, Any]:
    """Returns where x is small, x there and elsewhere, and the fraction's tail."""
    limit = 5.0 if dtypes.bits(x.aval.dtype) == 64 else 2.0
    small = x < limit
    low = safe(small, x, 0)
    high = safe((x >= limit) & (x < math.inf), x, limit)
    # The continued fraction from its end (DLMF 7.9.3), but for its first step.
    tail = high
    for k in range(32, 1, -1):
        tail = high + (k / 2) / tail
    return small, low, high, tail


@custom_jvp
def _erfcx(x: Any) -> Any:
    small, low, high, tail = _erfcx_parts(x)
    near = lax.exp(low * low) * lax.erfc(low)
    far = 1 / (_ROOT_PI * (high + 0.5 / tail))
    out = fnp.where(small, near, fnp.where(x == math.inf, 0, far))
    out = fnp.where(x == -math.inf, math.inf, out)
    return fnp.where(x != x, x, out)


def _erfcx_slope(out: Any, x: Any) -> Any:
    """Returns 2 x erfcx(x) - 2/√π, which cancels for large x."""
    small, low, high, tail = _erfcx_parts(x)
    near = 2 * low * fnp.where(small, out, 0) - 2 / _ROOT_PI
    return fnp.where(small, near, -1 / (_ROOT_PI * (high * tail + 0.5)))


_erfcx.defjvps(lambda t, out, x: t * _erfcx_slope(out, x))


@library()
@special_docs
def dawsn(x: ArrayLike) -> Array:
    """Dawson's integral: exp(-x²) times the integral of exp(t²) from 0 to `x`.

    Special cases:
      Odd in x; ±inf → ±0.

    Example:
      >>> dawsn(1.0).round(4)
      Array(0.5381, dtype=float32)

    Source: `scipy.special.dawsn`; G. Rybicki, Dawson's Integral and the Sampling
    Theorem, 1989.
    """
    (x,) = operands("dawsn", x)
    dtype = x.aval.dtype
    if dtypes.bits(dtype) < 32:
        return convert(_dawsn(convert(x, dtypes.float32)), dtype)
    out: Array = _dawsn(x)
    return out


@custom_jvp
def _dawsn(x: Any) -> Any:
    near = lax.abs(x) < 0.2
    low = safe(near, x, 0)
    square, term, series = low * low, low, low
    for k in range(1, 10):
        term = term * -2 * square / (2 * k + 1)
        series = series + term
    # A sum over odd multiples of h, around the even one that is next to x.
    h = 0.25
    far = lax.abs(x) > 1e4
    high = safe(~(near | far) & (x == x), x, 1)
    even = lax.stop_gradient(2 * fnp.round(high / (2 * h)))
    apart = high - even * h
    total = lax.full_like(x, 0)
    for k in range(-29, 30, 2):
        total = total + lax.exp(-lax.square(apart - k * h)) / (even + k)
    out = fnp.where(near, series, total / _ROOT_PI)
    tail = 0.5 / safe(far, x, 1)
    out = fnp.where(far, tail * (1 + 2 * tail * tail), out)
    return fnp.where(x != x, x, out)


def _dawsn_slope(out: Any, x: Any) -> Any:
    """Returns 1 - 2 x D(x), by the asymptotic series where that cancels (DLMF 7.12)."""
    far = lax.abs(x) > 7
    near = 1 - 2 * safe(~far, x, 0) * fnp.where(far, 0, out)
    inverse = 0.5 / lax.square(safe(far, x, 7))
    term, total = -inverse, -inverse
    for k in range(2, 20):
        term = term * (2 * k - 1) * inverse
        total = total + term
    return fnp.where(far, total, near)


_dawsn.defjvps(lambda t, out, x: t * _dawsn_slope(out, x))


# The trapezoidal and the midpoint rule with the residue of the pole at z: one of both
# has no node near it (Al Azah and Chandler-Wilde 2021, "Computation of the complex
# error function using modified trapezoidal rules"): 2e-15 with 11 nodes.
_NODES = 11
_STEP = math.sqrt(math.pi / (_NODES + 1))


def _first_quadrant(z: Any) -> Any:
    """Returns w(z) where neither part is negative."""
    x, y = fnp.real(z), fnp.imag(z)
    h = _STEP
    square = z * z

    def rule(nodes: Any) -> Any:
        total = fnp.zeros_like(z)
        for t in nodes:
            total = total + math.exp(-t * t) / (square - t * t)
        return 2j * h / math.pi * z * total

    # Python numbers, which do not widen z.
    middle = rule([(k + 0.5) * h for k in range(_NODES + 1)])
    ends = rule([k * h for k in range(1, _NODES + 1)]) + 1j * h / (math.pi * z)
    poles = y < math.pi / h
    inner = lax.complex(x, fnp.where(poles, y, 0))
    gauss, turn = lax.exp(-inner * inner), lax.exp(-2j * math.pi / h * inner)
    part = x / h - lax.floor(x / h)
    between = (part >= 0.25) & (part <= 0.75) & (y < x)
    residue = 2 * gauss / fnp.where(between, 1 - turn, 1 + turn)
    value = fnp.where(between, ends, middle)
    plain = y >= fnp.maximum(x, math.pi / h)
    return fnp.where(plain | ~poles, middle, value + residue)


@custom_jvp
def _wofz(z: Any) -> Any:
    x, y = fnp.real(z), fnp.imag(z)
    right, up = lax.abs(x), lax.abs(y)
    origin = (right == 0) & (up == 0)
    inside = lax.complex(right, fnp.where(origin, 1, up))
    huge = (right > 1e8) | (up > 1e8)
    w = _first_quadrant(fnp.where(huge, 1 + 1j, inside))
    w = fnp.where(huge, 1j / _ROOT_PI / fnp.where(huge, inside, 1), w)
    w = fnp.where(origin, 1, w)
    w = fnp.where(x < 0, fnp.conj(w), w)
    # In the lower half plane: w(z) = 2 exp(-z²) - w(-z).
    below = y < 0
    inner = fnp.where(below, z, 0)
    return fnp.where(below, 2 * lax.exp(-inner * inner) - fnp.conj(w), w)


_wofz.defjvps(lambda t, out, z: t * (2j / _ROOT_PI - 2 * z * out))


@library()
def wofz(z: ArrayLike) -> Array:
    """The Faddeeva function: exp(-z²) erfc(-i z).

    Args:
      z: array-like, taken for complex.

    Returns:
      Complex array of the shape of `z`.

    Raises:
      ArgumentError: an argument is not an array.

    Special cases:
      In the lower half plane it overflows where exp(-z²) does.

    Example:
      >>> wofz(1.0).round(3)
      Array(0.368+0.607j, dtype=complex64)

    Source: `scipy.special.wofz`; Al Azah and Chandler-Wilde 2021.
    """
    (z,) = operands("wofz", z, real=False)
    out: Array = _wofz(convert(z, dtypes.to_complex(z.aval.dtype)))
    return out
