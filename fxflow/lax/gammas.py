"""The logarithm of the gamma function, its derivatives, and the Hurwitz zeta function.

CHLO has them all, but its log Γ has errors of 40 to 150 ulp between 1/2 and 10, its ψ
is nan at 0, and its ζ is wrong for negative q and nan for large s.
"""

from __future__ import annotations

import math
from typing import Any

from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.core.ir import arith
from fxflow.core.ir.primitive import register
from fxflow.core.runtime.lowering import Context
from fxflow.errors import NotDifferentiableError
from fxflow.lax import _special_host as host
from fxflow.lax._operands import operands
from fxflow.lax.bitwise import bitwise_and, bitwise_not, bitwise_or
from fxflow.lax.broadcasting import broadcast_in_dim
from fxflow.lax.comparison import eq, ge, gt, le, lt
from fxflow.lax.concatenation import concatenate
from fxflow.lax.conversion import convert
from fxflow.lax.creation import full_like
from fxflow.lax.elementwise import abs as abs_
from fxflow.lax.elementwise import add, div, mul, neg, sub
from fxflow.lax.elementwise import min as min_
from fxflow.lax.exponential import exp, log, log1p
from fxflow.lax.powers import pow as pow_
from fxflow.lax.reshaping import reshape
from fxflow.lax.rounding import ceil, floor
from fxflow.lax.select import select
from fxflow.lax.slicing import index_in_dim
from fxflow.lax.special import Special, special_docs
from fxflow.lax.trigonometric import sin

# -- log Γ -----------------------------------------------------------------------------

# log Γ(2 + z) is (1 - γ) z + Σ (ζ(k) - 1) (-z)ᵏ / k over k = 2, 3, … (DLMF 5.7.3).
EULER = 0.57721566490153286061
_ZETA_LESS_ONE = (
    0.6449340668482264,
    0.2020569031595943,
    0.08232323371113819,
    0.03692775514336993,
    0.01734306198444914,
    0.008349277381922827,
    0.00407735619794434,
    0.0020083928260822143,
    0.0009945751278180853,
    0.0004941886041194645,
    0.0002460865533080483,
    0.00012271334757848915,
    6.124813505870483e-05,
    3.058823630702049e-05,
    1.528225940865187e-05,
    7.637197637899763e-06,
    3.81729326499984e-06,
    1.908212716553939e-06,
    9.539620338727962e-07,
    4.769329867878064e-07,
    2.38450502727733e-07,
    1.1921992596531106e-07,
    5.960818905125948e-08,
    2.980350351465228e-08,
)
_SERIES = (
    1 - EULER,
    *((-1) ** k * z / k for k, z in enumerate(_ZETA_LESS_ONE, 2)),
)


