"""Logarithms of ratios of gamma functions, without their cancellation.

log Γ grows faster than its arguments, so a difference of two large values of it keeps
no digit of what the ratio is about. The Stirling series takes the large parts off
before they are computed (Didonato and Morris 1992, algorithm 708).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays import dtypes, typeof
from fxflow.core.ir import arith
from fxflow.lax.bitwise import bitwise_and
from fxflow.lax.broadcasting import broadcast_in_dim
from fxflow.lax.comparison import eq, ge, gt, le, lt
from fxflow.lax.concatenation import concatenate
from fxflow.lax.conversion import convert
from fxflow.lax.creation import full_like
from fxflow.lax.elementwise import abs as abs_
from fxflow.lax.elementwise import add, div, mul, neg, sub
from fxflow.lax.elementwise import min as min_
from fxflow.lax.exponential import log, log1p
from fxflow.lax.gammas import LARGE, lgamma, stirling_rest
from fxflow.lax.powers import sqrt, square
from fxflow.lax.select import select
from fxflow.lax.slicing import index_in_dim
from fxflow.lax.special import scaled

# Lanczos' approximation with 13 terms (coefficients: G. Pugh 2004, J. Maddock), a
# quotient of polynomials with positive coefficients, from z¹² down.
LANCZOS_SHIFT = 6.024680040776729583740234375 - 0.5
# fmt: off
_ABOVE = (
    2.5066282746310002, 210.82427775157936, 8071.672002365816, 186056.26539522348,
    2876370.6289353725, 31426415.585400194, 248874557.86205417, 1439720407.3117216,
    6039542586.352028, 17921034426.03721, 35711959237.35567, 42919803642.6491,
    23531376880.41076,
)
_BELOW = (
    1,
    66,
    1925,
    32670,
    357423,
    2637558,
    13339535,
    45995730,
    105258076,
    150917976,
    120543840,
    39916800,
    0,
)
# fmt: on


def lanczos_sum(z: Any) -> Any:
    """Returns Γ(z) exp(w) / w^(z - ½) for z > 0, where w is z + `LANCZOS_SHIFT`."""
    dtype = typeof(z).dtype
    if dtypes.bits(dtype) == 64:
        # It is constant from there on, and its powers do not overflow.
        z = min_(z, full_like(z, 1e16))
    above, below = full_like(z, _ABOVE[0]), full_like(z, _BELOW[0])
    for p, q in zip(_ABOVE[1:], _BELOW[1:], strict=True):
        above = add(mul(above, z), arith.constant(p, dtype))
        below = add(mul(below, z), arith.constant(q, dtype))
    return div(above, below)


def horner(x: Any, coefficients: Sequence[Any]) -> tuple[Any, Any]:
    """Returns Σ cₙ xⁿ and its derivative, of numbers or of arrays."""
    total = full_like(x, 0)
    slope = full_like(x, 0)
    for c in reversed(coefficients):
        slope = add(mul(slope, x), total)
        c = arith.constant(c, typeof(x).dtype) if isinstance(c, float) else c
        total = add(mul(total, x), c)
    return total, slope


# Up to this size of m its powers give log(1 + m) - m.
_NEAR = 0.3


def deviation(m: Any) -> tuple[Any, Any]:
    """Returns η/m, where η²/2 = m - log(1 + m), and log(1 + m) / m, for small m."""
    dtype = typeof(m).dtype
    # log(1 + m) is 2 artanh(r), r = m / (2 + m).
    inverse = div(arith.constant(1, dtype), add(m, arith.constant(2, dtype)))
    r = mul(m, inverse)
    count = 12 if dtypes.bits(dtype) == 64 else 5
    rest, _ = horner(square(r), [1 / (2 * k + 3) for k in range(count)])
    one = arith.constant(1, dtype)
    log_ratio = scaled(2.0, mul(inverse, add(one, mul(square(r), rest))))
    # (m - log(1 + m)) / m², without the cancellation.
    half = mul(inverse, sub(one, scaled(2.0, mul(mul(r, inverse), rest))))
    return sqrt(scaled(2.0, half)), log_ratio


def excess(m: Any, log_of: Any = None) -> Any:
    """Returns m - log(1 + m), without cancellation for small m.

    Args:
      m: float array.
      log_of: log(1 + m), where that is known better than m.
    """
    near = lt(abs_(m), arith.constant(_NEAR, typeof(m).dtype))
    close = select(near, m, full_like(m, 0))
    root, _ = deviation(close)
    if log_of is None:
        log_of = log1p(select(near, full_like(m, 1), m))
    return select(near, scaled(0.5, square(mul(close, root))), sub(m, log_of))


def stacked(*args: Any) -> Any:
    """Returns arrays of one type along a new first axis.

    What is then computed of all of them is one program, which compiles faster.
    """
    shape = typeof(args[0]).shape
    axes = tuple(range(1, len(shape) + 1))
    return concatenate([broadcast_in_dim(x, (1, *shape), axes) for x in args], 0)


def unstacked(x: Any) -> list[Any]:
    """Returns the arrays that `stacked` has joined."""
    rows = range(typeof(x).shape[0])
    return [index_in_dim(x, i, 0, keepdims=False) for i in rows]


def _drop(p: Any, q: Any) -> Any:
    """Returns log Γ(q) - log Γ(p + q), where q and p + q are large."""
    total, half = add(p, q), arith.constant(0.5, typeof(p).dtype)
    rest = sub(stirling_rest(q), stirling_rest(total))
    bend = sub(p, mul(sub(total, half), log1p(div(p, q))))
    return add(rest, sub(bend, mul(p, log(q))))


def log_gamma_ratio(p: Any, q: Any) -> Any:
    """Returns log |Γ(p + q) / Γ(q)|.

    Args:
      p: float array.
      q: of the same type.
    """
    dtype = typeof(p).dtype
    if dtypes.bits(dtype) < 32:
        single = dtypes.float32
        return convert(log_gamma_ratio(convert(p, single), convert(q, single)), dtype)
    large, one = arith.constant(LARGE, dtype), arith.constant(1, dtype)
    far = bitwise_and(_between(q, large), _between(add(p, q), large))
    # Both sides are computed: each gets harmless arguments where it is not taken, so
    # that no nan enters its derivative.
    wide = _drop(select(far, p, one), select(far, q, large))
    p, q = select(far, one, p), select(far, one, q)
    return select(far, neg(wide), sub(lgamma(add(p, q)), lgamma(q)))


def log_beta(a: Any, b: Any) -> Any:
    """Returns log |Γ(a) Γ(b) / Γ(a + b)|.

    Args:
      a: float array.
      b: of the same type.
    """
    dtype = typeof(a).dtype
    if dtypes.bits(dtype) < 32:
        single = dtypes.float32
        return convert(log_beta(convert(a, single), convert(b, single)), dtype)
    large, one = arith.constant(LARGE, dtype), arith.constant(1, dtype)
    zero, inf = arith.constant(0, dtype), arith.constant(math.inf, dtype)
    # Not by max and min, which would share the derivatives of equal arguments.
    ordered = le(a, b)
    p, q = select(ordered, a, b), select(ordered, b, a)
    far = bitwise_and(_between(q, large), ge(add(p, q), large))
    both = bitwise_and(far, ge(p, large))
    args = select(both, one, p), select(far, one, q), select(far, one, add(p, q))
    of_p, of_q, of_both = unstacked(lgamma(stacked(*args)))
    plain = sub(add(of_p, of_q), of_both)
    q_far = select(far, q, large)
    mixed = add(plain, _drop(select(far, select(both, one, p), one), q_far))
    large_pair = _both_large(select(both, p, large), select(both, q, large))
    value = select(both, large_pair, select(far, mixed, plain))
    end = select(gt(p, zero), full_like(p, -np.inf), full_like(p, np.inf))
    return select(bitwise_and(eq(q, inf), eq(p, p)), end, value)


def _between(x: Any, low: Any) -> Any:
    high = arith.constant(math.inf, typeof(x).dtype)
    return bitwise_and(ge(x, low), gt(high, x))


def _both_large(p: Any, q: Any) -> Any:
    dtype = typeof(p).dtype
    half = arith.constant(0.5, dtype)
    total, share = add(p, q), div(p, q)
    rest = sub(add(stirling_rest(p), stirling_rest(q)), stirling_rest(total))
    rest = add(rest, arith.constant(0.5 * math.log(2 * math.pi), dtype))
    first = mul(sub(p, half), log(div(p, total)))
    second = add(mul(q, log1p(share)), mul(half, log(q)))
    return add(rest, sub(first, second))
