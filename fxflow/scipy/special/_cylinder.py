"""Values of the cylinder functions J, Y, I and K of real order, in 64 bits.

Each region of order and argument has a method of a fixed number of steps:

- x < 2: the power series of J and I (DLMF 10.2.2, 10.25.2), and Temme's series of Y and
  K for orders from -1/2 to 3/2 (N. Temme, On the numerical evaluation of the ordinary
  Bessel function of the second kind, 1976).
- x ≥ 2: the trapezoidal rule, whose error falls exponentially. For J and Y it is
  applied to the integral of exp(-z cosh t) cosh(v t) along the path of steepest descent
  (DLMF 10.32.9 at z = -i x), for K on the real axis.
- J and Y then follow the recurrence in the order, upwards where that is stable and by
  Miller's algorithm elsewhere. Only here the number of steps depends on the order.
- I and K of orders of at least 25: the uniform expansions (DLMF 10.41).

Everything is differentiable by the argument and by the order in forward mode.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import dtypes
from fxflow.lax._last_terms import count_of_terms, digits, from_last_term
from fxflow.numpy._operands import convert

#: The highest order of J and Y, to which the recurrence is followed.
HIGHEST = 10_000.0

# Coefficients of 1 / Γ(1 + z) in powers of z (DLMF 5.7.1).
# fmt: off
_RECIPROCAL_GAMMA = (
    1.0, 0.5772156649015329, -0.6558780715202539, -0.04200263503409524,
    0.16653861138229148, -0.04219773455554433, -0.009621971527876973,
    0.0072189432466631,
    -0.0011651675918590652, -0.00021524167411495098, 0.0001280502823881162,
    -2.013485478078824e-05, -1.2504934821426706e-06, 1.133027231981696e-06,
    -2.056338416977607e-07, 6.116095104481416e-09, 5.002007644469223e-09,
    -1.18127457048702e-09, 1.0434267116911005e-10, 7.782263439905071e-12,
    -3.696805618642206e-12, 5.100370287454476e-13, -2.0583260535665066e-14,
)
# fmt: on


def chebyshev(t: Any, coefficients: Sequence[float]) -> Any:
    """Returns ∑ cₖ Tₖ(t), by Clenshaw's recurrence."""
    first, second = lax.full_like(t, 0), lax.full_like(t, 0)
    twice = 2 * t
    for c in reversed(coefficients[1:]):
        first, second = twice * first - second + c, first
    return t * first - second + coefficients[0]


def polynomial(x: Any, coefficients: Any) -> Any:
    """Returns c₀ + c₁ x + c₂ x² + …."""
    total = lax.full_like(x, float(coefficients[-1]))
    for c in reversed(coefficients[:-1]):
        total = total * x + float(c)
    return total


def repeat(count: int, step: Any, state: Any) -> Any:
    """Returns a state after steps of k = 1, …, count, a float of 64 bits.

    A loop compiles several times faster than its steps in a row.
    """
    body = lambda i, state: step(convert(i, dtypes.float64), state)
    return lax.fori_loop(1, count + 1, body, state)


def sinpi(x: Any) -> Any:
    """Returns sin(π x), which is exactly 0 at integers."""
    n = lax.stop_gradient(lax.floor(x + 0.5))
    out = lax.sin(math.pi * (x - n))
    return fnp.where(n - 2 * lax.floor(n / 2) == 1, -out, out)


def cospi(x: Any) -> Any:
    """Returns cos(π x), which is exactly 0 at half-integers."""
    return sinpi(x + 0.5)


def _wide(x: Any) -> Any:
    return convert(x, dtypes.float64)


def nearest(v: Any) -> tuple[Any, Any]:
    """Returns an integer n and the rest μ of an order: v = n + μ, -1/2 ≤ μ < 1/2."""
    n = lax.stop_gradient(lax.floor(v + 0.5))
    return n, v - n


