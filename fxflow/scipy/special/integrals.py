"""Integrals of sines, of logarithms and of the normal density.

Series near 0 and continued fractions, asymptotic series or other known functions far
from it (DLMF 6, 7.2, 25.12).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.runtime.library import library
from fxflow.lax.gammas import EULER
from fxflow.numpy._operands import ArrayLike, convert
from fxflow.scipy.special._operands import operands, safe, special_docs
from fxflow.scipy.special._sici_tables import F_TERMS, G_TERMS
from fxflow.scipy.special.error_functions import wofz
from fxflow.transforms.custom_jvp import custom_jvp


def _wide_enough(name: str, *args: Any) -> tuple[list[Any], Any]:
    """Returns operands with at least 32 bits, and the dtype of the result."""
    out = operands(name, *args)
    dtype = out[0].aval.dtype
    if dtypes.bits(dtype) < 32:
        out = [convert(x, dtypes.float32) for x in out]
    return out, dtype


def _polynomial(x: Any, *coefficients: float) -> Any:
    """Returns c₀ + c₁ x + c₂ x² + …."""
    total = lax.full_like(x, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total = total * x + c
    return total


# -- Spence's function -----------------------------------------------------------------

# Coefficients of Li₂(1 - exp(-u)) in powers of u²: Bernoulli numbers over factorials
# (Debye).
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)
_DEBYE = tuple(b / math.factorial(2 * k + 3) for k, b in enumerate(_BERNOULLI))


def _around_one(x: Any) -> Any:
    """Returns Li₂(1 - x) for x between a half and 2."""
    u = -lax.log(x)
    return u * (1 - u / 4 + u * u * _polynomial(u * u, *_DEBYE))


def _log_quotient(x: Any) -> Any:
    """Returns log(x) / (x - 1), with derivatives of any order at 1."""
    near = lax.abs(x - 1) < 0.05
    low = safe(near, x - 1, 0)
    series = _polynomial(low, *((-1) ** k / (k + 1) for k in range(14)))
    high = safe(~near, x, 2)
    return fnp.where(near, series, lax.log(high) / (high - 1))


@custom_jvp
def _spence(x: Any) -> Any:
    low, high = x < 0.5, x > 2
    inner = safe(low & (x > 0), x, 0.25)
    outer = safe(high, x, 4)
    middle = safe(~(low | high) & (x == x), x, 1)
    # For a small number: by that of its distance from 1.
    # Not below the normal numbers, which are 0 to XLA.
    least = float(dtypes.finfo(x.aval.dtype).tiny)
    part = fnp.where(high, fnp.maximum(1 / outer, least), inner)
    logs = lax.log(part) * lax.log1p(-part)
    small = math.pi**2 / 6 - logs - _around_one(1 - part)
    # For a large one: by that of its inverse.
    large = -0.5 * lax.square(lax.log(outer)) - small
    out = fnp.where(high, large, fnp.where(low, small, _around_one(middle)))
    out = fnp.where(x == 0, math.pi**2 / 6, out)
    out = fnp.where(x == math.inf, -math.inf, out)
    return fnp.where(x >= 0, out, math.nan)


_spence.defjvps(lambda t, out, x: -t * _log_quotient(x))


@library()
@special_docs
def spence(x: ArrayLike) -> Array:
    """Spence's function: of log(t) / (1 - t) from 1 to `x`, the dilogarithm of 1 - x.

    Special cases:
      inf → -inf (SciPy: nan); negative numbers → nan.

    Example:
      >>> spence(0.0).round(4)
      Array(1.6449, dtype=float32)
    """
    (x,), dtype = _wide_enough("spence", x)
    return convert(_spence(x), dtype)


# -- sine and cosine integrals ---------------------------------------------------------


def _sinc(x: Any) -> Any:
    """Returns sin(x) / x, with derivatives of any order at 0."""
    near = lax.abs(x) < 0.5
    low = safe(near, x, 0)
    terms = [(-1) ** k / math.factorial(2 * k + 1) for k in range(9)]
    high = safe(~near, x, 1)
    return fnp.where(near, _polynomial(low * low, *terms), lax.sin(high) / high)


def _auxiliary(x: Any) -> tuple[Any, Any]:
    """Returns f and g of exp(i x) E₁(i x) = g - i f, for x ≥ 4."""
    # 32 bits would lose a digit.
    inverse = 1 / convert(x, dtypes.float64)
    t = 16 * inverse * inverse
    f, g = (
        _polynomial(t, *above) / _polynomial(t, *below)
        for above, below in (F_TERMS, G_TERMS)
    )
    dtype = x.aval.dtype
    return convert(inverse * f, dtype), convert(inverse * inverse * g, dtype)


def _waves(x: Any) -> tuple[Any, Any]:
    """Returns sin(x) and cos(x), by loops of their own.

    XLA calls a function for each element: other operations are vectorized without it.
    """
    sine, cosine = lax.optimization_barrier((lax.sin(x), lax.cos(x)))
    return sine, cosine


def _near_terms(x: Any) -> tuple[Any, Any]:
    """Returns Si(x) / x and Ci(x) - γ - log x for x < 4, by their series."""
    n = range(18)
    sine = [(-1) ** k / ((2 * k + 1) * math.factorial(2 * k + 1)) for k in n]
    cosine = [0.0, *((-1) ** k / (2 * k * math.factorial(2 * k)) for k in n[1:])]
    return _polynomial(x * x, *sine), _polynomial(x * x, *cosine)


@custom_jvp
def _si(x: Any) -> Any:
    size = lax.abs(x)
    near = size < 4
    low = safe(near, x, 0)
    high = safe(~near & (size < math.inf), size, 4)
    f, g = _auxiliary(high)
    sine, cosine = _waves(high)
    far = math.pi / 2 - f * cosine - g * sine
    far = fnp.where(size == math.inf, math.pi / 2, far)
    out = fnp.where(near, low * _near_terms(low)[0], fnp.where(x < 0, -far, far))
    return fnp.where(x != x, x, out)


_si.defjvps(lambda t, out, x: t * _sinc(x))


@custom_jvp
def _ci(x: Any) -> Any:
    size = lax.abs(x)
    near = size < 4
    low = safe(near & (size > 0), size, 1)
    high = safe(~near & (size < math.inf), size, 4)
    f, g = _auxiliary(high)
    below = EULER + lax.log(low) + _near_terms(low)[1]
    sine, cosine = _waves(high)
    far = f * sine - g * cosine
    out = fnp.where(near, below, fnp.where(size == math.inf, 0, far))
    out = fnp.where(x == 0, -math.inf, fnp.where(x == -math.inf, math.nan, out))
    return fnp.where(x != x, x, out)


_ci.defjvps(lambda t, out, x: t * lax.cos(x) / x)


@library()
@special_docs
def sici(x: ArrayLike) -> tuple[Array, Array]:
    """Sine and cosine integrals Si and Ci.

    Si is of sin(t) / t from 0 to `x`, Ci of cos(t) / t from infinity to `x`; of a
    negative number Ci is the real part.

    Returns:
      Two float arrays of the shape of `x`.

    Special cases:
      Si: odd, ±inf → ±π/2. Ci: even, ±0 → -inf, inf → 0, -inf → nan as in SciPy. Near
      its zeros, such as 0.6165, the error of Ci is an absolute one.

    Example:
      >>> si, ci = sici(1.0)
      >>> si.round(4), ci.round(4)
      (Array(0.9461, dtype=float32), Array(0.3374, dtype=float32))
    """
    (x,), dtype = _wide_enough("sici", x)
    return convert(_si(x), dtype), convert(_ci(x), dtype)


# -- Fresnel's integrals ---------------------------------------------------------------


def _quarter_turns(x: Any) -> Any:
    """Returns x² modulo 4, times π/2: what sines and cosines of π x² / 2 need."""
    # x = 2 m + s, so that x² = 4 (m² + m s) + s².
    m = fnp.round(x / 2)
    s = x - 2 * m
    part = m * s
    return (math.pi / 2) * (4 * (part - fnp.round(part)) + s * s)


def _fresnel_values(x: Any, sine: bool) -> Any:
    size = lax.abs(x)
    near = size < 1.5
    low = safe(near, x, 0)
    # ∑ (-1)ᵏ (π/2)ⁿ x²ⁿ⁺¹ / (n! (2 n + 1)) over n = 2 k + 1, or 2 k.
    orders = range(1 if sine else 0, 30, 2)
    terms = [
        (-1) ** k * (math.pi / 2) ** n / (math.factorial(n) * (2 * n + 1))
        for k, n in enumerate(orders)
    ]
    below = low * _polynomial(lax.square(low * low), *terms)
    below = below * low * low if sine else below
    # Far from 0 an error function: 1/2 minus what oscillates, and vanishes.
    high = safe(~near & (size < 1e15), size, 2)
    z = (math.sqrt(math.pi) / 2) * high
    w = wofz(lax.complex(z, z))
    turn = _quarter_turns(lax.stop_gradient(high))
    wave = lax.complex(lax.cos(turn), lax.sin(turn)) * w * (0.5 + 0.5j)
    far = 0.5 - (fnp.imag(wave) if sine else fnp.real(wave))
    far = fnp.where(size >= 1e15, 0.5, far)
    out = fnp.where(near, below, fnp.where(x < 0, -far, far))
    return fnp.where(x != x, x, out)


@custom_jvp
def _phase(x: Any) -> Any:
    return _quarter_turns(x)


_phase.defjvps(lambda t, out, x: t * math.pi * x)


@custom_jvp
def _fresnel_s(x: Any) -> Any:
    return _fresnel_values(x, True)


_fresnel_s.defjvps(lambda t, out, x: t * lax.sin(_phase(x)))


@custom_jvp
def _fresnel_c(x: Any) -> Any:
    return _fresnel_values(x, False)


_fresnel_c.defjvps(lambda t, out, x: t * lax.cos(_phase(x)))


@library()
@special_docs
def fresnel(x: ArrayLike) -> tuple[Array, Array]:
    """Fresnel integrals S and C: of sin(π t²/2) and cos(π t²/2) from 0 to `x`.

    Returns:
      Two float arrays of the shape of `x`.

    Special cases:
      Odd in x; ±inf → ±1/2.

    Example:
      >>> s, c = fresnel(1.0)
      >>> s.round(4), c.round(4)
      (Array(0.4383, dtype=float32), Array(0.7799, dtype=float32))
    """
    (x,), dtype = _wide_enough("fresnel", x)
    return convert(_fresnel_s(x), dtype), convert(_fresnel_c(x), dtype)


def _modified(name: str, sign: int, x: Any) -> tuple[Array, Array]:
    (x,) = operands(name, x)
    dtype = dtypes.to_complex(x.aval.dtype)
    x = convert(x, dtypes.float64)
    finite = x - x == 0
    at = fnp.where(finite, x, 0)
    root = math.sqrt(0.5)
    k = 0.5 * wofz(lax.complex(root * at, root * at))
    angle = at * at + 0.25 * math.pi
    f = math.sqrt(math.pi) * k * lax.complex(lax.cos(angle), lax.sin(angle))
    far = fnp.where(x == math.inf, 0.0, math.nan)
    parts = []
    for value in (f, k):
        value = fnp.where(finite, value, lax.complex(far, far))
        parts.append(convert(value if sign > 0 else lax.conj(value), dtype))
    return parts[0], parts[1]


@library()
@special_docs
def modfresnelp(x: ArrayLike) -> tuple[Array, Array]:
    """Integral of exp(i t²) from `x` to infinity, and of its size alone.

    Returns:
      Two complex arrays of the shape of `x`: the integral F, and
      K = F exp(-i (x² + π/4)) / √π.

    Special cases:
      inf → 0; -inf → nan.

    Example:
      >>> f, k = modfresnelp(1.0)
      >>> f.round(4), k.round(4)
      (Array(-0.2779+0.3164j, dtype=complex64), Array(0.2078+0.1152j, dtype=complex64))
    """
    return _modified("modfresnelp", 1, x)


@library()
@special_docs
def modfresnelm(x: ArrayLike) -> tuple[Array, Array]:
    """Integral of exp(-i t²) from `x` to infinity, and of its size alone.

    Returns:
      Two complex arrays of the shape of `x`: the integral F, and
      K = F exp(i (x² + π/4)) / √π.

    Special cases:
      inf → 0; -inf → nan.

    Example:
      >>> f, k = modfresnelm(1.0)
      >>> f.round(4), k.round(4)
      (Array(-0.2779-0.3164j, dtype=complex64), Array(0.2078-0.1152j, dtype=complex64))
    """
    return _modified("modfresnelm", -1, x)


# -- Owen's function -------------------------------------------------------------------

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(40)
# Beyond it exp(-x² / 2) is below the rounding of 64 bits.
_REACH = 8.7


def _tail(x: Any) -> Any:
    """Returns the normal probability of more than x."""
    return 0.5 * lax.erfc(math.sqrt(0.5) * x)


@custom_jvp
def _owens_t(h: Any, a: Any) -> Any:
    x, slope = lax.abs(h), lax.abs(a)
    fits = (x < math.inf) & (slope < math.inf)
    x, slope = safe(fits, x, 0), safe(fits, slope, 0)
    # For a slope above 1 by that of its inverse.
    steep = slope > 1
    product = safe(x * slope < math.inf, x * slope, 1e3)
    height = fnp.where(steep, product, x)
    ratio = fnp.where(steep, 1 / fnp.where(steep, slope, 1), slope)
    # Gauss' and Legendre's rule where the integrand is not negligible.
    end = fnp.where(height * ratio > _REACH, _REACH / fnp.maximum(height, 1), ratio)
    nodes = fnp.asarray((_NODES + 1) / 2, h.aval.dtype)
    weights = fnp.asarray(_WEIGHTS / 2, h.aval.dtype)

    def step(k: Any, total: Any) -> Any:
        square = lax.square(end * nodes[k])
        part = lax.exp(-0.5 * lax.square(height) * square) / (1 + square)
        return total + weights[k] * part

    rule = lax.fori_loop(0, len(_NODES), step, 0 * height)
    inner = end * rule * lax.exp(-0.5 * lax.square(height)) / (2 * math.pi)
    # Where nothing cancels: near 0 error functions, else tails.
    root = math.sqrt(0.5)
    near = 0.25 * (1 - lax.erf(root * x) * lax.erf(root * product))
    q, r = _tail(x), _tail(product)
    beyond = fnp.where(x < 0.67, near, 0.5 * (q + r) - q * r) - inner
    out = fnp.where(steep, beyond, inner)
    out = fnp.where(lax.abs(a) == math.inf, 0.5 * _tail(lax.abs(h)), out)
    out = fnp.where(lax.abs(h) == math.inf, 0, out)
    out = fnp.where(a < 0, -out, out)
    return fnp.where((h == h) & (a == a), out, math.nan)


_owens_t.defjvps(
    lambda t, out, h, a: (
        -t
        * lax.exp(-0.5 * h * h)
        * lax.erf(math.sqrt(0.5) * a * h)
        * (1 / math.sqrt(8 * math.pi))
    ),
    lambda t, out, h, a: (
        t * lax.exp(-0.5 * h * h * (1 + a * a)) / ((2 * math.pi) * (1 + a * a))
    ),
)


@library()
def owens_t(h: ArrayLike, a: ArrayLike) -> Array:
    """Owen's T: the probability of X > h and 0 < Y < a X, X and Y standard normal.

    Args:
      h: real array-like.
      a: real array-like.

    Returns:
      Float array of the broadcast shape.

    Raises:
      ArgumentError: an argument is not an array.
      DtypeError: an argument is complex.

    Special cases:
      Even in `h`, odd in `a`; 0 for infinite `h`; a = inf gives half the probability of
      X > abs(h).

    Example:
      >>> owens_t(0.0, 1.0)
      Array(0.125, dtype=float32)

    Source: `scipy.special.owens_t`; M. Patefield and D. Tandy, Fast and accurate
    calculation of Owen's T function, 2000.
    """
    args, dtype = _wide_enough("owens_t", h, a)
    return convert(_owens_t(*args), dtype)
