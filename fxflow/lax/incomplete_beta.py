"""The regularised incomplete beta function.

Iₓ(a, b) by a continued fraction (Lentz' method as modified by Thompson and Barnett,
1986), on the side of the mean where it converges fast. Where both a and b are large it
would take √a steps: there by Gauss-Legendre quadrature (Press et al., Numerical
Recipes, 6.4).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.core.ir import arith
from fxflow.core.ir.primitive import register
from fxflow.core.runtime.lowering import Context
from fxflow.errors import NotDifferentiableError
from fxflow.lax import _special_host as host
from fxflow.lax._last_terms import count_of_terms, digits, from_last_term
from fxflow.lax._operands import operands
from fxflow.lax.bitwise import bitwise_and, bitwise_or
from fxflow.lax.comparison import eq, ge, gt, lt
from fxflow.lax.control_flow.while_loop import while_loop
from fxflow.lax.conversion import convert, convert_element_type
from fxflow.lax.creation import full_like
from fxflow.lax.dynamic_slicing import dynamic_index_in_dim
from fxflow.lax.elementwise import abs as abs_
from fxflow.lax.elementwise import add, div, mul, neg, sub
from fxflow.lax.elementwise import max as max_
from fxflow.lax.elementwise import min as min_
from fxflow.lax.exponential import exp, expm1, log, log1p
from fxflow.lax.gamma_ratios import (
    LANCZOS_SHIFT,
    excess,
    lanczos_sum,
    log_beta,
    stacked,
    unstacked,
)
from fxflow.lax.gammas import LARGE, stirling_rest
from fxflow.lax.powers import pow as pow_
from fxflow.lax.powers import sqrt, square
from fxflow.lax.reduction import reduce_or
from fxflow.lax.select import select
from fxflow.lax.special import Special, scaled

# It takes O(√min(a, b)) steps.
_MAX_STEPS = 1_000
# Beyond this the integrand has one peak that is nearly normal, on the way from which 24
# nodes are exact to 1e-14.
_RULE = 1e3
_NODES = 24
# Where the integrand ends: at exp(-42).
_REACH = 42.0


def _fraction(a: Any, b: Any, x: Any, rest: Any, ends: bool) -> Any:
    """Returns Iₓ(a, b) B(a, b) / (xᵃ (1 - x)ᵇ) for x below the mean, rest = 1 - x.

    The even part of the fraction of DLMF 8.17.22 (Didonato and Morris 1992, algorithm
    708), in which 1 - x (a + b) / a does not cancel.

    Args:
      a: float array of 32 or 64 bits, positive.
      b: float array, positive.
      x: float array, in (0, 1).
      rest: 1 - x.
      ends: whether no derivatives are wanted. The fraction of an integer b ends, but
        its derivative with respect to b does not.
    """
    dtype = typeof(x).dtype
    one = arith.constant(1, dtype)
    # The terms are homogeneous in a, b and the whole numbers: in units of a + 1 none
    # of them overflows.
    unit = div(one, add(a, one))
    p, q, two = mul(a, unit), mul(b, unit), add(unit, unit)
    head = add(unit, sub(mul(p, rest), mul(q, x)))
    both = add(one, rest)

    def parts(number: Any, through: bool = False) -> tuple[Any, Any]:
        # Multiplied by the denominators of both, (a + 2m - 1) (a + 2m + 1).
        m = mul(number, unit)
        left = sub(q, m)
        if through:  # not 0 where the fraction ends
            little = scaled(0.5, unit)
            left = select(lt(abs_(left), little), little, left)
        before = add(p, sub(m, unit))
        odd = add(before, m)
        after = add(odd, two)
        weight = mul(mul(m, left), x)
        share = mul(mul(before, after), mul(add(before, q), x))
        last = select(eq(number, one), full_like(x, 1), sub(odd, two))
        turn = mul(mul(add(p, m), odd), add(head, mul(m, both)))
        bottom = add(mul(after, add(mul(m, odd), weight)), turn)
        return mul(mul(share, last), weight), bottom

    def enough(n: Any) -> Any:
        # The error falls by the quotient of the roots of z² = bottom z + top; by the
        # term in the middle, which does less than the mean one.
        top, bottom = parts(scaled(0.5, n), not ends)
        most = digits(dtype) if ends else digits(dtype) + 8
        fall = exp(div(arith.constant(-most, dtype), n))
        size = mul(fall, square(bottom))
        above = ge(size, mul(top, square(sub(one, fall))))
        return bitwise_and(above, ge(size, mul(neg(top), square(add(one, fall)))))

    def term(m: Any, behind: Any) -> Any:
        top, bottom = parts(m)
        return div(top, add(bottom, behind))

    count = count_of_terms(enough, dtype)
    top, bottom = parts(add(count, one))
    last = div(top, bottom)
    if ends:
        four = mul(arith.constant(4, dtype), top)
        root = sqrt(max_(add(square(bottom), four), full_like(x, 0)))
        last = div(scaled(2.0, top), add(bottom, root))
    # A short loop has short derivatives.
    behind = from_last_term(term, count, last, unrolled=8 if ends else 1)
    return div(unit, add(mul(head, p), behind))


def _log_head(
    a: Any, b: Any, x: Any, rest: Any, logs: tuple[Any, Any], size: Any
) -> Any:
    """Returns log(xᵃ (1 - x)ᵇ / B(a, b)), without cancellation for large a and b.

    Args:
      a: float array, positive.
      b: float array, positive.
      x: float array, in (0, 1).
      rest: 1 - x.
      logs: the logarithms of both.
      size: log B(a, b).
    """
    dtype = typeof(x).dtype
    bound, one = arith.constant(LARGE, dtype), arith.constant(1, dtype)
    large = bitwise_and(ge(a, bound), ge(b, bound))
    small_a, small_b = select(large, one, a), select(large, one, b)
    plain = add(mul(small_a, logs[0]), mul(small_b, logs[1]))
    plain = sub(plain, size)
    # a log(x/x₀) + b log((1 - x)/(1 - x₀)), x₀ the mean: the linear parts cancel.
    p, q = select(large, a, bound), select(large, b, bound)
    total = add(p, q)
    off = sub(mul(x, q), mul(rest, p))
    u, v = div(off, p), neg(div(off, q))
    left = excess(u, add(logs[0], log1p(div(q, p))))
    right = excess(v, add(logs[1], log1p(div(p, q))))
    size = sub(add(log(p), log(q)), add(log(total), float(np.log(2 * np.pi))))
    series = sub(add(stirling_rest(p), stirling_rest(q)), stirling_rest(total))
    far = sub(scaled(0.5, size), series)
    far = sub(far, add(mul(p, left), mul(q, right)))
    return select(large, far, plain)


def _rule(p: Any, q: Any, y: Any, rest: Any, wanted: Any) -> Any:
    """Returns ∫₀ʸ tᵖ⁻¹ (1 - t)ᵍ⁻¹ dt / (yᵖ (1 - y)ᵍ) where wanted, y below the mean."""
    dtype = typeof(y).dtype
    one = arith.constant(1, dtype)
    # In t = y exp(-s).
    ratio = div(y, rest)
    less = sub(q, one)
    slope = max_(sub(p, mul(less, ratio)), full_like(p, 0))
    bend = mul(mul(less, ratio), add(one, ratio))
    root = sqrt(add(square(slope), scaled(2 * _REACH, bend)))
    end = div(full_like(y, 2 * _REACH), add(slope, root))
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    rows = ((nodes + 1) / 2, weights / 2)
    table = [convert_element_type(row, dtype) for row in rows]
    axes = tuple(range(typeof(wanted).ndim))
    some = reduce_or(wanted, axes)

    def go_on(carry: Any) -> Any:
        return bitwise_and(lt(carry[0], _NODES), some)

    def step(carry: Any) -> Any:
        n, total = carry
        node, weight = (
            dynamic_index_in_dim(row, n, 0, keepdims=False) for row in table
        )
        s = mul(end, node)
        power = sub(mul(less, log1p(mul(ratio, neg(expm1(neg(s)))))), mul(p, s))
        return add(n, 1), add(total, mul(weight, exp(power)))

    _, total = while_loop(go_on, step, (np.int32(0), full_like(y, 0)))
    return div(mul(end, total), rest)


def log_of(x: Any, rest: Any) -> Any:
    """Returns log(x), with all digits where x is near 1, rest = 1 - x."""
    near = lt(rest, arith.constant(0.25, typeof(x).dtype))
    one = full_like(x, 1)
    far = log(select(near, one, x))
    return select(near, log1p(neg(select(near, rest, full_like(x, 0)))), far)


def log_head(a: Any, b: Any, x: Any, rest: Any) -> Any:
    """Returns log(xᵃ (1 - x)ᵇ / B(a, b)), rest = 1 - x."""
    logs = log_of(x, rest), log_of(rest, x)
    return _log_head(a, b, x, rest, logs, log_beta(a, b))


def _head(a: Any, b: Any, x: Any, rest: Any) -> Any:
    """Returns xᵃ (1 - x)ᵇ / B(a, b), rest = 1 - x."""
    dtype = typeof(x).dtype
    one = arith.constant(1, dtype)
    first = lt(x, rest)
    logs = log_of(x, rest), log_of(rest, x)
    size = log_beta(a, b)
    head = _log_head(a, b, x, rest, logs, size)
    # A power has digits that the exponential of a large product has not.
    bound = arith.constant(LARGE, dtype)
    least = float(np.log(float(dtypes.finfo(dtype).tiny))) * 0.8
    plain = bitwise_and(gt(head, arith.constant(least, dtype)), lt(min_(a, b), bound))
    base = select(plain, select(first, x, rest), one)
    power = select(first, a, b)
    other = select(first, mul(b, logs[1]), mul(a, logs[0]))
    other = sub(other, size)
    product = mul(pow_(base, power), exp(select(plain, other, full_like(x, 0))))
    return select(plain, product, exp(select(plain, full_like(x, 0), head)))


class HeadFactors(NamedTuple):
    """What a and b alone give to xᵃ (1 - x)ᵇ / B(a, b), in 64 bits.

    Attributes:
      large: whether both are: where the factors of an exponential are used.
      scale: what Lanczos' approximation multiplies the powers with.
      shifted: its a + g - ½ and b + g - ½, along a new axis.
      whole: a + b + g - ½.
      gains: the logarithms of the quotients of that and both.
      offset: the exponent at the mean, where both are large.
      shares: log(1 + b/a) and log(1 + a/b), there.
    """

    large: Any
    scale: Any
    shifted: Any
    whole: Any
    gains: Any
    offset: Any
    shares: Any


def head_factors(a: Any, b: Any) -> HeadFactors:
    """Returns the factors, of positive float arrays of 64 bits."""
    dtype = typeof(a).dtype
    bound = arith.constant(LARGE, dtype)
    large = bitwise_and(ge(a, bound), ge(b, bound))
    ones = full_like(a, 1)
    p, q = select(large, ones, a), select(large, ones, b)
    total = add(p, q)
    above, below, ends = unstacked(lanczos_sum(stacked(p, q, total)))
    shift = arith.constant(LANCZOS_SHIFT, dtype)
    u, v, w = (add(z, shift) for z in (p, q, total))
    scale = scaled(float(np.exp(LANCZOS_SHIFT)), div(div(ends, above), below))
    scale = mul(scale, sqrt(mul(u, div(v, w))))
    many = full_like(a, LARGE)
    p, q = select(large, a, many), select(large, b, many)
    total = add(p, q)
    size = scaled(1 / (2 * np.pi), mul(p, div(q, total)))
    *gains, size = unstacked(log(stacked(div(w, u), div(w, v), size)))
    at_p, at_q, at_both = unstacked(stirling_rest(stacked(p, q, total)))
    shares = unstacked(log1p(stacked(div(q, p), div(p, q))))
    return HeadFactors(
        large,
        scale,
        stacked(u, v),
        w,
        stacked(*gains),
        sub(scaled(0.5, size), sub(add(at_p, at_q), at_both)),
        stacked(*shares),
    )


def log_beta_of(factors: HeadFactors, a: Any, b: Any) -> Any:
    """Returns log B(a, b), to some roundings of the logarithms of its factors."""
    both = stacked(a, b)
    far = add(*unstacked(mul(both, factors.shares)))
    gains = add(*unstacked(mul(both, factors.gains)))
    return neg(
        select(factors.large, add(far, factors.offset), add(gains, log(factors.scale)))
    )


def head_value(factors: HeadFactors, a: Any, b: Any, x: Any, rest: Any) -> Any:
    """Returns what `_head` does, in 64 bits, without its derivatives."""
    dtype = typeof(x).dtype
    # Both sides along a new axis.
    sides, turned = stacked(x, rest), stacked(rest, x)
    logs = log_of(sides, turned)
    large = stacked(factors.large, factors.large)
    whole = stacked(factors.whole, factors.whole)
    ones, zeros, many = (full_like(sides, c) for c in (1, 0, LARGE))
    power, other = (
        select(large, ones, stacked(a, b)),
        select(large, ones, stacked(b, a)),
    )
    # (x w/u)ᵃ ((1 - x) w/v)ᵇ by powers or, near 1, by the logarithms of 1 + l.
    shifted = factors.shifted
    away = div(sub(mul(sides, other), mul(turned, shifted)), shifted)
    near = lt(abs_(away), arith.constant(0.25, dtype))
    exponent = mul(power, add(logs, factors.gains))
    # Where one of the powers may overflow both are exponentials.
    plain = bitwise_or(near, lt(abs_(exponent), arith.constant(600, dtype)))
    close = mul(power, log1p(select(near, away, zeros)))
    exponent = select(near, close, select(plain, zeros, exponent))
    base = select(near, ones, div(mul(sides, whole), shifted))
    powers = mul(*unstacked(pow_(select(plain, base, ones), power)))
    # a log(x/x₀) + b log((1 - x)/(1 - x₀)), x₀ the mean: the linear parts cancel.
    power, other = (
        select(large, stacked(a, b), many),
        select(large, stacked(b, a), many),
    )
    off = div(sub(mul(sides, other), mul(turned, power)), power)
    drop = mul(power, excess(off, add(logs, factors.shares)))
    far = sub(factors.offset, add(*unstacked(drop)))
    exponent = add(*unstacked(exponent))
    return mul(
        select(factors.large, full_like(x, 1), mul(factors.scale, powers)),
        exp(select(factors.large, far, exponent)),
    )


def smaller_tail(a: Any, b: Any, x: Any, rest: Any) -> tuple[Any, Any]:
    """Returns Iₓ(a, b) below the mean, 1 - Iₓ(a, b) beyond it, and where that is.

    Args:
      a: float array of 32 or 64 bits, positive.
      b: float array, positive.
      x: float array, in (0, 1).
      rest: 1 - x.
    """
    value, head, mirrored = tail_parts(a, b, x, rest)
    return mul(head, value), mirrored


def tail_fraction(
    a: Any, b: Any, x: Any, rest: Any, ends: bool = True
) -> tuple[Any, Any]:
    """Returns the first factor of `tail_parts`, and where the mean is below.

    Args:
      a: float array of 32 or 64 bits, positive.
      b: float array, positive.
      x: float array, in (0, 1).
      rest: 1 - x.
      ends: whether no derivatives are wanted.
    """
    dtype = typeof(x).dtype
    ones, half = full_like(x, 1), scaled(0.5, full_like(x, 1))
    # Beyond the mean the fraction of 1 - Iₓ(a, b) = I₁₋ₓ(b, a) converges faster.
    middle = div(add(a, ones), add(add(a, b), arith.constant(2, dtype)))
    mirrored = gt(x, middle)
    p, q = select(mirrored, b, a), select(mirrored, a, b)
    y, complement = select(mirrored, rest, x), select(mirrored, x, rest)
    bound = arith.constant(_RULE, dtype)
    by_rule = bitwise_and(gt(p, bound), gt(q, bound))
    fraction = _fraction(
        select(by_rule, ones, p),
        select(by_rule, ones, q),
        select(by_rule, half, y),
        select(by_rule, half, complement),
        ends,
    )
    rule = _rule(
        select(by_rule, p, bound),
        select(by_rule, q, bound),
        select(by_rule, y, half),
        select(by_rule, complement, half),
        by_rule,
    )
    return select(by_rule, rule, fraction), mirrored


def tail_parts(
    a: Any, b: Any, x: Any, rest: Any, factors: HeadFactors | None = None
) -> tuple[Any, Any, Any]:
    """Returns the factors of `smaller_tail` and where the mean is below.

    The second factor is the density of log(x / (1 - x)).

    Args:
      a: float array of 32 or 64 bits, positive.
      b: float array, positive.
      x: float array, in (0, 1).
      rest: 1 - x.
      factors: `head_factors(a, b)`, where they are known.
    """
    fraction, mirrored = tail_fraction(a, b, x, rest)
    if dtypes.bits(typeof(x).dtype) == 64:
        factors = head_factors(a, b) if factors is None else factors
        head = head_value(factors, a, b, x, rest)
    else:
        head = _head(a, b, x, rest)
    return fraction, head, mirrored


def _betainc(a: Any, b: Any, x: Any) -> Any:
    dtype = typeof(x).dtype
    if dtypes.bits(dtype) < 32:
        single = dtypes.float32
        return convert(_betainc(*(convert(v, single) for v in (a, b, x))), dtype)
    zero, one = arith.constant(0, dtype), arith.constant(1, dtype)
    nan = full_like(x, np.nan)
    inf = arith.constant(np.inf, dtype)
    proper = bitwise_and(_within(a, zero, inf), _within(b, zero, inf))
    inside = bitwise_and(proper, _within(x, zero, one))
    # Harmless values elsewhere: one loop runs for all elements until the last
    # converges.
    a_, b_ = select(inside, a, one), select(inside, b, one)
    half = scaled(0.5, full_like(x, 1))
    x_ = select(inside, x, half)
    value, mirrored = smaller_tail(a_, b_, x_, sub(one, x_))
    value = select(mirrored, sub(one, value), value)
    ends = bitwise_or(eq(x, zero), eq(x, one))
    low, high = _all_at_zero(a, b), _all_at_zero(b, a)
    edge = select(high, full_like(x, 0), nan)
    edge = select(low, full_like(x, 1), edge)
    edge = select(_within(x, zero, one), edge, nan)
    valid = bitwise_or(proper, bitwise_or(low, high))
    edge = select(bitwise_and(ends, valid), x, edge)
    return select(inside, value, edge)


def _within(x: Any, low: Any, high: Any) -> Any:
    return bitwise_and(gt(x, low), lt(x, high))


def _all_at_zero(a: Any, b: Any) -> Any:
    """Returns where a or b is at its limit, so that the distribution is all at 0."""
    dtype = typeof(a).dtype
    zero, inf = arith.constant(0, dtype), arith.constant(np.inf, dtype)
    return bitwise_or(
        bitwise_and(eq(a, zero), gt(b, zero)),
        bitwise_and(eq(b, inf), bitwise_and(ge(a, zero), lt(a, inf))),
    )


def _no_slope(*args: Any) -> Any:
    raise NotDifferentiableError(
        "betainc has a derivative with respect to x alone, not to a and b: stop them "
        "with stop_gradient"
    )


def _slope_in_x(out: Any, a: Any, b: Any, x: Any) -> Any:
    """Returns xᵃ⁻¹ (1 - x)ᵇ⁻¹ / B(a, b)."""
    zero, one = (arith.constant(c, typeof(x).dtype) for c in (0, 1))
    flat = bitwise_or(_all_at_zero(a, b), _all_at_zero(b, a))
    a, b = select(flat, one, a), select(flat, one, b)
    # On a bound one factor has no logarithm, but it may have derivatives.
    at_zero, at_one = eq(x, zero), eq(x, one)
    ends = mul(
        pow_(select(at_zero, x, one), sub(a, one)),
        pow_(select(at_one, sub(one, x), one), sub(b, one)),
    )
    end = bitwise_or(at_zero, at_one)
    outer = add(
        mul(sub(a, one), log(select(at_zero, one, x))),
        mul(sub(b, one), log1p(neg(select(at_one, zero, x)))),
    )
    middle = select(end, scaled(0.5, full_like(x, 1)), x)
    logs = log(middle), log1p(neg(middle))
    size = log_beta(a, b)
    inner = _log_head(a, b, middle, sub(one, middle), logs, size)
    inner = sub(inner, add(*logs))
    head = select(end, sub(outer, size), inner)
    # The factor of the end may be 0, and 0 times inf is nan.
    most = np.log(float(dtypes.finfo(typeof(x).dtype).max)) - 1
    bounded = min_(head, full_like(head, most))
    head = select(end, bounded, head)
    slope = mul(ends, exp(head))
    return select(flat, full_like(x, 0), slope)


@register
class RegularizedIncompleteBeta(Special):
    """Iₓ(a, b). dtypes: float. Differentiable with respect to x."""

    name = "regularized_incomplete_beta"
    numpy = host.elementwise(host.betainc)
    partials = (_no_slope, _no_slope, _slope_in_x)

    def lower(self, ctx: Context, *operands: str, **params: Any) -> str:
        """The loop, written in place."""
        out = ctx.avals_out[0].strong()
        names = self.aligned(ctx, operands)
        return ctx.compose(_betainc, names, [out] * 3)[0]


def betainc(a: Any, b: Any, x: Any, /) -> Array:
    """Returns the regularised incomplete beta function Iₓ(a, b).

    1/B(a, b) ∫₀ˣ tᵃ⁻¹ (1 - t)ᵇ⁻¹ dt, the distribution function of Beta(a, b).

    Args:
      a: float array, not negative.
      b: float array, not negative.
      x: float array, in [0, 1].

    Returns:
      An array of their dtype and common shape.

    Raises:
      DtypeError: the dtypes differ, or are not floating point.
      ShapeError: the shapes are incompatible.
      NotDifferentiableError: a derivative with respect to `a` or `b` is asked for.

    Special cases:
      0 at x = 0, 1 at x = 1; between them 1 where a = 0 or b = inf, 0 where b = 0 or
      a = inf; nan outside the ranges, and where a and b are both 0 or both inf.

    Example:
      >>> f"{betainc(1.0, 1.0, 0.25):.5f}"
      '0.25000'

    Source: Didonato and Morris, ACM TOMS 18 (1992); Thompson and Barnett (1986).
    """
    return RegularizedIncompleteBeta.bind(*operands("betainc", a, b, x))
