"""Modified Bessel functions of the first kind, scaled by exp(-|x|).

Order 0: Chebyshev series (Clenshaw, 1962), in x/4 - 1 up to 8 and in 16/x - 1
beyond, whose coefficients were computed from I₀(x) = 1/π ∫ exp(x cos θ) dθ in 80 bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import factorial
from typing import Any

from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.core.ir import arith
from fxflow.core.ir.primitive import register
from fxflow.core.runtime.lowering import Context
from fxflow.lax import _special_host as host
from fxflow.lax.comparison import le, lt
from fxflow.lax.conversion import convert
from fxflow.lax.creation import full_like
from fxflow.lax.elementwise import abs as abs_
from fxflow.lax.elementwise import add, div, max, mul, neg, sign, sub
from fxflow.lax.exponential import exp
from fxflow.lax.powers import rsqrt, sqrt
from fxflow.lax.select import select
from fxflow.lax.special import Special, scaled

_NEAR = (
    0.33839763720473803,
    -0.3046826723431984,
    0.17162090152220877,
    -0.09490109704804764,
    0.04930528423967071,
    -0.023737414805899467,
    0.010546460394594998,
    -0.004324309995050576,
    0.0016394756169413357,
    -0.0005763755745385824,
    0.0001885028850958416,
    -5.754195010082102e-05,
    1.644844807072894e-05,
    -4.416738358458785e-06,
    1.1173875391200876e-06,
    -2.6707938539418925e-07,
    6.046995022549302e-08,
    -1.3000250099950289e-08,
    2.6598237248370545e-09,
    -5.18979560200231e-10,
    9.67580903060998e-11,
    -1.7268262852493865e-11,
    2.955052508233128e-12,
    -4.856447106168626e-13,
    7.676187973020693e-14,
    -1.168543106516099e-14,
    1.7153687731320463e-15,
    -2.431967116838657e-16,
    3.32291025207862e-17,
    -4.441840775401551e-18,
)
_FAR = (
    0.4022452055070544,
    0.003369116478255694,
    6.889758346916829e-05,
    2.891370520834693e-06,
    2.048918589469436e-07,
    2.2666689904982267e-08,
    3.3962320257470824e-09,
    4.940602388330993e-10,
    1.1889147133045542e-11,
    -3.149916522819478e-11,
    -1.321581188253634e-11,
    -1.7941785040900392e-12,
    7.1801244138925e-13,
    3.852778488497126e-13,
    1.5400852996865465e-14,
    -4.150573927521467e-14,
    -9.554802695571629e-15,
    3.8116347101171955e-15,
    1.7726045893230323e-15,
    -3.4254351200142807e-16,
    -2.828273715826447e-16,
    3.473173896921533e-17,
    4.457553236573118e-17,
    -4.8636631831341925e-18,
    -7.23217906189403e-18,
)


# Coefficients of I₁'(x) in powers of x²/4 (DLMF 10.25.2), to 1e-16 at 1/2.
_SLOPE = tuple((k + 0.5) / (factorial(k) * factorial(k + 1)) for k in range(8))


def _chebyshev(t: Any, coefficients: Sequence[float], dtype: Any) -> Any:
    """Returns Σ cₖ Tₖ(t) by Clenshaw's recurrence."""
    # Coefficients below the rounding of the dtype change nothing.
    enough = 1e-17 if dtypes.bits(dtype) == 64 else 1e-9
    kept = [c for c in coefficients if abs(c) > enough]
    twice = add(t, t)
    last: Any = arith.constant(0, dtype)
    before: Any = arith.constant(0, dtype)
    for c in reversed(kept[1:]):
        constant = arith.constant(c, dtype)
        last, before = add(sub(mul(twice, last), before), constant), last
    return add(sub(mul(t, last), before), arith.constant(kept[0], dtype))


def _i0e(x: Any) -> Any:
    dtype = typeof(x).dtype
    if dtypes.bits(dtype) < 32:
        return convert(_i0e(convert(x, dtypes.float32)), dtype)
    size = abs_(x)
    bound = arith.constant(8, dtype)
    one = arith.constant(1, dtype)
    near = _chebyshev(sub(scaled(0.25, size), one), _NEAR, dtype)
    # Both sides of the select are computed: clamped, the far series stays in its
    # interval.
    far_size = max(size, bound)
    t = sub(div(arith.constant(16, dtype), far_size), one)
    far = mul(_chebyshev(t, _FAR, dtype), rsqrt(far_size))
    return select(le(size, bound), near, far)


