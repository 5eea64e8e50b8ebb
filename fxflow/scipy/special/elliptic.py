"""Elliptic integrals: Carlson's symmetric forms, Legendre's forms; Jacobi functions.

Legendre's forms are Carlson's of other arguments (DLMF 19.25), which leaves no digits
to cancel. Carlson's forms come from the duplication theorem, a fixed number of times,
and a series (B. Carlson, Numerical computation of real or complex elliptic integrals,
1995; DLMF 19.36).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.runtime.library import library
from fxflow.numpy._operands import ArrayLike, convert
from fxflow.scipy.special._derivatives import by_forward
from fxflow.scipy.special._operands import docs_of, in_64_bits

_docs = docs_of(
    """
x: real array-like.
y: real array-like.
z: real array-like.
p: real array-like.
m: real array-like, at most 1: the parameter, the square of the modulus.
u: real array-like.
phi: real array-like: the amplitude.
""",
    ", with derivatives with respect to all arguments; DLMF 19",
)


# -- Carlson's forms -------------------------------------------------------------------

# Each step takes the square root of the ratio of the arguments, or a quarter of their
# differences: enough for any floats of 64 bits.
_STEPS = 22


def _duplicated(step: Any, *state: Any, steps: int = _STEPS) -> Any:
    """Returns a state after all the steps."""
    return lax.fori_loop(0, steps, lambda i, s: step(*s), state)


def _rf_values(x: Any, y: Any, z: Any) -> Any:
    def step(x: Any, y: Any, z: Any) -> Any:
        a, b, c = lax.sqrt(x), lax.sqrt(y), lax.sqrt(z)
        move = a * b + b * c + c * a
        return (x + move) / 4, (y + move) / 4, (z + move) / 4

    x, y, z = _duplicated(step, x, y, z)
    mean = (x + y + z) / 3
    a, b = 1 - x / mean, 1 - y / mean
    c = -a - b
    e2, e3 = a * b - c * c, a * b * c
    return (1 - e2 / 10 + e3 / 14 + e2 * e2 / 24) / lax.sqrt(mean)


def _rd_values(x: Any, y: Any, z: Any) -> Any:
    def step(x: Any, y: Any, z: Any, scale: Any, total: Any) -> Any:
        a, b, c = lax.sqrt(x), lax.sqrt(y), lax.sqrt(z)
        move = a * b + b * c + c * a
        total = total + scale / (c * (z + move))
        return (x + move) / 4, (y + move) / 4, (z + move) / 4, scale / 4, total

    zero = 0 * (x + y + z)
    x, y, z, scale, total = _duplicated(step, x, y, z, zero + 1, zero)
    mean = (x + y + 3 * z) / 5
    a, b = 1 - x / mean, 1 - y / mean
    c = -(a + b) / 3
    e2 = a * b - 6 * c * c
    return scale * (1 - 3 * e2 / 14) / (mean * lax.sqrt(mean)) + 3 * total


def _rc_one(e: Any) -> Any:
    """Returns R_C(1, 1 + e) for e > -1."""
    near = lax.abs(e) < 0.05
    low = fnp.where(near, e, 0)
    series = 0 * e
    for k in range(14, -1, -1):
        series = 1 / (2 * k + 1) - low * series
    up, down = ~near & (e > 0), ~near & (e < 0)
    a, b = lax.sqrt(fnp.where(up, e, 1)), lax.sqrt(fnp.where(down, -e, 0.25))
    out = fnp.where(up, lax.atan(a) / a, lax.atanh(b) / b)
    return fnp.where(near, series, out)


def _rc_values(x: Any, y: Any) -> Any:
    # Cauchy's principal value of negative y (DLMF 19.2.20).
    negative = y < 0
    base = fnp.where(negative, x - y, x)
    other = fnp.where(negative, -y, y)

    def step(x: Any, y: Any) -> Any:
        move = 2 * lax.sqrt(x) * lax.sqrt(y) + y
        return (x + move) / 4, (y + move) / 4

    a, b = _duplicated(step, base, other)
    mean = (a + 2 * b) / 3
    s = b / mean - 1
    out = (1 + 0.3 * s * s) / lax.sqrt(mean)
    out = fnp.where(negative, lax.sqrt(x / base) * out, out)
    return fnp.where(y == 0, fnp.where(x > 0, math.inf, math.nan), out)


def _rj_values(x: Any, y: Any, z: Any, p: Any) -> Any:
    def step(x: Any, y: Any, z: Any, p: Any, scale: Any, total: Any) -> Any:
        a, b, c, d = lax.sqrt(x), lax.sqrt(y), lax.sqrt(z), lax.sqrt(p)
        move = a * b + b * c + c * a
        size = (d + a) * (d + b) * (d + c)
        e = ((p - x) / size) * ((p - y) / size) * (p - z)
        total = total + scale / size * _rc_one(e)
        moved = [(v + move) / 4 for v in (x, y, z, p)]
        return *moved, scale / 4, total

    zero = 0 * (x + y + z + p)
    # A large p falls by a quarter only.
    state = (x, y, z, p, zero + 1, zero)
    x, y, z, p, scale, total = _duplicated(step, *state, steps=3 * _STEPS)
    mean = (x + y + z + 2 * p) / 5
    return scale / (mean * lax.sqrt(mean)) + 6 * total


def _allowed(name: str, values: Any, compute: Any, *args: Any) -> Any:
    """Returns a form where its arguments allow it, else its limit or nan.

    Args:
      name: "rf", "rd", "rj": which form.
      values: the arguments that may be 0, though two of them may not.
      compute: of all arguments.
      *args: all arguments.
    """
    known = args[0] == args[0]
    for v in args:
        known = known & (v == v)
    for v in values:
        known = known & (v >= 0)
    zeros: Any = sum(convert(v == 0, dtypes.int32) for v in values)
    infinite: Any = args[0] == math.inf
    for v in args[1:]:
        infinite = infinite | (v == math.inf)
    above = known & (zeros >= 2)
    if name == "rd":
        above = above | (known & (args[-1] == 0))
    usual = known & ~above & ~infinite
    out = compute(*(fnp.where(usual, v, 1) for v in args))
    out = fnp.where(above, math.inf, fnp.where(infinite, 0, out))
    return fnp.where(known, out, math.nan)


def _rf_all(x: Any, y: Any, z: Any) -> Any:
    return _allowed("rf", (x, y, z), _rf_values, x, y, z)


def _rd_all(x: Any, y: Any, z: Any) -> Any:
    return fnp.where(z < 0, math.nan, _allowed("rd", (x, y), _rd_values, x, y, z))


def _rj_all(x: Any, y: Any, z: Any, p: Any) -> Any:
    return fnp.where(p > 0, _allowed("rj", (x, y, z), _rj_values, x, y, z, p), math.nan)


def _rc_all(x: Any, y: Any) -> Any:
    usual = (x >= 0) & (x < math.inf) & (lax.abs(y) < math.inf)
    out = _rc_values(fnp.where(usual, x, 1), fnp.where(usual, y, 1))
    out = fnp.where(usual, out, 0)
    return fnp.where((x >= 0) & (y == y), out, math.nan)


_rd: Callable[..., Any] = by_forward(_rd_all, None, None, None)
_rf: Callable[..., Any] = by_forward(
    _rf_all,
    lambda x, y, z: _rd(y, z, x) / -6,
    lambda x, y, z: _rd(z, x, y) / -6,
    lambda x, y, z: _rd(x, y, z) / -6,
)
_rc: Callable[..., Any] = by_forward(_rc_all, None, None)
_rj: Callable[..., Any] = by_forward(_rj_all, None, None, None, None)


def _rg(x: Any, y: Any, z: Any) -> Any:
    # With the middle one last nothing cancels (DLMF 19.21.10).
    # Sorted by choice, which gives each of two equal ones its own derivative.
    low, high = fnp.where(x <= y, x, y), fnp.where(x <= y, y, x)
    least, rest = fnp.where(low <= z, low, z), fnp.where(low <= z, z, low)
    middle, most = (
        fnp.where(rest <= high, rest, high),
        fnp.where(rest <= high, high, rest),
    )
    zero = middle == 0
    m = fnp.where(zero, 1, middle)
    root = lax.sqrt(least * most / m)
    part = (most - m) * (m - least) / 3 * _rd(least, most, m)
    out = 0.5 * (m * _rf(least, most, m) + part + root)
    # The middle one is 0, if two are.
    out = fnp.where(zero, 0.5 * lax.sqrt(most), out)
    out = fnp.where(most == math.inf, most, out)
    return fnp.where(least >= 0, out, math.nan)


@library(quick=True)
@_docs
def elliprc(x: ArrayLike, y: ArrayLike) -> Array:
    """Carlson's degenerate symmetric elliptic integral R_C.

    Special cases:
      y = 0 → inf; negative `y`: Cauchy's principal value; negative `x` → nan.

    Example:
      >>> elliprc(0.0, 1.0).round(4)
      Array(1.5708, dtype=float32)
    """
    return in_64_bits(_rc, "elliprc", x, y)


@library(quick=True)
@_docs
def elliprf(x: ArrayLike, y: ArrayLike, z: ArrayLike) -> Array:
    """Carlson's symmetric elliptic integral of the first kind, R_F.

    Special cases:
      Two zeros → inf; negative arguments → nan.

    Example:
      >>> elliprf(1.0, 2.0, 3.0).round(4)
      Array(0.7269, dtype=float32)
    """
    return in_64_bits(_rf, "elliprf", x, y, z)


@library(quick=True)
@_docs
def elliprd(x: ArrayLike, y: ArrayLike, z: ArrayLike) -> Array:
    """Carlson's symmetric elliptic integral of the second kind, R_D.

    Special cases:
      z = 0, or both others → inf; negative arguments → nan.

    Example:
      >>> elliprd(1.0, 2.0, 3.0).round(4)
      Array(0.2905, dtype=float32)
    """
    return in_64_bits(_rd, "elliprd", x, y, z)


@library(quick=True)
@_docs
def elliprg(x: ArrayLike, y: ArrayLike, z: ArrayLike) -> Array:
    """Carlson's completely symmetric elliptic integral of the second kind, R_G.

    Special cases:
      inf → inf; negative arguments → nan.

    Example:
      >>> elliprg(1.0, 2.0, 3.0).round(4)
      Array(1.4018, dtype=float32)
    """
    return in_64_bits(_rg, "elliprg", x, y, z)


@library(quick=True)
@_docs
def elliprj(x: ArrayLike, y: ArrayLike, z: ArrayLike, p: ArrayLike) -> Array:
    """Carlson's symmetric elliptic integral of the third kind, R_J.

    Special cases:
      Two zeros → inf; p = 0 → nan; negative arguments → nan, where SciPy has Cauchy's
      principal value for `p`. All digits for `p` up to 1e26 times the largest of the
      others, but three of 64 bits may be lost where the arguments are 1e16 apart.

    Example:
      >>> elliprj(1.0, 2.0, 3.0, 4.0).round(4)
      Array(0.2398, dtype=float32)
    """
    return in_64_bits(_rj, "elliprj", x, y, z, p)


# -- Legendre's forms ------------------------------------------------------------------


def _first_step(y: Any, z: Any) -> tuple[Any, Any, Any]:
    """Returns the first duplication of (0, y, z), whose root of 0 has no derivative."""
    move = lax.sqrt(y) * lax.sqrt(z)
    return move / 4, (y + move) / 4, (z + move) / 4


def _rf0_values(y: Any, z: Any) -> Any:
    return _rf_values(*_first_step(y, z))


def _rd0_values(y: Any, z: Any) -> Any:
    x, y_, z_ = _first_step(y, z)
    return _rd_values(x, y_, z_) / 4 + 3 / (lax.sqrt(z) * z * (1 + lax.sqrt(y / z)))


def _k_of_complement(q: Any) -> Any:
    """Returns K(1 - q)."""
    inside = (q > 0) & (q < math.inf)
    p = fnp.where(inside, q, 1)
    out = fnp.where(inside, _rf0_values(p, lax.full_like(p, 1)), 0)
    return fnp.where(q >= 0, fnp.where(q == 0, math.inf, out), math.nan)


def _k_slope(q: Any) -> Any:
    inside = (q > 0) & (q < math.inf)
    p = fnp.where(inside, q, 1)
    return fnp.where(inside, _rd0_values(lax.full_like(p, 1), p), math.inf) / -6


_ellipkm1: Callable[..., Any] = by_forward(_k_of_complement, by_forward(_k_slope, None))


def _ellipe_values(m: Any) -> Any:
    inside = (m < 1) & (m > -math.inf)
    q = 1 - fnp.where(inside, m, 0)
    one = lax.full_like(q, 1)
    # E = (1 - m) (R_D(0, 1 - m, 1) + R_D(0, 1, 1 - m)) / 3 (DLMF 19.25.1).
    out = q * (_rd0_values(q, one) + _rd0_values(one, q)) / 3
    out = fnp.where(m == 1, 1, fnp.where(m == -math.inf, math.inf, out))
    return fnp.where(m <= 1, out, math.nan)


def _e_slope(m: Any) -> Any:
    inside = (m < 1) & (m > -math.inf)
    q = 1 - fnp.where(inside, m, 0)
    out = fnp.where(inside, _rd0_values(q, lax.full_like(q, 1)), math.inf) / -6
    return fnp.where(m == -math.inf, 0, out)


_ellipe: Callable[..., Any] = by_forward(_ellipe_values, by_forward(_e_slope, None))


@library(quick=True)
@_docs
def ellipk(m: ArrayLike) -> Array:
    """Complete elliptic integral of the first kind.

    Special cases:
      1 → inf; -inf → 0; above 1: nan.

    Example:
      >>> ellipk(0.5).round(4)
      Array(1.8541, dtype=float32)
    """
    return in_64_bits(lambda m: _ellipkm1(1 - m), "ellipk", m)


@library(quick=True)
@_docs
def ellipkm1(p: ArrayLike) -> Array:
    """Complete elliptic integral of the first kind of m = 1 - p, exact near m = 1.

    Special cases:
      0 → inf; inf → 0; negative `p` → nan.

    Example:
      >>> ellipkm1(1e-20).round(3)
      Array(24.412, dtype=float32)
    """
    return in_64_bits(_ellipkm1, "ellipkm1", p)


@library(quick=True)
@_docs
def ellipe(m: ArrayLike) -> Array:
    """Complete elliptic integral of the second kind.

    Special cases:
      1 → 1; -inf → inf; above 1: nan.

    Example:
      >>> ellipe(0.5).round(4)
      Array(1.3506, dtype=float32)
    """
    return in_64_bits(_ellipe, "ellipe", m)


def _periods(phi: Any) -> tuple[Any, Any]:
    """Returns the nearest multiple of π, and the rest of an amplitude."""
    n = lax.stop_gradient(lax.round(phi / math.pi))
    # π in two parts, for the rest of amplitudes of some periods.
    return n, (phi - n * math.pi) - n * 1.2246467991473532e-16


def _incomplete(phi: Any, m: Any) -> tuple[Any, Any, Any, Any, Any]:
    """Returns periods, sine, squares of cosine and Δ, and where all is finite."""
    inside = (lax.abs(phi) < math.inf) & (m > -math.inf) & (m == m)
    n, rest = _periods(fnp.where(inside, phi, 0))
    m = fnp.where(inside, m, 0)
    sine, cosine = lax.sin(rest), lax.cos(rest)
    # 1 - m sin², without its cancellation near m = 1.
    delta = fnp.where(
        m > 0.5, cosine * cosine + (1 - m) * sine * sine, 1 - m * sine * sine
    )
    return n, sine, cosine * cosine, delta, inside


def _f_values(phi: Any, m: Any) -> Any:
    n, s, c2, d2, _ = _incomplete(phi, m)
    whole = fnp.where(n == 0, 0, 2 * n * _ellipkm1(fnp.where(n == 0, 1, 1 - m)))
    out = whole + s * _rf(c2, d2, lax.full_like(c2, 1))
    out = fnp.where((lax.abs(phi) == math.inf) & (m <= 1), phi, out)
    out = fnp.where((m == -math.inf) & (phi - phi == 0), 0, out)
    return fnp.where((phi == phi) & (m <= 1), out, math.nan)


def _f_by_m(phi: Any, m: Any) -> Any:
    n, s, c2, d2, _ = _incomplete(phi, m)
    slope = _rd0_values(lax.full_like(m, 1), fnp.where(n == 0, 1, 1 - m)) / 6
    whole = fnp.where(n == 0, 0, 2 * n * slope)
    return whole + s * s * s * _rd(c2, lax.full_like(c2, 1), d2) / 6


def _e_values(phi: Any, m: Any) -> Any:
    n, s, c2, d2, _ = _incomplete(phi, m)
    one = lax.full_like(c2, 1)
    whole = fnp.where(n == 0, 0, 2 * n * _ellipe(fnp.where(n == 0, 0, m)))
    # DLMF 19.25.9 for m ≤ 0, and 19.25.10: sums of positive terms.
    low = fnp.where(m < 0, m, 0)
    high = fnp.where(m < 0, 0, m)
    near = s * _rf(c2, d2, one) - low / 3 * s * s * s * _rd(c2, d2, one)
    part = (1 - high) * (_rf(c2, d2, one) + high / 3 * s * s * _rd(c2, one, d2))
    root = lax.sqrt(fnp.where(d2 > 0, d2, 1))
    up = s * (part + high * lax.sqrt(c2) / root)
    up = fnp.where(high == 1, s, up)
    out = whole + fnp.where(m < 0, near, up)
    out = fnp.where((lax.abs(phi) == math.inf) & (m <= 1), phi, out)
    out = fnp.where(
        (m == -math.inf) & (phi != 0) & (phi - phi == 0), phi * math.inf, out
    )
    return fnp.where((phi == phi) & (m <= 1), out, math.nan)


def _e_by_m(phi: Any, m: Any) -> Any:
    n, s, c2, d2, _ = _incomplete(phi, m)
    one = lax.full_like(c2, 1)
    slope = _rd0_values(fnp.where(n == 0, 1, 1 - m), one) / -6
    whole = fnp.where(n == 0, 0, 2 * n * slope)
    return whole - s * s * s * _rd(c2, d2, one) / 6


def _delta(phi: Any, m: Any) -> Any:
    return lax.sqrt(_incomplete(phi, m)[3])


_ellipkinc: Callable[..., Any] = by_forward(
    _f_values,
    by_forward(lambda phi, m: 1 / _delta(phi, m), None, None),
    by_forward(_f_by_m, None, None),
)
_ellipeinc: Callable[..., Any] = by_forward(
    _e_values, by_forward(_delta, None, None), by_forward(_e_by_m, None, None)
)


@library(quick=True)
@_docs
def ellipkinc(phi: ArrayLike, m: ArrayLike) -> Array:
    """Incomplete elliptic integral of the first kind.

    Special cases:
      Odd in `phi`; ±inf → ±inf; m > 1 → nan.

    Example:
      >>> ellipkinc(1.0, 0.5).round(4)
      Array(1.0832, dtype=float32)
    """
    return in_64_bits(_ellipkinc, "ellipkinc", phi, m)


@library(quick=True)
@_docs
def ellipeinc(phi: ArrayLike, m: ArrayLike) -> Array:
    """Incomplete elliptic integral of the second kind.

    Special cases:
      Odd in `phi`; ±inf → ±inf; m > 1 → nan.

    Example:
      >>> ellipeinc(1.0, 0.5).round(4)
      Array(0.9273, dtype=float32)
    """
    return in_64_bits(_ellipeinc, "ellipeinc", phi, m)
