"""Integrals of Bessel, Airy and Struve functions.

Near 0 by their power series. Farther off by integrals to infinity, whose integrands
neither oscillate nor cancel: those of exp(-z cosh u) over cosh u, and times u tanh u
(DLMF 10.32.9, integrated), on the real axis for K and on the path of steepest descent
for J and Y, by the trapezoidal rule, whose error falls exponentially.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.docs import Completes, shared
from fxflow.core.runtime.library import library
from fxflow.lax._last_terms import count_of_terms, digits, from_last_term
from fxflow.lax.gammas import EULER
from fxflow.numpy._operands import ArrayLike, convert
from fxflow.scipy.special._cylinder import repeat
from fxflow.scipy.special._derivatives import by_forward
from fxflow.scipy.special._neumann_series import FARTHEST, neumann_sums
from fxflow.scipy.special._operands import docs_of, in_64_bits, operands
from fxflow.scipy.special.airy_functions import airy
from fxflow.scipy.special.bessel import i0
from fxflow.scipy.special.order_zero_one import j0, k0, y0
from fxflow.scipy.special.struve import modstruve, struve

_NODES, _MOST_STEPS = 50, 2000
_NEAR, _K_NEAR = 4.0, 2.0

# -- integrals to infinity -------------------------------------------------------------


def _sums(parts: Callable[[Any], tuple[Any, ...]], end: Any, count: int) -> Any:
    """Returns integrals of even functions from 0 to where they have fallen to 0."""
    h = lax.stop_gradient(end) / _NODES

    def step(k: Any, totals: Any) -> Any:
        weight = fnp.where(k == 1, 0.5 * h, h)
        # The integrands have limits at 0 that their formulas need not have.
        t = h * fnp.maximum(k - 1, 1e-9)
        return tuple(s + weight * p for s, p in zip(totals, parts(t), strict=True))

    return repeat(_NODES + 1, step, (0 * end,) * count)


def _k_end(x: Any) -> Any:
    c = 42 / x
    return lax.log1p(c + lax.sqrt(c * (c + 2)))


def _k_tails(x: Any, v: float = 0.0) -> Any:
    """Returns the integrals of K of the order v from x, and of K₀(t) / t."""

    def parts(t: Any) -> tuple[Any, Any]:
        up = lax.exp(t)
        cosh, sinh = 0.5 * (up + 1 / up), 0.5 * (up - 1 / up)
        weight = lax.exp(-x * cosh) / cosh
        return weight * lax.cosh(v * t), weight * t * sinh

    return _sums(parts, _k_end(x), 2)


def _hankel_tails(x: Any, v: float = 0.0) -> Any:
    """Returns integrals of J and Y of the order v from x, and of J₀(t) / t, Y₀(t) / t.

    On the path t + i gd(t), where cosh is 1 + i sinh(t) tanh(t).
    """
    c = 46 / x
    c = (c + c * c / (lax.sqrt(c * c + 4) + 2)) / 2
    end = lax.log1p(c + lax.sqrt(c * (c + 2)))

    def parts(t: Any) -> tuple[Any, ...]:
        sinh = lax.sinh(t)
        cosh = lax.sqrt(1 + sinh * sinh)
        turn, angle = sinh * sinh / cosh, lax.atan2(sinh, 1 + 0 * sinh)
        # exp(i x (cosh u - 1)) du / cosh u, without exp(i x).
        weight = lax.exp(-x * turn) / (1 + turn * turn)
        slope = 1 / cosh
        re, im = weight * (1 + slope * turn), weight * (slope - turn)
        ch, sh = lax.cosh(v * t), lax.sinh(v * t)
        c, s = lax.cos(v * angle), lax.sin(v * angle)
        first = re * ch * c - im * sh * s, re * sh * s + im * ch * c
        # u sinh u, where sinh u = tanh t + i sinh t.
        tanh = sinh / cosh
        a, b = t * tanh - angle * sinh, t * sinh + angle * tanh
        return *first, re * a - im * b, re * b + im * a

    re, im, re_over, im_over = _sums(parts, end, 4)
    # J + i Y: 2 / π exp(i x - i π v / 2) and 2 / (i π) exp(i x) times the integrals.
    size = 2 / math.pi
    phase = x - 0.5 * math.pi * v
    c, s = size * lax.cos(phase), size * lax.sin(phase)
    tails = re * c - im * s, re * s + im * c
    c, s = size * lax.cos(x), size * lax.sin(x)
    return *tails, re_over * s + im_over * c, im_over * s - re_over * c


def _struve_rests(x: Any) -> tuple[Any, Any]:
    """Returns the integrals of what H₀ - Y₀ differs from 2 / (π t), and of it over t.

    Both from x, by the trapezoidal rule with s = exp(w - exp(-w)).
    """
    low, high, nodes = -3.6, math.log(45) + 0.4, 80
    h = (high - low) / nodes

    def step(k: Any, totals: Any) -> Any:
        w = low + h * (k - 1)
        small = lax.exp(-w)
        s = lax.exp(w - small)
        weight = h * lax.exp(-s) * s * (1 + small)
        q = s / x
        root = lax.sqrt(1 + q * q)
        first = q * q / (root * (root + 1)) / s
        return totals[0] + weight * first, totals[1] + weight * lax.asinh(q) / s

    first, second = repeat(nodes + 1, step, (0 * x, 0 * x))
    return 2 / math.pi * first, 2 / math.pi * second


# -- power series ----------------------------------------------------------------------


def _series(x: Any, sign: int, shift: float, power: int) -> tuple[Any, Any, Any]:
    """Returns three sums of the terms aₖ of x^(2 k + power) over 2 k + power.

    They are (sign x² / 4)ᵏ / Γ(k + 1 + shift)², without the constant one of 1 / t, and
    are multiplied by 1, by 1 / (2 k + power), and by 1 + … + 1 / k.
    """
    quarter = sign * x * x / 4

    def going(state: Any) -> Any:
        k, term, total, *_ = state
        return (k < _MOST_STEPS) & fnp.any(lax.abs(term) > 1e-18 * lax.abs(total))

    def step(state: Any) -> Any:
        k, term, total, over, harmonics, harmonic = state
        k = k + 1
        term = term * quarter / lax.square(k + shift)
        part, harmonic = term / (2 * k + power), harmonic + 1 / k
        sums = total + part, over + part / (2 * k + power), harmonics + part * harmonic
        return k, term, *sums, harmonic

    one, zero = lax.full_like(x, 1), lax.full_like(x, 0)
    first = one / power if power else zero
    over = one / power**2 if power else zero
    start = (fnp.zeros((), x.dtype), one, first, over, zero, one * 0)
    # A first total of 0 must not end the loop.
    state = lax.while_loop(going, step, step(start))
    return state[2], state[3], state[4]


# -- values ----------------------------------------------------------------------------


def _split(size: Any, edge: float) -> tuple[Any, Any, Any]:
    """Returns where a method for small numbers is used, and operands of both."""
    near = size < edge
    usual = (size > 0) & (size < math.inf)
    return near, fnp.where(near & usual, size, 1), fnp.where(usual & ~near, size, edge)


def _j0y0(x: Any) -> Any:
    size = lax.abs(x)
    near, low, high = _split(size, _NEAR)
    one, over, harmonic = _series(low, -1, 0, 1)
    log = lax.log(low / 2) + EULER
    second = 2 / math.pi * low * (log * one - over - harmonic)
    j, y, _, _ = _hankel_tails(high)
    first = fnp.where(near, low * one, 1 - j)
    second = fnp.where(near, second, -y)
    return _ended(x, (first, second), (0.0, 0.0), (1.0, 0.0), (-1, None))


def _i0k0(x: Any) -> Any:
    size = lax.abs(x)
    near, low, high = _split(size, _K_NEAR)
    at = fnp.where((size > 0) & (size <= 700), size, 1)
    first = at * _series(at, 1, 0, 1)[0]
    one, over, harmonic = _series(low, 1, 0, 1)
    log = lax.log(low / 2) + EULER
    second = low * (over + harmonic - log * one)
    second = fnp.where(near, second, 0.5 * math.pi - _k_tails(high)[0])
    first = fnp.where(size > 700, math.inf, first)
    return _ended(x, (first, second), (0.0, 0.0), (math.inf, 0.5 * math.pi), (-1, None))


def _j0y0_over(x: Any) -> Any:
    size = lax.abs(x)
    near, low, high = _split(size, _NEAR)
    one, over, harmonic = _series(low, -1, 0, 0)
    log = lax.log(low / 2)
    full = log + EULER
    start = 0.5 * log * log + EULER * log - math.pi**2 / 12 + EULER**2 / 2
    start = start + full * one - over - harmonic
    _, _, j, y = _hankel_tails(high)
    first = fnp.where(near, -one, lax.log(high / 2) + EULER + j)
    second = fnp.where(near, -2 / math.pi * start, y)
    ends = (math.inf, 0.0)
    return _ended(x, (first, second), (0.0, -math.inf), ends, (1, None))


def _i0k0_over(x: Any) -> Any:
    size = lax.abs(x)
    near, low, high = _split(size, _K_NEAR)
    at = fnp.where((size > 0) & (size <= 700), size, 1)
    first = fnp.where(size > 700, math.inf, _series(at, 1, 0, 0)[0])
    one, over, harmonic = _series(low, 1, 0, 0)
    log = lax.log(low / 2)
    second = 0.5 * log * log + EULER * log + math.pi**2 / 24 + EULER**2 / 2
    second = second + (log + EULER) * one - over - harmonic
    second = fnp.where(near, second, _k_tails(high)[1])
    return _ended(x, (first, second), (0.0, math.inf), (math.inf, 0.0), (1, None))


def _ended(x: Any, values: Any, at_0: Any, far: Any, parity: Any) -> Any:
    """Stacks values of |x| with those at 0, at infinity and of negative numbers.

    Args:
      x: the argument.
      values: of |x|.
      at_0: the values at 0.
      far: those at infinity.
      parity: 1 for an even function, -1 for an odd one, None for one of x ≥ 0.
    """
    out, size = [], lax.abs(x)
    for value, zero, end, sign in zip(values, at_0, far, parity, strict=True):
        value = fnp.where(size == 0, zero, fnp.where(size == math.inf, end, value))
        if sign is None:
            value = fnp.where(x < 0, math.nan, value)
        elif sign < 0:
            value = fnp.where(x < 0, -value, value)
        out.append(fnp.where(x == x, value, math.nan))
    return fnp.stack(out)


def _struve0(x: Any) -> Any:
    size = lax.abs(x)
    near, low, high = _split(size, _NEAR)
    # H₀ is 2 x / π times a series of Γ(k + 3/2), with the even powers here.
    one = 2 / math.pi * low * low * _series(low, -1, 0.5, 2)[0]
    y = -_hankel_tails(high)[1]
    far = y + 2 / math.pi * (lax.log(2 * high) + EULER) + _struve_rests(high)[0]
    value = fnp.where(near, one, far)
    return _ended(x, (value,), (0.0,), (math.inf,), (1,))[0]


def _struve0_over(x: Any) -> Any:
    size = lax.abs(x)
    near, low, high = _split(size, _NEAR)
    one = 0.5 * math.pi - 2 / math.pi * low * _series(low, -1, 0.5, 1)[0]
    value = fnp.where(near, one, _hankel_tails(high)[3] + _struve_rests(high)[1])
    value = fnp.where(x < 0, math.pi - value, value)
    value = fnp.where(x == -math.inf, math.pi, value)
    return _ended(x, (value,), (0.5 * math.pi,), (0.0,), (1,))[0]


def _modstruve0(x: Any) -> Any:
    size = lax.abs(x)
    at = fnp.where((size > 0) & (size <= 700), size, 1)
    value = 2 / math.pi * at * at * _series(at, 1, 0.5, 2)[0]
    value = fnp.where(size > 700, math.inf, value)
    return _ended(x, (value,), (0.0,), (math.inf,), (1,))[0]


# -- Airy's functions ------------------------------------------------------------------

_AI, _AI_SLOPE = 0.35502805388781723926, 0.25881940379280679841
_AIRY_NEAR = 2.0


def _airy_series(x: Any) -> tuple[Any, Any]:
    """Returns the integrals of both power series of the Airy equation (DLMF 9.4)."""
    cube = x * x * x

    def going(state: Any) -> Any:
        k, f, g, total, other = state
        more = lax.abs(f) > 1e-18 * lax.abs(total)
        more = more | (lax.abs(g) > 1e-18 * lax.abs(other))
        return (k < _MOST_STEPS) & fnp.any(more)

    def step(state: Any) -> Any:
        k, f, g, total, other = state
        n = 3 * (k + 1)
        f = f * cube / ((n - 1) * n)
        g = g * cube / (n * (n + 1))
        return k + 1, f, g, total + f / (n + 1), other + g / (n + 2)

    one = lax.full_like(x, 1)
    start = (fnp.zeros((), x.dtype), one, one, one, 0.5 * one)
    _, _, _, f, g = lax.while_loop(going, step, start)
    return x * f, x * x * g


def _airys(x: Any) -> Any:
    """Returns the integrals from 0 to x of Ai(t), Bi(t), Ai(-t) and Bi(-t)."""
    size = lax.abs(x)
    near, low, high = _split(size, _AIRY_NEAR)
    # Bi's terms are positive; it overflows beyond 104.
    at = fnp.where((size > 0) & (size < 104.5), size, 1)
    f, g = _airy_series(fnp.stack([at, -low]))
    ai = _AI * f[0] - _AI_SLOPE * g[0]
    bi = math.sqrt(3) * (_AI * f[0] + _AI_SLOPE * g[0])
    back_ai = _AI_SLOPE * g[1] - _AI * f[1]
    back_bi = -math.sqrt(3) * (_AI * f[1] + _AI_SLOPE * g[1])
    zeta = 2 / 3 * high * lax.sqrt(high)
    tail = _k_tails(zeta, 1 / 3)[0] / (math.pi * math.sqrt(3))
    j, y, _, _ = _hankel_tails(zeta, 1 / 3)
    ai = fnp.where(near, ai, 1 / 3 - tail)
    bi = fnp.where(size >= 104.5, math.inf, bi)
    back_ai = fnp.where(near, back_ai, 2 / 3 - 0.5 * j + y / (2 * math.sqrt(3)))
    back_bi = fnp.where(near, back_bi, 0.5 / math.sqrt(3) * j + 0.5 * y)
    pairs = ((ai, bi), (back_ai, back_bi))
    out = []
    for forward, backward in zip(pairs, reversed(pairs), strict=True):
        for a, b in zip(forward, backward, strict=True):
            out.append(fnp.where(x < 0, -b, a))
    positive = (1 / 3, math.inf, 2 / 3, 0.0)
    negative = (-2 / 3, 0.0, -1 / 3, -math.inf)
    for k, (a, b) in enumerate(zip(positive, negative, strict=True)):
        value = fnp.where(x == math.inf, a, fnp.where(x == -math.inf, b, out[k]))
        out[k] = fnp.where(x == 0, 0.0, fnp.where(x == x, value, math.nan))
    return fnp.stack(out)


# -- functions -------------------------------------------------------------------------


def _pair(a: Any, b: Any) -> Any:
    return lambda x: fnp.stack([a(x), b(x)])


def _airy_slopes(x: Any) -> Any:
    ai, _, bi, _ = airy(x)
    back_ai, _, back_bi, _ = airy(-x)
    return fnp.stack([ai, bi, back_ai, back_bi])


def _even_over(function: Any, sign: float, middle: float) -> Any:
    """Returns the derivative of an integral of 1 - J₀, or of I₀ - 1, over t."""

    def slope(x: Any) -> Any:
        small = lax.abs(x) < 1e-3
        at = fnp.where(small, 1, x)
        far = sign * (1 - function(at)) / at
        return fnp.where(small, x * (0.25 + middle * x * x), far)

    return slope


_FUNCTIONS: dict[str, Any] = {
    "itj0y0": by_forward(_j0y0, _pair(j0, y0)),
    "iti0k0": by_forward(_i0k0, _pair(i0, k0)),
    "it2j0y0": by_forward(
        _j0y0_over, _pair(_even_over(j0, 1.0, -1 / 64), lambda x: -y0(x) / x)
    ),
    "it2i0k0": by_forward(
        _i0k0_over, _pair(_even_over(i0, -1.0, 1 / 64), lambda x: -k0(x) / x)
    ),
    "itstruve0": by_forward(_struve0, lambda x: struve(0 * x, x)),
    "it2struve0": by_forward(
        _struve0_over,
        lambda x: fnp.where(
            x == 0, -2 / math.pi, -struve(0 * x, x) / fnp.where(x == 0, 1, x)
        ),
    ),
    "itmodstruve0": by_forward(_modstruve0, lambda x: modstruve(0 * x, x)),
    "itairy": by_forward(_airys, _airy_slopes),
}


def _called(name: str, x: Any) -> Any:
    (x,) = operands(name, x)
    return convert(_FUNCTIONS[name](convert(x, dtypes.float64)), x.aval.dtype)


def _docs_of(returns: str) -> Completes:
    return shared(f"""
    Args:
      x: real array-like.

    Returns:
      {returns}

    Raises:
      ArgumentError: an argument is not an array.
      DtypeError: an argument is complex.

    Source: `scipy.special.{{name}}`, with derivatives; DLMF 10.22, 10.43, 11.7.
