"""Bessel functions of real order: J, Y, I, K and Hankel's, plain and scaled.

The values are computed in 64 bits (`_cylinder.py`) and rounded to the dtype of the
operands, since the recurrence in the order amplifies the rounding of 32 bits.
"""

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
from fxflow.numpy._operands import ArrayLike, convert
from fxflow.scipy.special._blocks import in_blocks
from fxflow.scipy.special._cylinder import (
    HIGHEST,
    cospi,
    i_and_k,
    j_and_y,
    modified_key,
    ordinary_key,
    sinpi,
)
from fxflow.scipy.special._derivatives import by_forward
from fxflow.scipy.special._operands import docs_of, in_64_bits, operands

_docs = docs_of(
    """
v: real array-like: the order.
z: real array-like.
""",
    ", with derivatives with respect to all arguments; DLMF 10",
)


def _finite_product(factor: Any, x: Any) -> Any:
    """Returns a product that is 0 where the factor is, also for an infinite x."""
    return factor * fnp.where((factor == 0) & (lax.abs(x) == math.inf), 0, x)


def _reflected(x: Any, v: Any, value: Any) -> Any:
    """Returns values of |x| for x: nan of negative x, but for integer orders."""
    n = lax.floor(v)
    odd = n - 2 * lax.floor(n / 2) == 1
    turned = fnp.where(odd, -value, value)
    return fnp.where(x < 0, fnp.where(n == v, turned, math.nan), value)


# -- J and Y ---------------------------------------------------------------------------


def _inside(v: Any, x: Any) -> tuple[Any, Any, Any]:
    """Returns |v| and |x| where J and Y are computed, and where that is."""
    order, size = lax.abs(v), lax.abs(x)
    inside = (size > 0) & (size < math.inf) & (order <= HIGHEST)
    return fnp.where(inside, order, 0), fnp.where(inside, size, 1), inside


def _ordinary(v: Any, x: Any, first: bool, second: bool) -> tuple[Any, Any]:
    """Returns J and Y; where only one of them is wanted the other one is arbitrary."""
    order, size, inside = _inside(v, x)
    # Each of a negative order depends on both.
    both = inside & (v < 0)
    j, y = j_and_y(
        order, size, inside if first else both, inside if second else both & (x > 0)
    )
    order, size = lax.abs(v), lax.abs(x)
    j = fnp.where(size == 0, fnp.where(order == 0, 1.0, 0.0), j)
    y = fnp.where(size == 0, -math.inf, y)
    j, y = fnp.where(size == math.inf, 0, j), fnp.where(size == math.inf, 0, y)
    known = (order <= HIGHEST) & (x == x)
    j, y = fnp.where(known, j, math.nan), fnp.where(known, y, math.nan)
    cosine, sine = cospi(order), sinpi(order)
    of_first = fnp.where(v < 0, cosine * j - _finite_product(sine, y), j)
    of_second = fnp.where(v < 0, sine * j + _finite_product(cosine, y), y)
    of_second = fnp.where(x < 0, math.nan, of_second)
    return _reflected(x, v, of_first), of_second


def _ordinary_key(v: Any, x: Any) -> Any:
    order, size, _ = _inside(v, x)
    return ordinary_key(order, size)


def _jy_values(v: Any, x: Any) -> Any:
    """Returns J and Y along a new first axis."""
    of = functools.partial(_ordinary, first=True, second=True)
    return fnp.stack(in_blocks(of, _ordinary_key, v, x))


def _j_values(v: Any, x: Any) -> Any:
    of = lambda v, x: _ordinary(v, x, True, False)[0]
    return in_blocks(of, _ordinary_key, v, x)


def _y_values(v: Any, x: Any) -> Any:
    of = lambda v, x: _ordinary(v, x, False, True)[1]
    return in_blocks(of, _ordinary_key, v, x)


