"""The incomplete gamma functions and their derivatives in the shape parameter.

P(a, x) = 1/Γ(a) ∫₀ˣ tᵃ⁻¹ e⁻ᵗ dt is computed by its power series where x ≤ a or x ≤ 1,
and from Q = 1 - P by a continued fraction elsewhere (DiDonato and Morris, 1986). Both
are loops over all elements until the last has converged; the derivative in a is carried
along. Near the mean of a large a, where they would take √a steps, it is Temme's uniform
asymptotic expansion (1979), and where P is nearly 1 because a is small, Q is a series.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.core.docs import shared
from fxflow.core.ir import arith
from fxflow.core.ir.primitive import register
from fxflow.core.runtime.lowering import Context
from fxflow.errors import NotDifferentiableError
from fxflow.lax import _special_host as host
from fxflow.lax._last_terms import count_of_terms, digits, from_last_term
from fxflow.lax._operands import operands
from fxflow.lax.bitwise import bitwise_and, bitwise_not, bitwise_or
from fxflow.lax.comparison import eq, ge, gt, le, lt, ne
from fxflow.lax.control_flow.cond import cond
from fxflow.lax.control_flow.while_loop import while_loop
from fxflow.lax.conversion import convert, convert_element_type
from fxflow.lax.creation import full_like
from fxflow.lax.dynamic_slicing import dynamic_index_in_dim
from fxflow.lax.elementwise import abs as abs_
from fxflow.lax.elementwise import add, div, mul, neg, sub
from fxflow.lax.elementwise import max as max_
from fxflow.lax.elementwise import min as min_
from fxflow.lax.exponential import exp, expm1, log
from fxflow.lax.gamma_ratios import deviation, excess, horner
from fxflow.lax.gammas import LARGE, digamma, lgamma, log_gamma_from_one, stirling_rest
from fxflow.lax.powers import pow as pow_
from fxflow.lax.powers import sqrt, square
from fxflow.lax.reduction import reduce_or
from fxflow.lax.select import select
from fxflow.lax.slicing import index_in_dim
from fxflow.lax.special import Special, erfc, scaled
from fxflow.lax.trigonometric import tanh

# Where the expansion is not taken, the series and the fraction need about 150.
_MAX_STEPS = 1_000


def _any(mask: Any) -> Any:
    return reduce_or(mask, tuple(range(typeof(mask).ndim)))


class _Part(NamedTuple):
    """The series or the fraction, and its derivative with respect to a."""

    value: Any
    slope: Any


def _series_has(n: Any, a: Any, x: Any) -> Any:
    """Returns whether n terms of `series_value` are enough."""
    dtype = typeof(x).dtype
    # The mean of log(a + k), 0 < k < n, is at least log(a + n/e).
    middle = add(a, scaled(1 / math.e, n))
    return ge(middle, mul(x, exp(div(arith.constant(digits(dtype), dtype), n))))


def series_value(a: Any, x: Any, wanted: Any) -> Any:
    """Returns Σ xⁿ / ((a+1) … (a+n)) where wanted, without its derivative."""
    dtype = typeof(x).dtype
    one = arith.constant(1, dtype)

    def enough(n: Any) -> Any:
        return bitwise_or(_series_has(n, a, x), bitwise_not(wanted))

    def term(k: Any, rest: Any) -> Any:
        return add(one, mul(div(x, add(a, k)), rest))

    return from_last_term(term, count_of_terms(enough, dtype), full_like(x, 1))


def _fraction_sums(n: Any, x: Any, gap: Any) -> tuple[Any, Any]:
    # The error falls by the quotient of (S + D)/2 and (S - D)/2 with the n-th term.
    return add(gap, add(n, n)), add(square(gap), mul(scaled(4.0, n), x))


def _fraction_has(n: Any, x: Any, gap: Any) -> Any:
    """Returns whether n terms of `fraction_value` are enough; gap is x - a."""
    dtype = typeof(x).dtype
    # By the term that does no more than the mean one: rates are as √n or 1/√n.
    total, square_of = _fraction_sums(scaled(0.44, n), x, gap)
    total = square(total)
    share = square(tanh(div(arith.constant(0.5 * digits(dtype), dtype), n)))
    return ge(min_(total, square_of), mul(share, max_(total, square_of)))


def _last_of_fraction(count: Any, x: Any, gap: Any) -> Any:
    total, square_of = _fraction_sums(count, x, gap)
    return scaled(0.5, add(total, sqrt(square_of)))


def fraction_value(a: Any, x: Any, wanted: Any) -> Any:
    """Returns the fraction of `_fraction` where wanted, without its derivative."""
    dtype = typeof(x).dtype
    one = arith.constant(1, dtype)
    a = select(wanted, a, full_like(x, 1))
    x = select(wanted, x, full_like(x, 2))
    gap = sub(x, a)

    def enough(n: Any) -> Any:
        return bitwise_or(_fraction_has(n, x, gap), bitwise_not(wanted))

    def term(k: Any, rest: Any) -> Any:
        return sub(add(gap, sub(add(k, k), one)), div(mul(k, sub(k, a)), rest))

    count = count_of_terms(enough, dtype)
    last = _last_of_fraction(count, x, gap)
    return div(one, from_last_term(term, count, last))


def _value(a: Any, x: Any, by_series: Any) -> Any:
    """Returns `series_value` or `fraction_value`, by one loop for both.

    It is a smaller program than two loops, and has one division for each term.
    """
    dtype = typeof(x).dtype
    one, ones = arith.constant(1, dtype), full_like(x, 1)
    gap = sub(x, a)

    def enough(n: Any) -> Any:
        return select(by_series, _series_has(n, a, x), _fraction_has(n, x, gap))

    def term(k: Any, rest: Any) -> Any:
        first = select(by_series, ones, add(gap, sub(add(k, k), one)))
        above = select(by_series, mul(x, rest), mul(k, sub(a, k)))
        return add(first, div(above, select(by_series, add(a, k), rest)))

    count = count_of_terms(enough, dtype)
    last = select(by_series, ones, _last_of_fraction(count, x, gap))
    value = from_last_term(term, count, last)
    return select(by_series, value, div(one, value))


def _series(a: Any, x: Any, wanted: Any) -> _Part:
    """Returns Σ xⁿ / ((a+1) … (a+n)) where wanted."""
    dtype = typeof(x).dtype
    one = arith.constant(1, dtype)
    ones, zeros = full_like(x, 1), full_like(x, 0)
    eps = arith.constant(dtypes.finfo(dtype).eps / 2, dtype)

    def go_on(carry: Any) -> Any:
        n, _, term, slope, total, total_slope = carry
        small = bitwise_and(
            le(term, mul(eps, total)), le(abs_(slope), mul(eps, abs_(total_slope)))
        )
        busy = bitwise_and(wanted, ne(small, True))
        return bitwise_and(lt(n, _MAX_STEPS), _any(busy))

    def step(carry: Any) -> Any:
        n, r, term, slope, total, total_slope = carry
        r = add(r, one)
        ratio = div(x, r)
        slope = mul(ratio, sub(slope, div(term, r)))
        term = mul(term, ratio)
        return add(n, 1), r, term, slope, add(total, term), add(total_slope, slope)

    start = (np.int32(0), a, ones, zeros, ones, zeros)
    _, _, _, _, total, total_slope = while_loop(go_on, step, start)
    return _Part(total, total_slope)


def _fraction(a: Any, x: Any, wanted: Any) -> _Part:
    """Returns 1/(x+1-a - 1(1-a)/(x+3-a - 2(2-a)/(x+5-a - …))) where wanted.

    By Lentz' method: the value is a product of factors c d that tend to 1, and the
    slope of its logarithm the sum of theirs. Each element stops by itself, since more
    steps would only add rounding errors.
    """
    dtype = typeof(x).dtype
    one, two = arith.constant(1, dtype), arith.constant(2, dtype)
    ones, zeros = full_like(x, 1), full_like(x, 0)
    eps = arith.constant(dtypes.finfo(dtype).eps, dtype)
    # Elsewhere, harmless values.
    a = select(wanted, a, ones)
    x = select(wanted, x, scaled(2.0, ones))

    def go_on(carry: Any) -> Any:
        n, busy, *_ = carry
        return bitwise_and(lt(n, _MAX_STEPS), _any(busy))

    def step(carry: Any) -> Any:
        n, busy, k, b, c, dc, d, dd, f, dlog = carry
        k, b = add(k, one), add(b, two)
        # The partial numerator, whose slope in a is k; that of b is -1.
        m = mul(k, sub(a, k))
        d_new = div(one, add(b, mul(m, d)))
        dd = neg(mul(square(d_new), sub(add(mul(k, d), mul(m, dd)), one)))
        c_new = add(b, div(m, c))
        dc = sub(div(sub(k, div(mul(m, dc), c)), c), one)
        factor = mul(c_new, d_new)
        slope = div(add(mul(dc, d_new), mul(c_new, dd)), factor)
        f = select(busy, mul(f, factor), f)
        dlog = select(busy, add(dlog, slope), dlog)
        change = max_(
            abs_(sub(factor, one)), scaled(0.25, div(abs_(slope), add(abs_(dlog), one)))
        )
        busy = bitwise_and(busy, gt(change, eps))
        return add(n, 1), busy, k, b, c_new, dc, d_new, dd, f, dlog

    b = add(sub(x, a), one)
    d = div(one, b)
    # The first value is 1/b, the c before it infinite.
    inf = full_like(x, math.inf)
    start = (np.int32(0), wanted, zeros, b, inf, zeros, d, square(d), d, d)
    *_, f, dlog = while_loop(go_on, step, start)
    return _Part(f, mul(f, dlog))


# -- near the mean of a large a --------------------------------------------------------

# The expansion is taken where a is above the first and |x/a - 1| below the second.
_TEMME_SHAPE, _TEMME_RATIO = 20.0, 0.3
# The largest |η| there, that of x/a = 0.7.
_TEMME_ETA = 0.3367


@functools.cache
def _temme_coefficients(eps: float) -> tuple[tuple[float, ...], ...]:
    """Returns d[k][n], of which Σ a⁻ᵏ ηⁿ d[k][n] is wanted (DLMF 8.12.12).

    Args:
      eps: how small a term may be to be left out.
    """
    orders, terms = 16, 24
    count = 2 * orders + terms + 3
    # x/a - 1 = Σ alpha[n] ηⁿ.
    alpha = [Fraction(0), Fraction(1), Fraction(1, 3), Fraction(1, 36)]
    for n in range(4, count + 1):
        inner = sum(j * alpha[j] * alpha[n - j + 1] for j in range(2, n))
        alpha.append((alpha[n - 1] - inner) / (n + 1))
    first = [Fraction(-1, 3)]
    first += [(n + 2) * alpha[n + 2] for n in range(1, count - 2)]
    rows, row, double = [first], first, 1
    for k in range(1, orders):
        double *= 2 * k + 1
        stirling = (-1) ** k * double * alpha[2 * k + 1]
        row = [stirling * first[n] + (n + 2) * row[n + 2] for n in range(len(row) - 2)]
        rows.append(row)
    kept = []
    for k, row in enumerate(rows):
        sizes = [abs(d) * _TEMME_ETA**n / _TEMME_SHAPE**k for n, d in enumerate(row)]
        enough = max((n + 1 for n, size in enumerate(sizes) if size > eps), default=0)
        kept.append(tuple(float(d) for d in row[:enough]))
    return tuple(row for row in kept if row)


class _Temme(NamedTuple):
    """P, Q, and dP/da divided by xᵃ e⁻ˣ / Γ(a+1)."""

    lower: Any
    upper: Any
    slope: Any


class _Expansion(NamedTuple):
    """Temme's expansion: x/a - 1, η over it, log(x/a) over it, 1/a, and the sum."""

    m: Any
    root: Any
    log_ratio: Any
    inverse: Any
    total: Any
    by_eta: Any
    by_inverse: Any