def _hankel_coefficients(order: int, count: int) -> list[float]:
    out = [1.0]
    for k in range(1, count):
        out.append(-out[-1] * (4 * order**2 - (2 * k - 1) ** 2) / (8 * k))
    return out


# Coefficients of I₀ - I₁ in powers of 1/x, without the constant (DLMF 10.40.1).
_GAP = [a - b for a, b in zip(*(_hankel_coefficients(n, 28) for n in (0, 1)))][1:]


def _gap(x: Any) -> tuple[Any, Any]:
    """Returns where I₀ and I₁ nearly cancel, and exp(-|x|) (I₀(x) - I₁(|x|)) there.

    Args:
      x: float array.

    Returns:
      A boolean array, and the difference by its series, which holds where that is true.
    """
    dtype = typeof(x).dtype
    if dtypes.bits(dtype) < 32:
        far, wide = _gap(convert(x, dtypes.float32))
        return far, convert(wide, dtype)
    # How far out the first terms are exact, and how many.
    bound, count = (25, 28) if dtypes.bits(dtype) == 64 else (11, 20)
    start = arith.constant(bound, dtype)
    far = lt(start, abs_(x))
    part = div(arith.constant(1, dtype), select(far, abs_(x), start))
    series = full_like(x, 0)
    for c in reversed(_GAP[:count]):
        series = mul(add(series, arith.constant(c, dtype)), part)
    return far, mul(sqrt(scaled(0.5 / math.pi, part)), series)


def _slope_of_i0e(out: Any, x: Any) -> Any:
    far, gap = _gap(x)
    # Near 0 not sign(x) times a difference, whose own slope at 0 would be lost.
    near = sub(bessel_i1e(x), mul(sign(x), out))
    return select(far, mul(neg(sign(x)), gap), near)


@register
class BesselI0e(Special):
    """exp(-|x|) I₀(x). dtypes: float. StableHLO: a Chebyshev series."""

    name = "bessel_i0e"
    numpy = host.elementwise(host.bessel_i0e)
    partials = (_slope_of_i0e,)

    def lower(self, ctx: Context, *operands: str, **params: Any) -> str:
        """Two series, and a selection."""
        return ctx.compose(_i0e, operands)[0]


def _slope_of_i1e(out: Any, x: Any) -> Any:
    dtype = typeof(x).dtype
    one, zero = arith.constant(1, dtype), arith.constant(0, dtype)
    near = lt(abs_(x), scaled(0.5, full_like(x, 1)))
    # Near 0 by its series, so that further derivatives are right there.
    # The side that is not taken must be finite, or its derivative times 0 is nan.
    inside, outside = select(near, x, zero), select(near, one, x)
    quarter = scaled(0.25, mul(inside, inside))
    series = full_like(x, _SLOPE[-1])
    for c in reversed(_SLOPE[:-1]):
        series = add(mul(series, quarter), arith.constant(c, dtype))
    decay = exp(neg(mul(inside, sign(inside))))
    size = mul(out, sign(x))
    cancel, gap = _gap(x)
    gap = select(cancel, gap, sub(bessel_i0e(x), size))
    return select(near, sub(mul(decay, series), size), sub(gap, div(out, outside)))


@register
class BesselI1e(Special):
    """exp(-|x|) I₁(x). dtypes: float. CHLO: bessel_i1e."""

    name = "bessel_i1e"
    hlo = "chlo.bessel_i1e"
    numpy = host.elementwise(host.bessel_i1e)
    partials = (_slope_of_i1e,)


def bessel_i0e(x: Any, /) -> Array:
    """Returns exp(-abs(x)) I₀(x), I₀ being a modified Bessel function.

    Args:
      x: float array.

    Returns:
      An array of the dtype and shape of `x`.

    Raises:
      DtypeError: `x` is not floating point.

    Special cases:
      1 at 0, 0 at ±inf.

    Example:
      >>> f"{bessel_i0e(0.0):.5f}"
      '1.00000'

    Source: Clenshaw, Chebyshev series for mathematical functions (1962).
    """
    return BesselI0e.bind(x)


def bessel_i1e(x: Any, /) -> Array:
    """Returns exp(-abs(x)) I₁(x), I₁ being a modified Bessel function.

    Args:
      x: float array.

    Returns:
      An array of the dtype and shape of `x`.

    Raises:
      DtypeError: `x` is not floating point.

    Special cases:
      0 at 0 and at ±inf.

    Example:
      >>> bessel_i1e(0.0)
      Array(0., dtype=float32, weak_type=True)

    Source: CHLO `bessel_i1e`.
    """
    return BesselI1e.bind(x)
