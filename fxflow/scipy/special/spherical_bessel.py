"""Spherical Bessel functions and Airy's: cylinder functions of fixed fractions.

Spherical ones are of half-odd orders (DLMF 10.47), Airy's of a third and two thirds
(DLMF 9.6), near 0 by their series (DLMF 9.4).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.runtime.library import library
from fxflow.numpy._operands import ArrayLike, convert
from fxflow.scipy.special._cylinder import HIGHEST, i_and_k, j_and_y, repeat
from fxflow.scipy.special._derivatives import by_forward
from fxflow.scipy.special._operands import docs_of, in_64_bits, operands

# -- spherical Bessel functions --------------------------------------------------------


def _inside(n: Any, z: Any) -> tuple[Any, Any, Any, Any]:
    """Returns where values are ordinary, orders and |z| there, and √(π / (2 |z|))."""
    size = lax.abs(z)
    inside = (size > 0) & (size < math.inf) & (n >= 0) & (n < HIGHEST)
    x = fnp.where(inside, size, 1)
    return inside, fnp.where(inside, n, 0) + 0.5, x, lax.sqrt(0.5 * math.pi / x)


def _completed(n: Any, z: Any, value: Any, at_0: Any, far: Any, odd: bool) -> Any:
    """Returns values with those at 0, at infinity and of negative numbers.

    Args:
      n: the order.
      z: the argument.
      value: of |z|, if it is neither 0 nor infinite.
      at_0: the value at 0.
      far: the value at infinity.
      odd: whether functions of even orders are odd.
    """
    size = lax.abs(z)
    out = fnp.where(size == 0, at_0, fnp.where(size == math.inf, far, value))
    whole = lax.floor(n)
    turned = (whole - 2 * lax.floor(whole / 2) == 1) ^ odd
    negative = fnp.where(whole == n, fnp.where(turned, -out, out), math.nan)
    out = fnp.where(z < 0, negative, out)
    return fnp.where((n >= 0) & (n < HIGHEST) & (z == z), out, math.nan)


def _at_0(n: Any) -> Any:
    return lax.convert_element_type(n == 0, dtypes.float64)


def _jn_values(n: Any, z: Any) -> Any:
    _, order, x, factor = _inside(n, z)
    value = factor * j_and_y(order, x)[0]
    return _completed(n, z, value, _at_0(n), 0, odd=False)


def _yn_values(n: Any, z: Any) -> Any:
    _, order, x, factor = _inside(n, z)
    value = factor * j_and_y(order, x)[1]
    return _completed(n, z, value, -math.inf, 0, odd=True)


def _in_values(n: Any, z: Any) -> Any:
    _, order, x, factor = _inside(n, z)
    half = lax.exp(0.5 * x)
    value = half * (half * factor * i_and_k(order, x)[0])
    return _completed(n, z, value, _at_0(n), math.inf, odd=False)


def _kn_values(n: Any, z: Any) -> Any:
    _, order, x, factor = _inside(n, z)
    i, k = i_and_k(order, x)
    half = lax.exp(0.5 * x)
    k = factor * k / half / half
    out = _completed(n, z, k, math.inf, 0, odd=True)
    # By continuation through 0 (DLMF 10.47.11).
    grown = _completed(n, z, half * (half * factor * i), 0, math.inf, odd=False)
    odd = n - 2 * lax.floor(n / 2) == 1
    grown = math.pi * fnp.where(odd, -grown, grown)
    out = fnp.where((z < 0) & (z > -math.inf), out - grown, out)
    return fnp.where((z == 0) & (n >= 0), math.inf, fnp.where(z == -math.inf, z, out))


def _made(values: Any, below: float, above: float) -> tuple[Any, Any]:
    """Returns a function of n and z and its derivative by z (DLMF 10.51).

    Args:
      values: the function, which lacks derivatives in reverse.
      below: the sign of n times the function of the order n - 1, over 2 n + 1.
      above: the sign of n + 1 times that of the order n + 1.
    """

    def slope(n: Any, z: Any) -> Any:
        first = n == 0
        orders = fnp.stack([fnp.where(first, 1, n - 1), n + 1])
        out: Any = made(orders, fnp.stack([z, z]))
        lower = fnp.where(first, 0, below * n * fnp.where(first, 0, out[0]))
        return (lower + above * (n + 1) * out[1]) / (2 * n + 1)

    made: Callable[..., Any] = by_forward(values, None, slope)
    return made, slope


_FUNCTIONS = {
    "spherical_jn": _made(_jn_values, 1, -1),
    "spherical_yn": _made(_yn_values, 1, -1),
    "spherical_in": _made(_in_values, 1, 1),
    "spherical_kn": _made(_kn_values, -1, -1),
}

_docs = docs_of(
    """