@functools.cache
def _temme_table(eps: float) -> Any:
    """Returns `_temme_coefficients` as an array, from the last order to the first."""
    rows = _temme_coefficients(eps)
    width = len(rows[0])
    padded = [(*row, *(0.0,) * (width - len(row))) for row in rows]
    return np.array(padded[::-1])


def _expansion(a: Any, x: Any) -> _Expansion:
    dtype = typeof(x).dtype
    m = div(sub(x, a), a)
    root, log_ratio = deviation(m)
    eta = mul(m, root)
    inverse = div(arith.constant(1, dtype), a)
    table = _temme_table(float(dtypes.finfo(dtype).eps) / 16)
    orders, terms = table.shape
    rows = convert_element_type(table, dtype)

    def step(carry: Any) -> Any:
        # A loop over the orders, since XLA takes its time for long polynomials.
        k, total, by_eta, by_inverse = carry
        row = dynamic_index_in_dim(rows, k, 0, keepdims=False)
        numbers = [index_in_dim(row, n, 0, keepdims=False) for n in range(terms)]
        value, slope = horner(eta, numbers)
        by_inverse = add(mul(by_inverse, inverse), total)
        total = add(mul(total, inverse), value)
        return add(k, 1), total, add(mul(by_eta, inverse), slope), by_inverse

    zero = full_like(x, 0)
    start = (np.int32(0), zero, zero, zero)
    sums = while_loop(lambda carry: lt(carry[0], orders), step, start)
    return _Expansion(m, root, log_ratio, inverse, *sums[1:])


