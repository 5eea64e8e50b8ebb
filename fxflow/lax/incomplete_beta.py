"""The regularised incomplete beta function.

Iₓ(a, b) by its continued fraction (Lentz' method as modified by Thompson and Barnett,
1986), on the side of the mean where it converges fast.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.core.ir import arith
from fxflow.core.ir.primitive import register
from fxflow.core.runtime.lowering import Context
from fxflow.errors import NotDifferentiableError
from fxflow.lax import _special_host as host
from fxflow.lax._operands import operands
from fxflow.lax.bitwise import bitwise_and, bitwise_or
from fxflow.lax.comparison import eq, ge, gt, lt
from fxflow.lax.control_flow.while_loop import while_loop
from fxflow.lax.conversion import convert
from fxflow.lax.creation import full_like
from fxflow.lax.elementwise import abs as abs_
from fxflow.lax.elementwise import add, div, mul, neg, sub
from fxflow.lax.elementwise import min as min_
from fxflow.lax.exponential import exp, log, log1p
from fxflow.lax.gamma_ratios import log_beta
from fxflow.lax.powers import pow as pow_
from fxflow.lax.reduction import reduce_or
from fxflow.lax.select import select
from fxflow.lax.special import Special, scaled

# It takes O(√max(a, b)) steps (Press et al., Numerical Recipes, 6.4).
_MAX_STEPS = 2_000


def _fraction(a: Any, b: Any, x: Any) -> Any:
    """Returns 1 + d₁/(1 + d₂/(1 + …))⁻¹, inverted: the fraction of DLMF 8.17.22."""
    dtype = typeof(x).dtype
    one = arith.constant(1, dtype)
    # Stands for a denominator of zero, as Thompson and Barnett propose.
    tiny = arith.constant(dtypes.finfo(dtype).tiny * 16, dtype)
    eps = arith.constant(dtypes.finfo(dtype).eps, dtype)

    def safe(value: Any) -> Any:
        return select(lt(abs_(value), tiny), full_like(value, tiny), value)

    def refine(d: Any, c: Any, f: Any, number: Any) -> tuple[Any, Any, Any, Any]:
        d = div(one, safe(add(one, mul(number, d))))
        c = safe(add(one, div(number, c)))
        change = mul(c, d)
        return d, c, mul(f, change), change

    def go_on(carry: Any) -> Any:
        n, _, _, _, _, change = carry
        busy = gt(abs_(sub(change, one)), eps)
        axes = tuple(range(typeof(busy).ndim))
        return bitwise_and(lt(n, _MAX_STEPS), reduce_or(busy, axes))

    def step(carry: Any) -> Any:
        n, m, d, c, f, _ = carry
        m = add(m, one)
        two_m = add(m, m)
        a_2m = add(a, two_m)
        even = div(mul(mul(m, sub(b, m)), x), mul(sub(a_2m, one), a_2m))
        d, c, f, _ = refine(d, c, f, even)
        odd = neg(
            div(mul(mul(add(a, m), add(add(a, b), m)), x), mul(a_2m, add(a_2m, one)))
        )
        d, c, f, change = refine(d, c, f, odd)
        return add(n, 1), m, d, c, f, change

    ones, zeros = full_like(x, 1), full_like(x, 0)
    first = neg(div(mul(add(a, b), x), add(a, one)))
    d = div(one, safe(add(one, first)))
    start = (np.int32(0), zeros, d, ones, d, add(ones, ones))
    return while_loop(go_on, step, start)[4]


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
    x_ = select(inside, x, scaled(0.5, full_like(x, 1)))
    # Beyond the mean the fraction of 1 - Iₓ(a, b) = I₁₋ₓ(b, a) converges faster.
    mirrored = gt(x_, div(add(a_, one), add(add(a_, b_), scaled(2.0, full_like(x, 1)))))
    p, q = select(mirrored, b_, a_), select(mirrored, a_, b_)
    y = select(mirrored, sub(one, x_), x_)
    # Not log(1 - x), which loses the digits of a small x.
    log_y = select(mirrored, log1p(neg(x_)), log(x_))
    log_rest = select(mirrored, log(x_), log1p(neg(x_)))
    head = sub(add(mul(p, log_y), mul(q, log_rest)), log_beta(p, q))
    value = div(mul(exp(head), _fraction(p, q, y)), p)
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
    logs = add(
        mul(sub(a, one), log(select(at_zero, one, x))),
        mul(sub(b, one), log1p(neg(select(at_one, zero, x)))),
    )
    head = sub(logs, log_beta(a, b))
    # The factor of the end may be 0, and 0 times inf is nan.
    most = np.log(float(dtypes.finfo(typeof(x).dtype).max)) - 1
    bounded = min_(head, full_like(head, most))
    head = select(bitwise_or(at_zero, at_one), bounded, head)
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

    Source: DLMF 8.17.22; Thompson and Barnett (1986).
    """
    return RegularizedIncompleteBeta.bind(*operands("betainc", a, b, x))