def _neighbours(function: Any, v: Any, x: Any) -> tuple[Any, Any]:
    """Returns a function of the orders v - 1 and v + 1, from one program."""
    out = function(fnp.stack([v - 1, v + 1]), fnp.stack([x, x]))
    axis = out.aval.ndim - v.aval.ndim - 1
    below, above = (lax.index_in_dim(out, i, axis, keepdims=False) for i in (0, 1))
    return below, above


def _slope_of(function: Any, v: Any, x: Any) -> Any:
    below, above = _neighbours(function, v, x)
    return 0.5 * (below - above)


_j: Callable[..., Any] = by_forward(_j_values, None, lambda v, x: _slope_of(_j, v, x))
_y: Callable[..., Any] = by_forward(_y_values, None, lambda v, x: _slope_of(_y, v, x))
_jy: Callable[..., Any] = by_forward(
    _jy_values, None, lambda v, x: _slope_of(_jy, v, x)
)


def _within(inside: Any, out: Any) -> Any:
    """Returns values that are nan elsewhere, and have derivatives of nan there."""
    return out * fnp.where(inside, 1, math.nan)


def _jv(v: Any, x: Any) -> Any:
    return _within((x >= 0) | (v == lax.floor(v)), _j(v, x))


def _yv(v: Any, x: Any) -> Any:
    return _within(x >= 0, _y(v, x))


#: `jv` and `yv` of arrays of 64 bits.
jv_of, yv_of = _jv, _yv


@library(quick=True)
@_docs
def jv(v: ArrayLike, z: ArrayLike) -> Array:
    """Bessel function of the first kind.

    Accurate to a few units in the last place, relative to the amplitude √(2 / (π z))
    where it oscillates, and for large orders as far as rounding the arguments does not
    matter.

    Special cases:
      Negative `z` → nan, unless the order is an integer; ±inf → 0, where SciPy returns
      nan; orders above 10,000 → nan.

    Example:
      >>> jv(0.5, 2.0).round(4)
      Array(0.513, dtype=float32)
    """
    return in_64_bits(_jv, "jv", v, z)


@library(quick=True)
@_docs
def jve(v: ArrayLike, z: ArrayLike) -> Array:
    """Bessel function of the first kind times exp(-abs(imag(z))): `jv`, for real `z`.

    Example:
      >>> jve(0.5, 2.0).round(4)
      Array(0.513, dtype=float32)
    """
    return in_64_bits(_jv, "jve", v, z)


@library(quick=True)
@_docs
def yv(v: ArrayLike, z: ArrayLike) -> Array:
    """Bessel function of the second kind.

    As exact as `jv`.

    Special cases:
      0 → -inf; negative `z` → nan; inf → 0, where SciPy returns nan; orders above
      10,000 → nan.

    Example:
      >>> yv(0.5, 2.0).round(4)
      Array(0.2348, dtype=float32)
    """
    return in_64_bits(_yv, "yv", v, z)


@library(quick=True)
@_docs
def yve(v: ArrayLike, z: ArrayLike) -> Array:
    """Bessel function of the second kind times exp(-abs(imag(z))): `yv`, for real `z`.

    Example:
      >>> yve(0.5, 2.0).round(4)
      Array(0.2348, dtype=float32)
    """
    return in_64_bits(_yv, "yve", v, z)


def _hankel(name: str, sign: int, v: Any, z: Any) -> Array:
    """Returns J + i Y (sign 1) or J - i Y, of negative numbers as SciPy does."""
    v, z = operands(name, v, z)
    order, x = convert(v, dtypes.float64), convert(z, dtypes.float64)
    size = lax.abs(x)
    j, y = _jy(order, size)
    # On the upper side of the branch cut (DLMF 10.11.3, 10.11.5).
    c, s = cospi(order), sinpi(order)
    if sign > 0:
        real, imag = s * y - c * j, c * y + s * j
    else:
        real, imag = 3 * c * j - s * y, s * j - c * y
    negative = x < 0
    real = fnp.where(negative, real, j)
    imag = fnp.where(negative, imag, sign * y)
    dtype = v.aval.dtype
    if dtypes.bits(dtype) < 32:
        dtype = dtypes.float32
    return lax.complex(convert(real, dtype), convert(imag, dtype))


