"""The incomplete beta function, its complement, their inverses, and Student's t.

All of them take x and 1 - x apart, so that neither tail loses its digits. The logarithm
of either tail is a concave function of log(x / (1 - x)), for which Newton's method
converges; the inverses apply it, with Halley's correction, to the smaller tail.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.core.ir.primitive import Zero
from fxflow.core.runtime.library import library
from fxflow.lax.gamma_ratios import log_beta
from fxflow.lax.incomplete_beta import (
    HeadFactors,
    head_factors,
    head_value,
    log_beta_of,
    log_of,
    tail_fraction,
    tail_parts,
)
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special._derivatives import by_forward, gradient, partial
from fxflow.scipy.special._operands import docs_of, in_64_bits
from fxflow.scipy.special.normal import ndtr, ndtri
from fxflow.transforms.custom_jvp import custom_jvp

_STEPS = 60
_FAR = 740.0

_docs = docs_of(
    """
a: positive real array-like.
b: positive real array-like.
x: real array-like from 0 to 1.
y: real array-like from 0 to 1.
df: positive real array-like: degrees of freedom.
t: real array-like.
p: real array-like from 0 to 1: the probability.
""",
    ", with derivatives with respect to all arguments; DLMF 8.17",
)


# -- the function and its complement ---------------------------------------------------


@custom_jvp
def _head(a: Any, b: Any, x: Any, rest: Any) -> Any:
    """Returns xᵃ (1 - x)ᵇ / B(a, b), rest = 1 - x."""
    return head_value(head_factors(a, b), a, b, x, rest)


def _head_rule(primals: Any, tangents: Any) -> tuple[Any, Any]:
    a, b, x, rest = primals
    rates = {2: a / x, 3: b / rest}
    if any(type(t) is not Zero for t in tangents[:2]):
        whole, *parts = lax.digamma(fnp.stack([a + b, a, b]))
        logs = log_of(x, rest), log_of(rest, x)
        rates |= {i: logs[i] + (whole - parts[i]) for i in (0, 1)}
    out = _head(*primals)
    moved = [t * rates[i] for i, t in enumerate(tangents) if type(t) is not Zero]
    return out, out * sum(moved[1:], moved[0])


_head.defjvp(_head_rule, symbolic_zeros=True)


def _values(upper: bool, ends: bool, a: Any, b: Any, x: Any, rest: Any) -> Any:
    """Returns the lower or the upper tail, of arguments inside their ranges.

    For derivatives `ends` is false: a fraction that ends has some that do not.
    """
    fraction, mirrored = tail_fraction(a, b, x, rest, ends)
    tail = _head(a, b, x, rest) * fraction
    return fnp.where(mirrored ^ upper, 1 - tail, tail)


def _density(a: Any, b: Any, x: Any, rest: Any) -> Any:
    """Returns the derivative with respect to x, inside."""
    return _head(a, b, x, rest) / (x * rest)


#: Functions of a, b, x and 1 - x. The derivative with respect to x is that of both.
lower_tail: Any = by_forward(
    functools.partial(_values, False, True),
    None,
    None,
    _density,
    lambda *a: 0 * a[0],
    derived=functools.partial(_values, False, False),
    together=True,
)
upper_tail: Any = by_forward(
    functools.partial(_values, True, True),
    None,
    None,
    lambda *args: -_density(*args),
    lambda *a: 0 * a[0],
    derived=functools.partial(_values, True, False),
    together=True,
)


def _known_places(
    proper: Any, inside: Any, a: Any, b: Any, x: Any, rest: Any
) -> tuple[list[Any], Any]:
    """Returns arguments inside their ranges, and 1 / B(a, b) where x is not inside.

    There x is the mean in its place, whose head is shared with the tail's.
    """
    a, b = fnp.where(proper, a, 1), fnp.where(proper, b, 1)
    middle = lax.stop_gradient(fnp.stack([a, b]) / (a + b))
    args = [a, b, fnp.where(inside, x, middle[0]), fnp.where(inside, rest, middle[1])]
    logs = lax.log(middle)
    size = fnp.where(inside, 0, -a * logs[0] - b * logs[1])
    return args, _head(*args) * lax.exp(fnp.minimum(size, 709.0 - 60.0))


def tail_of(upper: bool, a: Any, b: Any, x: Any, rest: Any) -> Any:
    """Returns a tail of the beta distribution, of any arguments of 64 bits.

    Args:
      upper: which.
      a: the first parameter.
      b: the second one.
      x: from 0 to 1.
      rest: 1 - x.
    """
    proper = (a > 0) & (a < math.inf) & (b > 0) & (b < math.inf)
    inside = proper & (x > 0) & (rest > 0)
    args, scale = _known_places(proper, inside, a, b, x, rest)
    value = (upper_tail if upper else lower_tail)(*args)
    at_zero = ((a == 0) & (b > 0)) | ((b == math.inf) & (a >= 0) & (a < math.inf))
    at_one = ((b == 0) & (a > 0)) | ((a == math.inf) & (b >= 0) & (b < math.inf))
    # On a bound the density is the derivative, as far as it is finite.
    low, high = proper & (x == 0), proper & (rest == 0)
    first = fnp.where(low & (a >= 1), x, 0) ** fnp.where(low & (a >= 1), a, 1)
    last = fnp.where(high & (b >= 1), rest, 0) ** fnp.where(high & (b >= 1), b, 1)
    start = first * scale / fnp.where(low, a, 1)
    end = last * scale / fnp.where(high, b, 1)
    within = (x >= 0) & (rest >= 0)
    edge = fnp.where(low, start, fnp.where(high, 1 - end, math.nan))
    edge = fnp.where(within & at_zero, fnp.where(x > 0, 1.0, 0.0), edge)
    edge = fnp.where(within & at_one, fnp.where(rest > 0, 0.0, 1.0), edge)
    edge = 1 - edge if upper else edge
    return fnp.where(inside, value, edge)


@library(quick=True)
@_docs
def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Regularized incomplete beta function.

    Special cases:
      0 where `a` is inf or `b` is 0, 1 where `b` is inf or `a` is 0; outside: nan.

    Example:
      >>> betainc(2.0, 1.0, 0.5).round(4)
      Array(0.25, dtype=float32)
    """
    return in_64_bits(
        lambda a, b, x: tail_of(False, a, b, x, 1 - x), "betainc", a, b, x
    )


