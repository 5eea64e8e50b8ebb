"""The regularised incomplete beta function.

Iₓ(a, b) by its continued fraction (Lentz' method as modified by Thompson and Barnett,
1986), on the side of the mean where it converges fast.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow.core import arith, dtypes
from fxflow.core.array import Array
from fxflow.core.convert import typeof
from fxflow.core.errors import NotDifferentiableError
from fxflow.core.primitive import register
from fxflow.lax import _special_host as host
from fxflow.lax._operands import operands
from fxflow.lax.bitwise import bitwise_and
from fxflow.lax.comparison import ge, gt, le, lt
from fxflow.lax.conversion import convert
from fxflow.lax.creation import full_like
from fxflow.lax.elementwise import abs as abs_
from fxflow.lax.elementwise import add, div, mul, neg, sub
from fxflow.lax.exponential import exp, log, log1p
from fxflow.lax.reduction import reduce_or
from fxflow.lax.select import select
from fxflow.lax.special import Special, lgamma, scaled
from fxflow.lax.while_loop import while_loop

_MAX_STEPS = 2_000


def _fraction(a: Any, b: Any, x: Any) -> Any:
    """Returns 1 + d₁/(1 + d₂/(1 + …))⁻¹, inverted: the fraction of DLMF 8.17.22."""
    dtype = typeof(x).dtype
    one = arith.constant(1, dtype)
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


def _log_beta(a: Any, b: Any) -> Any:
    return sub(add(lgamma(a), lgamma(b)), lgamma(add(a, b)))


def _betainc(a: Any, b: Any, x: Any) -> Any:
    dtype = typeof(x).dtype
    if dtypes.bits(dtype) < 32:
        single = dtypes.float32
        return convert(_betainc(*(convert(v, single) for v in (a, b, x))), dtype)
    zero, one = arith.constant(0, dtype), arith.constant(1, dtype)
    nan = full_like(x, np.nan)
    proper = bitwise_and(gt(a, zero), gt(b, zero))
    inside = bitwise_and(proper, bitwise_and(gt(x, zero), lt(x, one)))
    a_, b_ = select(inside, a, one), select(inside, b, one)
    x_ = select(inside, x, scaled(0.5, full_like(x, 1)))
    mirrored = gt(x_, div(add(a_, one), add(add(a_, b_), scaled(2.0, full_like(x, 1)))))
    p, q = select(mirrored, b_, a_), select(mirrored, a_, b_)
    y = select(mirrored, sub(one, x_), x_)
    log_y = select(mirrored, log1p(neg(x_)), log(x_))
    log_rest = select(mirrored, log(x_), log1p(neg(x_)))
    head = sub(add(mul(p, log_y), mul(q, log_rest)), _log_beta(p, q))
    value = div(mul(exp(head), _fraction(p, q, y)), p)
    value = select(mirrored, sub(one, value), value)
    ends = bitwise_and(proper, bitwise_and(ge(x, zero), le(x, one)))
    return select(inside, value, select(ends, x, nan))


def _no_slope(*args: Any) -> Any:
    raise NotDifferentiableError(
        "betainc has a derivative with respect to x alone, not to a and b: stop them "
        "with stop_gradient"
    )


def _slope_in_x(out: Any, a: Any, b: Any, x: Any) -> Any:
    one = arith.constant(1, typeof(x).dtype)
    head = add(mul(sub(b, one), log1p(neg(x))), mul(sub(a, one), log(x)))
    return exp(sub(head, _log_beta(a, b)))


@register
class RegularizedIncompleteBeta(Special):
    """Iₓ(a, b). dtypes: float. Differentiable with respect to x."""

    name = "regularized_incomplete_beta"
    numpy = host.elementwise(host.betainc)
    partials = (_no_slope, _no_slope, _slope_in_x)

    def lower(self, ctx: Any, *operands: str, **params: Any) -> str:
        """The loop, written in place."""
        out = ctx.avals_out[0].strong()
        names = self.aligned(ctx, operands)
        return str(ctx.compose(_betainc, names, [out] * 3)[0])


def betainc(a: Any, b: Any, x: Any, /) -> Array:
    """Returns the regularised incomplete beta function Iₓ(a, b).

    1/B(a, b) ∫₀ˣ tᵃ⁻¹ (1 - t)ᵇ⁻¹ dt, the distribution function of Beta(a, b).

    Args:
      a: float array, positive.
      b: float array, positive.
      x: float array, in [0, 1].

    Returns:
      An array of their dtype and common shape.

    Raises:
      DtypeError: the dtypes differ, or are not floating point.
      ShapeError: the shapes do not go together.
      NotDifferentiableError: a derivative with respect to `a` or `b` is asked for.

    Special cases:
      0 at x = 0, 1 at x = 1; nan outside the ranges.

    Example:
      >>> f"{betainc(1.0, 1.0, 0.25):.5f}"
      '0.25000'

    Source: DLMF 8.17.22; Thompson and Barnett (1986).
    """
    result: Array = RegularizedIncompleteBeta.bind(*operands("betainc", a, b, x))
    return result