# -- near 0 ----------------------------------------------------------------------------


def _gammas(mu: Any) -> tuple[Any, Any, Any, Any]:
    """Returns Temme's Γ₁ and Γ₂, Γ(1 + μ) and Γ(1 - μ)."""
    square = mu * mu
    odd = polynomial(square, _RECIPROCAL_GAMMA[1::2])
    even = polynomial(square, _RECIPROCAL_GAMMA[::2])
    return -odd, even, 1 / (even + mu * odd), 1 / (even - mu * odd)


def _temme_start(mu: Any, x: Any) -> tuple[Any, Any, Any]:
    """Returns f₀, p₀ and q₀ of Temme's series of K."""
    first, second, above, below = _gammas(mu)
    logarithm = lax.log(2 / x)
    sigma = mu * logarithm
    near = lax.abs(sigma) < 1
    low, high = fnp.where(near, sigma, 0), fnp.where(near, 1, sigma)
    series = polynomial(low * low, [1 / math.factorial(2 * k + 1) for k in range(9)])
    shc = fnp.where(near, series, lax.sinh(high) / high)
    f = above * below * (lax.cosh(sigma) * first + shc * logarithm * second)
    power = lax.exp(sigma)
    return f, 0.5 * power * above, 0.5 / power * below


def _k_series(mu: Any, x: Any) -> tuple[Any, Any]:
    """Returns K of the orders μ and μ + 1 for 0 < x < 2, |μ| ≤ 1/2."""
    f, p, q = _temme_start(mu, x)
    quarter = x * x / 4

    def step(k: Any, state: Any) -> Any:
        f, p, q, c, total, other = state
        f = (k * f + p + q) / (k * k - mu * mu)
        p, q, c = p / (k - mu), q / (k + mu), c * quarter / k
        return f, p, q, c, total + c * f, other + c * (p - k * f)

    *_, total, other = repeat(14, step, (f, p, q, 1 + 0 * f, f, p))
    return total, 2 / x * other


def _y_series(mu: Any, x: Any) -> tuple[Any, Any]:
    """Returns Y of the orders μ and μ + 1 for 0 < x < 2, |μ| ≤ 1/2."""
    f, p, q = (2 / math.pi * part for part in _temme_start(mu, x))
    # (1 - cos(π μ)) / μ.
    terms = [
        (-1) ** (k + 1) * math.pi ** (2 * k) / math.factorial(2 * k)
        for k in range(1, 12)
    ]
    ratio = mu * polynomial(mu * mu, terms)
    quarter = -x * x / 4

    def step(k: Any, state: Any) -> Any:
        f, p, q, c, total, other = state
        f = (k * f + p + q) / (k * k - mu * mu)
        p, q, c = p / (k - mu), q / (k + mu), c * quarter / k
        g = f + ratio * q
        return f, p, q, c, total + c * g, other + c * (p - k * g)

    start = (f, p, q, 1 + 0 * f, f + ratio * q, p)
    *_, total, other = repeat(14, step, start)
    return -total, -2 / x * other


def _power_series(v: Any, x: Any, sign: int) -> Any:
    """Returns J (sign -1) or I (sign 1) of an order v > -1 for 0 < x < 2."""
    quarter = sign * x * x / 4

    def step(k: Any, state: Any) -> Any:
        term = state[0] * quarter / (k * (v + k))
        return term, state[1] + term

    one = 1 + 0 * (x + v)
    total = repeat(17, step, (one, one))[1]
    return lax.exp(v * lax.log(x / 2) - lax.lgamma(v + 1)) * total


# -- J and Y ---------------------------------------------------------------------------

_PATH_NODES = 24


def _end_of_path(x: Any) -> Any:
    """Returns t with x sinh(t) tanh(t) = 46, beyond which the integrand is rounding."""
    c = 46 / x
    c = (c + c * c / (lax.sqrt(c * c + 4) + 2)) / 2
    return lax.stop_gradient(lax.log1p(c + lax.sqrt(c * (c + 2))))


