"""Zeros of Bessel functions of integer order and of Airy functions.

The numbers depend on Python's integers only, and are computed by the host: sign changes
on a grid finer than the zeros' distance, improved by Newton's method. Bessel functions
come from Miller's algorithm and Neumann series (DLMF 10.23.16), Airy's from Taylor
series of their differential equation.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.docs import shared
from fxflow.errors import ArgumentError
from fxflow.lax.axes import integer
from fxflow.lax.gammas import EULER

_SPACING, _NEWTON = 0.5, 4
_HIGHEST, _MOST = 10_000, 10_000

_docs = shared("""
    Args:
      n: Python integer from 0 to 10,000: the order.
      nt: Python integer from 1 to 10,000: the number of zeros.

    Returns:
      Float array[nt] of ascending numbers.

    Raises:
      ArgumentError: an argument is not an integer in its range.

    Source: `scipy.special.{name}`; DLMF 10.21.
""")


def count_of(name: str, nt: Any, most: int = _MOST) -> int:
    """Returns a number of zeros, checked.

    Args:
      name: of the function, for messages.
      nt: the number.
      most: the largest one.

    Raises:
      ArgumentError: it is not an integer from 1 to `most`.
    """
    nt = integer(name, "nt", nt)
    if not 1 <= nt <= most:
        raise ArgumentError(f"{name}: nt must be from 1 to {most}, got {nt}")
    return int(nt)


def _order(name: str, n: Any) -> int:
    n = integer(name, "n", n)
    if not 0 <= n <= _HIGHEST:
        raise ArgumentError(f"{name}: n must be from 0 to {_HIGHEST}, got {n}")
    return int(n)


def rounded(x: Any) -> Array:
    """Returns the host's numbers in the default float dtype."""
    return fnp.asarray(np.array(x), dtypes.default_float())


# -- Bessel functions ------------------------------------------------------------------


def _three_orders(n: int, x: Any) -> tuple[Any, Any]:
    """Returns J and Y of the orders n - 1, n and n + 1 along a new first axis."""
    top = max(n + 1, int(x.max()))
    top += int(12 * np.cbrt(top)) + 20
    above, here = np.zeros_like(x), np.full_like(x, 1e-250)
    # J of the three orders, and sums for its size, for Y₀ and for Y₁.
    kept, size, zero, one = np.zeros((3, x.size)), 0 * x, 0 * x, 0 * x
    for k in range(top, -1, -1):
        if n - 1 <= k <= n + 1:
            kept[k - n + 1] = here
        below = 2 * k / x * here - above
        if k % 2 == 0:
            size = size + (1 + (k > 0)) * here
            if k:
                sign = 1 if k % 4 == 0 else -1
                zero = zero + 2 * sign / k * here
                one = one + 2 * sign / k * (below - above)
        if k == 0:
            break
        above, here = here, below
        down = np.where(abs(here) > 1e200, 1e-200, 1.0)
        above, here, kept = above * down, here * down, kept * down
        size, zero, one = size * down, zero * down, one * down
    j = kept / size
    j0, j1 = here / size, above / size
    if n == 0:
        j[0] = -j1
    log = 2 / np.pi * (np.log(x / 2) + EULER)
    y0 = log * j0 - 4 / np.pi * zero / size
    y1 = log * j1 - 2 / np.pi / x * j0 + 2 / np.pi * one / size
    orders = [-y1, y0, y1]  # of -1, 0, 1
    for k in range(1, n + 1):
        orders = [orders[1], orders[2], 2 * k / x * orders[2] - orders[1]]
    return j, np.array(orders)


def _bessel(n: int, second: bool, slopes: bool, x: Any) -> tuple[Any, Any]:
    """Returns J or Y of an order, or its derivative, with the next derivative."""
    below, value, above = _three_orders(n, x)[second]
    slope = 0.5 * (below - above)
    if not slopes:
        return value, slope
    return slope, -slope / x - (1 - np.square(n / x)) * value


def _bessel_zeros(n: int, nt: int, second: bool, slopes: bool) -> Array:
    return rounded(_host_zeros(n, nt, second, slopes))


