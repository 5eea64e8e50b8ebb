"""Legendre functions of integer degree and order, by recurrences in the degree.

A function of the order m starts at the degree m with a multiple of wᵐ, where w² is
1 - z² or z² - 1, and rises from there (DLMF 14.10.3). Its derivatives are those of the
recurrence and of the power, so that they are right at ±1, too.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.docs import shared
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError, DtypeError
from fxflow.lax._last_terms import count_of_terms, digits
from fxflow.lax.axes import integer
from fxflow.numpy._operands import ArrayLike, array_of, convert
from fxflow.scipy.special._blocks import in_blocks, where_needed
from fxflow.scipy.special._derivatives import by_forward
from fxflow.scipy.special._operands import docs_of, in_64_bits, operands
from fxflow.scipy.special.hypergeometric import hyp2f1_near_one
from fxflow.transforms.jvp import jvp

_MOST = 100_000

# -- recurrences -----------------------------------------------------------------------


def _factor(m: Any, k: Any, norm: bool) -> Any:
    """Returns what leads from the degree and order k - 1 to k, without w."""
    if norm:
        return lax.sqrt((2 * k + 1) / (2 * k))
    return fnp.where(m < 0, 1 / (2 * k), 2 * k - 1)


def _repeated(top: Any, step: Callable[..., Any], *state: Any) -> Any:
    """Returns a state after steps of k = 1, …, top, an array."""

    def going(state: Any) -> Any:
        return state[0] <= top

    def moved(state: Any) -> Any:
        return state[0] + 1, *step(*state)

    one = fnp.ones((), dtypes.float64)
    return lax.while_loop(going, moved, (one, *state))[1:]


def _powers(norm: bool, kind: int) -> Any:
    """Returns a function of m, e and z: wᵉ times the factor of the order m.

    Args:
      norm: of the functions whose squares have the integral 1.
      kind: 2 for w² = 1 - z², 3 for z² - 1.
    """
    sign = -1.0 if kind == 2 else 1.0

    def values(m: Any, e: Any, z: Any) -> Any:
        if kind == 2:
            w = lax.sqrt((1 - z) * (1 + z))
            w = fnp.where(m < 0, w, -w)
        else:
            w = fnp.where(z == -1, 0, lax.sqrt(z - 1) * lax.sqrt(z + 1))
        up = fnp.where(e > 0, w, 1 / w)
        orders, exponents = lax.abs(m), lax.abs(e)

        def step(k: Any, value: Any) -> Any:
            value = value * fnp.where(k <= orders, _factor(m, k, norm), 1)
            return (value * fnp.where(k <= exponents, up, 1),)

        start = fnp.full_like(z, math.sqrt(0.5) if norm else 1)
        start = fnp.where((m != 0) & (w != w), math.nan, start)
        top = fnp.max(fnp.maximum(orders, exponents), initial=0)
        return _repeated(top, step, start)[0]

    def slope(m: Any, e: Any, z: Any) -> Any:
        lower = fnp.where(e == 0, 0, made(m, e - 2, z))
        return fnp.where(e == 0, 0, sign * e * z * lower)

    flat = lambda m, e, z: lax.full_like(z, 0)
    made: Any = by_forward(values, flat, flat, slope)
    return made


_POWERS = {
    (norm, kind): _powers(norm, kind) for norm in (False, True) for kind in (2, 3)
}


def powers_of_sine(m: Any, z: Any) -> Any:
    """Returns the normalised function of the degree and order m ≥ 0, as `next_degree`.

    Args:
      m: the order.
      z: the cosine, from -1 to 1.
    """
    # A negative order has no sign here.
    return _POWERS[True, 2](-m, m, z)


def _sine_values(m: Any, theta: Any) -> Any:
    """Returns the same power of a sine, for spherical harmonics."""
    sine = lax.sin(theta)
    sine = fnp.where((sine < 0) == (m < 0), -sine, sine)
    orders = lax.abs(m)

    def step(k: Any, value: Any) -> Any:
        return (fnp.where(k <= orders, value * _factor(m, k, True) * sine, value),)

    start = fnp.full_like(theta, 0.5 / math.sqrt(math.pi))
    return _repeated(fnp.max(orders, initial=0), step, start)[0]


_sine_powers: Any = by_forward(
    _sine_values, lambda m, theta: lax.full_like(theta, 0), None
)


def next_degree(k: Any, m: Any, z: Any, here: Any, before: Any, norm: bool) -> Any:
    """Returns the function of the degree k > |m| from those of k - 1 and k - 2."""
    if not norm:
        return ((2 * k - 1) * z * here - (k + m - 1) * before) / (k - m)
    gap = (k - m) * (k + m)
    less = fnp.maximum((k - 1 - m) * (k - 1 + m), 0)
    under = fnp.maximum(4 * (k - 1) * (k - 1) - 1, 1)
    up = z * here - lax.sqrt(less / under) * before
    return lax.sqrt((4 * k * k - 1) / gap) * up


def _risen(n: Any, m: Any, z: Any, start: Any, norm: bool) -> Any:
    """Returns functions of the degree n from those of the degree |m|."""
    orders = lax.abs(m)

    def step(j: Any, before: Any, here: Any) -> Any:
        k = orders + j
        new = next_degree(k, m, z, here, before, norm)
        live = k <= n
        return fnp.where(live, here, before), fnp.where(live, new, here)

    top = fnp.max(n - orders, initial=0)
    # Where there is no function its start may be nan.
    start = fnp.where(orders > n, 0, start)
    return _repeated(top, step, lax.full_like(start, 0), start)[1]


def _legendre(norm: bool, kind: int, n: Any, m: Any, z: Any) -> Any:
    start = _POWERS[norm, kind](m, lax.abs(m), z)
    return _risen(n, m, z, start, norm)


def _polynomial(n: Any, m: Any, z: Any) -> Any:
    return _risen(n, m, z, fnp.ones_like(z), False)


def _spherical(n: Any, m: Any, theta: Any) -> Any:
    return _risen(n, m, lax.cos(theta), _sine_powers(m, theta), True)


def _derivatives(function: Callable[..., Any], z: Any, count: int) -> Any:
    """Returns a function and its derivatives up to one of a degree, stacked."""
    one = fnp.ones_like(z)

    def level(of: Callable[..., Any], count: int) -> Callable[..., Any]:
        if not count:
            return lambda z: [of(z)]
        lower = level(of, count - 1)

        def both(z: Any) -> Any:
            values, tangents = jvp(lower, (z,), (one,))
            return [*values, tangents[-1]]

        return both

    return fnp.stack(level(function, count)(z))


def _with_infinities(values: Any, n: Any, m: Any, z: Any, kind: int) -> Any:
    """Returns derivatives along the first axis with those that are infinite at ±1."""
    if dtypes.is_complex(z.aval.dtype):
        return values
    power, end = 0.5 * lax.abs(m), (lax.abs(z) == 1) & (lax.abs(m) <= n)
    odd = lax.floor(power) != power
    uneven = lax.floor((n + m) / 2) != (n + m) / 2
    sign = fnp.where((z < 0) & uneven, -1.0, 1.0)
    sign = fnp.where((m > 0) & (kind == 2), -sign, sign)
    turn = fnp.where(z < 0, -1.0, 1.0) * (-1.0 if kind == 2 else 1.0)
    out = []
    for k in range(values.aval.shape[0]):
        infinite = end & odd & (k > power)
        out.append(fnp.where(infinite, sign * math.inf, values[k]))
        sign = sign * turn * fnp.where(power < k, -1.0, 1.0)
    return fnp.stack(out)


@functools.lru_cache
def _stacked(values: Callable[..., Any], count: int, kind: int = 0) -> Any:
    """Returns a function of n, m and z, and its derivatives in z, stacked."""

    def stack(n: Any, m: Any, z: Any) -> Any:
        out = _derivatives(lambda z: values(n, m, z), z, count)
        return _with_infinities(out, n, m, z, kind) if kind else out

    def flat(n: Any, m: Any, z: Any) -> Any:
        return fnp.zeros((count + 1, *z.aval.shape), z.aval.dtype)

    def slope(n: Any, m: Any, z: Any) -> Any:
        return _stacked(values, count + 1, kind)(n, m, z)[1:]

    return by_forward(stack, flat, flat, slope)


_KINDS = {
    (norm, kind): functools.partial(_legendre, norm, kind)
    for norm in (False, True)
    for kind in (2, 3)
}


def _all_degrees(n: int, m: Any, z: Any, start: Any, norm: bool) -> Any:
    """Returns functions of the degrees 0, …, n along a new first axis."""

    def step(state: Any, k: Any) -> Any:
        before, here = state
        rising = k > lax.abs(m)
        new = next_degree(
            fnp.where(rising, k, lax.abs(m) + 1), m, z, here, before, norm
        )
        new = fnp.where(rising, new, fnp.where(k == lax.abs(m), start, 0))
        return (here, new), new

    zero = lax.full_like(start, 0)
    degrees = fnp.arange(n + 1, dtype=dtypes.float64)
    return lax.scan(step, (zero, zero), degrees)[1]


def _orders(m: int, like: Any) -> Any:
    """Returns the orders 0, …, m, -m, …, -1 beside the axes of an array."""
    orders = np.r_[np.arange(m + 1), np.arange(-m, 0)].astype(float)
    return fnp.asarray(orders.reshape(-1, *(1,) * like.aval.ndim), dtypes.float64)


def _degrees_of(n: int, orders: Any) -> Any:
    """Returns the degrees 0, …, n beside the axes of an array of orders."""
    degrees = np.arange(n + 1.0).reshape(-1, *(1,) * orders.aval.ndim)
    return fnp.asarray(degrees, dtypes.float64)


# -- arguments -------------------------------------------------------------------------


def _whole(name: str, what: str, value: Any) -> Array:
    out = array_of(value, name)
    if not dtypes.is_integer(out.aval.dtype):
        raise DtypeError(f"{name}: {what} must be integers, got {out.aval}")
    return out


def _degree(name: str, n: Any) -> Any:
    n = _whole(name, "n", n)
    return fnp.where(n < 0, -n - 1, n)


def _count(name: str, what: str, value: Any, most: int = _MOST) -> int:
    number = integer(name, what, value)
    if not 0 <= number <= most:
        raise ArgumentError(f"{name}: {what} must be from 0 to {most}, got {value!r}")
    return int(number)


def _orders_of_derivatives(name: str, diff_n: Any) -> int:
    return _count(name, "diff_n", diff_n, 2)


def _kind(name: str, branch_cut: Any) -> int:
    kind = integer(name, "branch_cut", branch_cut)
    if kind not in (2, 3):
        raise ArgumentError(f"{name}: branch_cut must be 2 or 3, got {branch_cut!r}")
    return int(kind)


def _argument(name: str, z: Any, real: bool = False) -> tuple[Any, Any]:
    """Returns an argument of 64-bit parts, and its own dtype."""
    (z,) = operands(name, z, real=real)
    dtype = z.aval.dtype
    wide = dtypes.complex128 if dtypes.is_complex(dtype) else dtypes.float64
    return convert(z, wide), dtype


def _broadcast(*args: Any) -> Any:
    """Returns operands of one shape, but for single numbers of degrees and orders.

    The factors of the recurrence are single numbers then.
    """
    shape = fnp.broadcast_shapes(*(a.aval.shape for a in args))
    *numbers, z = args
    wide = [convert(a, dtypes.float64) for a in numbers]
    wide = [fnp.broadcast_to(a, shape) if a.aval.shape else a for a in wide]
    return [*wide, fnp.broadcast_to(z, shape)]


_docs = shared("""
    Args:
      n: integers, array-like: the degree.
      m: integers, array-like: the order.
      z: real or complex array-like.
      theta: real array-like: the angle, of whose cosine it is.
      branch_cut: 2 for cuts beyond -1 and 1 (powers of 1 - z²), 3 for one below 1
        (powers of z² - 1). Real arguments on a cut give nan.
      norm: of functions whose square has the integral 1 over [-1, 1].
      diff_n: 0, 1 or 2: the highest derivative with respect to the argument.

    Returns:
      Array[diff_n + 1, ...]: the function and its derivatives, each of the broadcast
      shape.

    Raises:
      ArgumentError: there is no such `diff_n` or `branch_cut`.
      DtypeError: `n` or `m` are not integers.

    Special cases:
      0 where abs(m) > n; a negative degree `n` is the degree -n - 1.

    Source: `scipy.special.{name}`, with derivatives; DLMF 14.