def _hankel_pair(mu: Any, x: Any) -> tuple[Any, Any, Any, Any]:
    """Returns J and Y of the order μ, then of μ + 1, for x ≥ 2 and |μ| ≤ 1/2.

    On the path t + i gd(t), where gd is Gudermann's function, i x cosh of it is
    i x - x sinh(t) tanh(t): nothing oscillates.
    """
    h = _end_of_path(x) / _PATH_NODES

    def step(k: Any, totals: Any) -> Any:
        t = h * convert(k, x.aval.dtype)
        up = lax.exp(t)
        down = 1 / up
        sinh, cosh = 0.5 * (up - down), 0.5 * (up + down)
        series = t * polynomial(t * t, (1, 1 / 6, 1 / 120, 1 / 5040))
        sinh = fnp.where(t < 0.1, series, sinh)
        weight = h * lax.exp(-x * sinh * sinh / cosh)
        weight = fnp.where(k == 0, 0.5 * weight, weight)
        slope = 1 / cosh
        angle = lax.atan2(sinh, 1 + 0 * sinh)
        # cosh and sinh of μ (t + i φ), then of (μ + 1) (t + i φ) by addition.
        grown = lax.exp(mu * t)
        ch, sh = 0.5 * (grown + 1 / grown), 0.5 * (grown - 1 / grown)
        cosine, sine = lax.cos(mu * angle), lax.sin(mu * angle)
        re, im = ch * cosine, sh * sine
        s_re, s_im = sh * cosine, ch * sine
        # cosh(t + i φ) = 1 + i sinh tanh, and sinh(t + i φ) = tanh + i sinh.
        turn, tanh = sinh * sinh / cosh, sinh / cosh
        next_re = re - im * turn + s_re * tanh - s_im * sinh
        next_im = im + re * turn + s_im * tanh + s_re * sinh
        a, b, c, d = totals
        return (
            a + weight * (re - im * slope),
            b + weight * (im + re * slope),
            c + weight * (next_re - next_im * slope),
            d + weight * (next_im + next_re * slope),
        )

    zero = 0 * x + 0 * mu
    totals = lax.fori_loop(0, _PATH_NODES + 1, step, (zero,) * 4)
    # H(x) = -2 i / π exp(i x - i π v / 2) times the integral.
    sine, cosine = lax.sin(x), lax.cos(x)
    c, s = cospi(mu / 2), sinpi(mu / 2)
    phase_re = cosine * c + sine * s
    phase_im = sine * c - cosine * s
    re, im, next_re, next_im = (2 / math.pi * part for part in totals)
    # Times exp(i phase) and -i; the next order has one more factor of -i.
    j = phase_re * im + phase_im * re
    y = phase_im * im - phase_re * re
    next_j = phase_im * next_im - phase_re * next_re
    next_y = -(phase_re * next_im + phase_im * next_re)
    return j, y, next_j, next_y


def _miller(mu: Any, n: Any, x: Any, used: Any, first: Any, second: Any) -> Any:
    """Returns J of the order n + μ > x from J of the orders μ and μ + 1."""
    top = fnp.max(fnp.where(used, n, 0), initial=0)
    top = lax.stop_gradient(4 * lax.ceil((top + 10 * lax.cbrt(top) + 14) / 4))

    def going(state: Any) -> Any:
        return state[0] > 0

    def step(state: Any) -> Any:
        k, above, here, kept = state
        # Four at once: the arrays go through memory less often.
        for _ in range(4):
            above, here = here, 2 * (mu + k) / x * here - above
            k = k - 1
            kept = fnp.where(k == n, here, kept)
        # Python's numbers would be of 32 bits here, if `x64` is off.
        one = lax.full_like(here, 1)
        down = fnp.where(lax.abs(here) > 1e100, 1e-100 * one, one)
        return k, above * down, here * down, kept * down

    zero = 0 * x + 0 * mu
    start = (top, zero, zero + 1e-30, zero)
    _, above, here, kept = lax.while_loop(going, step, start)
    # Both are known, and never both 0.
    size = here * here + above * above
    return kept * ((here * first + above * second) / size)