def _host_zeros(n: int, nt: int, second: bool, slopes: bool) -> Any:
    # All zeros are above n, and at least 2.9 apart.
    low, found = max(float(n), 0.3), np.zeros(0)
    while found.size < nt:
        grid = low + _SPACING * np.arange(101)
        with np.errstate(over="ignore", invalid="ignore"):
            value = _bessel(n, second, slopes, grid)[0]
        place = np.flatnonzero((value[1:] > 0) != (value[:-1] > 0))
        before, after = value[place], value[place + 1]
        found = np.append(found, grid[place] + _SPACING * before / (before - after))
        low = grid[-1]
    x = found[:nt]
    for _ in range(_NEWTON):
        value, slope = _bessel(n, second, slopes, x)
        x = x - value / slope
    return x


def _zeros(name: str, n: Any, nt: Any, second: bool, slopes: bool) -> Array:
    return _bessel_zeros(_order(name, n), count_of(name, nt), second, slopes)


@_docs
def jn_zeros(n: int, nt: int) -> Array:
    """Returns the first positive zeros of the Bessel function Jₙ.

    Example:
      >>> jn_zeros(0, 2).round(4)
      Array([2.4048, 5.5201], dtype=float32)
    """
    return _zeros("jn_zeros", n, nt, False, False)


@_docs
def jnp_zeros(n: int, nt: int) -> Array:
    """Returns the first positive zeros of the derivative of the Bessel function Jₙ.

    Example:
      >>> jnp_zeros(1, 2).round(4)
      Array([1.8412, 5.3314], dtype=float32)
    """
    return _zeros("jnp_zeros", n, nt, False, True)


@_docs
def yn_zeros(n: int, nt: int) -> Array:
    """Returns the first zeros of the Bessel function Yₙ.

    Example:
      >>> yn_zeros(0, 2).round(4)
      Array([0.8936, 3.9577], dtype=float32)
    """
    return _zeros("yn_zeros", n, nt, True, False)


@_docs
def ynp_zeros(n: int, nt: int) -> Array:
    """Returns the first zeros of the derivative of the Bessel function Yₙ.

    Example:
      >>> ynp_zeros(0, 2).round(4)
      Array([2.1971, 5.4297], dtype=float32)
    """
    return _zeros("ynp_zeros", n, nt, True, True)


def jnyn_zeros(n: int, nt: int) -> tuple[Array, Array, Array, Array]:
    """Returns the first positive zeros of Jₙ, Jₙ', Yₙ and Yₙ'.

    Args:
      n: Python integer from 0 to 10,000: the order.
      nt: Python integer from 1 to 10,000: the number of zeros.

    Returns:
      Four float arrays[nt] of ascending numbers.

    Raises:
      ArgumentError: an argument is not an integer in its range.

    Example:
      >>> jn, jnp, yn, ynp = jnyn_zeros(0, 1)
      >>> jn.round(4), yn.round(4)
      (Array([2.4048], dtype=float32), Array([0.8936], dtype=float32))

    Source: `scipy.special.jnyn_zeros`; DLMF 10.21.
    """
    n, nt = _order("jnyn_zeros", n), count_of("jnyn_zeros", nt)
    jn, jnp, yn, ynp = (
        _bessel_zeros(n, nt, second, slopes)
        for second in (False, True)
        for slopes in (False, True)
    )
    return jn, jnp, yn, ynp


def _below(n: int, most: float, slopes: bool) -> Any:
    """Returns the zeros of Jₙ or of its derivative below a number above n."""
    found = np.asarray(_host_zeros(n, int((most - n) / 2.9) + 2, False, slopes))
    return found[found < most]


def jnjnp_zeros(nt: int) -> tuple[Array, Array, Array, Array]:
    """Returns the first positive zeros of all Jₙ and of their derivatives.

    Args:
      nt: Python integer from 1 to 1,200: the number of zeros.

    Returns:
      A float array[nt] of ascending numbers and three integer arrays[nt]: the orders n,
      which zero of its function each is, and 0 for Jₙ, 1 for its derivative.
      As SciPy's, it begins with the zero of J₀' at 0, which is number 0 of order 0.

    Raises:
      ArgumentError: `nt` is not an integer in this range.

    Example:
      >>> zeros, orders, numbers, kinds = jnjnp_zeros(3)
      >>> zeros.round(4)
      Array([0.    , 1.8412, 2.4048], dtype=float32)

    Source: `scipy.special.jnjnp_zeros`; DLMF 10.21.
    """
    nt = count_of("jnjnp_zeros", nt, 1200)
    most, rows = 2 * math.sqrt(nt) + 3, np.zeros((0, 4))
    while len(rows) < nt:
        rows = np.array(
            [(0, 0, 0, 1)]
            + [
                (z, n, k + 1, kind)
                for n in range(int(most))
                for kind in (0, 1)
                for k, z in enumerate(_below(n, most, kind == 1))
            ]
        )
        most *= 1.2
    # J₀' and J₁ have the same zeros, of which SciPy's J₁ is first.
    rows = rows[np.lexsort((-rows[:, 1], rows[:, 0].round(8)))][:nt]
    orders, numbers, kinds = (
        fnp.asarray(rows[:, k], dtypes.default_int()) for k in (1, 2, 3)
    )
    return rounded(rows[:, 0]), orders, numbers, kinds