def temme_terms(a: Any, x: Any) -> tuple[Any, Any]:
    """Returns t and s, with which P is erfc(-t) / 2 - exp(-t²) s (DLMF 8.12.3).

    Args:
      a: float array of 32 or 64 bits, of at least 20.
      x: of the same dtype, between 0.7 and 1.3 times that.
    """
    terms = _expansion(a, x)
    t = mul(mul(terms.m, terms.root), sqrt(scaled(0.5, a)))
    return t, div(terms.total, scaled(math.sqrt(2 * math.pi), sqrt(a)))


def _temme(a: Any, x: Any) -> _Temme:
    """Returns Temme's uniform asymptotic expansion (DLMF 8.12)."""
    m, root, log_ratio, inverse, total, by_eta, by_inverse = _expansion(a, x)
    t = mul(mul(m, root), sqrt(scaled(0.5, a)))
    peak = div(exp(neg(square(t))), scaled(math.sqrt(2 * math.pi), sqrt(a)))
    rest = mul(peak, total)
    lower = sub(scaled(0.5, erfc(neg(t))), rest)
    upper = add(scaled(0.5, erfc(t)), rest)
    # d/da of all that, where dη/da = -1/(a root) and d(t²)/da = -log(x/a).
    log_x = mul(m, log_ratio)
    moved = mul(total, sub(log_x, scaled(0.5, inverse)))
    inner = div(mul(by_eta, inverse), root)
    slope = sub(sub(moved, inner), mul(by_inverse, square(inverse)))
    slope = neg(add(div(log_ratio, root), slope))
    return _Temme(lower, upper, mul(slope, exp(stirling_rest(a))))