def _upwards(mu: Any, n: Any, x: Any, pairs: Any) -> Any:
    """Returns solutions of the order n + μ, from pairs of the orders μ and μ + 1."""
    top = fnp.max(n, initial=0)

    def going(state: Any) -> Any:
        return state[0] < top

    def step(state: Any) -> Any:
        k, pairs = state
        k = k + 1
        factor = 2 * (mu + k) / x

        def moved(now: Any, after: Any) -> Any:
            new = factor * after - now
            new = fnp.where(lax.abs(after) == math.inf, after, new)
            return fnp.where(k <= n, after, now), fnp.where(k <= n, new, after)

        return k, [moved(*pair) for pair in pairs]

    start = (fnp.zeros((), x.aval.dtype), [tuple(pair) for pair in pairs])
    return [now for now, _ in lax.while_loop(going, step, start)[1]]


def j_and_y(v: Any, x: Any) -> tuple[Any, Any]:
    """Returns J and Y of orders from 0 to `HIGHEST`, for 0 < x < inf.

    Args:
      v: the order, of 64 bits.
      x: of 64 bits.
    """
    n, mu = nearest(v)
    small = x < 2
    low, high = fnp.where(small, x, 1), fnp.where(small, 2, x)
    near_y, near_y1 = _y_series(mu, low)
    far_j, far_y, far_j1, far_y1 = _hankel_pair(mu, high)
    y, y1 = fnp.where(small, near_y, far_y), fnp.where(small, near_y1, far_y1)
    series = _power_series(v, low, -1)
    # Where J is not needed its recurrence stays finite.
    pairs = [(y, y1), (fnp.where(small, 0, far_j), fnp.where(small, 0, far_j1))]
    above = (v > x) & ~small
    y, j = _upwards(mu, n, x, pairs)
    falling = _miller(mu, n, high, above, far_j, far_j1)
    j = fnp.where(above, falling, j)
    return fnp.where(small, series, j), y


def high_y(v: Any, x: Any) -> Any:
    """Returns Y of orders from -1/2 to `HIGHEST`, for 2 ≤ x < inf."""
    n, mu = nearest(v)
    _, y, _, y1 = _hankel_pair(mu, x)
    return _upwards(mu, n, x, [(y, y1)])[0]


def first_orders(x: Any) -> tuple[Any, Any, Any, Any]:
    """Returns J of the orders 0 and 1, then Y, for 0 < x < inf, of 64 bits."""
    small, mu = x < 2, lax.full_like(x, 0)
    low, high = fnp.where(small, x, 1), fnp.where(small, 2, x)
    near_y, near_y1 = _y_series(mu, low)
    j, y, j1, y1 = _hankel_pair(mu, high)
    near = _power_series(fnp.stack([mu, mu + 1]), fnp.stack([low, low]), -1)
    return (
        fnp.where(small, near[0], j),
        fnp.where(small, near[1], j1),
        fnp.where(small, near_y, y),
        fnp.where(small, near_y1, y1),
    )


def half_orders(v: Any, x: Any) -> tuple[Any, Any]:
    """Returns J and Y of orders 1/2, 3/2, … up to `HIGHEST`, for 0 < x < inf.

    The derivative with respect to the order is not theirs.
    """
    n, mu = nearest(v)
    small = x < 2
    low, high = fnp.where(small, x, 1), fnp.where(small, 2, x)
    root = lax.sqrt(2 / math.pi / x)
    sine, cosine = root * lax.sin(x), root * lax.cos(x)
    above = (v > x) & ~small
    y, j = _upwards(mu, n, x, [(sine, -cosine), (cosine, sine)])
    falling = _miller(mu, n, high, above, cosine, sine)
    j = fnp.where(above, falling, j)
    # Horner's rule takes one pass through memory.
    total, quarter = lax.full_like(x, 1), low * low / 4
    for k in range(17, 0, -1):
        total = 1 - quarter * total / (k * (v + k))
    series = lax.exp(v * lax.log(low / 2) - lax.lgamma(v + 1)) * total
    return fnp.where(small, series, j), y