""")

_all_docs = shared("""
    Args:
      n: non-negative Python integer: the highest degree.
      m: non-negative Python integer: the highest order.
      z: real or complex array-like.
      theta: real array-like: the angle, of whose cosine it is.
      branch_cut: 2 for cuts beyond -1 and 1 (powers of 1 - z²), 3 for one below 1
        (powers of z² - 1). Real arguments on a cut give nan.
      norm: of functions whose square has the integral 1 over [-1, 1].
      diff_n: 0, 1 or 2: the highest derivative with respect to the argument.

    Returns:
      Array[diff_n + 1, n + 1, 2 m + 1, ...]: derivatives, degrees and orders. The
      orders are 0, …, m, -m, …, -1, so that the index -1 is the order -1.

    Raises:
      ArgumentError: `n`, `m`, `diff_n` or `branch_cut` is not one of these numbers.

    Source: `scipy.special.{name}`, with derivatives; DLMF 14.
""")


# -- functions -------------------------------------------------------------------------


@library("diff_n", quick=True)
@_docs
def legendre_p(n: ArrayLike, z: ArrayLike, *, diff_n: int = 0) -> Array:
    """The Legendre polynomial.

    Special cases:
      A negative degree `n` is the degree -n - 1.

    Example:
      >>> legendre_p(2, 0.5, diff_n=1).round(4)
      Array([-0.125,  1.5  ], dtype=float32)
    """
    name = "legendre_p"
    count = _orders_of_derivatives(name, diff_n)
    z, dtype = _argument(name, z)
    n, z = _broadcast(_degree(name, n), z)
    return convert(
        _stacked(_polynomial, count)(n, fnp.zeros((), dtypes.float64), z), dtype
    )


@library("n", "diff_n", quick=True)
@_all_docs
def legendre_p_all(n: int, z: ArrayLike, *, diff_n: int = 0) -> Array:
    """Legendre polynomials of all degrees up to `n`.

    Returns:
      Array[diff_n + 1, n + 1, ...]: derivatives and degrees.

    Example:
      >>> legendre_p_all(2, 0.5).round(4)
      Array([[ 1.   ,  0.5  , -0.125]], dtype=float32)
    """
    name = "legendre_p_all"
    top, count = _count(name, "n", n), _orders_of_derivatives(name, diff_n)
    z, dtype = _argument(name, z)
    zero = fnp.zeros((), dtypes.float64)
    of = lambda z: _all_degrees(top, zero, z, fnp.ones_like(z), False)
    return convert(_derivatives(of, z, count), dtype)


@library("branch_cut", "norm", "diff_n", quick=True)
@_docs
def assoc_legendre_p(
    n: ArrayLike,
    m: ArrayLike,
    z: ArrayLike,
    *,
    branch_cut: int = 2,
    norm: bool = False,
    diff_n: int = 0,
) -> Array:
    """Associated Legendre function of the first kind.

    Example:
      >>> assoc_legendre_p(2, 1, 0.5).round(4)
      Array([-1.299], dtype=float32)
    """
    name = "assoc_legendre_p"
    kind, count = _kind(name, branch_cut), _orders_of_derivatives(name, diff_n)
    z, dtype = _argument(name, z)
    n, m, z = _broadcast(_degree(name, n), _whole(name, "m", m), z)
    return convert(_stacked(_KINDS[bool(norm), kind], count, kind)(n, m, z), dtype)


@library("n", "m", "branch_cut", "norm", "diff_n", quick=True)
@_all_docs
def assoc_legendre_p_all(
    n: int,
    m: int,
    z: ArrayLike,
    *,
    branch_cut: int = 2,
    norm: bool = False,
    diff_n: int = 0,
) -> Array:
    """Associated Legendre functions of all degrees up to `n` and orders up to ±m.

    Example:
      >>> assoc_legendre_p_all(1, 1, 0.6).round(4)
      Array([[[ 1. ,  0. ,  0. ],
              [ 0.6, -0.8,  0.4]]], dtype=float32)
    """
    name = "assoc_legendre_p_all"
    top, most = _count(name, "n", n), _count(name, "m", m)
    kind, count = _kind(name, branch_cut), _orders_of_derivatives(name, diff_n)
    z, dtype = _argument(name, z)
    power, orders = _POWERS[bool(norm), kind], _orders(most, z)

    def of(z: Any) -> Any:
        given = _broadcast(orders, lax.abs(orders), z)
        return _all_degrees(top, orders, z, power(*given), bool(norm))

    degrees = _degrees_of(top, orders)
    values = _with_infinities(_derivatives(of, z, count), degrees, orders, z, kind)
    return convert(values, dtype)


@library("diff_n", quick=True)
@_docs
def sph_legendre_p(
    n: ArrayLike, m: ArrayLike, theta: ArrayLike, *, diff_n: int = 0
) -> Array:
    """Spherical Legendre function: a spherical harmonic at the longitude 0.

    Example:
      >>> sph_legendre_p(2, 1, 0.3).round(4)
      Array([-0.2181], dtype=float32)
    """
    name = "sph_legendre_p"
    count = _orders_of_derivatives(name, diff_n)
    theta, dtype = _argument(name, theta, real=True)
    n, m, theta = _broadcast(_degree(name, n), _whole(name, "m", m), theta)
    return convert(_stacked(_spherical, count)(n, m, theta), dtype)


def _all_angles(n: int, m: int, theta: Any, count: int) -> Any:
    """Returns spherical Legendre functions of all degrees, and their derivatives."""
    orders = _orders(m, theta)

    def of(a: Any) -> Any:
        start = _sine_powers(*_broadcast(orders, a))
        return _all_degrees(n, orders, lax.cos(a), start, True)

    return _derivatives(of, theta, count)


@library("n", "m", "diff_n", quick=True)
@_all_docs
def sph_legendre_p_all(n: int, m: int, theta: ArrayLike, *, diff_n: int = 0) -> Array:
    """Spherical Legendre functions of all degrees up to `n` and orders up to ±m.

    Example:
      >>> sph_legendre_p_all(1, 1, 0.3)[0, 1].round(4)
      Array([ 0.4668, -0.1021,  0.1021], dtype=float32)
    """
    name = "sph_legendre_p_all"
    top, most = _count(name, "n", n), _count(name, "m", m)
    count = _orders_of_derivatives(name, diff_n)
    theta, dtype = _argument(name, theta, real=True)
    return convert(_all_angles(top, most, theta, count), dtype)


@library("n", "m", "diff_n", quick=True)
@_all_docs
def sph_harm_y_all(
    n: int, m: int, theta: ArrayLike, phi: ArrayLike, *, diff_n: int = 0
) -> Any:
    """Spherical harmonics of all degrees up to `n` and orders up to ±m.

    Args:
      theta: real array-like: the angle from the pole.
      phi: real array-like: the angle around it.
      diff_n: 1 or 2 for derivatives with respect to both angles, too.

    Returns:
      Complex array[n + 1, 2 m + 1, ...]; with `diff_n` a tuple of it, the gradient
      [..., 2] and, for 2, the Hessian [..., 2, 2]. The orders are 0, …, m, -m, …, -1.

    Raises:
      ArgumentError: `n`, `m` or `diff_n` is not one of these numbers.
      DtypeError: an angle is complex.

    Example:
      >>> sph_harm_y_all(1, 1, 0.3, 0.4)[1].round(3)
      Array([ 0.467+0.j  , -0.094-0.04j,  0.094-0.04j], dtype=complex64)
    """
    name = "sph_harm_y_all"
    top, most = _count(name, "n", n), _count(name, "m", m)
    count = _orders_of_derivatives(name, diff_n)
    theta, phi = operands(name, theta, phi)
    dtype = dtypes.to_complex(theta.aval.dtype)
    theta, phi = (convert(a, dtypes.float64) for a in (theta, phi))
    orders = _orders(most, theta)
    wave = lax.complex(lax.cos(orders * phi), lax.sin(orders * phi))
    turn = lax.complex(0 * orders, orders)
    height, *slopes = _all_angles(top, most, theta, count)
    value = height * wave
    if not count:
        return convert(value, dtype)
    by_theta, by_phi = slopes[0] * wave, turn * value
    out = [value, fnp.stack([by_theta, by_phi], -1)]
    if count == 2:
        mixed = turn * by_theta
        rows = [[slopes[1] * wave, mixed], [mixed, turn * by_phi]]
        out.append(fnp.stack([fnp.stack(row, -1) for row in rows], -2))
    return tuple(convert(part, dtype) for part in out)


# -- real degrees ----------------------------------------------------------------------


def _series(a: Any, b: Any, c: Any, w: Any) -> tuple[Any, Any]:
    """Returns ₂F₁(a, b; c; 1 - w) and its derivative, w ≥ 1/2, a > -1, b ≤ 2 c.

    From the last term: the tests of convergence would take most of the time.
    """
    z = 1 - w
    fall = -lax.log(fnp.maximum(z, 1e-30))

    def enough(n: Any) -> Any:
        # Bounds of the sums of log((b + k) / (c + k)) and log((a + k) / (1 + k)).
        rise = fnp.maximum(b - c, 0) * (1 / c + lax.log1p(n / c))
        rise = rise + fnp.maximum(a - 1, 0) * (1 + lax.log1p(n))
        return n * fall - rise >= digits(dtypes.float64) + 6

    def step(state: Any) -> Any:
        k, value, slope = state
        for _ in range(4):
            ratio = (a + k - 1) * (b + k - 1) / ((c + k - 1) * k)
            value, slope = 1 + ratio * z * value, ratio * (value + z * slope)
            k = k - 1
        return k, value, slope

    zero = 0 * (a + w)
    start = (count_of_terms(enough, dtypes.float64), 1 + zero, zero)
    _, value, slope = lax.while_loop(lambda state: state[0] > 0, step, start)
    return value, slope


def _scale(m: Any, v: Any, x: Any) -> Any:
    """Returns what Ferrers' functions are times ₂F₁ (DLMF 14.3.4, 14.3.1)."""
    order, inside = lax.abs(m), lax.abs(x) < 1
    width = 0.5 * lax.sqrt(fnp.where(inside, (1 - x) * (1 + x), 1))
    width = fnp.where(inside, width, 0)

    def step(k: Any, scale: Any) -> Any:
        # Γ(v + m + 1) / Γ(v - m + 1) in factors, too, of positive orders.
        ratio = fnp.where(m < 0, 1, -(v + k) * (v - k + 1))
        return (fnp.where(k <= order, scale * (ratio * width / k), scale),)

    top = fnp.max(order, initial=0)
    return _repeated(top, step, 1 + 0 * (v + x))[0]


