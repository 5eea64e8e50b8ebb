"""Kelvin functions: the real and imaginary parts of I₀ and K₀ on the line arg = π/4.

By their series near 0 (DLMF 10.65), farther by the trapezoidal rule, whose error falls
exponentially, for the integrals of I (10.32.3) and K (10.32.9), and by the asymptotic
series of I with its exponentially small part (10.40.5). Nothing cancels but what the
functions' own oscillation cancels.
"""

from __future__ import annotations

import math
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.runtime.library import library
from fxflow.lax.gammas import EULER
from fxflow.numpy._operands import ArrayLike, convert
from fxflow.scipy.special._cylinder import repeat
from fxflow.scipy.special._derivatives import by_forward
from fxflow.scipy.special._operands import docs_of, in_64_bits, operands

_HALF = math.sqrt(0.5)
_SERIES, _FAR, _NODES, _TERMS = 3.0, 25.0, 64, 26


def _times_root(re: Any, im: Any) -> tuple[Any, Any]:
    """Returns the product with exp(i π / 4)."""
    return _HALF * (re - im), _HALF * (re + im)


def _near(x: Any) -> tuple[Any, ...]:
    """Returns ber, bei, ker, kei and their derivatives for 0 < x < 3."""
    quarter = lax.square(0.5 * x)

    def step(k: Any, state: Any) -> Any:
        term, harmonic, *sums = state
        # Terms are (x / 2)²ᵏ / k!², times iᵏ: 1, i, -1, -i.
        term, harmonic = term * quarter / (k * k), harmonic + 1 / k
        turn = k - 4 * lax.floor(k / 4)
        real = fnp.where(turn == 0, 1.0, fnp.where(turn == 2, -1.0, 0.0)) * term
        imag = fnp.where(turn == 1, 1.0, fnp.where(turn == 3, -1.0, 0.0)) * term
        parts = (real, imag, harmonic * real, harmonic * imag)
        sums = [s + p for s, p in zip(sums[:4], parts, strict=True)] + [
            s + 2 * k * p for s, p in zip(sums[4:], parts, strict=True)
        ]
        return term, harmonic, *sums

    zero, one = 0 * x, 1 + 0 * x
    start = (one, zero, one, *(zero,) * 7)
    _, _, a, b, ha, hb, da, db, dha, dhb = repeat(20, step, start)
    # K₀ = -(log(z / 2) + γ) I₀ + Σ, where log z has the imaginary part π / 4.
    log = lax.log(0.5 * x) + EULER
    fourth = math.pi / 4
    ker, kei = ha - log * a + fourth * b, hb - log * b - fourth * a
    dker = (dha - log * da + fourth * db - a) / x
    dkei = (dhb - log * db - fourth * da - b) / x
    return a, b, ker, kei, da / x, db / x, dker, dkei