# -- I and K ---------------------------------------------------------------------------

#: From this order on the uniform expansions have all digits.
UNIFORM = 25
_NODES = 40


def _k_pair(v: Any, x: Any) -> tuple[Any, Any]:
    """Returns exp(x) K of the orders v and v + 1, v < 25, for x ≥ 2."""
    end = (v + 1 + lax.sqrt(lax.square(v + 1) + 84 * x)) / x
    for _ in range(3):
        c = (42 + (v + 1) * end) / x
        end = fnp.minimum(end, lax.log1p(c + lax.sqrt(c * (c + 2))))
    h = lax.stop_gradient(end) / _NODES

    def step(k: Any, totals: Any) -> Any:
        t = h * convert(k, x.aval.dtype)
        size = 2 * x * lax.square(lax.sinh(0.5 * t))
        weight = fnp.where(k == 0, 0.25 * h, 0.5 * h)
        up, down = weight * lax.exp(v * t - size), weight * lax.exp(-v * t - size)
        grown = lax.exp(t)
        return totals[0] + (up + down), totals[1] + (up * grown + down / grown)

    zero = 0 * x + 0 * v
    out = lax.fori_loop(0, _NODES + 1, step, (zero, zero))
    return out[0], out[1]


def _k_upwards(v: Any, x: Any) -> Any:
    """Returns K of an order below 25 for 0 < x < 2."""
    n, mu = nearest(v)
    now, after = _k_series(mu, x)

    def step(k: Any, pair: Any) -> Any:
        new = 2 * (mu + k) / x * pair[1] + pair[0]
        return (
            fnp.where(k <= n, pair[1], pair[0]),
            fnp.where(k <= n, new, pair[1]),
        )

    return repeat(UNIFORM + 1, step, (now, after))[0]


def _i_ratio(v: Any, x: Any) -> Any:
    """Returns the quotient of I of the orders v + 1 and v (DLMF 10.33.1)."""

    def enough(n: Any) -> Any:
        # The error falls by exp(-2 asinh((v + k) / x)) with the k-th term.
        return v + n / math.e >= x * lax.sinh(0.5 * digits(dtypes.float64) / n)

    count = count_of_terms(enough, dtypes.float64)
    term = lambda k, ratio: 1 / (2 * (v + k) / x + ratio)
    return from_last_term(term, count, 0 * x + 0 * v)


def _i_far(v: Any, x: Any) -> Any:
    """Returns exp(-x) I for x > 25 and x > v² / 2 (DLMF 10.40.1)."""

    def term(k: Any, total: Any) -> Any:
        return 1 + (lax.square(2 * k - 1) - 4 * v * v) / (8 * k * x) * total

    total = from_last_term(term, fnp.asarray(32.0, x.aval.dtype), 1 + 0 * (x + v))
    return total / lax.sqrt(2 * math.pi * x)