def _first_degrees(through: bool, m: Any, v: Any, x: Any) -> tuple[Any, Any]:
    """Returns functions of the degrees v and v + 1, not integers, or of m < 0."""
    order, w = lax.abs(m), 0.5 * (1 + x)
    if through:
        m, v, x, order, w = (fnp.stack([p, p]) for p in (m, v, x, order, w))
        v = v + fnp.asarray([0.0, 1.0], v.dtype).reshape(2, *(1,) * (v.ndim - 1))
        f, _ = hyp2f1_near_one(order - v, v + order + 1, order + 1, w, through)
        out = _scale(m, v, x) * f
        return out[0], out[1]
    near = w >= 0.5
    given = ((order - v, 0), (v + order + 1, 1), (order + 1, 1))
    along = functools.partial(hyp2f1_near_one, unrolled=4)
    found = [
        where_needed(near, _series, 2, *given, (w, 1)),
        where_needed(~near, along, 2, *given, (w, 0.5)),
    ]
    f, df = (fnp.where(near, p, q) for p, q in zip(*found, strict=True))
    scale = _scale(m, v, x)
    # From the derivative of the function to the next degree (DLMF 14.10.5).
    rise = (v + 1 + order) * x * f + 0.5 * (1 - x) * (1 + x) * df
    return scale * f, scale * rise / (v - m + 1)