def _polynomial(z: Any, coefficients: Any) -> Any:
    """Returns c₀ + c₁ z + c₂ z² + …."""
    dtype = typeof(z).dtype
    total = full_like(z, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total = add(mul(total, z), arith.constant(c, dtype))
    return total


def _from_two(z: Any) -> Any:
    """Returns log Γ(2 + z) for z between -1/2 and 1/2."""
    # Each term is less than a quarter of the one before it.
    count = 25 if dtypes.bits(typeof(z).dtype) == 64 else 12
    return mul(z, _polynomial(z, _SERIES[:count]))


def log_gamma_from_one(z: Any) -> Any:
    """Returns log Γ(1 + z) for z between -1/2 and 1/2, exact for tiny z."""
    return sub(_from_two(z), log1p(z))


# log Γ(x) = (x - ½) log x - x + ½ log 2π + 1/12x - 1/360x³ + …  (DLMF 5.11.1); from
# LARGE on the terms but the last one are exact to 64 bits.
STIRLING = (
    1 / 12,
    -1 / 360,
    1 / 1260,
    -1 / 1680,
    1 / 1188,
    -691 / 360360,
    1 / 156,
    -3617 / 122400,
)
LARGE = 10.0


def stirling_rest(x: Any) -> Any:
    """Returns log Γ(x) - ((x - ½) log x - x + ½ log 2π) for x ≥ `LARGE`."""
    inverse = div(arith.constant(1, typeof(x).dtype), mul(x, x))
    return div(_polynomial(inverse, STIRLING[:-1]), x)


def _from_half(y: Any) -> Any:
    """Returns log Γ(y) for y ≥ ½."""
    dtype = typeof(y).dtype
    half, one = arith.constant(0.5, dtype), arith.constant(1, dtype)
    large = ge(y, arith.constant(LARGE, dtype))
    low = select(large, full_like(y, 2), y)
    # Γ(y) = (y - 1) (y - 2) … (y - m) Γ(y - m), with y - m between 3/2 and 5/2.
    limit = arith.constant(1.5, dtype)
    base, product = low, full_like(y, 1)
    for _ in range(int(LARGE) - 2):
        less = sub(base, one)
        more = ge(less, limit)
        product = select(more, mul(product, less), product)
        base = select(more, less, base)
    # From below 3/2: Γ(y) = Γ(y + 1) / y.
    below = lt(base, limit)
    z = sub(base, select(below, full_like(y, 1), full_like(y, 2)))
    factor = select(below, z, sub(select(large, y, product), one))
    logarithm = log1p(factor)  # of y or the product
    small = add(_from_two(z), select(below, neg(logarithm), logarithm))
    safe = select(large, y, full_like(y, LARGE))
    offset = arith.constant(0.5 * math.log(2 * math.pi) - 0.5, dtype)
    slope = mul(sub(safe, half), sub(logarithm, one))
    return select(large, add(slope, add(offset, stirling_rest(safe))), small)


def _log_gamma(x: Any) -> Any:
    """Returns log |Γ(x)|."""
    dtype = typeof(x).dtype
    if dtypes.bits(dtype) < 32:
        return convert(_log_gamma(convert(x, dtypes.float32)), dtype)
    half, one = arith.constant(0.5, dtype), arith.constant(1, dtype)
    left, near_0 = lt(x, half), lt(abs_(x), half)
    # |Γ(x) Γ(1 - x) sin πx| = π; near 0, x (1 + x) Γ(x) = Γ(2 + x).
    part = sub(x, floor(add(x, half)))
    sine = mul(
        sin(mul(part, arith.constant(math.pi, dtype))), full_like(x, 1 / math.pi)
    )
    inner = select(near_0, x, full_like(x, 0))
    other = select(near_0, mul(x, add(x, one)), select(left, sine, full_like(x, 1)))
    right = _from_half(select(left, sub(one, x), x))
    value = select(near_0, _from_two(inner), select(left, neg(right), right))
    value = sub(value, log(abs_(other)))
    endless = eq(abs_(x), arith.constant(math.inf, dtype))
    return select(endless, full_like(x, math.inf), value)


@register
class Lgamma(Special):
    """log |Γ(x)|. dtypes: float. Integers ≤ 0 → inf."""

    name = "lgamma"
    numpy = host.elementwise(host.lgamma)
    partials = (lambda out, x: Digamma.bind(x),)

    def lower(self, ctx: Context, *operands: str, **params: Any) -> str:
        """A series about the zeros at 1 and 2, Stirling's far from them."""
        return ctx.compose(_log_gamma, operands, [ctx.avals_in[0].strong()])[0]


# -- ψ and its derivatives -------------------------------------------------------------


def _with_pole(x: Any, elsewhere: Any) -> Any:
    """Returns ψ(x), which is -1/x near 0."""
    zero = arith.constant(0, typeof(x).dtype)
    pole = div(arith.constant(-1, typeof(x).dtype), x)
    return select(eq(x, zero), pole, elsewhere)


@register
class Digamma(Special):
    """Derivative of log Γ(x). dtypes: float. CHLO: digamma.

    ±0 → ∓inf, integers < 0 → nan.
    """

    name = "digamma"
    hlo = "chlo.digamma"
    numpy = host.elementwise(host.digamma)
    partials = (lambda out, x: polygamma(arith.constant(1, typeof(x).dtype), x),)

    def lower(self, ctx: Context, *operands: str, **params: Any) -> str:
        """CHLO's, but the pole at 0."""
        (x,) = ctx.avals_in
        elsewhere = super().lower(ctx, *operands, **params)
        both = [*operands, elsewhere]
        return ctx.compose(_with_pole, both, [x, x.strong()])[0]


def _no_slope_in_order(out: Any, *args: Any) -> Any:
    raise NotDifferentiableError(
        "zeta and polygamma have no derivative with respect to their first argument: "
        "stop it with stop_gradient"
    )


@register
class Polygamma(Special):
    """m-th derivative of digamma. dtypes: float.

    m not 0, 1, … → nan.
    """

    name = "polygamma"
    numpy = host.elementwise(host.polygamma)
    partials = (
        _no_slope_in_order,
        lambda out, m, x: polygamma(_next(m), x),
    )

    def lower(self, ctx: Context, *operands: str, **params: Any) -> str:
        """A factorial times a zeta function."""
        out = ctx.avals_out[0].strong()
        return ctx.compose(_polygamma, self.aligned(ctx, operands), [out, out])[0]


@register
class Zeta(Special):
    """The Hurwitz zeta function Σ (q + k)⁻ˣ. dtypes: float. x < 1 → nan."""

    name = "zeta"
    numpy = host.elementwise(host.zeta)
    partials = (
        _no_slope_in_order,
        lambda out, x, q: mul(neg(x), zeta(_next(x), q)),
    )

    def lower(self, ctx: Context, *operands: str, **params: Any) -> str:
        """The Euler-Maclaurin formula."""
        out = ctx.avals_out[0].strong()
        return ctx.compose(_zeta, self.aligned(ctx, operands), [out, out])[0]


def _next(x: Any) -> Any:
    return add(x, arith.constant(1, typeof(x).dtype))


# -- ζ ---------------------------------------------------------------------------------

# Euler's and Maclaurin's formula: terms summed directly, then corrections by Bernoulli
# numbers over factorials, B₂ₖ / (2k)!.
ZETA_TERMS = 10
ZETA_CORRECTIONS = (
    0.08333333333333333,
    -0.001388888888888889,
    3.306878306878307e-05,
    -8.267195767195768e-07,
    2.08767569878681e-08,
    -5.284190138687493e-10,
    1.3382536530684679e-11,
    -3.3896802963225827e-13,
    8.586062056277845e-15,
    -2.174868698558062e-16,
    5.5090028283602295e-18,
    -1.3954464685812522e-19,
)


def _positive_zeta(s: Any, q: Any, unit: Any) -> Any:
    """Returns unitˢ ζ(s, q) for s > 1 and q > 0; `unit` is 1 or q."""
    dtype = typeof(q).dtype
    one = arith.constant(1, dtype)
    power = neg(s)
    total = full_like(q, 0)
    # From the smallest term.
    for k in range(ZETA_TERMS - 1, -1, -1):
        base = div(add(q, arith.constant(k, dtype)), unit)
        total = add(total, pow_(base, power))
    end = add(q, arith.constant(ZETA_TERMS, dtype))
    last = div(end, unit)
    # Beyond this the terms after the first do not count, and factors might overflow.
    s = min_(s, mul(end, arith.constant(50, dtype)))
    count = len(ZETA_CORRECTIONS) if dtypes.bits(dtype) == 64 else 6
    factor = div(s, end)
    tail = full_like(q, 0.5)
    for k, c in enumerate(ZETA_CORRECTIONS[:count]):
        tail = add(tail, mul(factor, arith.constant(c, dtype)))
        for j in (2 * k + 1, 2 * k + 2):
            factor = mul(factor, div(add(s, arith.constant(j, dtype)), end))
    # Not times the power itself, which may underflow where its sum does not.
    tail = add(div(one, sub(s, one)), div(tail, end))
    return add(total, mul(mul(pow_(last, add(power, one)), unit), tail))


def _alternating(s: Any) -> Any:
    """Returns (-1)ˢ for integers."""
    one, two = (arith.constant(c, typeof(s).dtype) for c in (1, 2))
    return sub(one, mul(two, sub(s, mul(two, floor(div(s, two))))))


def _inner_zeta(s: Any, q: Any) -> Any:
    """Returns ζ(s, q) for s > 1 and q that is not a pole, for negative q of integer s.

    With q = f - n, 0 < f < 1, the n terms of negative base are those of a difference
    of two functions of positive q.
    """
    dtype = typeof(q).dtype
    zero, one = arith.constant(0, dtype), arith.constant(1, dtype)
    below = lt(q, zero)
    inside = select(below, q, full_like(q, -0.5))
    part = sub(inside, floor(inside))
    # All three at once, along a new axis.
    bases = (select(below, part, q), sub(ceil(inside), inside), sub(one, inside))
    shape = (1, *typeof(q).shape)
    three = concatenate([reshape(base, shape) for base in bases], 0)
    axes = tuple(range(1, len(shape)))
    repeated = broadcast_in_dim(s, typeof(three).shape, axes)
    values = _positive_zeta(repeated, three, full_like(three, 1))
    above, *others = (index_in_dim(values, i, 0, keepdims=False) for i in range(3))
    left = sub(*others)
    return select(below, add(above, mul(_alternating(s), left)), above)


def _zeta(s: Any, q: Any) -> Any:
    dtype = typeof(q).dtype
    if dtypes.bits(dtype) < 32:
        return convert(_zeta(*(convert(v, dtypes.float32) for v in (s, q))), dtype)
    zero, one, inf = (arith.constant(c, dtype) for c in (0, 1, math.inf))
    whole_s, whole_q = eq(s, floor(s)), eq(q, floor(q))
    pole = bitwise_and(le(q, zero), whole_q)
    known = bitwise_or(gt(q, zero), bitwise_and(whole_s, lt(s, inf)))
    fine = bitwise_and(bitwise_and(gt(s, one), known), bitwise_not(pole))
    fine = bitwise_and(fine, lt(q, inf))
    safe_s, safe_q = select(fine, s, full_like(s, 2)), select(fine, q, full_like(q, 1))
    out = _inner_zeta(safe_s, safe_q)
    nan = full_like(q, math.nan)
    out = select(known, out, nan)
    out = select(eq(q, inf), full_like(q, 0), out)
    out = select(pole, full_like(q, math.inf), out)
    out = select(eq(s, one), full_like(q, math.inf), out)
    proper = bitwise_and(ge(s, one), eq(q, q))
    return select(proper, out, nan)


def _polygamma(m: Any, x: Any) -> Any:
    """Returns (-1)ᵐ⁺¹ m! ζ(m + 1, x), or ψ(x) for m = 0."""
    dtype = typeof(x).dtype
    if dtypes.bits(dtype) < 32:
        return convert(_polygamma(*(convert(v, dtypes.float32) for v in (m, x))), dtype)
    zero, one = arith.constant(0, dtype), arith.constant(1, dtype)
    first = eq(m, zero)
    proper = bitwise_and(ge(m, zero), eq(m, floor(m)))
    order = select(bitwise_and(proper, gt(m, zero)), m, full_like(m, 1))
    sums = _zeta(add(order, one), x)
    log_factorial = lgamma(add(order, one))
    direct = mul(exp(log_factorial), sums)
    info = dtypes.finfo(dtype)
    # Small enough for terms of the sum to underflow.
    tiny = float(info.tiny) / float(info.eps) ** 2
    plain = bitwise_and(
        lt(log_factorial, arith.constant(80, dtype)),
        gt(abs_(sums), arith.constant(tiny, dtype)),
    )
    plain = bitwise_or(plain, bitwise_not(gt(x, one)))
    # Where one factor is beyond the range: roots of both, or else their logarithms.
    endless = eq(x, arith.constant(math.inf, dtype))
    far = select(bitwise_or(plain, endless), full_like(x, 2), x)
    half = arith.constant(0.5, dtype)
    power = mul(half, add(order, one))
    log_root = mul(half, log_factorial)
    root = mul(exp(log_root), pow_(far, neg(power)))
    known = bitwise_and(gt(root, zero), lt(root, arith.constant(math.inf, dtype)))
    root = select(known, root, exp(sub(log_root, mul(power, log(far)))))
    scaled = _positive_zeta(add(order, one), far, far)
    size = select(plain, direct, mul(mul(root, scaled), root))
    size = select(endless, full_like(x, 0), size)
    value = mul(neg(_alternating(order)), size)
    return select(first, digamma(x), select(proper, value, full_like(x, math.nan)))


@special_docs
def lgamma(x: Any, /) -> Array:
    """Returns log abs(Γ(x)).

    Special cases:
      inf at 0 and the negative integers.

    Example:
      >>> lgamma(2.0)
      Array(0., dtype=float32, weak_type=True)
    """
    return Lgamma.bind(x)


@special_docs
def digamma(x: Any, /) -> Array:
    """Returns the derivative of log Γ(x).

    Special cases:
      -inf at 0, inf at -0; nan at the negative integers.

    Example:
      >>> digamma(1.0)
      Array(-0.57721..., dtype=float32, weak_type=True)
    """
    return Digamma.bind(x)


def polygamma(m: Any, x: Any, /) -> Array:
    """Returns the m-th derivative of the digamma function.

    Args:
      m: float array, or a Python number: the order.
      x: of the same dtype, or a Python number.

    Returns:
      An array of their dtype and common shape.

    Raises:
      DtypeError: the dtypes differ, or the operation does not take them.
      ShapeError: the shapes are incompatible.
      NotDifferentiableError: a derivative with respect to `m` is asked for.

    Special cases:
      m = 0 is the digamma function; nan where m is not a natural number.

    Example:
      >>> polygamma(1.0, 1.0)
      Array(1.644934..., dtype=float32, weak_type=True)

    Source: DLMF 5.15, 25.11.
    """
    return Polygamma.bind(*operands("polygamma", m, x))


def zeta(x: Any, q: Any, /) -> Array:
    """Returns the Hurwitz zeta function Σ (q + k)⁻ˣ over k = 0, 1, ….

    Args:
      x: float array, or a Python number.
      q: of the same dtype, or a Python number.

    Returns:
      An array of their dtype and common shape.

    Raises:
      DtypeError: the dtypes differ, or the operation does not take them.
      ShapeError: the shapes are incompatible.
      NotDifferentiableError: a derivative with respect to `x` is asked for.

    Special cases:
      inf at x = 1, nan below; inf where q is 0 or a negative integer; nan for other
      negative q, unless x is an integer.

    Example:
      >>> zeta(2.0, 1.0)
      Array(1.644934..., dtype=float32, weak_type=True)

    Source: DLMF 25.11; the Euler-Maclaurin formula.
    """
    return Zeta.bind(*operands("zeta", x, q))