def log_density(a: Any, x: Any, size: Any = None) -> Any:
    """Returns log(xᵃ e⁻ˣ / Γ(a+1)), without cancellation for large a.

    Args:
      a: float array, positive.
      x: float array, positive.
      size: log Γ(a+1) where that is known.
    """
    dtype = typeof(x).dtype
    bound = arith.constant(LARGE, dtype)
    one = arith.constant(1, dtype)
    large = gt(a, bound)
    # Both sides are computed: harmless values where the other one is taken.
    wide = select(large, a, bound)
    shift = div(sub(x, wide), wide)
    # Far from the mean 1 + shift would lose the digits of x.
    bend = neg(excess(shift, log(div(x, wide))))
    stirling = sub(
        mul(wide, bend),
        add(
            stirling_rest(wide),
            add(
                scaled(0.5, log(wide)),
                arith.constant(0.5 * math.log(2 * math.pi), dtype),
            ),
        ),
    )
    narrow = select(large, one, a)
    size = lgamma(add(narrow, one)) if size is None else size
    plain = sub(sub(mul(narrow, log(x)), x), size)
    return select(large, stirling, plain)


class _Incomplete(NamedTuple):
    """What all the functions are made of, at valid a and x."""

    by_temme: Any
    by_series: Any
    density: Any
    temme: _Temme
    series: _Part
    fraction: _Part


