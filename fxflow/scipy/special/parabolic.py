"""Parabolic cylinder functions D, V and W (DLMF 12).

D of a negative order is an integral of a positive function (12.5.1), which the
trapezoidal rule gives to its last digits; the recurrence to larger orders is stable for
positive x. Solutions that grow, or neither grow nor fall, come from Taylor series of
the differential equation, step by step from 0.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError
from fxflow.numpy._operands import ArrayLike, convert
from fxflow.scipy.special._blocks import in_blocks
from fxflow.scipy.special._cylinder import repeat, sinpi
from fxflow.scipy.special._derivatives import by_forward
from fxflow.scipy.special._operands import operands
from fxflow.scipy.special.elementary import rgamma
from fxflow.scipy.special.noncentral import log_integral

_HIGHEST, _LARGEST = 1000.0, 100.0
_TERMS, _REACH = 26, 1.5


def _cospi(x: Any) -> Any:
    return sinpi(x + 0.5)


def _known(limit: float, v: Any, x: Any) -> tuple[Any, Any, Any]:
    """Returns which arguments are in the domain, and harmless ones elsewhere."""
    known = (lax.abs(v) <= limit) & (lax.abs(x) <= _LARGEST)
    return known, fnp.where(known, v, 0), fnp.where(known, x, 0)


def _count_of_steps(a: Any, x: Any) -> Any:
    rate = lax.sqrt(lax.abs(a) + 0.25 * x * x)
    return lax.stop_gradient(lax.ceil(lax.abs(x) * rate / _REACH + 0.5))


def _march(sign: float, a: Any, x: Any, value: Any, slope: Any) -> tuple[Any, Any]:
    """Returns a solution of y'' = (sign x² / 4 + a) y and its derivative.

    Args:
      sign: 1 or -1.
      a: the parameter.
      x: not negative: where.
      value: the solution at 0.
      slope: its derivative at 0.
    """
    count = _count_of_steps(a, x)
    h = x / count

    def going(state: Any) -> Any:
        return fnp.any(state[0] < count)

    def step(state: Any) -> Any:
        k, value, slope = state
        at = k * h
        # Terms c h^n, by the recurrence of the coefficients c.
        square = h * h
        flat, tilt = (sign * at * at / 4 + a) * square, sign * at / 2 * (square * h)
        bend = sign / 4 * square * square

        def more(n: Any, terms: Any) -> Any:
            # From those of h^(n - 3) to h^n to the next but one of h^n.
            last, third, second, first, total, rise = terms
            new = flat * second + tilt * third + bend * last
            new = new * (1 / ((n + 1) * n))
            return third, second, first, new, total + new, rise + (n + 1) * new

        zero = 0 * value
        terms = (zero, zero, value, slope * h, value + slope * h, slope * h)
        *_, total, rise = repeat(_TERMS, more, terms)
        live = k < count
        value = fnp.where(live, total, value)
        slope = fnp.where(live, rise / fnp.where(h == 0, 1, h), slope)
        return k + 1, value, slope

    # At 0 there is nothing to do.
    start = (0 * x, value + 0 * x, slope + 0 * x)
    _, y, dy = lax.while_loop(going, step, start)
    return fnp.where(x == 0, value, y), fnp.where(x == 0, slope, dy)


def _log_integral(v: Any, x: Any) -> Any:
    """Returns log D of orders v ≤ -1 / 2."""
    b = -v

    def log_integrand(w: Any) -> Any:
        log_t = w - lax.exp(-w)
        t = lax.exp(log_t)
        return b * log_t - t * (0.5 * t + x) + lax.log1p(lax.exp(-w))

    # The maximum is near that of the integrand over t: w - exp(-w) = log t there.
    root = lax.sqrt(x * x + 4 * b)
    t = fnp.where(x > 0, 2 * b / (root + x), 0.5 * (root - x))
    log_t = lax.stop_gradient(lax.log(t))
    peak = fnp.where(log_t > -1, log_t + 0.3, -lax.log(fnp.maximum(-log_t, 0.5)))

    def improve(_: Any, w: Any) -> Any:
        small = lax.exp(-w)
        return w - (w - small - log_t) / (1 + small)

    peak = lax.fori_loop(0, 4, improve, peak)
    return log_integral(log_integrand, x, peak) - 0.25 * x * x - lax.lgamma(b)


def _falling(v: Any, x: Any) -> tuple[Any, Any]:
    """Returns D of orders v and v - 1, for v ≤ -1 / 2 or x ≥ 0."""
    count = lax.stop_gradient(fnp.where(v <= -0.5, 0, lax.floor(v + 1.5)))
    base = v - count
    both = _log_integral(fnp.stack([base, base - 1]), fnp.stack([x, x]))
    here, below = lax.exp(both[0]), lax.exp(both[1])

    def going(state: Any) -> Any:
        return fnp.any(state[0] < count)

    def step(state: Any) -> Any:
        k, here, below = state
        live = k < count
        above = x * here - (base + k) * below
        return k + 1, fnp.where(live, above, here), fnp.where(live, here, below)

    _, here, below = lax.while_loop(going, step, (0 * x, here, below))
    return here, below


def _d_pair(v: Any, x: Any) -> tuple[Any, Any]:
    here, below = _falling(v, x)
    return here, v * below - 0.5 * x * here


def _d_start(v: Any) -> tuple[Any, Any]:
    """Returns D and its derivative at 0."""
    root = lax.exp(0.5 * math.log(2) * v) * math.sqrt(math.pi)
    return root * rgamma(0.5 - 0.5 * v), -math.sqrt(2) * root * rgamma(-0.5 * v)


def _d_values(v: Any, x: Any) -> tuple[Any, Any]:
    known, v, x = _known(_HIGHEST, v, x)
    reflected = (v > -0.5) & (x < 0)
    value, slope = _d_pair(v, fnp.where(reflected, -x, x))
    # D(-x) = cos(π v) D(x) + W(x), where W is a multiple of V.
    c = _cospi(v)
    at = fnp.where(reflected, -x, 0)
    order = fnp.where(reflected, v, 0)

    def grown(order: Any, at: Any) -> Any:
        start, rise = _d_start(order)
        half = 2 * lax.square(sinpi(0.5 * order))
        rest = 2 * lax.square(_cospi(0.5 * order))
        return _march(1.0, -order - 0.5, at, half * start, -rest * rise)

    nothing = lambda order, at: (0 * at, 0 * at)
    more, dmore = lax.cond(fnp.any(reflected), grown, nothing, order, at)
    value = fnp.where(reflected, c * value + more, value)
    slope = fnp.where(reflected, -c * slope - dmore, slope)
    return fnp.where(known, value, math.nan), fnp.where(known, slope, math.nan)


def _v_values(v: Any, x: Any) -> tuple[Any, Any]:
    known, v, x = _known(_HIGHEST, v, x)
    a = -v - 0.5
    root = lax.exp((0.5 * a + 0.25) * math.log(2))
    value = root * sinpi(0.75 - 0.5 * a) * rgamma(0.75 - 0.5 * a)
    slope = math.sqrt(2) * root * sinpi(0.25 - 0.5 * a) * rgamma(0.25 - 0.5 * a)
    size = lax.abs(x)
    y, dy = _march(1.0, a, size, value, slope)
    d, dd = _d_pair(v, size)
    # V(a, -x) = cos(π a) / Γ(1 / 2 - a) U(a, x) + sin(π a) V(a, x).
    c, s = _cospi(a) * rgamma(0.5 - a), sinpi(a)
    y, dy = fnp.where(x < 0, c * d + s * y, y), fnp.where(x < 0, -c * dd - s * dy, dy)
    return fnp.where(known, y, math.nan), fnp.where(known, dy, math.nan)


# -B(k, 1/4) of Bernoulli's polynomials, times 2 / (k (k - 1)), for k = 3, 5, ….
_BERNOULLI = (
    -0.015625,
    0.00244140625,
    -0.0012410481770833333,
    0.0013208389282226562,
    -0.002409029006958008,
    0.006712389489014943,
    -0.026524197443255355,
    0.14109182044194313,
)


def _size_of_gammas(y: Any) -> Any:
    """Returns |Γ(1/4 + i y) / Γ(3/4 + i y)|, without complex numbers."""
    square = y * y
    above, below = lax.full_like(y, 1), lax.full_like(y, 1)
    shift = 10
    for k in range(shift):
        above = above * (square + (k + 0.75) ** 2)
        below = below * (square + (k + 0.25) ** 2)
    # By Stirling's series at z = y i + 10 (DLMF 5.11.8), in 1 / z².
    size = square + shift**2
    re, im = (shift**2 - square) / (size * size), -2 * shift * y / (size * size)
    sums = lax.full_like(y, _BERNOULLI[-1]), lax.full_like(y, 0)
    for c in (*_BERNOULLI[-2::-1], 0.0):
        sums = sums[0] * re - sums[1] * im + c, sums[0] * im + sums[1] * re
    return lax.sqrt(above / below / lax.sqrt(size)) * lax.exp(sums[0])


def _w_values(a: Any, x: Any) -> tuple[Any, Any]:
    known, a, x = _known(_HIGHEST, a, x)
    ratio = lax.sqrt(_size_of_gammas(0.5 * a))
    value, slope = 2**-0.75 * ratio, -(2**-0.25) / ratio
    side = fnp.where(x < 0, -1.0, 1.0)
    y, dy = _march(-1.0, a, lax.abs(x), value, side * slope)
    return fnp.where(known, y, math.nan), fnp.where(known, side * dy, math.nan)


def _d_key(v: Any, x: Any) -> Any:
    """Returns what an element needs: steps from 0, or of the recurrence."""
    _, v, x = _known(_HIGHEST, v, x)
    steps = 2 * _HIGHEST + _count_of_steps(v + 0.5, x)
    return fnp.where((v > -0.5) & (x < 0), steps, fnp.maximum(v + 1.5, 0))


def _steps_key(a: Any, x: Any) -> Any:
    return _count_of_steps(*_known(_HIGHEST, a, x)[1:])


def _made(values: Any, key: Any, force: Any) -> Any:
    """Makes a pair of a function and its derivative differentiable."""

    def stacked(v: Any, x: Any) -> Any:
        return fnp.stack(in_blocks(values, key, v, x))

    def slopes(v: Any, x: Any) -> Any:
        value, slope = pair(v, x)
        return fnp.stack([slope, force(v, x) * value])

    pair: Any = by_forward(stacked, None, slopes)
    return pair


_d = _made(_d_values, _d_key, lambda v, x: 0.25 * x * x - v - 0.5)
_v = _made(_v_values, _steps_key, lambda v, x: 0.25 * x * x - v - 0.5)
_w = _made(_w_values, _steps_key, lambda a, x: a - 0.25 * x * x)

# -- functions -------------------------------------------------------------------------


def _pair(name: str, function: Any, v: Any, x: Any) -> tuple[Array, Array]:
    v, x = operands(name, v, x)
    out = function(convert(v, dtypes.float64), convert(x, dtypes.float64))
    value, slope = convert(out, x.aval.dtype)
    return value, slope


@library(quick=True)
def pbdv(v: ArrayLike, x: ArrayLike) -> tuple[Array, Array]:
    """Returns Whittaker's parabolic cylinder function D and its derivative.

    Args:
      v: real array-like from -1,000 to 1,000: the order.
      x: real array-like from -100 to 100.

    Returns:
      Two float arrays of the broadcast shape: the function and its derivative with
      respect to `x`.

    Raises:
      ArgumentError: an argument is not an array.
      DtypeError: an argument is complex.

    Special cases:
      Numbers out of range → nan.

    Example:
      >>> value, slope = pbdv(1.5, 0.5)
      >>> value.round(4)
      Array(-0.0621, dtype=float32)

    Source: `scipy.special.pbdv`, with derivatives with respect to both arguments;
    DLMF 12.2.
    """
    return _pair("pbdv", _d, v, x)


@library(quick=True)
def pbvv(v: ArrayLike, x: ArrayLike) -> tuple[Array, Array]:
    """Returns the parabolic cylinder function V(-v - 1/2, x) and its derivative.

    Args:
      v: real array-like from -1,000 to 1,000: the order.
      x: real array-like from -100 to 100.

    Returns:
      Two float arrays of the broadcast shape: the function and its derivative with
      respect to `x`.

    Raises:
      ArgumentError: an argument is not an array.
      DtypeError: an argument is complex.

    Special cases:
      Numbers out of range → nan.

    Example:
      >>> value, slope = pbvv(1.5, 0.5)
      >>> value.round(4)
      Array(-0.6499, dtype=float32)

    Source: `scipy.special.pbvv`, with derivatives with respect to both arguments;
    DLMF 12.2.
    """
    return _pair("pbvv", _v, v, x)


@library(quick=True)
def pbwa(a: ArrayLike, x: ArrayLike) -> tuple[Array, Array]:
    """Returns the parabolic cylinder function W and its derivative.

    For positive `x` it loses the digits of exp(π a), for positive `a`.

    Args:
      a: real array-like from -1,000 to 1,000: the parameter.
      x: real array-like from -100 to 100.

    Returns:
      Two float arrays of the broadcast shape: the function and its derivative with
      respect to `x`.

    Raises:
      ArgumentError: an argument is not an array.
      DtypeError: an argument is complex.

    Special cases:
      Numbers out of range → nan.

    Example:
      >>> value, slope = pbwa(1.0, 0.5)
      >>> value.round(4)
      Array(0.4679, dtype=float32)

    Source: `scipy.special.pbwa`, with derivatives with respect to both arguments;
    DLMF 12.14.
    """
    return _pair("pbwa", _w, a, x)


def _orders(name: str, v: Any, x: Any) -> tuple[Array, Array]:
    if not isinstance(v, int | float | np.integer | np.floating):
        raise ArgumentError(
            f"{name}: v must be a Python number, as it decides how many orders there "
            f"are, got {v!r}"
        )
    if not 0 <= v <= _HIGHEST:
        raise ArgumentError(f"{name}: v must be from 0 to 1000, got {v}")
    (at,) = operands(name, x)
    whole = int(v)
    orders = float(v) - whole + np.arange(max(whole, 1) + 1)
    shape = (orders.size,) + (1,) * at.ndim
    return fnp.asarray(orders, at.dtype).reshape(shape), at


def pbdv_seq(v: float, x: ArrayLike) -> tuple[Array, Array]:
    """Returns parabolic cylinder functions D of many orders, and their derivatives.

    Args:
      v: Python number from 0 to 1,000: the last order. The first is
        `v - int(v)`; there are two at least.
      x: real array-like from -100 to 100.

    Returns:
      Two float arrays[count, ...]: the functions and their derivatives with respect
      to `x`.

    Raises:
      ArgumentError: `v` is not such a number, or `x` not an array.
      DtypeError: `x` is complex.

    Special cases:
      Numbers out of range → nan.

    Example:
      >>> value, slope = pbdv_seq(2.5, 0.5)
      >>> value.round(4)
      Array([ 0.8027, -0.0621, -1.2351], dtype=float32)

    Source: `scipy.special.pbdv_seq`, with derivatives with respect to `x`; DLMF 12.2.
    """
    return pbdv(*_orders("pbdv_seq", v, x))


def pbvv_seq(v: float, x: ArrayLike) -> tuple[Array, Array]:
    """Returns parabolic cylinder functions V of many orders, and their derivatives.

    Args:
      v: Python number from 0 to 1,000: the last order. The first is
        `v - int(v)`; there are two at least.
      x: real array-like from -100 to 100.

    Returns:
      Two float arrays[count, ...]: the functions and their derivatives with respect
      to `x`.

    Raises:
      ArgumentError: `v` is not such a number, or `x` not an array.
      DtypeError: `x` is complex.

    Special cases:
      Numbers out of range → nan.

    Example:
      >>> value, slope = pbvv_seq(2.5, 0.5)
      >>> value.round(4)
      Array([-0.2473, -0.6499, -0.0311], dtype=float32)

    Source: `scipy.special.pbvv_seq`, with derivatives with respect to `x`; DLMF 12.2.
    """
    return pbvv(*_orders("pbvv_seq", v, x))