def _real_degrees(through: bool, m: Any, v: Any, x: Any) -> Any:
    """Returns functions of a real degree, up the recurrence from the order.

    Args:
      through: whether derivatives with respect to the degree are wanted.
      m: the order.
      v: the degree.
      x: the argument.
    """
    order = lax.abs(m)
    count = lax.stop_gradient(fnp.maximum(lax.floor(v - order), 0))
    pole = x == -1
    x = fnp.where(pole, -1 + 2**-52, x)
    low = v - count
    now, after = _first_degrees(through, m, low, x)

    def step(j: Any, now: Any, after: Any) -> Any:
        new = next_degree(low + j + 1, m, x, after, now, False)
        live = j <= count
        return fnp.where(live, after, now), fnp.where(live, new, after)

    out = _repeated(fnp.max(count, initial=0), step, now, after)[0]
    return fnp.where(pole, out * math.inf, out)


def _lpmv_key(m: Any, v: Any, x: Any) -> Any:
    """Returns what an element needs: steps to the argument, or of the recurrence."""
    whole = v == lax.floor(v)
    degree = fnp.minimum(fnp.where(v < 0, -v - 1, v), 9e3)
    # How often the distance from -1 is halved.
    near = fnp.clip(0.5 * (1 + x), 2.0**-53, 1)
    halvings = lax.ceil(-lax.log(near) / math.log(2)) * 100
    needed = fnp.where(whole, degree, 1e4 + halvings + fnp.minimum(degree, 99))
    return fnp.where(needed == needed, needed, 0)