_hankel_docs = shared("""
    Args:
      v: real array-like: the order.
      z: real array-like.

    Returns:
      Complex array of the broadcast shape.

    Raises:
      ArgumentError: an argument is not an array.
      DtypeError: an argument is complex.

    Special cases:
      Negative `z`: above the branch cut; orders above 10,000 → nan.

    Source: `scipy.special.{name}`, with derivatives with respect to all arguments; DLMF
    10.
""")


@library(quick=True)
@_hankel_docs
def hankel1(v: ArrayLike, z: ArrayLike) -> Array:
    """Hankel function of the first kind, J + i Y.

    Example:
      >>> hankel1(0.0, 1.0).round(4)
      Array(0.7652+0.0883j, dtype=complex64)
    """
    return _hankel("hankel1", 1, v, z)


@library(quick=True)
@_hankel_docs
def hankel2(v: ArrayLike, z: ArrayLike) -> Array:
    """Hankel function of the second kind, J - i Y.

    Example:
      >>> hankel2(0.0, 1.0).round(4)
      Array(0.7652-0.0883j, dtype=complex64)
    """
    return _hankel("hankel2", -1, v, z)


# -- I and K ---------------------------------------------------------------------------


def _modified(v: Any, x: Any, first: bool, scaled: bool) -> tuple[Any, Any]:
    """Returns I and K of |v| and |x|, of which one is wanted.

    The other one, too, where I has a negative order.
    """
    order, size = lax.abs(v), lax.abs(x)
    inside = (size > 0) & (size < math.inf) & (order < math.inf)
    i, k = i_and_k(
        fnp.where(inside, order, 0),
        fnp.where(inside, size, 1),
        inside & first,
        inside & (v < 0) if first else inside,
        scaled,
    )
    most = 0 if scaled else math.inf
    i = fnp.where(size == 0, fnp.where(order == 0, 1.0, 0.0), i)
    k = fnp.where(size == 0, math.inf, k)
    i, k = fnp.where(size == math.inf, most, i), fnp.where(size == math.inf, 0, k)
    known = (order < math.inf) & (x == x)
    return fnp.where(known, i, math.nan), fnp.where(known, k, math.nan)


def _modified_key(v: Any, x: Any) -> Any:
    order, size = lax.abs(v), lax.abs(x)
    known = (order < math.inf) & (x == x)
    return modified_key(fnp.where(known, order, 0), fnp.where(known, size, 1))


def _i_of(scaled: bool, v: Any, x: Any) -> Any:
    i, k = _modified(v, x, True, scaled)
    sine = (2 / math.pi) * sinpi(-v)
    if scaled:
        sine = sine * lax.exp(-2 * lax.abs(x))
    return _reflected(x, v, fnp.where(v < 0, i + _finite_product(sine, k), i))


def _k_of(scaled: bool, v: Any, x: Any) -> Any:
    return fnp.where(x < 0, math.nan, _modified(v, x, False, scaled)[1])


def _modified_values(of: Callable[..., Any], scaled: bool) -> Callable[..., Any]:
    of = functools.partial(of, scaled)
    return lambda v, x: in_blocks(of, _modified_key, v, x)


_ive: Callable[..., Any] = by_forward(_modified_values(_i_of, True), None, None)
_kve: Callable[..., Any] = by_forward(_modified_values(_k_of, True), None, None)


def _iv_slope(v: Any, x: Any) -> Any:
    below, above = _neighbours(_iv, v, x)
    return 0.5 * (below + above)


def _kv_slope(v: Any, x: Any) -> Any:
    below, above = _neighbours(_kv, v, x)
    return -0.5 * (below + above)