def half_i_and_k(v: Any, x: Any) -> tuple[Any, Any]:
    """Returns exp(-x) I and exp(x) K of the orders 1/2, 3/2, … below 25.

    The derivative with respect to the order is not theirs.
    """
    n = v - 0.5
    top = fnp.max(n, initial=0)

    def step(state: Any) -> Any:
        k, here, ratio = state
        k = k + 1
        used = k <= n
        here = fnp.where(used, here * ratio, here)
        return k, here, fnp.where(used, (2 * k + 1) / x + 1 / ratio, ratio)

    # K and the quotient of that of the next order: K itself overflows for small x.
    start = (fnp.zeros((), x.aval.dtype), lax.sqrt(0.5 * math.pi / x), 1 + 1 / x)
    _, k, ratio = lax.while_loop(lambda state: state[0] < top, step, start)
    far = (x > 25) & (x > 0.5 * v * v)
    near = fnp.where(far, 2, x)
    i = 1 / (x * ratio + x * _i_ratio(v, near)) / k
    return fnp.where(far, _i_far(v, fnp.where(far, x, 1e3)), i), k


_DEBYE = 16


@functools.lru_cache
def _debye(count: int) -> Any:
    """Row k: coefficients of Uₖ p⁻ᵏ in powers of p² (DLMF 10.41.9)."""
    polynomial = np.polynomial.Polynomial
    out = [polynomial([1.0])]
    for _ in range(count - 1):
        u = out[-1]
        edge = polynomial([0, 0, 0.5, 0, -0.5])
        out.append(edge * u.deriv() + (polynomial([1, 0, -5]) * u).integ() / 8)
    rows = [u.coef[k::2] for k, u in enumerate(out)]
    return np.array([np.pad(row, (0, count - len(row))) for row in rows])


def _uniform(v: Any, x: Any) -> tuple[Any, Any]:
    """Returns exp(-x) I and exp(x) K of an order of at least 25 (DLMF 10.41.3)."""
    root = lax.sqrt(v * v + x * x)
    p = v / root
    even, odd = 0 * p, 0 * p
    scale = 1 + 0 * p
    table = fnp.asarray(_debye(_DEBYE), x.aval.dtype)

    def step(i: Any, state: Any) -> Any:
        # Uₖ is pᵏ times a polynomial in p²; from two of them, the even one first.
        scale, *sums = state
        out = []
        for k, total in zip((2 * i, 2 * i + 1), sums, strict=True):
            row, value = table[k], 0 * p
            for j in range(_DEBYE - 1, -1, -1):
                value = value * (p * p) + row[j]
            out.append(total + scale * value)
            scale = scale / root
        return scale, *out

    start = (scale, even, odd)
    _, even, odd = lax.fori_loop(0, _DEBYE // 2, step, start)
    # √(v² + x²) - x, and v log(x / (v + √(v² + x²))).
    size = v * v / (root + x) + v * lax.log(x / (v + root))
    factor = lax.sqrt(1 / root)
    i = lax.exp(size) * factor * (even + odd) / math.sqrt(2 * math.pi)
    k = lax.exp(-size) * factor * (even - odd) * math.sqrt(math.pi / 2)
    return i, k


def i_and_k(v: Any, x: Any) -> tuple[Any, Any]:
    """Returns exp(-x) I and exp(x) K of orders of at least 0, for 0 < x < inf.

    Args:
      v: the order, of 64 bits.
      x: of 64 bits.
    """
    high_order = v >= UNIFORM
    order = fnp.where(high_order, 0.0, v)
    small = x < 2
    low, high = fnp.where(small, x, 1), fnp.where(small, 2, x)
    grown = lax.exp(low)
    near_k = _k_upwards(order, low) * grown
    near_i = _power_series(order, low, 1) / grown
    mid_k, mid_k1 = _k_pair(order, high)
    far = (high > 25) & (high > 0.5 * order * order)
    middle = fnp.where(far, 2, high)
    mid_i = 1 / (middle * (mid_k1 + _i_ratio(order, middle) * mid_k))
    mid_i = fnp.where(far, _i_far(order, fnp.where(far, high, 1e3)), mid_i)
    i, k = fnp.where(small, near_i, mid_i), fnp.where(small, near_k, mid_k)
    large_i, large_k = _uniform(fnp.where(high_order, v, UNIFORM), x)
    return fnp.where(high_order, large_i, i), fnp.where(high_order, large_k, k)