@library(quick=True)
@_docs
def betaincc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Complement of the regularized incomplete beta function.

    Special cases:
      1 where `a` is inf or `b` is 0, 0 where `b` is inf or `a` is 0; outside: nan.

    Example:
      >>> betaincc(2.0, 1.0, 0.5).round(4)
      Array(0.75, dtype=float32)
    """
    of = lambda a, b, x: tail_of(True, a, b, x, 1 - x)
    return in_64_bits(of, "betaincc", a, b, x)


# -- inverses --------------------------------------------------------------------------


def _sides(u: Any) -> tuple[Any, Any]:
    """Returns x and 1 - x of u = log(x / (1 - x))."""
    small = lax.exp(-lax.abs(u))
    one = 1 / (1 + small)
    return fnp.where(u < 0, small * one, one), fnp.where(u < 0, one, small * one)


def _start(a: Any, b: Any, p: Any, q: Any, size: Any) -> Any:
    """Returns an approximation of log(x / (1 - x))."""
    # By a normal distribution (Abramowitz and Stegun 26.5.22).
    both = (a > 1) & (b > 1)
    high_a, high_b = fnp.where(both, a, 2), fnp.where(both, b, 2)
    lower = p <= q
    y = ndtri(fnp.where(lower, p, q))
    y = fnp.where(lower, -y, y)
    more = (y * y - 3) / 6
    r, s = 1 / (2 * high_a - 1), 1 / (2 * high_b - 1)
    h = 2 / (r + s)
    w = y * lax.sqrt(fnp.maximum(h + more, 0)) / h
    w = w - (s - r) * (more + 5 / 6 - 2 / (3 * h))
    normal = lax.log(high_a / high_b) - 2 * w
    # By the powers at both ends.
    left = a * lax.log(a / (a + b)) - lax.log(a)
    right = b * lax.log(b / (a + b)) - lax.log(b)
    total = fnp.logaddexp(left, right)
    log_p, log_q = lax.log(p), lax.log(q)
    below = log_p < left - total
    x = fnp.minimum((lax.log(a) + total + fnp.where(below, log_p, -1e3)) / a, -1e-8)
    rest = fnp.minimum((lax.log(b) + total + fnp.where(below, -1e3, log_q)) / b, -1e-8)
    ends = fnp.where(
        below, x - lax.log(-lax.expm1(x)), lax.log(-lax.expm1(rest)) - rest
    )
    # Far in a tail by the first term of the series, beyond which the root is.
    x = fnp.minimum((log_p + lax.log(a) + size) / a, -1e-8)
    rest = fnp.minimum((log_q + lax.log(b) + size) / b, -1e-8)
    bound = fnp.where(
        lower, x - lax.log(-lax.expm1(x)), lax.log(-lax.expm1(rest)) - rest
    )
    normal = fnp.where(lower, fnp.maximum(normal, bound), fnp.minimum(normal, bound))
    out = fnp.where(both, normal, ends)
    return fnp.clip(fnp.where(out == out, out, 0), -_FAR, _FAR)


def _moves(
    a: Any, b: Any, x: Any, rest: Any, p: Any, q: Any, factors: HeadFactors
) -> tuple[Any, Any]:
    """Returns Newton's step of log(x / (1 - x)), and Halley's denominator."""
    lower = p <= q
    fraction, head, mirrored = tail_parts(a, b, x, rest, factors=factors)
    same = mirrored ^ lower
    small = head * fraction
    tail = fnp.where(same, small, 1 - small)
    over = fnp.where(same, fraction, tail / head)
    step = lax.log(fnp.where(lower, p, q) / tail) * over
    bend = a * rest - b * x
    bend = fnp.where(lower, bend - 1 / over, bend + 1 / over)
    step = fnp.where(lower, step, -step)
    step = fnp.clip(step, -_FAR, _FAR)
    return step, fnp.clip(1 + 0.5 * step * bend, 0.5, 2)


def _root_values(a: Any, b: Any, p: Any, q: Any, start: Any = None) -> Any:
    """Returns x and 1 - x where the lower tail is p, the upper one q = 1 - p.

    Args:
      a: the first parameter.
      b: the second one.
      p: inside (0, 1).
      q: 1 - p.
      start: takes log B(a, b), returns about log(x / (1 - x)).
    """

    def going(state: Any) -> Any:
        return (state[0] < _STEPS) & fnp.any(state[1])

    def step(state: Any) -> Any:
        k, active, u, low, high, x, rest = state
        newton, divisor = _moves(a, b, x, rest, p, q, factors)
        low, high = fnp.where(newton > 0, u, low), fnp.where(newton < 0, u, high)
        moved = u + newton / divisor
        # The error after a step is about the cube of it.
        rough = lax.abs(newton) + lax.abs(divisor - 1) > 6e-6
        outside = rough & ((moved < low) | (moved > high))
        moved = fnp.where(outside, 0.5 * (low + high), moved)
        # The last step keeps the digits that a large logarithm has not.
        last = fnp.where(rough, 0, newton / divisor)
        bent = 0.5 * last * last * x * rest
        near = x * lax.exp(last * rest - bent), rest * lax.exp(-last * x - bent)
        # What is done stays: the sum of both would not be 1 after many steps.
        x, rest = (
            fnp.where(active, fnp.where(rough, far, close), now)
            for far, close, now in zip(_sides(moved), near, (x, rest), strict=True)
        )
        return k + 1, active & rough & (moved != u), moved, low, high, x, rest

    factors = head_factors(a, b)
    size = log_beta_of(factors, a, b)
    u = _start(a, b, p, q, size) if start is None else start(size)
    far = lax.full_like(u, _FAR)
    state = (fnp.int32(0), a == a, u, -far, far, *_sides(u))
    *_, x, rest = lax.while_loop(going, step, state)
    return fnp.stack([x, rest])


def _inverse_values(a: Any, b: Any, p: Any, q: Any) -> Any:
    proper = (a > 0) & (a < math.inf) & (b > 0) & (b < math.inf)
    inside = proper & (p > 0) & (q > 0)
    args = (fnp.where(inside, a, 1), fnp.where(inside, b, 1))
    some = (fnp.where(inside, p, 0.5), fnp.where(inside, q, 0.5))
    x, rest = _root_values(*args, *some)
    ends = (a > 0) & (b > 0) & ((p == 0) | (q == 0))
    edge = fnp.where(ends, fnp.where(p > 0, 1.0, 0.0), math.nan)
    return fnp.stack([fnp.where(inside, x, edge), fnp.where(inside, rest, 1 - edge)])


def _by_probability(a: Any, b: Any, x: Any, rest: Any) -> Any:
    """Returns the derivative of x by the lower tail."""
    inside = (x > 0) & (rest > 0)
    args = [fnp.where(inside, given, 0.5) for given in (x, rest)]
    middle = 1 / _density(*(fnp.where(inside, p, 1) for p in (a, b)), *args)
    # At an end where the density is 0, infinite, or neither.
    power = fnp.where(x > 0, b, a)
    edge = fnp.where(power < 1, 0.0, fnp.where(power > 1, math.inf, 1 / (a + b - 1)))
    return fnp.where(inside, middle, fnp.where(x == x, edge, math.nan))


def _by_parameters(moved: list[int], a: Any, b: Any, x: Any, rest: Any) -> Any:
    """Returns derivatives of x by some of the parameters."""
    inside = (x > 0) & (rest > 0)
    args = [fnp.where(inside, given, 1) for given in (a, b)]
    args += [fnp.where(inside, given, 0.5) for given in (x, rest)]
    density, edge = _density(*args), fnp.where(x == x, 0.0, math.nan)
    rates = gradient(lower_tail, moved, *args)
    return [fnp.where(inside, -rate / density, edge) for rate in rates]


#: x and 1 - x along a new axis, of a, b, p and 1 - p. By the theorem of implicit
#: functions; the derivative with respect to p is that of both, the one by 1 - p is 0.
inverse_of: Any = custom_jvp(_inverse_values)


def _inverse_rule(primals: Any, tangents: Any) -> tuple[Any, Any]:
    out = inverse_of(*primals)
    a, b, x, rest = primals[0], primals[1], out[0], out[1]
    moved = [i for i in (0, 1) if type(tangents[i]) is not Zero]
    rates = _by_parameters(moved, a, b, x, rest) if moved else []
    parts = [tangents[i] * rate for i, rate in zip(moved, rates, strict=True)]
    if type(tangents[2]) is not Zero:
        parts.append(tangents[2] * _by_probability(a, b, x, rest))
    total = sum(parts[1:], parts[0]) if parts else 0 * x
    return out, fnp.stack([total, -total])


inverse_of.defjvp(_inverse_rule, symbolic_zeros=True)


@library(quick=True)
@_docs
def betaincinv(a: ArrayLike, b: ArrayLike, y: ArrayLike) -> Array:
    """Inverse of `betainc(a, b, x)` in `x`.

    Special cases:
      0 → 0; 1 → 1; outside [0, 1], or a parameter not positive: nan; inside, for an
      infinite parameter: nan.

    Example:
      >>> betaincinv(2.0, 1.0, 0.25).round(4)
      Array(0.5, dtype=float32)
    """
    of = lambda a, b, y: inverse_of(a, b, y, 1 - y)[0]
    return in_64_bits(of, "betaincinv", a, b, y)


@library(quick=True)
@_docs
def betainccinv(a: ArrayLike, b: ArrayLike, y: ArrayLike) -> Array:
    """Inverse of `betaincc(a, b, x)` in `x`.

    Special cases:
      0 → 1; 1 → 0; outside [0, 1], or a parameter not positive: nan; inside, for an
      infinite parameter: nan.

    Example:
      >>> betainccinv(2.0, 1.0, 0.75).round(4)
      Array(0.5, dtype=float32)
    """
    of = lambda a, b, y: inverse_of(a, b, 1 - y, y)[0]
    return in_64_bits(of, "betainccinv", a, b, y)


# -- Student's distribution ------------------------------------------------------------

_T_MOST = 1e140


def _t_values(ends: bool, df: Any, t: Any) -> Any:
    """Returns the probability below -|t|, for finite df > 0."""
    size = lax.abs(t)
    far = size > _T_MOST * lax.sqrt(df)
    square = lax.square(fnp.where(far, 1, size))
    x, rest = df / (df + square), square / (df + square)
    half = 0.5 * df
    inside = (rest > 0) & (x > 0) & ~far
    args, scale = _known_places(x == x, inside, half, 0 * half + 0.5, x, rest)
    tail = _values(False, ends, *args)
    tail = fnp.where(inside, tail, fnp.where(rest > 0, 0.0, 1.0))
    # There the first term of the series is all.
    ratio = fnp.where(far, size, 1) / lax.sqrt(df)
    power = scale / half * fnp.where(far, ratio, 1) ** -df
    return 0.5 * fnp.where(far, power, tail)


def _t_density_values(df: Any, t: Any) -> Any:
    size = lax.abs(t)
    finite = (df < math.inf) & (size < math.inf)
    n, x = fnp.where(finite, df, 1), fnp.where(finite, size, 0)
    ratio = x / lax.sqrt(n)
    far = ratio > 1e100
    near = lax.log1p(lax.square(fnp.where(far, 0, ratio)))
    bend = fnp.where(far, 2 * lax.log(fnp.where(far, ratio, 1)), near)
    value = lax.exp(-log_beta(0.5 * n, lax.full_like(n, 0.5)) - 0.5 * (n + 1) * bend)
    plain = fnp.where(size < math.inf, t, 0)
    normal = lax.exp(-0.5 * plain * plain) / math.sqrt(2 * math.pi)
    normal = fnp.where(size < math.inf, normal, 0)
    out = fnp.where(finite, value / lax.sqrt(n), normal)
    return fnp.where((size == math.inf) & (df > 0), 0, out)


def _t_rise(i: int, df: Any, t: Any) -> Any:
    """Returns the derivative of the logarithm of the density by one argument."""
    finite = (df < math.inf) & (lax.abs(t) < math.inf)
    n, x = fnp.where(finite, df, 1), fnp.where(finite, t, 0)
    ratio = x / n
    if i == 1:
        normal = fnp.where(lax.abs(t) < math.inf, -t, 0)
        return fnp.where(finite, -ratio * ((n + 1) / (1 + ratio * x)), normal)
    above, below = lax.digamma(fnp.stack([0.5 * (n + 1), 0.5 * n]))
    square = lax.square(fnp.minimum(lax.abs(x), _T_MOST)) / n
    share = square / (1 + square)
    rise = above - below - 1 / n - lax.log1p(square) + (1 + 1 / n) * share
    return fnp.where(finite, 0.5 * rise, 0)


_t_density: Any = by_forward(
    _t_density_values,
    lambda df, t: _t_density(df, t) * _t_rise(0, df, t),
    lambda df, t: _t_density(df, t) * _t_rise(1, df, t),
)


def _stdtr_values(ends: bool, df: Any, t: Any) -> Any:
    proper = (df > 0) & (df < math.inf) & (lax.abs(t) < math.inf)
    tail = _t_values(ends, fnp.where(proper, df, 1), fnp.where(proper, t, 0))
    out = fnp.where(t > 0, 1 - tail, tail)
    far = fnp.where(t > 0, 1.0, 0.0)
    far = fnp.where(lax.abs(t) == math.inf, far, ndtr(fnp.where(df > 1, t, 0)))
    return fnp.where(proper, out, fnp.where((df > 0) & (t == t), far, math.nan))


stdtr_of: Any = by_forward(
    functools.partial(_stdtr_values, True),
    None,
    _t_density,
    derived=functools.partial(_stdtr_values, False),
)


@library(quick=True)
@_docs
def stdtr(df: ArrayLike, t: ArrayLike) -> Array:
    """Probability that a variable with Student's distribution is at most `t`.

    Special cases:
      -inf → 0; inf → 1; the normal distribution for infinite `df`; nan unless `df` is
      positive.

    Example:
      >>> stdtr(3.0, 1.0).round(4)
      Array(0.8045, dtype=float32)
    """
    return in_64_bits(stdtr_of, "stdtr", df, t)


def _t_start(n: Any, low: Any, size: Any) -> Any:
    """Returns about log(n / t²), where the probability below t < 0 is low."""
    a = 0.5 * n
    # By three terms of the series of the tail: up to 2/5 of x = n / (n + t²).
    first = (lax.log(2 * low) + lax.log(a) + size) / a
    log_x = fnp.minimum(first, -0.1)
    one, two = a / (2 * a + 2), 3 * a / (8 * a + 16)
    for _ in range(2):
        x = lax.exp(log_x)
        log_x = fnp.minimum(first - lax.log1p(x * (one + two * x)) / a, -0.1)
    far = log_x - lax.log1p(-lax.exp(log_x))
    # By a normal variable (D. Wallace 1959), and near 0 by the density there.
    z = ndtri(low)
    square = z * z
    near, away = lax.sqrt(n / (2 * math.pi)) * lax.exp(size), (8 * n + 3) / (8 * n + 1)
    factor = (0.2 * near + square * away) / (square + 0.2)
    w = fnp.clip(square * factor * factor / n, 1e-300, 600)
    near = -lax.log(lax.expm1(w))
    return fnp.clip(fnp.where(first < math.log(0.4), far, near), -_FAR, _FAR)


def _stdtrit_values(df: Any, p: Any) -> Any:
    proper = (df > 0) & (df < math.inf) & (p > 0) & (p < 1)
    n, prob = fnp.where(proper, df, 1), fnp.where(proper, p, 0.25)
    low = fnp.minimum(prob, 1 - prob)
    # 1 - 2 p is exact where it is small.
    other = 2 * lax.abs(0.5 - prob)
    middle = other == 0
    half = lax.full_like(n, 0.5)
    args = (fnp.where(middle, 0.5, 2 * low), fnp.where(middle, 0.5, other))
    start = lambda size: _t_start(n, 0.5 * args[0], size)
    x, rest = _root_values(0.5 * n, half, *args, start)
    size = lax.sqrt(n) * lax.sqrt(rest / x)
    # Where 1 / x overflows the first term of the series is all.
    log_b = log_beta_of(head_factors(0.5 * n, half), 0.5 * n, half)
    log_x = (lax.log(2 * low) + lax.log(0.5 * n) + log_b) / (0.5 * n)
    size = fnp.where(x < 1e-290, lax.sqrt(n) * lax.exp(-0.5 * log_x), size)
    out = fnp.where(prob < 0.5, -size, size)
    out = fnp.where(middle, 0, out)
    edge = fnp.where(p == 0, -math.inf, fnp.where(p == 1, math.inf, math.nan))
    edge = fnp.where(df == math.inf, ndtri(p), edge)
    return fnp.where(proper, out, fnp.where(df > 0, edge, math.nan))


_stdtrit: Any = custom_jvp(_stdtrit_values)
_stdtrit.defjvps(
    lambda t, out, df, p: t * _t_by_df(df, out),
    lambda t, out, df, p: t / _t_density(df, out),
)


def _t_by_df(df: Any, t: Any) -> Any:
    """Returns the derivative of a quantile with respect to the degrees of freedom."""
    proper = (df > 0) & (df < math.inf) & (lax.abs(t) < math.inf)
    n, x = fnp.where(proper, df, 1), fnp.where(proper, t, 0)
    # The tail beyond |t| is small.
    below = partial(stdtr_of, 0, n, -lax.abs(x))
    slope = -fnp.where(x > 0, -below, below) / _t_density(n, x)
    return fnp.where(proper, slope, fnp.where(t == t, 0.0, math.nan))


@library(quick=True)
@_docs
def stdtrit(df: ArrayLike, p: ArrayLike) -> Array:
    """Inverse of `stdtr(df, t)` in `t`.

    Special cases:
      0 → -inf; 1 → inf; outside [0, 1], or `df` not positive: nan; the normal
      distribution for infinite `df`.

    Example:
      >>> stdtrit(3.0, 0.9).round(4)
      Array(1.6377, dtype=float32)
    """
    return in_64_bits(_stdtrit, "stdtrit", df, p)