def _i_integral(x: Any) -> tuple[Any, ...]:
    """Returns ber, bei and their derivatives times exp(-x / √2), for 3 ≤ x ≤ 25."""
    r = _HALF * x

    def step(k: Any, sums: Any) -> Any:
        c = lax.cos((k - 0.5) * (math.pi / _NODES))
        # Both exp(z c) and exp(-z c), where c > 0.
        weight, back = lax.exp(r * (c - 1)), lax.exp(-r * (c + 1))
        cosine, sine = lax.cos(r * c), lax.sin(r * c)
        up, down = weight + back, weight - back
        parts = (up * cosine, down * sine, c * down * cosine, c * up * sine)
        return tuple(s + p for s, p in zip(sums, parts, strict=True))

    zero = 0 * x
    a, b, c, d = repeat(_NODES // 2, step, (zero,) * 4)
    scale = 1 / _NODES
    dc, dd = _times_root(c, d)
    return a * scale, b * scale, dc * scale, dd * scale


def _asymptotic(x: Any, order: int, sign: int) -> tuple[Any, Any]:
    """Returns Σ (sign)ᵏ aₖ z⁻ᵏ for x > 25."""

    # Each factor has 1 / z = exp(-i π / 4) / x.
    def step(k: Any, state: Any) -> Any:
        re, im, total_re, total_im = state
        factor = sign * (4 * order * order - lax.square(2 * k - 1)) / (8 * k * x)
        re, im = factor * _HALF * (re + im), factor * _HALF * (im - re)
        return re, im, total_re + re, total_im + im

    one, zero = 1 + 0 * x, 0 * x
    _, _, re, im = repeat(_TERMS, step, (one, zero, one, zero))
    return re, im


def _i_far(x: Any) -> tuple[Any, ...]:
    """Returns ber, bei and their derivatives times exp(-x / √2), for x > 25."""
    r = _HALF * x
    size = 1 / lax.sqrt(2 * math.pi * x)
    small = lax.exp(-2 * r)
    out = []
    for order in (0, 1):
        # exp(z) / √(2 π z) S(-z) + i exp(i order π) exp(-z) / √(2 π z) S(z).
        re, im = _asymptotic(x, order, -1)
        other_re, other_im = _asymptotic(x, order, 1)
        c, s = lax.cos(r - math.pi / 8), lax.sin(r - math.pi / 8)
        real, imag = c * re - s * im, c * im + s * re
        turned = small if order == 0 else -small
        c, s = lax.cos(r + math.pi / 8), -lax.sin(r + math.pi / 8)
        low, high = c * other_re - s * other_im, c * other_im + s * other_re
        out.append((size * (real - turned * high), size * (imag + turned * low)))
    return *out[0], *_times_root(*out[1])


def _k_integral(x: Any) -> tuple[Any, ...]:
    """Returns ker, kei and their derivatives times exp(x / √2), for x ≥ 3."""
    r = _HALF * x
    # exp(-r (cosh t - 1)) is below rounding there.
    c = 40 / r
    end = lax.log1p(c + lax.sqrt(c * (c + 2)))
    h = lax.stop_gradient(end) / _NODES

    def step(k: Any, sums: Any) -> Any:
        t = h * (k - 1)
        grown = 2 * lax.square(lax.sinh(0.5 * t))
        weight = h * lax.exp(-r * grown)
        weight = fnp.where(k == 1, 0.5 * weight, weight)
        cosine, sine = lax.cos(r * grown), lax.sin(r * grown)
        cosh = 1 + grown
        parts = (cosine, -sine, cosh * cosine, -cosh * sine)
        return tuple(s + weight * p for s, p in zip(sums, parts, strict=True))

    zero = 0 * x
    a, b, c, d = repeat(_NODES + 1, step, (zero,) * 4)
    cosine, sine = lax.cos(r), -lax.sin(r)
    dc, dd = _times_root(c * cosine - d * sine, c * sine + d * cosine)
    return a * cosine - b * sine, a * sine + b * cosine, -dc, -dd


def _ber_values(x: Any) -> Any:
    """Returns ber, bei, and their derivatives, along a new first axis."""
    size = lax.abs(x)
    near, far = size < _SERIES, (size > _FAR) & (size < math.inf)
    middle = ~near & (size <= _FAR)
    at = fnp.where(near & (size > 0), size, 1)
    both = _near(at)
    series = (*both[:2], *both[4:6])
    inner = _i_integral(fnp.where(middle, size, _SERIES))
    outer = _i_far(fnp.where(far, size, _FAR))
    half = lax.exp(0.5 * _HALF * fnp.where(far | middle, size, 0))
    out = []
    for k, (a, b, c) in enumerate(zip(series, inner, outer, strict=True)):
        value = fnp.where(near, a, half * (half * fnp.where(far, c, b)))
        value = fnp.where(size == 0, 1.0 if k == 0 else 0.0, value)
        if k > 1:
            value = fnp.where(x < 0, -value, value)
        out.append(fnp.where(size < math.inf, value, math.nan))
    return fnp.stack(out)


def _ker_values(x: Any) -> Any:
    """Returns ker, kei, and their derivatives, along a new first axis."""
    near = (x < _SERIES) & (x > 0)
    beyond = fnp.where((x >= _SERIES) & (x < math.inf), x, _SERIES)
    _, _, *series = _near(fnp.where(near, x, 1))
    half = lax.exp(-0.5 * _HALF * beyond)
    at_zero = (math.inf, -math.pi / 4, -math.inf, 0)
    series = [*series[:2], *series[4:]]
    out = []
    for a, b, zero in zip(series, _k_integral(beyond), at_zero, strict=True):
        value = fnp.where(near, a, half * (half * b))
        value = fnp.where(x == 0, zero, fnp.where(x == math.inf, 0, value))
        out.append(fnp.where(x >= 0, value, math.nan))
    return fnp.stack(out)


# The equation is x² y'' + x y' = i x² y.


def _ber_slope(x: Any) -> Any:
    ber, bei, dber, dbei = _bers(x)
    at = fnp.where(x == 0, 1, x)
    second = [
        fnp.where(x == 0, 0.0, -bei - dber / at),
        fnp.where(x == 0, 0.5, ber - dbei / at),
    ]
    return fnp.stack([dber, dbei, *second])


def _ker_slope(x: Any) -> Any:
    ker, kei, dker, dkei = _kers(x)
    return fnp.stack([dker, dkei, -kei - dker / x, ker - dkei / x])


_bers: Any = by_forward(_ber_values, _ber_slope)
_kers: Any = by_forward(_ker_values, _ker_slope)

_docs = docs_of("x: real array-like.", ", with derivatives; DLMF 10.61–10.68")


@library(quick=True)
def kelvin(x: ArrayLike) -> tuple[Array, Array, Array, Array]:
    """Kelvin functions ber + i bei and ker + i kei, and their derivatives.

    Accurate to a few units in the last place, relative to their complex absolute
    values.

    Args:
      x: real array-like.

    Returns:
      Four complex arrays of the shape of `x`: ber + i bei, ker + i kei, and the
      derivatives of both.

    Raises:
      ArgumentError: an argument is not an array.
      DtypeError: an argument is complex.

    Special cases:
      Negative `x` → nan of ker and kei; ±inf → nan of ber and bei, 0 of ker and kei.

    Example:
      >>> be, ke, dbe, dke = kelvin(1.0)
      >>> be.round(4)
      Array(0.9844+0.2496j, dtype=complex64)

    Source: `scipy.special.kelvin`, with derivatives; DLMF 10.61.
    """
    (x,) = operands("kelvin", x)
    dtype = x.aval.dtype
    if dtypes.bits(dtype) < 32:
        dtype = dtypes.float32
    x = convert(x, dtypes.float64)
    first, second = convert(_bers(x), dtype), convert(_kers(x), dtype)
    be, dbe = (lax.complex(first[k], first[k + 1]) for k in (0, 2))
    ke, dke = (lax.complex(second[k], second[k + 1]) for k in (0, 2))
    return be, ke, dbe, dke


@library(quick=True)
@_docs
def ber(x: ArrayLike) -> Array:
    """The Kelvin function ber, the real part of I₀(x exp(i π / 4)).

    Special cases:
      Even; ±inf → nan.

    Example:
      >>> ber(2.0).round(4)
      Array(0.7517, dtype=float32)
    """
    return in_64_bits(lambda x: _bers(x)[0], "ber", x)


@library(quick=True)
@_docs
def bei(x: ArrayLike) -> Array:
    """The Kelvin function bei, the imaginary part of I₀(x exp(i π / 4)).

    Special cases:
      Even; ±inf → nan.

    Example:
      >>> bei(2.0).round(4)
      Array(0.9723, dtype=float32)
    """
    return in_64_bits(lambda x: _bers(x)[1], "bei", x)


@library(quick=True)
@_docs
def ker(x: ArrayLike) -> Array:
    """The Kelvin function ker, the real part of K₀(x exp(i π / 4)).

    Special cases:
      0 → inf; inf → 0; negative `x` → nan.

    Example:
      >>> ker(2.0).round(4)
      Array(-0.0417, dtype=float32)
    """
    return in_64_bits(lambda x: _kers(x)[0], "ker", x)


@library(quick=True)
@_docs
def kei(x: ArrayLike) -> Array:
    """The Kelvin function kei, the imaginary part of K₀(x exp(i π / 4)).

    Special cases:
      0 → -π/4; inf → 0; negative `x` → nan.

    Example:
      >>> kei(2.0).round(4)
      Array(-0.2024, dtype=float32)
    """
    return in_64_bits(lambda x: _kers(x)[1], "kei", x)


@library(quick=True)
@_docs
def berp(x: ArrayLike) -> Array:
    """Derivative of the Kelvin function ber.

    Special cases:
      Odd; ±inf → nan.

    Example:
      >>> berp(2.0).round(4)
      Array(-0.4931, dtype=float32)
    """
    return in_64_bits(lambda x: _bers(x)[2], "berp", x)


@library(quick=True)
@_docs
def beip(x: ArrayLike) -> Array:
    """Derivative of the Kelvin function bei.

    Special cases:
      Odd; ±inf → nan.

    Example:
      >>> beip(2.0).round(4)
      Array(0.917, dtype=float32)
    """
    return in_64_bits(lambda x: _bers(x)[3], "beip", x)


@library(quick=True)
@_docs
def kerp(x: ArrayLike) -> Array:
    """Derivative of the Kelvin function ker.

    Special cases:
      0 → -inf; inf → 0; negative `x` → nan.

    Example:
      >>> kerp(2.0).round(4)
      Array(-0.1066, dtype=float32)
    """
    return in_64_bits(lambda x: _kers(x)[2], "kerp", x)


@library(quick=True)
@_docs
def keip(x: ArrayLike) -> Array:
    """Derivative of the Kelvin function kei.

    Special cases:
      0 and inf → 0; negative `x` → nan.

    Example:
      >>> keip(2.0).round(4)
      Array(0.2198, dtype=float32)
    """
    return in_64_bits(lambda x: _kers(x)[3], "keip", x)