n: non-negative real array-like: the order.
z: real array-like.
derivative: return the derivative by `z` instead.
""",
    ", with derivatives by all arguments; DLMF 10.47",
)


def _spherical(name: str, n: Any, z: Any, derivative: bool) -> Array:
    return in_64_bits(_FUNCTIONS[name][bool(derivative)], name, n, z)


@library("derivative")
@_docs
def spherical_jn(n: ArrayLike, z: ArrayLike, derivative: bool = False) -> Array:
    """Spherical Bessel function of the first kind.

    Special cases:
      ±inf → 0; negative `n` → nan; negative `z` → nan, unless `n` is whole.

    Example:
      >>> spherical_jn(1, 2.0).round(4)
      Array(0.4354, dtype=float32)
    """
    return _spherical("spherical_jn", n, z, derivative)


@library("derivative")
@_docs
def spherical_yn(n: ArrayLike, z: ArrayLike, derivative: bool = False) -> Array:
    """Spherical Bessel function of the second kind.

    Special cases:
      ±0 → -inf; ±inf → 0; negative `n` → nan; negative `z` → nan, unless `n` is whole.

    Example:
      >>> spherical_yn(1, 2.0).round(4)
      Array(-0.3506, dtype=float32)
    """
    return _spherical("spherical_yn", n, z, derivative)


@library("derivative")
@_docs
def spherical_in(n: ArrayLike, z: ArrayLike, derivative: bool = False) -> Array:
    """Modified spherical Bessel function of the first kind.

    Special cases:
      inf → inf; negative `n` → nan; negative `z` → nan, unless `n` is whole.

    Example:
      >>> spherical_in(1, 2.0).round(4)
      Array(0.9744, dtype=float32)
    """
    return _spherical("spherical_in", n, z, derivative)


@library("derivative")
@_docs
def spherical_kn(n: ArrayLike, z: ArrayLike, derivative: bool = False) -> Array:
    """Modified spherical Bessel function of the second kind.

    Special cases:
      ±0 → inf; inf → 0; negative `n` → nan; negative `z` → nan, unless `n` is whole.

    Example:
      >>> spherical_kn(1, 2.0).round(4)
      Array(0.1594, dtype=float32)
    """
    return _spherical("spherical_kn", n, z, derivative)


# -- Airy's functions ------------------------------------------------------------------

# Ai(0) and -Ai'(0) (DLMF 9.2.3, 9.2.4).
_AI, _SLOPE = 0.355028053887817239260, 0.258819403792806798405


def _airy_series(x: Any) -> list[Any]:
    """Returns Ai, Ai', Bi and Bi' for |x| ≤ 1."""
    cube = x * x * x

    def step(k: Any, state: Any) -> Any:
        f, g, df, dg, *sums = state
        terms = (
            f * cube / ((3 * k - 1) * (3 * k)),
            g * cube / ((3 * k) * (3 * k + 1)),
            df * cube / ((3 * k) * (3 * k + 2)),
            dg * cube / ((3 * k - 2) * (3 * k)),
        )
        return *terms, *(s + t for s, t in zip(sums, terms, strict=True))

    one = 1 + 0 * x
    start = (one, x, 0.5 * x * x, one)
    *_, f, g, df, dg = repeat(9, step, (*start, *start))
    root = math.sqrt(3)
    return [
        _AI * f - _SLOPE * g,
        _AI * df - _SLOPE * dg,
        root * (_AI * f + _SLOPE * g),
        root * (_AI * df + _SLOPE * dg),
    ]


def _airy_values(x: Any) -> Any:
    """Returns Ai, Ai', Bi and Bi' along a new first axis."""
    near = lax.abs(x) < 1
    high, low = (x >= 1) & (x < math.inf), (x <= -1) & (x > -math.inf)
    size = fnp.where(high | low, lax.abs(x), 1)
    root = lax.sqrt(size)
    zeta = 2 * size * root / 3
    orders = fnp.stack([lax.full_like(x, 1 / 3), lax.full_like(x, 2 / 3)])
    both = fnp.stack([zeta, zeta])
    (i1, i2), (k1, k2) = i_and_k(orders, both)
    half = lax.exp(0.5 * zeta)
    k1, k2 = (k / half / half for k in (k1, k2))
    i1, i2 = (half * (half * i) for i in (i1, i2))
    third = 1 / math.sqrt(3)
    above = [
        root * k1 * (third / math.pi),
        -size * k2 * (third / math.pi),
        root * third * (2 * i1 + math.sqrt(3) / math.pi * k1),
        size * third * (2 * i2 + math.sqrt(3) / math.pi * k2),
    ]
    (j1, j2), (y1, y2) = j_and_y(orders, both)
    below = [
        0.5 * root * (j1 - third * y1),
        0.5 * size * (j2 + third * y2),
        -0.5 * root * (third * j1 + y1),
        0.5 * size * (third * j2 - y2),
    ]
    series = _airy_series(fnp.where(near, x, 0))
    ends = [(0.0, 0.0), (0.0, math.nan), (math.inf, 0.0), (math.inf, math.nan)]
    out = []
    for a, b, c, (right, left) in zip(above, below, series, ends, strict=True):
        value = fnp.where(near, c, fnp.where(x < 0, b, a))
        value = fnp.where(x == math.inf, right, value)
        value = fnp.where(x == -math.inf, left, value)
        out.append(fnp.where(x == x, value, math.nan))
    return fnp.stack(out)


def _airy_slope(x: Any) -> Any:
    ai, dai, bi, dbi = _airy(x)
    return fnp.stack([dai, x * ai, dbi, x * bi])


_airy: Callable[..., Any] = by_forward(_airy_values, _airy_slope)


@library()
def airy(z: ArrayLike) -> tuple[Array, Array, Array, Array]:
    """Airy's functions Ai and Bi, and their derivatives.

    To some units of the last place, relative to the amplitude where they oscillate.

    Args:
      z: real array-like.

    Returns:
      Four float arrays of the shape of `z`: Ai, Ai', Bi, Bi'.

    Raises:
      ArgumentError: an argument is not an array.
      DtypeError: an argument is complex.

    Special cases:
      inf → 0, 0, inf, inf; -inf → 0, nan, 0, nan. SciPy returns nan.

    Example:
      >>> ai, dai, bi, dbi = airy(0.0)
      >>> ai.round(4), bi.round(4)
      (Array(0.355, dtype=float32), Array(0.6149, dtype=float32))

    Source: `scipy.special.airy`; DLMF 9.
    """
    (x,) = operands("airy", z)
    ai, dai, bi, dbi = convert(_airy(convert(x, dtypes.float64)), x.aval.dtype)
    return ai, dai, bi, dbi
