"""Spherical Bessel functions: cylinder functions of half-odd orders (DLMF 10.47)."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.docs import shared
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError
from fxflow.lax.axes import integer
from fxflow.numpy._operands import ArrayLike
from fxflow.scipy.special._cylinder import (
    HIGHEST,
    UNIFORM,
    half_i_and_k,
    half_orders,
    i_and_k,
    j_and_y,
)
from fxflow.scipy.special._derivatives import by_forward
from fxflow.scipy.special._operands import docs_of, in_64_bits, operands


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


def _j_or_y(second: int, general: bool, order: Any, x: Any) -> Any:
    """Returns J or Y of half-odd orders, whose first ones are sine and cosine."""
    first, other = (lax.full_like(order, k == second, bool) for k in (0, 1))

    def of_all(v: Any, x: Any) -> Any:
        return j_and_y(v, x, first, other)[second]

    if general:
        return of_all(order, x)
    return lax.cond(
        fnp.all(order - 0.5 == lax.floor(order)),
        lambda v, x: half_orders(v, x)[second],
        of_all,
        order,
        x,
    )


def _jn_values(n: Any, z: Any, *, general: bool = False) -> Any:
    _, order, x, factor = _inside(n, z)
    value = factor * _j_or_y(0, general, order, x)
    return _completed(n, z, value, _at_0(n), 0, odd=False)


def _yn_values(n: Any, z: Any, *, general: bool = False) -> Any:
    _, order, x, factor = _inside(n, z)
    value = factor * _j_or_y(1, general, order, x)
    return _completed(n, z, value, -math.inf, 0, odd=True)


def _i_or_k(second: slice, general: bool, order: Any, x: Any) -> Any:
    """Returns exp(-x) I and exp(x) K of half-odd orders, or one of them."""
    first, other = (lax.full_like(order, k < second.stop, bool) for k in (0, 1))

    def of_all(v: Any, x: Any) -> Any:
        return i_and_k(v, x, first, other)[second]

    if general:
        return of_all(order, x)
    whole = order - 0.5 == lax.floor(order)
    return lax.cond(
        fnp.all(whole & (order < UNIFORM)),
        lambda v, x: half_i_and_k(v, x)[second],
        of_all,
        order,
        x,
    )


def _in_values(n: Any, z: Any, *, general: bool = False) -> Any:
    _, order, x, factor = _inside(n, z)
    half = lax.exp(0.5 * x)
    (i,) = _i_or_k(slice(0, 1), general, order, x)
    value = half * (half * factor * i)
    return _completed(n, z, value, _at_0(n), math.inf, odd=False)


def _kn_values(n: Any, z: Any, *, general: bool = False) -> Any:
    _, order, x, factor = _inside(n, z)
    i, k = _i_or_k(slice(0, 2), general, order, x)
    half = lax.exp(0.5 * x)
    k = factor * k / half / half
    out = _completed(n, z, k, math.inf, 0, odd=True)
    # By continuation through 0 (DLMF 10.47.11).
    grown = _completed(n, z, half * (half * factor * i), 0, math.inf, odd=False)
    odd = n - 2 * lax.floor(n / 2) == 1
    grown = math.pi * fnp.where(odd, -grown, grown)
    out = fnp.where((z < 0) & (z > -math.inf), out - grown, out)
    return fnp.where((z == 0) & (n >= 0), math.inf, fnp.where(z == -math.inf, z, out))


def _made(
    values: Any, below: float, above: float, general: Any = None
) -> tuple[Any, Any]:
    """Returns a function of n and z and its derivative with respect to z (DLMF 10.51).

    Args:
      values: the function, which lacks derivatives in reverse.
      below: the sign of n times the function of the order n - 1, over 2 n + 1.
      above: the sign of n + 1 times that of the order n + 1.
      general: of all orders, for the derivative with respect to the order, if `values`
        is not.
    """

    def slope(n: Any, z: Any) -> Any:
        first = n == 0
        orders = fnp.stack([fnp.where(first, 1, n - 1), n + 1])
        out: Any = made(orders, fnp.stack([z, z]))
        lower = fnp.where(first, 0, below * n * fnp.where(first, 0, out[0]))
        return (lower + above * (n + 1) * out[1]) / (2 * n + 1)

    made: Callable[..., Any] = by_forward(values, None, slope, derived=general)
    return made, slope


_FUNCTIONS = {
    "spherical_jn": _made(
        _jn_values, 1, -1, functools.partial(_jn_values, general=True)
    ),
    "spherical_yn": _made(
        _yn_values, 1, -1, functools.partial(_yn_values, general=True)
    ),
    "spherical_in": _made(
        _in_values, 1, 1, functools.partial(_in_values, general=True)
    ),
    "spherical_kn": _made(
        _kn_values, -1, -1, functools.partial(_kn_values, general=True)
    ),
}

_docs = docs_of(
    """