""")


_two = _docs_of("Two float arrays of the shape of `x`.")
_one = _docs_of("Float array of the shape of `x`.")


@library(quick=True)
@_two
def itj0y0(x: ArrayLike) -> tuple[Array, Array]:
    """Integrals of the Bessel functions J₀ and Y₀ from 0 to `x`.

    Special cases:
      inf → 1 and 0; negative `x` → nan of Y₀.

    Example:
      >>> itj0y0(1.0)[0].round(4)
      Array(0.9197, dtype=float32)
    """
    first, second = _called("itj0y0", x)
    return first, second


@library(quick=True)
@_two
def iti0k0(x: ArrayLike) -> tuple[Array, Array]:
    """Integrals of the modified Bessel functions I₀ and K₀ from 0 to `x`.

    Special cases:
      inf → inf and π/2; negative `x` → nan of K₀; beyond ±700: ±inf of I₀.

    Example:
      >>> iti0k0(1.0)[0].round(4)
      Array(1.0865, dtype=float32)
    """
    first, second = _called("iti0k0", x)
    return first, second


@library(quick=True)
@_two
def it2j0y0(x: ArrayLike) -> tuple[Array, Array]:
    """Integrals of (1 - J₀(t)) / t from 0 to `x`, and of Y₀(t) / t from `x` to inf.

    Special cases:
      inf → inf and 0; negative `x` → nan of Y₀.

    Example:
      >>> it2j0y0(1.0)[0].round(4)
      Array(0.1212, dtype=float32)
    """
    first, second = _called("it2j0y0", x)
    return first, second


@library(quick=True)
@_two
def it2i0k0(x: ArrayLike) -> tuple[Array, Array]:
    """Integrals of (I₀(t) - 1) / t from 0 to `x`, and of K₀(t) / t from `x` to inf.

    Special cases:
      inf → inf and 0; negative `x` → nan of K₀; beyond ±700: inf of I₀.

    Example:
      >>> it2i0k0(1.0)[0].round(4)
      Array(0.129, dtype=float32)
    """
    first, second = _called("it2i0k0", x)
    return first, second


@library(quick=True)
@_docs_of("Four float arrays of the shape of `x`.")
def itairy(x: ArrayLike) -> tuple[Array, Array, Array, Array]:
    """Integrals of Airy functions Ai(t), Bi(t), Ai(-t) and Bi(-t) from 0 to `x`.

    Special cases:
      inf → 1/3, inf, 2/3 and 0; beyond ±104.5: inf of Bi on its growing side.

    Example:
      >>> itairy(1.0)[0].round(4)
      Array(0.2363, dtype=float32)
    """
    ai, bi, back_ai, back_bi = _called("itairy", x)
    return ai, bi, back_ai, back_bi


@library(quick=True)
@_one
def itstruve0(x: ArrayLike) -> Array:
    """Integral of the Struve function H₀ from 0 to `x`.

    Special cases:
      Even; inf → inf.

    Example:
      >>> itstruve0(1.0).round(4)
      Array(0.3011, dtype=float32)
    """
    out: Array = _called("itstruve0", x)
    return out


@library(quick=True)
@_one
def it2struve0(x: ArrayLike) -> Array:
    """Integral of the Struve function H₀(t) / t from `x` to infinity.

    Special cases:
      0 → π/2; inf → 0; -inf → π.

    Example:
      >>> it2struve0(1.0).round(4)
      Array(0.9572, dtype=float32)
    """
    out: Array = _called("it2struve0", x)
    return out


@library(quick=True)
@_one
def itmodstruve0(x: ArrayLike) -> Array:
    """Integral of the modified Struve function L₀ from 0 to `x`.

    Special cases:
      Even; beyond ±700: inf.

    Example:
      >>> itmodstruve0(1.0).round(4)
      Array(0.3365, dtype=float32)
    """
    out: Array = _called("itmodstruve0", x)
    return out


# -- moments ---------------------------------------------------------------------------


def _moment_series(a: Any, lmb: Any, nu: Any) -> Any:
    """Returns the integral over aᵛ / (Γ(v + 1) (λ + v + 1)), for small a."""
    square = a * a

    def enough(n: Any) -> Any:
        # The mean of the logarithms of a + k, 0 < k < n, is at least that of a + n/e.
        rise = n / math.e * (fnp.maximum(nu, 0) + n / math.e)
        return rise >= square * lax.exp(digits(dtypes.float64) / n)

    def term(k: Any, rest: Any) -> Any:
        power = lmb + nu + (2 * k + 1)
        return 1 - square * (power - 2) / (k * (nu + k) * power) * rest

    return from_last_term(term, count_of_terms(enough, dtypes.float64), 1 + 0 * a)


def _moment_values(a: Any, lmb: Any, nu: Any) -> Any:
    size, order = lax.abs(a), lax.abs(nu)
    whole = nu == lax.floor(nu)
    order = fnp.where(whole, order, nu)
    known = (order > -1) & (lmb + order > -1) & (whole | (a >= 0))
    known = known & (2 * size <= FARTHEST) & (order <= 1000) & (lmb - lmb == 0)
    inside = known & (size > 0)
    size, order = fnp.where(inside, size, 1), fnp.where(inside, order, 0)
    lmb = fnp.where(known, lmb, 0)
    near = 2 * size < 4 + 0.7 * lax.abs(order)
    out = _moment_series(fnp.where(near, size, 1), lmb, order)
    # DLMF 10.22.1, over (x / 2)ᵘ, whose terms are functions of the same orders.
    mu, p, q = order + 1, 0.5 * (order - lmb + 1), 0.5 * (order + lmb + 3)
    quotient = lambda k: (mu + 2 * k + 2) / (mu + 2 * k) * ((p + k) / (q + k))
    place = fnp.where(near, 4 + 2 * order, 2 * size)
    far = neumann_sums(mu, place, lambda k: 1.0, quotient)[1]
    out = fnp.where(near, out, far)
    head = lax.exp(order * lax.log(size) - lax.lgamma(order + 1))
    out = out * (head / (lmb + order + 1))
    out = fnp.where(size != lax.abs(a), fnp.where(nu == 0, 1 / (lmb + 1), 0), out)
    odd = nu != 2 * lax.floor(0.5 * nu)
    turned = whole & odd & ((a < 0) != (nu < 0))
    return fnp.where(known, fnp.where(turned, -out, out), math.nan)


_moments: Any = by_forward(_moment_values, None, None, None)


@library(quick=True)
@docs_of(
    """
a: real array-like from -500 to 500.
lmb: real array-like: the power.
nu: real array-like up to 1,000: the order.
""",
    ", with derivatives with respect to all arguments; DLMF 10.22.1",
)
def besselpoly(a: ArrayLike, lmb: ArrayLike, nu: ArrayLike) -> Array:
    """Integral of a power times a Bessel function, x**lmb jv(nu, 2 a x), from 0 to 1.

    To 14 digits, relative to its amplitude.

    Special cases:
      nan where the integral diverges: where lmb + abs(nu) ≤ -1; for orders at or below
      -1 and negative `a` unless the order is an integer; and out of range.

    Example:
      >>> besselpoly(1.0, 0.0, 0.0).round(4)
      Array(0.7129, dtype=float32)
    """
    return in_64_bits(_moments, "besselpoly", a, lmb, nu)
