"""Values of the cylinder functions J, Y, I and K of real order, in 64 bits.

Each region of order and argument has a method of a fixed number of steps:

- x² ≤ 4 (v + 1): the power series of J and I (DLMF 10.2.2, 10.25.2).
- x > v² / 2, large: Hankel's expansions (DLMF 10.17, 10.40).
- I and K of orders of at least 25: the uniform expansions (DLMF 10.41).
- Elsewhere J, Y and K of two orders from -1/2 to 3/2, and the recurrence in the order
  from there, upwards where that is stable, by Miller's algorithm elsewhere. Only here
  the number of steps depends on the order. For x < 2 the two come from Temme's series
  (N. Temme, On the numerical evaluation of the ordinary Bessel function of the second
  kind, 1976), beyond from tables in x and the square of the order.

A method runs only if an element needs it: `in_blocks` gives the functions elements of
similar needs, by the keys that are here, too.

Everything is differentiable by the argument and by the order in forward mode.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import dtypes
from fxflow.lax._last_terms import count_of_terms, digits, from_last_term
from fxflow.numpy._operands import convert
from fxflow.scipy.special._blocks import where_needed

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
    """Returns J (sign -1) or I (sign 1) of an order v > -1 for x² ≤ 4 max(v + 1, 1)."""
    quarter = sign * x * x / 4

    def step(k: Any, state: Any) -> Any:
        term = state[0] * quarter / (k * (v + k))
        return term, state[1] + term

    one = 1 + 0 * (x + v)
    total = repeat(20, step, (one, one))[1]
    return lax.exp(v * lax.log(x / 2) - lax.lgamma(v + 1)) * total


# -- of 2 and more ---------------------------------------------------------------------

#: From here on Hankel's expansions of the orders up to 3/2 have all digits.
_TABLES_END = 25.0
_ROWS, _COLUMNS = 22, 11
_MOST_SQUARE = 2.25


@functools.lru_cache
def _tables() -> tuple[Any, Any]:
    """Returns tables of K and of J and Y, from 2 to `_TABLES_END`.

    √(2 x / π) exp(x) K, and P and Q of √(π x / 2) exp(-i χ) H = P + i Q, where χ is
    x - π v / 2 - π / 4 (DLMF 10.17, 10.40), are smooth functions of √(1 / x) and v².
    Row k: what Tₖ of the former is multiplied with, a polynomial in the latter.
    """
    wide = np.longdouble
    pi = 4 * np.arctan(wide(1))
    rows, columns = (
        np.cos(pi * (2 * np.arange(n) + 1) / (2 * n)) for n in (_ROWS, _COLUMNS)
    )
    low, high = (wide(1) / np.sqrt(wide(x)) for x in (_TABLES_END, 2))
    x = 4 / np.square(rows * (high - low) + high + low)[:, None, None]
    v = np.sqrt(_MOST_SQUARE * (columns[:, None] + 1) / 2)
    # Integrals by the trapezoidal rule (DLMF 10.32.9): of K on the real axis, of the
    # others on the path t + i gd(t), where nothing oscillates.
    steps = np.arange(100)
    weights = np.where(steps == 0, wide(0.5), wide(1))

    def reach(c: Any) -> Any:
        return np.log1p(c + np.sqrt(c * (c + 2)))

    h = (reach(46 / x) + wide(0.3)) / steps.size
    t = h * steps
    k = np.exp(-2 * x * np.square(np.sinh(t / 2))) * np.cosh(v * t)
    c = 46 / x
    h_path = reach((c + c * c / (np.sqrt(c * c + 4) + 2)) / 2) / steps.size
    t = h_path * steps
    path = np.exp(-x * np.sinh(t) * np.tanh(t)) * (1 + 1j / np.cosh(t))
    path = path * np.cosh(v * (t + 1j * np.arctan(np.sinh(t))))
    k, path = (
        (part * weights).sum(-1, keepdims=True) for part in (h * k, h_path * path)
    )
    scale = np.sqrt(2 * x / pi)
    path = path * scale * (1 - 1j) / np.sqrt(wide(2))
    out = []
    for values in (scale * k, path.real, path.imag):
        grid = values[..., 0]
        # Chebyshev's coefficients, then powers of the second argument.
        for n, places in ((_ROWS, rows), (_COLUMNS, columns)):
            basis = np.cos(np.arccos(places) * np.arange(n)[:, None]) * 2 / n
            basis[0] /= 2
            grid = (basis @ grid).T
        powers = [np.polynomial.chebyshev.cheb2poly(row) for row in grid]
        powers = [np.pad(row, (0, _COLUMNS - len(row))) for row in powers]
        out.append(np.array(powers, float))
    return np.stack(out[:1], 1), np.stack(out[1:], 1)


def _from_table(table: Any, orders: Sequence[Any], x: Any) -> list[Any]:
    """Returns the functions of a table for each of some orders, for 2 ≤ x < 25.

    Args:
      table: array[rows, functions, columns].
      orders: up to 3/2 in size.
      x: where.
    """
    low, high = _TABLES_END**-0.5, 2.0**-0.5
    t = (2 / lax.sqrt(x) - (high + low)) * (1 / (high - low))
    rows, functions, columns = table.shape
    # Functions and orders are two axes in front.
    table = fnp.reshape(
        fnp.asarray(table, x.aval.dtype), (*table.shape, *(1,) * (x.aval.ndim + 1))
    )
    v = fnp.stack(orders)[None]
    square = v * v * (2 / _MOST_SQUARE) - 1
    twice = 2 * t

    def step(i: Any, sums: Any) -> Any:
        row, (first, second) = table[rows - 1 - i], sums
        value = row[:, columns - 1] + 0 * square
        for j in range(columns - 2, -1, -1):
            value = value * square + row[:, j]
        return twice * first - second + value, first

    zero = fnp.zeros((functions, *square.aval.shape[1:]), x.aval.dtype) + 0 * square
    # The step that adds row 0 has the factor t, not 2 t.
    first, second = lax.fori_loop(0, rows, step, (zero, zero))
    out = first - t * second
    return [out[i, k] for k in range(len(orders)) for i in range(functions)]


def _hankel_sums(orders: Sequence[Any], x: Any, turned: bool) -> list[Any]:
    """Returns sums of Hankel's expansions of orders up to 3/2, for x ≥ 25.

    Args:
      orders: whose.
      x: where.
      turned: whether of J and Y: P and Q of each order (DLMF 10.17), and not of K.
    """
    squares, scale = [4 * v * v for v in orders], 1 / (8 * x)
    zero = 0 * (x + squares[0])

    def step(i: Any, sums: Any) -> Any:
        k = 24 - convert(i, x.aval.dtype)
        out = []
        for square, (even, odd) in zip(squares, sums, strict=True):
            ratio = (square - lax.square(2 * k - 1)) * ((1 / k) * scale)
            out.append(
                (1 - ratio * odd, ratio * even) if turned else (1 + ratio * even, odd)
            )
        return out

    sums = lax.fori_loop(0, 24, step, [(1 + zero, zero)] * len(orders))
    if turned:
        return [part for pair in sums for part in pair]
    return [even for even, _ in sums]


def _of_two_and_more(mu: Any, x: Any, second: bool) -> tuple[Any, ...]:
    """Returns the functions of the tables for the orders μ and μ + 1, for x ≥ 2."""
    table = _tables()[second]
    count = 2 * table.shape[1]
    far = x >= _TABLES_END
    near = where_needed(
        ~far,
        lambda mu, x: _from_table(table, (mu, mu + 1), x),
        count,
        (mu, 0),
        (x, 2),
    )
    away = where_needed(
        far,
        lambda mu, x: _hankel_sums((mu, mu + 1), x, second),
        count,
        (mu, 0),
        (x, _TABLES_END),
    )
    return tuple(fnp.where(far, a, n) for a, n in zip(away, near, strict=True))


# -- J and Y ---------------------------------------------------------------------------


def _hankel_pair(mu: Any, x: Any) -> tuple[Any, Any, Any, Any]:
    """Returns J and Y of the order μ, then of μ + 1, for x ≥ 2 and |μ| ≤ 1/2."""
    p, q, next_p, next_q = _of_two_and_more(mu, x, True)
    # The next order has a phase that is smaller by π / 2.
    c, s = cospi(0.5 * mu + 0.25), sinpi(0.5 * mu + 0.25)
    sine, cosine = lax.sin(x), lax.cos(x)
    cosine, sine = cosine * c + sine * s, sine * c - cosine * s
    size = lax.sqrt(2 / math.pi / x)
    cosine, sine = size * cosine, size * sine
    return (
        p * cosine - q * sine,
        p * sine + q * cosine,
        next_p * sine + next_q * cosine,
        next_q * sine - next_p * cosine,
    )


def _miller(mu: Any, n: Any, x: Any, first: Any, second: Any) -> Any:
    """Returns J of the order n + μ > x from J of the orders μ and μ + 1.

    Orders that are 0 do not count.
    """
    top = fnp.max(n, initial=0)
    top = lax.stop_gradient(4 * lax.ceil((top + 10 * lax.cbrt(top) + 14) / 4))
    over = 2 / x

    def going(state: Any) -> Any:
        return state[0] > 0

    def step(state: Any) -> Any:
        k, above, here, kept = state
        # Four at once: the arrays go through memory less often.
        for _ in range(4):
            above, here = here, (mu + k) * over * here - above
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


def _upwards(mu: Any, n: Any, x: Any, now: Any, after: Any) -> Any:
    """Returns a solution of the order n + μ, from those of the orders μ and μ + 1."""
    over = 2 / x

    def going(state: Any) -> Any:
        k, now, _, _ = state
        return fnp.any((k < n) & (lax.abs(now) < math.inf))

    def step(state: Any) -> Any:
        k, now, after, kept = state
        for _ in range(4):
            k = k + 1
            new = (mu + k) * over * after - now
            # Infinite from the first one on that is.
            now, after = after, fnp.where(lax.abs(after) == math.inf, after, new)
            kept = fnp.where(k <= n, now, kept)
        return k, now, after, kept

    start = (fnp.zeros((), x.aval.dtype), now, after, now)
    return lax.while_loop(going, step, start)[3]


def _j_upwards(mu: Any, n: Any, x: Any, now: Any, after: Any) -> Any:
    """Returns J of the order n + μ ≤ x, from those of the orders μ and μ + 1."""
    top, over = fnp.max(n, initial=0), 2 / x

    def step(state: Any) -> Any:
        k, now, after, kept = state
        for _ in range(4):
            k = k + 1
            now, after = after, (mu + k) * over * after - now
            kept = fnp.where(k == n, now, kept)
        return k, now, after, kept

    start = (fnp.zeros((), x.aval.dtype), now, after, now)
    return lax.while_loop(lambda state: state[0] < top, step, start)[3]


#: From here on, and for x > v² / 2, Hankel's expansions of J and Y have all digits.
FAR = 40.0


def far_j_and_y(v: Any, x: Any) -> tuple[Any, Any]:
    """Returns J and Y for x > `FAR` and x > v² / 2 (DLMF 10.17.3, 10.17.4)."""
    scale, square = 1 / (8 * x), 4 * v * v

    def step(i: Any, state: Any) -> Any:
        even, odd = state
        for part in range(4):
            k = fnp.asarray(32 - 4 * i - part, dtypes.float64)
            ratio = (square - lax.square(2 * k - 1)) * ((1 / k) * scale)
            even, odd = 1 - ratio * odd, ratio * even
        return even, odd

    zero = 0 * (v + x)
    even, odd = lax.fori_loop(0, 8, step, (1 + zero, zero))
    c, s = cospi(0.5 * v + 0.25), sinpi(0.5 * v + 0.25)
    cosine, sine = lax.cos(x), lax.sin(x)
    cosine, sine = cosine * c + sine * s, sine * c - cosine * s
    size = lax.sqrt(2 / (math.pi * x))
    return size * (even * cosine - odd * sine), size * (even * sine + odd * cosine)


def _regions(v: Any, x: Any) -> tuple[Any, Any, Any]:
    """Returns where x is small for all orders, for this one, and large for it."""
    return x < 2, x * x <= 4 * (v + 1), (x > FAR) & (x > 0.5 * v * v)


def ordinary_key(v: Any, x: Any) -> Any:
    """Returns what `j_and_y` needs for an element: methods, then steps."""
    low, series, far = _regions(v, x)
    away = 2.0 + fnp.where(x < _TABLES_END, 0.0, 1.0) + fnp.where(v > x, 2.0, 0.0)
    method = fnp.where(low, 0, fnp.where(series, 1, fnp.where(far, 6, away)))
    steps = fnp.where(far, 0, fnp.minimum(v + 0.5, 2 * HIGHEST))
    return method * (4 * HIGHEST) + steps


def j_and_y(v: Any, x: Any, with_j: Any, with_y: Any) -> tuple[Any, Any]:
    """Returns J and Y of orders from 0 to `HIGHEST`, for 0 < x < inf.

    Args:
      v: the order, of 64 bits.
      x: of 64 bits.
      with_j: where J is wanted; elsewhere it is arbitrary, but finite.
      with_y: where Y is.
    """
    n, mu = nearest(v)
    low, series, far = _regions(v, x)
    by_series, falling = with_j & series, v > x
    by_pair = with_j & ~series & ~far
    rising_y = with_y & ~far
    (j_near,) = where_needed(
        by_series, lambda v, x: (_power_series(v, x, -1),), 1, (v, 0), (x, 1)
    )
    y_near, y1_near = where_needed(rising_y & low, _y_series, 2, (mu, 0), (x, 1))
    j, y, j1, y1 = where_needed(
        by_pair | (rising_y & ~low), _hankel_pair, 4, (mu, 0), (x, 2)
    )
    y, y1 = fnp.where(low, y_near, y), fnp.where(low, y1_near, y1)
    pair = ((n, 0), (x, 1), (j, 1), (j1, 1))

    def of_pair(solution: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args: (solution(*args),)

    (up,) = where_needed(by_pair & ~falling, of_pair(_j_upwards), 1, (mu, 0), *pair)
    (down,) = where_needed(by_pair & falling, of_pair(_miller), 1, (mu, 0), *pair)
    pair = ((n, 0), (x, 1), (y, 0), (y1, 0))
    (y,) = where_needed(rising_y, of_pair(_upwards), 1, (mu, 0), *pair)
    far_j, far_y = where_needed(
        far & (with_j | with_y), far_j_and_y, 2, (v, 0), (x, 2 * FAR)
    )
    j = fnp.where(far, far_j, fnp.where(falling, down, up))
    return fnp.where(series, j_near, j), fnp.where(far, far_y, y)


def high_y(v: Any, x: Any) -> Any:
    """Returns Y of orders from -1/2 to `HIGHEST`, for 2 ≤ x < inf."""
    n, mu = nearest(v)
    _, y, _, y1 = _hankel_pair(mu, x)
    return _upwards(mu, n, x, y, y1)


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
    y = _upwards(mu, n, x, sine, -cosine)
    j = _j_upwards(mu, fnp.where(above | small, 0, n), x, cosine, sine)
    falling = _miller(mu, fnp.where(above, n, 0), high, cosine, sine)
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


def _k_pair(mu: Any, x: Any) -> tuple[Any, Any]:
    """Returns exp(x) K of the orders μ and μ + 1 for x ≥ 2, |μ| ≤ 1/2."""
    size = lax.sqrt(0.5 * math.pi / x)
    now, after = _of_two_and_more(mu, x, False)
    return size * now, size * after


def _scaled_k_series(mu: Any, x: Any) -> tuple[Any, Any]:
    """Returns what `_k_pair` does, for 0 < x < 2."""
    grown = lax.exp(x)
    now, after = _k_series(mu, x)
    return now * grown, after * grown


def _k_upwards(mu: Any, n: Any, x: Any, now: Any, after: Any) -> tuple[Any, Any]:
    """Returns K of the orders n + μ and n + μ + 1 from those of μ and μ + 1."""
    top, over = fnp.max(n, initial=0), 2 / x

    def step(state: Any) -> Any:
        k, now, after = state
        for _ in range(4):
            k = k + 1
            live = k <= n
            now, after = (
                fnp.where(live, after, now),
                fnp.where(live, (mu + k) * over * after + now, after),
            )
        return k, now, after

    start = (fnp.zeros((), x.aval.dtype), now, after)
    _, now, after = lax.while_loop(lambda state: state[0] < top, step, start)
    return now, after


def _i_ratio(v: Any, x: Any) -> Any:
    """Returns the quotient of I of the orders v + 1 and v (DLMF 10.33.1)."""

    def enough(n: Any) -> Any:
        # The error falls by exp(-2 asinh((v + k) / x)) with the k-th term.
        return v + n / math.e >= x * lax.sinh(0.5 * digits(dtypes.float64) / n)

    count = count_of_terms(enough, dtypes.float64)
    term = lambda k, ratio: 1 / (2 * (v + k) / x + ratio)
    return from_last_term(term, count, 0 * x + 0 * v)


def _i_by_ratio(v: Any, x: Any, now: Any, after: Any) -> Any:
    """Returns exp(-x) I from exp(x) K of the orders v and v + 1 (DLMF 10.28.2)."""
    return 1 / (x * (after + _i_ratio(v, x) * now))


def _far_i_and_k(v: Any, x: Any) -> tuple[Any, Any]:
    """Returns exp(-x) I and exp(x) K for x > 25, x > v² / 2 (DLMF 10.40.1, 10.40.2)."""
    square, scale = 4 * v * v, 1 / (8 * x)

    def step(i: Any, state: Any) -> Any:
        k = 32 - convert(i, x.aval.dtype)
        ratio = (square - lax.square(2 * k - 1)) * ((1 / k) * scale)
        return 1 - ratio * state[0], 1 + ratio * state[1]

    one = 1 + 0 * (v + x)
    i, k = lax.fori_loop(0, 32, step, (one, one))
    size = lax.sqrt(1 / x)
    return i * size / math.sqrt(2 * math.pi), k * size * math.sqrt(0.5 * math.pi)


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
    return fnp.where(far, _far_i_and_k(v, fnp.where(far, x, 1e3))[0], i), k


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


def _uniform(v: Any, x: Any, scaled: bool) -> tuple[Any, Any]:
    """Returns what `i_and_k` does, of an order of at least 25 (DLMF 10.41.3)."""
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
    # √(v² + x²), or that less x, and v log(x / (v + √(v² + x²))).
    size = v * v / (root + x) if scaled else root
    size = size + v * lax.log(x / (v + root))
    factor = lax.sqrt(1 / root)
    i = lax.exp(size) * factor * (even + odd) / math.sqrt(2 * math.pi)
    k = lax.exp(-size) * factor * (even - odd) * math.sqrt(math.pi / 2)
    return i, k


def _modified_regions(v: Any, x: Any) -> tuple[Any, Any, Any, Any]:
    """Returns where the order is high; elsewhere where x < 2, is small, is large."""
    high = v >= UNIFORM
    small, far = x * x <= 4 * (v + 1), (x > 25) & (x > 0.5 * v * v)
    return high, ~high & (x < 2), ~high & small, ~high & far


def modified_key(v: Any, x: Any) -> Any:
    """Returns what `i_and_k` needs for an element: methods, then steps."""
    high, low, series, far = _modified_regions(v, x)
    method = fnp.where(series, 1, fnp.where(x < _TABLES_END, 2, 3))
    method = fnp.where(far, 4, fnp.where(low, 0, method))
    return fnp.where(high, 1e3, method * 100 + fnp.minimum(v + 0.5, UNIFORM))


def i_and_k(
    v: Any, x: Any, with_i: Any, with_k: Any, scaled: bool = True
) -> tuple[Any, Any]:
    """Returns I and K of orders of at least 0, for 0 < x < inf.

    Args:
      v: the order, of 64 bits.
      x: of 64 bits.
      with_i: where I is wanted; elsewhere it is arbitrary.
      with_k: where K is.
      scaled: whether times exp(-x) and exp(x). The product may be below the smallest
        numbers where the function is not.
    """
    high, low, series, far = _modified_regions(v, x)
    n, mu = nearest(fnp.where(high, 0.0, v))
    by_ratio = with_i & ~high & ~series & ~far
    by_pair = (with_k & ~high & ~far) | by_ratio
    near = where_needed(by_pair & low, _scaled_k_series, 2, (mu, 0), (x, 1))
    away = where_needed(by_pair & ~low, _k_pair, 2, (mu, 0), (x, 2))
    pair = [(fnp.where(low, a, b), 1) for a, b in zip(near, away, strict=True)]
    k, k1 = where_needed(by_pair, _k_upwards, 2, (mu, 0), (n, 0), (x, 1), *pair)
    (i,) = where_needed(
        by_ratio,
        lambda *args: (_i_by_ratio(*args),),
        1,
        *((v, 0), (x, 2), (k, 1), (k1, 1)),
    )
    (near_i,) = where_needed(
        with_i & series,
        lambda v, x: (_power_series(v, x, 1) * (lax.exp(-x) if scaled else 1),),
        1,
        *((v, 0), (x, 1)),
    )
    wanted = with_i | with_k
    far_i, far_k = where_needed(wanted & far, _far_i_and_k, 2, (v, 0), (x, 1e3))
    uniform = functools.partial(_uniform, scaled=scaled)
    high_i, high_k = where_needed(wanted & high, uniform, 2, (v, UNIFORM), (x, 1))
    i, k = fnp.where(far, far_i, i), fnp.where(far, far_k, k)
    if not scaled:
        # In two factors, the first of which overflows late.
        half = lax.exp(0.5 * x)
        i, k = half * (half * i), (k / half) / half
    i = fnp.where(series, near_i, i)
    return fnp.where(high, high_i, i), fnp.where(high, high_k, k)
