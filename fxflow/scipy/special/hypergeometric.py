"""Hypergeometric functions of real numbers: ₁F₁ and ₂F₁.

Series where their terms have one sign or few digits are lost; elsewhere recurrences and
steps along the differential equation, which need no case distinctions in the
parameters (DLMF 13 and 15).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.runtime.library import library
from fxflow.numpy._operands import ArrayLike, convert
from fxflow.scipy.special._derivatives import by_forward
from fxflow.scipy.special._operands import operands
from fxflow.scipy.special.gammas import gammasgn

# No series takes more terms; those that would are of parameters in the thousands.
_TERMS = 6000


def _whole(x: Any) -> Any:
    """Returns whether numbers are 0, -1, -2, …."""
    return (x <= 0) & (lax.floor(x) == x)


def _epsilon(x: Any) -> float:
    return float(fnp.finfo(x.aval.dtype).eps)


def _nearer(goal: Any, step: Any) -> Any:
    """Returns the smaller one; where both are equal its derivative is the goal's."""
    return fnp.where(goal <= step, goal, step)


def _times(count: int, step: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Returns several steps of a loop as one."""

    def steps(state: Any) -> Any:
        for _ in range(count):
            state = step(state)
        return state

    return steps


def _series(
    tops: tuple[Any, ...], bottom: Any, x: Any, through: Any = False, unrolled: int = 1
) -> tuple[Any, Any]:
    """Returns Σ tₖ and Σ k tₖ, where tₖ₊₁ / tₖ = ∏ (top + k) x / ((bottom + k)(k + 1)).

    It ends where terms are small and get smaller.

    Args:
      tops: parameters.
      bottom: parameter.
      x: argument.
      through: where derivatives with respect to `tops` are wanted: they have terms
        beyond the one whose factor is 0.
      unrolled: terms for each test whether it ends.
    """
    tiny = _epsilon(x) / 4

    def going(state: Any) -> Any:
        k, active, *_ = state
        return (k < _TERMS) & fnp.any(active)

    def step(state: Any) -> Any:
        k, _, through, size, term, total, moment = state
        n = convert(k, x.aval.dtype)
        ratio = x / (n + 1)
        rest = lax.abs(lax.stop_gradient(ratio))
        for top in tops:
            ratio = ratio * (top + n)
            factor = lax.abs(lax.stop_gradient(top) + n)
            passed = through & (factor == 0)
            rest = rest * fnp.where(passed, 1, factor)
            through = through & ~passed
        # A series that has ended stays so, also where the denominator is 0 later.
        pole = bottom + n == 0
        over = fnp.where(pole, 1, bottom + n)
        term = fnp.where(pole, 0, term * ratio / over)
        over = lax.abs(lax.stop_gradient(over))
        size = fnp.where(pole, 0, size * rest / over)
        # With two parameters above, terms fall as powers of x.
        falling = rest < (0.9 if len(tops) > 1 else 0.5) * over
        total, moment = total + term, moment + (n + 1) * term
        small = size * (n + 1) <= tiny * lax.abs(total)
        active = ~((size == 0) | (small & falling)) & (total - total == 0)
        return k + 1, active, through, size, term, total, moment

    one = lax.full_like(x, 1)
    start = (fnp.int32(0), x == x, (x == x) & through, one, one, one, 0 * one)
    *_, total, moment = lax.while_loop(going, _times(unrolled, step), start)
    return total, moment


def _expanded(
    next_term: Any, h: Any, f: Any, df: Any, through: bool, unrolled: int = 1
) -> tuple[Any, Any]:
    """Returns a function and its derivative at a distance, by Taylor series.

    Args:
      next_term: of n, uₙ hⁿ, uₙ₊₁ hⁿ⁺¹ and h: uₙ₊₂ hⁿ⁺², by a differential equation.
      h: the distance.
      f: the function.
      df: its derivative.
      through: whether derivatives by parameters are wanted: where the function's own
        terms are 0, another solution says how many theirs are.
      unrolled: terms for each test whether it ends.
    """
    tiny = _epsilon(h) / 4

    def going(state: Any) -> Any:
        k, active, *_ = state
        return (k < _TERMS) & fnp.any(active)

    def step(state: Any) -> Any:
        k, _, solutions, slope = state
        n = convert(k, h.aval.dtype)
        active, found = False, []
        for before, last, value in solutions:
            new = next_term(n, before, last, h)
            value = value + new
            larger = fnp.maximum(lax.abs(new), lax.abs(last)) * (n + 2)
            small = larger <= tiny * lax.abs(value)
            active = active | (~small & (value - value == 0))
            found.append((last, new, value))
        slope = slope + (n + 2) * found[0][1]
        return k + 1, active, found, slope

    first = df * h
    solutions = [(f, first, f + first)]
    if through:
        one = lax.full_like(h, 1)
        solutions.append((one, h, one + h))
    start = (fnp.int32(0), h != 0, solutions, first)
    *_, ((_, _, value), *_), slope = lax.while_loop(
        going, _times(unrolled, step), start
    )
    return value, fnp.where(h == 0, df, slope / fnp.where(h == 0, 1, h))


# -- of one parameter above and one below ----------------------------------------------


def _far(a: Any, b: Any, x: Any) -> Any:
    """Returns exp(-x) M(a, b, x) for large x > 0 by the asymptotic series."""
    tiny = _epsilon(x) / 4
    least = lax.abs((b - a) * (1 - a))

    def going(state: Any) -> Any:
        k, active, *_ = state
        return (k < _TERMS) & fnp.any(active)

    def step(state: Any) -> Any:
        k, active, term, total = state
        n = convert(k, x.aval.dtype)
        ratio = (b - a + n) * (1 - a + n) / ((n + 1) * x)
        # Terms may grow, fall and grow again: there it ends.
        active = active & ~((lax.abs(ratio) > 1) & (n * n > least))
        term = fnp.where(active, term * ratio, term)
        total = fnp.where(active, total + term, total)
        small = lax.abs(term) <= tiny * lax.abs(total)
        return k + 1, active & ~small & (total - total == 0), term, total

    one = lax.full_like(x, 1)
    total = lax.while_loop(going, step, (fnp.int32(0), x == x, one, one))[3]
    size = lax.lgamma(b) - lax.lgamma(a) + (a - b) * lax.log(x)
    return gammasgn(b) * gammasgn(a) * lax.exp(size) * total


def _along(a: Any, b: Any, x: Any) -> Any:
    """Returns M(a, b, x) for a < 0 < b, x > 0, along its differential equation.

    The terms of the series alternate there, and cancel where a x is large.
    """
    at = _nearer(x, 1 / (1 - a))
    f, moment = _series((a,), b, at)

    def going(state: Any) -> Any:
        return fnp.any(state[0] < x)

    def step(state: Any) -> Any:
        at, f, df = state
        most = fnp.minimum(at / 2, 4 / lax.sqrt(1 - a / at))
        new = fnp.where(at + most < x, at + most, x)

        def next_term(n: Any, before: Any, last: Any, h: Any) -> Any:
            part = h * h * (n + a) / (n + 1) * before - h * (n + b - at) * last
            return part / (at * (n + 2))

        f, df = _expanded(next_term, new - at, f, df, through=False)
        return new, f, df

    return lax.while_loop(going, step, (at, f, moment / at))[1]


def _hyp1f1_values(a: Any, b: Any, x: Any, *, through: bool = False) -> Any:
    wide = dtypes.bits(x.aval.dtype) == 64
    ends = _whole(a)
    # Kummer's transformation: of a negative number to a positive one.
    turned = (x < 0) if through else (x < 0) & ~ends
    p = fnp.where(turned, b - a, a)
    y = fnp.where(turned, -x, x)
    ends_now = _whole(p)
    root = lax.sqrt(lax.abs(b - p)) + lax.sqrt(lax.abs(1 - p))
    far = ~ends_now & (y > (50 if wide else 25))
    far = far & ((y > 3 * root * root) | (y > (600 if wide else 75)))
    along = ~far & (p < 0) & (b > 0) & (y > 0)
    if through:
        along = along & ~ends_now
    else:
        along = along & (~ends_now | (y < 2 * b - 4 * p))
    plain = ~(far | along)

    def where(region: Any, *standing_in: float) -> list[Any]:
        args = zip((p, b, y), standing_in, strict=True)
        return [fnp.where(region, x, other) for x, other in args]

    p_now, b_now, y_now = where(plain, 0, 1, 0)
    near = _series((p_now,), b_now, y_now, through)[0]
    value = fnp.where(along, _along(*where(along, 0, 1, 1)), near)
    value = fnp.where(turned, value * lax.exp(fnp.where(turned, -y, 0)), value)
    # In two factors, the first of which overflows late.
    half = lax.exp(fnp.where(far & ~turned, y / 2, 0))
    out = fnp.where(far, _far(*where(far, 1, 1, 100)) * half * half, value)
    pole = _whole(b) & ~(ends & (a >= b))
    out = fnp.where(pole, math.inf, out)
    # The derivatives with respect to a and b are 0 at 0, but not constant.
    out = fnp.where((x == 0) & (pole | (not through)), 1, out)
    return fnp.where((a - a == 0) & (b - b == 0) & (x == x), out, math.nan)


def _slope_1f1(a: Any, b: Any, x: Any) -> Any:
    constant = (a == 0) & (b == 0)
    return a / fnp.where(constant, 1, b) * _hyp1f1(a + 1, b + 1, x)


_hyp1f1: Callable[..., Any] = by_forward(
    _hyp1f1_values,
    None,
    None,
    _slope_1f1,
    derived=functools.partial(_hyp1f1_values, through=True),
)


@library(quick=True)
def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Kummer's confluent hypergeometric function ₁F₁(a; b; x).

    Args:
      a: real array-like.
      b: real array-like.
      x: real array-like.

    Returns:
      Float array of the broadcast shape.

    Raises:
      ArgumentError: an argument is not an array.
      DtypeError: an argument is complex.

    Special cases:
      inf where `b` is 0 or a negative integer, unless the series ends before: where `a`
      is one and not below `b`. nan of infinite parameters.

    Example:
      >>> hyp1f1(1.0, 2.0, 0.5).round(4)
      Array(1.2974, dtype=float32)

    Source: `scipy.special.hyp1f1`, with derivatives with respect to all arguments; DLMF
    13.
    """
    args = operands("hyp1f1", a, b, x)
    return _in_32_bits(_hyp1f1, args)


def _in_32_bits(function: Any, args: list[Any]) -> Array:
    """Calls a function with at least 32 bits, and returns the operands' dtype."""
    dtype = args[0].aval.dtype
    if dtypes.bits(dtype) < 32:
        args = [convert(a, dtypes.float32) for a in args]
    return convert(function(*args), dtype)


# -- of two parameters above and one below ---------------------------------------------


def hyp2f1_near_one(
    a: Any, b: Any, c: Any, w: Any, through: bool = False, unrolled: int = 1
) -> tuple[Any, Any]:
    """Returns ₂F₁(a, b; c; 1 - w) for 0 < w ≤ 1, and its derivative by 1 - w.

    Along its differential equation.

    Args:
      a: the first parameter.
      b: the second one.
      c: the third one, not 0 or a negative integer.
      w: how far the argument is from 1.
      through: whether derivatives with respect to `a` and `b` are wanted, which have
        terms behind the last one of a polynomial.
      unrolled: terms for each test whether a series ends: more of them make a longer
        program that takes less time.
    """
    at = -_nearer(-w, -0.5)
    f, moment = _series((a, b), c, 1 - at, through, unrolled)
    df = moment / fnp.where(at < 1, 1 - at, 1)

    def going(state: Any) -> Any:
        return fnp.any(state[0] > w)

    def step(state: Any) -> Any:
        at, f, df = state
        new, z = -_nearer(-w, -at / 2), fnp.where(at < 1, 1 - at, 1)

        def next_term(n: Any, before: Any, last: Any, h: Any) -> Any:
            part = h * h * (n + a) * (n + b) / (n + 1) * before
            part = part - h * ((at - z) * n + c - (a + b + 1) * z) * last
            return part / (z * at * (n + 2))

        f, df = _expanded(next_term, at - new, f, df, through, unrolled)
        return new, f, df

    _, f, df = lax.while_loop(going, step, (at, f, df))
    return f, df


def _hyp2f1_values(a: Any, b: Any, c: Any, x: Any, *, through: bool = False) -> Any:
    swapped = a > b
    a, b = fnp.where(swapped, b, a), fnp.where(swapped, a, b)
    ends = _whole(a) | _whole(b)
    known = (a - a == 0) & (b - b == 0) & (c - c == 0) & (x == x)
    if through:  # from a polynomial to its neighbours, where they are finite
        ends = ends & ((x >= 1) | (x == -math.inf) | _whole(c))
    plain = known & ends
    sums = _series(
        (fnp.where(plain, a, 0), fnp.where(plain, b, 0)),
        fnp.where(plain, c, 1),
        fnp.where(plain, x, 0),
        through & _whole(a) & _whole(b),
    )[0]
    # Pfaff's transformation: of a negative number to one between 0 and 1.
    turned = x < 0
    inside = known & ~ends & (x < 1) & (x > -math.inf)
    above = fnp.where(turned, c - b, b)
    w = fnp.where(turned, 1 / (1 - x), 1 - x)
    value = hyp2f1_near_one(
        fnp.where(inside, a, 0),
        fnp.where(inside, above, 0),
        fnp.where(inside, c, 1),
        fnp.where(inside, w, 1),
        through,
    )[0]
    factor = lax.exp(-a * fnp.log1p(fnp.where(turned & inside, -x, 0)))
    out = fnp.where(ends, sums, fnp.where(inside, value * factor, math.inf))
    # At 1: Gauss' sum.
    d = c - a - b
    at_1 = (x == 1) & ~ends & (d > 0)

    def one(p: Any) -> Any:
        return fnp.where(at_1, p, 1)

    size = lax.lgamma(one(c)) + lax.lgamma(one(d))
    size = size - lax.lgamma(one(c - a)) - lax.lgamma(one(c - b))
    sign = gammasgn(one(c)) * gammasgn(one(c - a)) * gammasgn(one(c - b))
    zero = _whole(one(c - a)) | _whole(one(c - b))
    out = fnp.where(at_1, fnp.where(zero, 0, sign * lax.exp(size)), out)
    above_all = fnp.where(_whole(b), b, a)
    pole = _whole(c) & ~(ends & (above_all >= c))
    out = fnp.where(pole, math.inf, out)
    # The derivatives with respect to a, b and c are 0 at 0, but not constant.
    out = fnp.where((x == 0) & (pole | (not through)), 1, out)
    out = fnp.where((x == -math.inf) & ~ends, fnp.where(a > 0, 0, math.nan), out)
    return fnp.where(known, out, math.nan)


def _slope_2f1(a: Any, b: Any, c: Any, x: Any) -> Any:
    constant = (a * b == 0) & (c == 0)
    return a * b / fnp.where(constant, 1, c) * _hyp2f1(a + 1, b + 1, c + 1, x)


_hyp2f1: Callable[..., Any] = by_forward(
    _hyp2f1_values,
    None,
    None,
    None,
    _slope_2f1,
    derived=functools.partial(_hyp2f1_values, through=True),
)


@library(quick=True)
def hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, x: ArrayLike) -> Array:
    """The Gauss hypergeometric function ₂F₁(a, b; c; x).

    Args:
      a: real array-like.
      b: real array-like.
      c: real array-like.
      x: real array-like.

    Returns:
      Float array of the broadcast shape.

    Raises:
      ArgumentError: an argument is not an array.
      DtypeError: an argument is complex.

    Special cases:
      inf for `x` > 1, and at 1 if c ≤ a + b, unless `a` or `b` is 0 or a negative
      integer, which ends the series. inf where `c` is one, unless the series ends
      before. nan of infinite parameters. Where terms of large parameters cancel, their
      digits are lost.

    Example:
      >>> hyp2f1(1.0, 2.0, 3.0, 0.5).round(4)
      Array(1.5452, dtype=float32)

    Source: `scipy.special.hyp2f1`, with derivatives with respect to all arguments; DLMF
    15.
    """
    args = operands("hyp2f1", a, b, c, x)
    return _in_32_bits(_hyp2f1, args)