_iv: Callable[..., Any] = by_forward(_modified_values(_i_of, False), None, _iv_slope)
_kv: Callable[..., Any] = by_forward(_modified_values(_k_of, False), None, _kv_slope)


@library(quick=True)
@_docs
def iv(v: ArrayLike, z: ArrayLike) -> Array:
    """Modified Bessel function of the first kind.

    Accurate to a few units in the last place, as far as rounding the arguments does not
    matter.

    Special cases:
      Negative `z` → nan, unless the order is an integer; inf → inf, where SciPy returns
      nan.

    Example:
      >>> iv(0.5, 2.0).round(4)
      Array(2.0462, dtype=float32)
    """
    return in_64_bits(_iv, "iv", v, z)


@library(quick=True)
@_docs
def ive(v: ArrayLike, z: ArrayLike) -> Array:
    """Modified Bessel function of the first kind times exp(-abs(z)).

    Special cases:
      Negative `z` → nan, unless the order is an integer; inf → 0, where SciPy returns
      nan.

    Example:
      >>> ive(0.5, 2.0).round(4)
      Array(0.2769, dtype=float32)
    """
    return in_64_bits(_ive, "ive", v, z)


@library(quick=True)
@_docs
def kv(v: ArrayLike, z: ArrayLike) -> Array:
    """Modified Bessel function of the second kind.

    Accurate to a few units in the last place, as far as rounding the arguments does not
    matter.

    Special cases:
      Even in the order; 0 → inf; inf → 0; negative `z` → nan.

    Example:
      >>> kv(0.5, 2.0).round(4)
      Array(0.1199, dtype=float32)
    """
    return in_64_bits(_kv, "kv", v, z)


@library(quick=True)
@_docs
def kve(v: ArrayLike, z: ArrayLike) -> Array:
    """Modified Bessel function of the second kind times exp(z).

    Special cases:
      Even in the order; 0 → inf; inf → 0, where SciPy returns nan; negative `z` → nan.

    Example:
      >>> kve(0.5, 2.0).round(4)
      Array(0.8862, dtype=float32)
    """
    return in_64_bits(_kve, "kve", v, z)


# -- whole orders ----------------------------------------------------------------------

_whole_docs = docs_of(
    """
n: array-like of integers: the order.
v: real array-like: the order.
z: real array-like.
x: real array-like.
""",
    ", with derivatives with respect to the argument",
)


def _of_whole(function: Callable[..., Any], name: str, n: Any, x: Any) -> Array:
    def of(n: Any, x: Any) -> Any:
        whole = n == lax.floor(n)
        value = function(lax.stop_gradient(fnp.where(whole, n, 0)), x)
        return fnp.where(whole, value, math.nan)

    return in_64_bits(of, name, n, x)


@library(quick=True)
@_whole_docs
def jn(v: ArrayLike, z: ArrayLike) -> Array:
    """Bessel function of the first kind: another name of `jv`.

    Example:
      >>> jn(2, 1.0).round(4)
      Array(0.1149, dtype=float32)
    """
    return in_64_bits(_jv, "jn", v, z)


@library(quick=True)
@_whole_docs
def yn(n: ArrayLike, x: ArrayLike) -> Array:
    """Bessel function of the second kind of integer order.

    Special cases:
      Other orders → nan; 0 → -inf; negative `x` → nan.

    Example:
      >>> yn(2, 1.0).round(4)
      Array(-1.6507, dtype=float32)
    """
    return _of_whole(_yv, "yn", n, x)


@library(quick=True)
@_whole_docs
def kn(n: ArrayLike, x: ArrayLike) -> Array:
    """Modified Bessel function of the second kind of integer order.

    Special cases:
      Other orders → nan; 0 → inf; negative `x` → nan.

    Example:
      >>> kn(2, 1.0).round(4)
      Array(1.6248, dtype=float32)
    """
    return _of_whole(_kv, "kn", n, x)