def _incomplete(
    a: Any, x: Any, slopes: bool = False, most: float = 1.0, size: Any = None
) -> _Incomplete:
    """Returns all parts, those without need as zeros.

    Args:
      a: the shape.
      x: the argument.
      slopes: whether the derivatives with respect to the shape are wanted, too.
      most: up to which x the series is taken for every shape.
      size: log Γ(a+1) where that is known.
    """
    dtype = typeof(x).dtype
    one = arith.constant(1, dtype)
    few = le(x, arith.constant(most, dtype))
    bound = arith.constant(_TEMME_SHAPE, dtype)
    near = le(abs_(sub(x, a)), scaled(_TEMME_RATIO, a))
    by_temme = bitwise_and(gt(a, bound), near)
    by_series = bitwise_and(bitwise_or(few, le(x, a)), bitwise_not(by_temme))
    by_fraction = bitwise_not(bitwise_or(by_temme, by_series))
    near_args = select(by_temme, a, bound), select(by_temme, x, bound)
    # Its long polynomials run only if an element needs them.
    zero = full_like(x, 0)
    temme = cond(
        _any(by_temme),
        lambda a, x: tuple(_temme(a, x))[: 3 if slopes else 2],
        lambda a, x: (zero,) * (3 if slopes else 2),
        *near_args,
    )
    density = exp(log_density(a, x, size))
    if slopes:
        below = select(by_series, a, one), select(by_series, x, one), by_series
        series, fraction = _series(*below), _fraction(a, x, by_fraction)
        return _Incomplete(
            by_temme, by_series, density, _Temme(*temme), series, fraction
        )
    value = _value(
        select(by_temme, one, a), select(by_temme, one, x), bitwise_not(by_fraction)
    )
    part = _Part(value, zero)
    return _Incomplete(
        by_temme, by_series, density, _Temme(temme[0], temme[1], zero), part, part
    )


def smaller_part(a: Any, x: Any, size: Any = None) -> tuple[Any, Any, Any]:
    """Returns P(a, x) where x ≤ a or x ≤ 1, Q(a, x) elsewhere, and where it is P.

    The third result is the density of log(x).

    Args:
      a: float array of 32 or 64 bits, positive and finite.
      x: of the same dtype, positive and finite.
      size: log Γ(a+1) where that is known.
    """
    parts = _incomplete(a, x, size=size)
    lower = bitwise_or(parts.by_series, bitwise_and(parts.by_temme, le(x, a)))
    upper = mul(mul(parts.density, a), parts.fraction.value)
    value = select(parts.by_series, mul(parts.density, parts.series.value), upper)
    near = select(lower, parts.temme.lower, parts.temme.upper)
    return select(parts.by_temme, near, value), lower, mul(parts.density, a)


def has_small_shape(a: Any, x: Any) -> Any:
    """Returns where x ≤ 1 and a is so small that P(a, x) is at least about a half."""
    dtype = typeof(x).dtype
    one, half = arith.constant(1, dtype), arith.constant(0.5, dtype)
    # DiDonato and Morris.
    small = bitwise_and(le(x, one), bitwise_and(lt(a, half), lt(a, x)))
    tiny = bitwise_and(lt(x, half), lt(mul(a, neg(log(x))), arith.constant(0.4, dtype)))
    return bitwise_or(small, bitwise_and(tiny, lt(a, half)))


def small_shape_upper(a: Any, x: Any) -> Any:
    """Returns Q(a, x) for x ≤ 1 and a so small that P is near 1."""
    dtype = typeof(x).dtype
    # 1 - xᵃ/Γ(a+1) - xᵃ/Γ(a) Σ (-x)ᵏ / (k! (a + k)) over k = 1, 2, ….
    term, total = full_like(x, 1), full_like(x, 0)
    for k in range(1, 20 if dtypes.bits(dtype) == 64 else 12):
        term = mul(term, scaled(-1 / k, x))
        total = add(total, div(term, add(a, arith.constant(k, dtype))))
    power = sub(mul(a, log(x)), log_gamma_from_one(a))
    return neg(add(expm1(power), mul(mul(a, exp(power)), total)))