n: non-negative real array-like: the order.
z: real array-like.
derivative: return the derivative with respect to `z` instead.
""",
    ", with derivatives with respect to all arguments; DLMF 10.47",
)


def _spherical(name: str, n: Any, z: Any, derivative: bool) -> Array:
    return in_64_bits(_FUNCTIONS[name][bool(derivative)], name, n, z)


@library("derivative", quick=True)
@_docs
def spherical_jn(n: ArrayLike, z: ArrayLike, derivative: bool = False) -> Array:
    """Spherical Bessel function of the first kind.

    Special cases:
      ±inf → 0; negative `n` → nan; negative `z` → nan, unless `n` is an integer.

    Example:
      >>> spherical_jn(1, 2.0).round(4)
      Array(0.4354, dtype=float32)
    """
    return _spherical("spherical_jn", n, z, derivative)


@library("derivative", quick=True)
@_docs
def spherical_yn(n: ArrayLike, z: ArrayLike, derivative: bool = False) -> Array:
    """Spherical Bessel function of the second kind.

    Special cases:
      ±0 → -inf; ±inf → 0; negative `n` → nan; negative `z` → nan, unless `n` is an
      integer.

    Example:
      >>> spherical_yn(1, 2.0).round(4)
      Array(-0.3506, dtype=float32)
    """
    return _spherical("spherical_yn", n, z, derivative)


@library("derivative", quick=True)
@_docs
def spherical_in(n: ArrayLike, z: ArrayLike, derivative: bool = False) -> Array:
    """Modified spherical Bessel function of the first kind.

    Special cases:
      inf → inf; negative `n` → nan; negative `z` → nan, unless `n` is an integer.

    Example:
      >>> spherical_in(1, 2.0).round(4)
      Array(0.9744, dtype=float32)
    """
    return _spherical("spherical_in", n, z, derivative)


@library("derivative", quick=True)
@_docs
def spherical_kn(n: ArrayLike, z: ArrayLike, derivative: bool = False) -> Array:
    """Modified spherical Bessel function of the second kind.

    Special cases:
      ±0 → inf; inf → 0; negative `n` → nan; negative `z` → nan, unless `n` is an
      integer.

    Example:
      >>> spherical_kn(1, 2.0).round(4)
      Array(0.1594, dtype=float32)
    """
    return _spherical("spherical_kn", n, z, derivative)


# -- Riccati's form --------------------------------------------------------------------

_riccati_docs = shared("""
    Args:
      n: Python integer from 0 to 9,999: the highest order.
      x: real array-like.

    Returns:
      Two float arrays [n + 1, ...]: functions of the orders 0, …, n, and their
      derivatives with respect to `x`.

    Raises:
      ArgumentError: `n` is not an integer in this range.
      DtypeError: `x` is complex.

    Source: `scipy.special.{name}`, of any `x` and with derivatives; DLMF 10.51.
""")


def _riccati(name: str, n: Any, x: Any) -> tuple[Array, Array]:
    """Returns x f(x) and its derivative, for spherical Bessel functions f."""
    top = integer(name, "n", n)
    if not 0 <= top < HIGHEST:
        raise ArgumentError(f"{name}: n must be from 0 to 9999, got {n!r}")
    (x,) = operands(name, x)
    function = "spherical_jn" if name == "riccati_jn" else "spherical_yn"
    orders = fnp.arange(top + 1).reshape(-1, *(1,) * x.aval.ndim)
    value = _spherical(function, orders, x, False)
    return x * value, value + x * _spherical(function, orders, x, True)


@library("n", quick=True)
@_riccati_docs
def riccati_jn(n: int, x: ArrayLike) -> tuple[Array, Array]:
    """Riccati's Bessel functions of the first kind: x times spherical ones.

    Example:
      >>> riccati_jn(1, 2.0)[0].round(4)
      Array([0.9093, 0.8708], dtype=float32)
    """
    return _riccati("riccati_jn", n, x)


@library("n", quick=True)
@_riccati_docs
def riccati_yn(n: int, x: ArrayLike) -> tuple[Array, Array]:
    """Riccati's Bessel functions of the second kind: x times spherical ones.

    Special cases:
      0 → nan.

    Example:
      >>> riccati_yn(1, 2.0)[0].round(4)
      Array([ 0.4161, -0.7012], dtype=float32)
    """
    return _riccati("riccati_yn", n, x)