def _lpmv_values(m: Any, v: Any, x: Any, *, general: bool = False) -> Any:
    of = functools.partial(_lpmv_block, general=general)
    return in_blocks(of, _lpmv_key, m, v, x)


def _lpmv_block(m: Any, v: Any, x: Any, *, general: bool) -> Any:
    inside = (lax.abs(x) <= 1) & (m == lax.round(m)) & (v - v == 0)
    m, v = fnp.where(inside, m, 0), fnp.where(inside, v, 0)
    x = fnp.where(inside, x, 0)
    v = fnp.where(v < 0, -v - 1, v)
    order, none = lax.abs(m), fnp.array(False)
    whole = none if general else v == lax.floor(v)
    whole = (whole & (order <= v)) | ((m > v) & (v == lax.floor(v)))
    n = lax.stop_gradient(fnp.where(whole, v, 0))
    of_whole = _risen(n, m, x, _POWERS[False, 2](m, order, x), False)
    # Hypergeometric functions take most of the time, so only where there is need.
    nothing = lambda m, v, x: 0 * x
    rest = (fnp.where(whole, 0, m), fnp.where(whole, 0.5, v), fnp.where(whole, 0, x))
    some = functools.partial(_real_degrees, general)
    out = lax.cond(fnp.any(inside & ~whole), some, nothing, *rest)
    return fnp.where(inside, fnp.where(whole, of_whole, out), math.nan)


_lpmv: Any = by_forward(
    _lpmv_values,
    lambda m, v, x: 0 * x,
    None,
    None,
    derived=functools.partial(_lpmv_values, general=True),
)


@library(quick=True)
@docs_of(
    """
m: array-like of integers: the order.
v: real array-like: the degree.
x: real array-like between -1 and 1.
""",
    ", with derivatives with respect to `v` and `x`; DLMF 14.3",
)
def lpmv(m: ArrayLike, v: ArrayLike, x: ArrayLike) -> Array:
    """Associated Legendre function of an integer order and a real degree.

    Special cases:
      `m` not an integer, abs(x) > 1: nan.

    Example:
      >>> lpmv(1, 2.5, 0.5).round(4)
      Array(-0.9874, dtype=float32)
    """
    return in_64_bits(_lpmv, "lpmv", m, v, x)