def _guarded(
    inner: Callable[[Any, Any], Any], at_zero: float, at_infinity: float
) -> Callable[[Any, Any], Any]:
    """Returns the function for all arguments, of all widths.

    Args:
      inner: for 0 < a < inf and 0 < x < inf, in 32 or 64 bits.
      at_zero: its value at x = 0.
      at_infinity: its value at x = inf or, if that is not a derivative, at a = 0.
    """

    def function(a: Any, x: Any) -> Any:
        dtype = typeof(x).dtype
        if dtypes.bits(dtype) < 32:
            single = dtypes.float32
            return convert(function(convert(a, single), convert(x, single)), dtype)
        zero, inf = arith.constant(0, dtype), arith.constant(math.inf, dtype)
        inside = bitwise_and(
            bitwise_and(gt(a, zero), lt(a, inf)), bitwise_and(gt(x, zero), lt(x, inf))
        )
        one = arith.constant(1, dtype)
        out = inner(select(inside, a, one), select(inside, x, one))
        low, high, nan = (
            arith.constant(c, dtype) for c in (at_zero, at_infinity, math.nan)
        )
        a_zero, a_inf = eq(a, zero), eq(a, inf)
        x_zero, x_inf = eq(x, zero), eq(x, inf)
        proper = bitwise_and(gt(a, zero), ne(a_inf, True))
        positive = gt(x, zero)
        is_low = bitwise_or(
            bitwise_and(proper, x_zero),
            bitwise_and(a_inf, bitwise_and(lt(x, inf), le(zero, x))),
        )
        is_high = bitwise_or(bitwise_and(proper, x_inf), bitwise_and(a_zero, positive))
        edge = select(
            is_low,
            full_like(x, low),
            select(is_high, full_like(x, high), full_like(x, nan)),
        )
        return select(inside, out, edge)

    return function


def _lower(a: Any, x: Any) -> Any:
    # The terms of the series of P are positive, and up to there no more than those of
    # the fraction.
    parts = _incomplete(a, x, most=4.0)
    one = arith.constant(1, typeof(x).dtype)
    upper = mul(mul(parts.density, a), parts.fraction.value)
    series = mul(parts.density, parts.series.value)
    value = select(parts.by_series, series, sub(one, upper))
    return select(parts.by_temme, parts.temme.lower, value)


def _upper(a: Any, x: Any) -> Any:
    parts = _incomplete(a, x)
    dtype = typeof(x).dtype
    one, half = arith.constant(1, dtype), arith.constant(0.5, dtype)
    upper = mul(mul(parts.density, a), parts.fraction.value)
    series = sub(one, mul(parts.density, parts.series.value))
    small = has_small_shape(a, x)
    beyond = small_shape_upper(select(small, a, half), select(small, x, half))
    series = select(small, beyond, series)
    value = select(parts.by_series, series, upper)
    return select(parts.by_temme, parts.temme.upper, value)


def _slope(a: Any, x: Any) -> Any:
    """d/da of the logarithmic factors, times the parts, plus the parts' slopes."""
    parts = _incomplete(a, x, slopes=True)
    return mul(parts.density, _relative_slope(a, x, parts))


def _relative_slope(a: Any, x: Any, parts: _Incomplete) -> Any:
    """Returns dP/da divided by xᵃ e⁻ˣ / Γ(a+1)."""
    series, fraction = parts.series, parts.fraction
    one = arith.constant(1, typeof(x).dtype)
    moved = sub(log(x), digamma(add(a, one)))
    lower = add(mul(moved, series.value), series.slope)
    # Q = density · a · fraction.
    upper = add(mul(add(mul(moved, a), one), fraction.value), mul(a, fraction.slope))
    value = select(parts.by_series, lower, neg(upper))
    return select(parts.by_temme, parts.temme.slope, value)


def _sample_slope(a: Any, x: Any) -> Any:
    """dx/da at constant P: -(dP/da) / (dP/dx), where dP/dx = density · a/x."""
    parts = _incomplete(a, x, slopes=True)
    return neg(mul(_relative_slope(a, x, parts), div(x, a)))


def _density(a: Any, x: Any) -> Any:
    """Returns xᵃ⁻¹ e⁻ˣ / Γ(a): dP/dx."""
    dtype = typeof(x).dtype
    zero, one, inf = (arith.constant(c, dtype) for c in (0, 1, math.inf))
    far = bitwise_or(eq(x, inf), bitwise_or(eq(a, inf), eq(a, zero)))
    a, x = select(far, one, a), select(far, one, x)
    at_zero = eq(x, zero)
    inside, outside = select(at_zero, x, one), select(at_zero, one, x)
    start = mul(pow_(inside, sub(a, one)), exp(neg(add(inside, lgamma(a)))))
    inner = mul(exp(log_density(a, outside)), div(a, outside))
    return select(far, full_like(x, 0), select(at_zero, start, inner))


class _GammaFunction(Special):
    """A function of a and x, composed of loops."""

    def lower(self, ctx: Context, *operands: str, **params: Any) -> str:
        """The loops, written in place."""
        out = ctx.avals_out[0].strong()
        names = self.aligned(ctx, operands)
        return ctx.compose(self.composed, names, [out, out])[0]

    composed: Any