# -- Airy's functions ------------------------------------------------------------------

_TERMS = 30


def _taylor(x: float, value: float, slope: float) -> list[float]:
    """Returns Taylor coefficients at x of a solution of y'' = x y."""
    c = [value, slope, x * value / 2]
    for k in range(1, _TERMS):
        c.append((x * c[k] + c[k - 1]) / ((k + 2) * (k + 1)))
    return c


def _sums(c: list[float], h: float) -> tuple[float, float]:
    """Returns a polynomial and its derivative."""
    value = slope = 0.0
    for term in reversed(c):
        value, slope = value * h + term, slope * h + value
    return value, slope


def _zero_within(c: list[float], x: float, low: float, slopes: bool) -> float:
    """Returns where between x + low and x a solution or its derivative is 0."""
    h = 0.5 * low
    for _ in range(8):
        value, slope = _sums(c, h)
        if slopes:
            value, slope = slope, (x + h) * value
        h = min(max(h - value / slope, low), 0.0)
    return h


def _airy_zeros(name: str, nt: Any, value: float, slope: float) -> tuple[Array, ...]:
    """Returns zeros of a solution and of its derivative, and the other one there."""
    nt, x = count_of(name, nt), 0.0
    zeros: list[tuple[float, float]] = []
    turns: list[tuple[float, float]] = []
    while min(len(zeros), len(turns)) < nt:
        # A step is less than half the distance of zeros.
        low = -1 / math.sqrt(max(-x, 4))
        c = _taylor(x, value, slope)
        after, slope_after = _sums(c, low)
        if (after > 0) != (value > 0):
            h = _zero_within(c, x, low, False)
            zeros.append((x + h, _sums(c, h)[1]))
        if (slope_after > 0) != (slope > 0):
            h = _zero_within(c, x, low, True)
            turns.append((x + h, _sums(c, h)[0]))
        x, value, slope = x + low, after, slope_after
    (z, dz), (t, at) = (zip(*pairs[:nt], strict=True) for pairs in (zeros, turns))
    return tuple(rounded(v) for v in (z, t, at, dz))


_airy_docs = shared("""
    Args:
      nt: Python integer from 1 to 10,000: the number of zeros.

    Returns:
      Four float arrays[nt]: descending zeros of the function, those of its derivative,
      the function at the latter and the derivative at the former.

    Raises:
      ArgumentError: `nt` is not an integer in this range.

    Source: `scipy.special.{name}`; DLMF 9.9.
""")


@_airy_docs
def ai_zeros(nt: int) -> tuple[Array, Array, Array, Array]:
    """Returns the first zeros of the Airy function Ai and of its derivative.

    Example:
      >>> a, ap, ai, aip = ai_zeros(2)
      >>> a.round(4)
      Array([-2.3381, -4.0879], dtype=float32)
    """
    start = 0.35502805388781723926, -0.25881940379280679841
    a, ap, ai, aip = _airy_zeros("ai_zeros", nt, *start)
    return a, ap, ai, aip


@_airy_docs
def bi_zeros(nt: int) -> tuple[Array, Array, Array, Array]:
    """Returns the first negative zeros of the Airy function Bi and of its derivative.

    Example:
      >>> b, bp, bi, bip = bi_zeros(2)
      >>> b.round(4)
      Array([-1.1737, -3.2711], dtype=float32)
    """
    start = 0.61492662744600073516, 0.44828835735382635791
    b, bp, bi, bip = _airy_zeros("bi_zeros", nt, *start)
    return b, bp, bi, bip