@register
class Igamma(_GammaFunction):
    """Regularised lower incomplete gamma function P(a, x). dtypes: float."""

    name = "igamma"
    numpy = host.elementwise(host.igamma)
    composed = staticmethod(_guarded(_lower, 0.0, 1.0))
    partials = (
        lambda out, a, x: IgammaGradA.bind(a, x),
        lambda out, a, x: _density(a, x),
    )


@register
class Igammac(_GammaFunction):
    """Regularised upper incomplete gamma function Q(a, x) = 1 - P. dtypes: float."""

    name = "igammac"
    numpy = host.elementwise(host.igammac)
    composed = staticmethod(_guarded(_upper, 1.0, 0.0))
    partials = (
        lambda out, a, x: neg(IgammaGradA.bind(a, x)),
        lambda out, a, x: neg(_density(a, x)),
    )


def _no_second_slope(*args: Any) -> Any:
    raise NotDifferentiableError(
        "igamma_grad_a and random_gamma_grad have no derivative with respect to the "
        "shape parameter a: stop it with stop_gradient"
    )


def _no_slope_of_sample(*args: Any) -> Any:
    raise NotDifferentiableError(
        "random_gamma_grad has no derivative: it is one already"
    )


@register
class IgammaGradA(_GammaFunction):
    """Derivative of P(a, x) with respect to a. dtypes: float."""

    name = "igamma_grad_a"
    numpy = host.elementwise(host.igamma_grad_a)
    composed = staticmethod(_guarded(_slope, 0.0, 0.0))
    partials = (
        _no_second_slope,
        lambda out, a, x: mul(_density(a, x), sub(log(x), digamma(a))),
    )


@register
class RandomGammaGrad(_GammaFunction):
    """How a sample x of Gamma(a) moves with a. dtypes: float."""

    name = "random_gamma_grad"
    numpy = host.elementwise(host.random_gamma_grad)
    composed = staticmethod(_guarded(_sample_slope, 0.0, math.nan))
    partials = (_no_slope_of_sample, _no_slope_of_sample)


_incomplete_gamma_docs = shared("""
    Args:
      a: float array, positive: the shape parameter.
      x: of the same dtype, not negative.

    Returns:
      An array of their dtype and common shape.

    Raises:
      DtypeError: the dtypes differ, or the operation does not take them.
      ShapeError: the shapes are incompatible.

    Source: DiDonato and Morris, ACM TOMS 12 (1986); Temme, SIAM J. Math. Anal. 10
    (1979).
""")


@_incomplete_gamma_docs
def igamma(a: Any, x: Any, /) -> Array:
    """Returns the regularised lower incomplete gamma function P(a, x).

    Special cases:
      0 at x = 0, 1 at x = inf and at a = 0; 0 at a = inf; nan for negative arguments.

    Example:
      >>> igamma(1.0, 0.0)
      Array(0., dtype=float32, weak_type=True)
    """
    return Igamma.bind(*operands("igamma", a, x))


@_incomplete_gamma_docs
def igammac(a: Any, x: Any, /) -> Array:
    """Returns the regularised upper incomplete gamma function 1 - P(a, x).

    Special cases:
      1 at x = 0, 0 at x = inf and at a = 0; 1 at a = inf; nan for negative arguments.

    Example:
      >>> igammac(1.0, 0.0)
      Array(1., dtype=float32, weak_type=True)
    """
    return Igammac.bind(*operands("igammac", a, x))


@_incomplete_gamma_docs
def igamma_grad_a(a: Any, x: Any, /) -> Array:
    """Returns the derivative of P(a, x) with respect to a.

    Special cases:
      0 at x = 0 and x = inf; nan for negative arguments.

    Example:
      >>> igamma_grad_a(1.0, 0.0)
      Array(0., dtype=float32, weak_type=True)
    """
    return IgammaGradA.bind(*operands("igamma_grad_a", a, x))


@_incomplete_gamma_docs
def random_gamma_grad(a: Any, x: Any, /) -> Array:
    """Returns the derivative of a sample of Gamma(a, 1) with respect to a.

    Special cases:
      0 at x = 0; nan for negative arguments.

    Example:
      >>> random_gamma_grad(1.0, 0.0)
      Array(0., dtype=float32, weak_type=True)
    """
    return RandomGammaGrad.bind(*operands("random_gamma_grad", a, x))
