"""Modified (radial) Mathieu functions of integer order (DLMF 28.20).

Series of products of two Bessel functions (DLMF 28.24), whose arguments are √q exp(-x)
and √q exp(x), and whose coefficients are those of the Mathieu function. Their shift is
that of the largest coefficient, so that little cancels.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.docs import shared
from fxflow.core.runtime.library import library
from fxflow.numpy._operands import ArrayLike, convert
from fxflow.scipy.special._cylinder import first_orders
from fxflow.scipy.special._derivatives import by_forward
from fxflow.scipy.special._operands import operands
from fxflow.scipy.special._tridiagonal import (
    largest_row,
    ratios_from_last,
    rising_rows,
    steps,
)
from fxflow.scipy.special.mathieu import characteristic, matrix_of

# Rows of the table of coefficients, and orders of Bessel functions.
_ROWS, _ORDERS = 160, 256
_MOST_ORDER, _MOST_Q = 100, 2500.0


def _row(table: Any, k: Any) -> Any:
    """Returns a row of a table, for a 0-d number."""
    return lax.dynamic_index_in_dim(table, convert(k, dtypes.int32), 0, keepdims=False)


def _rows(table: Any, orders: Any) -> Any:
    """Returns a row of a table for each element."""
    index = convert(fnp.clip(orders, 0, table.aval.shape[0] - 1), dtypes.int32)
    return fnp.take_along_axis(table, index[None], 0)[0]


def _put(table: Any, value: Any, n: Any) -> Any:
    """Returns a table with a row replaced."""
    index = convert(fnp.minimum(n, _ORDERS - 1), dtypes.int32)
    return lax.dynamic_update_index_in_dim(table, value, index, 0)


def _bessel_tables(u: Any, top: Any) -> tuple[Any, Any]:
    """Returns J and Y of the orders from 0 along a new first axis, for u > 0."""

    def falling(i: Any, ratio: Any, table: Any) -> Any:
        n = top - i
        ratio = 1 / (2 * n / u - ratio)
        return ratio, _put(table, ratio, n)

    zeros = fnp.zeros((_ORDERS, *u.aval.shape), dtypes.float64)
    ratios = steps(top - 1, falling, 0 * u, zeros)[1]
    j, j1, y, y1 = first_orders(u)

    def rising(i: Any, now: Any, after: Any, tables: Any) -> Any:
        n = i + 2
        (j, y), (j1, y1) = now, after
        # The recurrence of J is stable up to where the order is the argument.
        high = fnp.where(n <= u, 2 * (n - 1) / u * j1 - j, _row(ratios, n) * j1)
        other = fnp.where(y1 == -math.inf, y1, 2 * (n - 1) / u * y1 - y)
        new = (high, other)
        return (
            after,
            new,
            tuple(_put(t, v, n) for t, v in zip(tables, new, strict=True)),
        )

    tables = (_put(_put(zeros, j, 0), j1, 1), _put(_put(zeros, y, 0), y1, 1))
    start = ((j, y), (j1, y1), tables)
    first, second = steps(fnp.minimum(top, _ORDERS) - 2, rising, *start)[2]
    return first, second


def _of_order(table: Any, u: Any, order: Any) -> tuple[Any, Any]:
    """Returns Bessel functions of integer orders, and u times their derivatives."""
    size = lax.abs(order)
    here, above = _rows(table, size), _rows(table, size + 1)
    slope = size * here - u * above
    odd = size != 2 * lax.floor(0.5 * size)
    turn = odd & (order < 0)
    return fnp.where(turn, -here, here), fnp.where(turn, -slope, slope)


def _product(weight: Any, first: Any, second: Any) -> Any:
    """Returns a product of three that is 0 where the first two's is."""
    head = weight * first
    return fnp.where(head == 0, 0, head * fnp.where(head == 0, 0, second))


def _functions(even: bool, kind: int, m: Any, q: Any, x: Any) -> Any:
    """Returns a function and its derivative with respect to x."""
    known = (m == lax.floor(m)) & (m >= (0 if even else 1)) & (m <= _MOST_ORDER)
    known = known & (q > 0) & (q <= _MOST_Q) & (lax.abs(x) < 300)
    m, q = fnp.where(known, m, 1), fnp.where(known, q, 1)
    x = fnp.where(known, x, 0)
    a, matrix = characteristic(even, m, q), matrix_of(even, m, q)
    place = largest_row(matrix, a)
    ratios = ratios_from_last(matrix, a, _ROWS)
    root = lax.sqrt(q)
    low, high = root * lax.exp(-x), root * lax.exp(x)
    shift = place + matrix.first
    top = matrix.top + fnp.max(lax.stop_gradient(shift), initial=0) + 40
    j_low, _ = _bessel_tables(low, top)
    second = _bessel_tables(high, top)[kind - 1]

    def terms(k: Any, here: Any, _: Any) -> tuple[Any, Any]:
        weight = fnp.where((k == 0) & (matrix.first == 0), math.sqrt(0.5), 1.0) * here
        weight = fnp.where(k == 2 * lax.floor(0.5 * k), weight, -weight)
        near, far = k - place, k + shift
        a, da = _of_order(j_low, low, near)
        b, db = _of_order(second, high, far)
        c, dc = _of_order(j_low, low, far)
        d, dd = _of_order(second, high, near)
        sign = 1.0 if even else -1.0
        value = _product(weight, a, b) + sign * _product(weight, c, d)
        slope = _product(weight, a, db) - _product(weight, da, b)
        more = _product(weight, c, dd) - _product(weight, dc, d)
        return value, slope + sign * more

    value, slope = rising_rows(matrix, a, ratios, terms)
    # The first coefficient counts twice, and is a half of the root's square.
    first = (place == 0) & (matrix.first == 0)
    scale = fnp.where(first, math.sqrt(0.5), 1.0)
    odd = matrix.index != 2 * lax.floor(0.5 * matrix.index)
    scale = fnp.where(odd, -scale, scale)
    return fnp.stack([fnp.where(known, scale * s, math.nan) for s in (value, slope)])


def _slopes(even: bool, kind: int, m: Any, q: Any, x: Any) -> Any:
    value, slope = _FUNCTIONS[even, kind](m, q, x)
    bend = (characteristic(even, m, q) - 2 * q * lax.cosh(2 * x)) * value
    return fnp.stack([slope, bend])


def _flat(m: Any, q: Any, x: Any) -> Any:
    return fnp.stack([0 * q, 0 * q])


_FUNCTIONS: dict[tuple[bool, int], Any] = {
    (even, kind): by_forward(
        functools.partial(_functions, even, kind),
        _flat,
        None,
        functools.partial(_slopes, even, kind),
    )
    for even in (True, False)
    for kind in (1, 2)
}

# -- public ----------------------------------------------------------------------------

_docs = shared("""
    Args:
      m: array-like of integers up to 100: the order.
      q: real array-like, positive, up to 2,500: the parameter.
      x: real array-like: the radial coordinate.

    Returns:
      Two float arrays of the broadcast shape: the function, and its derivative with
      respect to `x`.

    Raises:
      ArgumentError: an argument is not an array.
      DtypeError: an argument is complex.

    Source: `scipy.special.{name}`, with derivatives with respect to `q` and `x`; DLMF
    28.24.
""")


def _pair(
    name: str, even: bool, kind: int, m: Any, q: Any, x: Any
) -> tuple[Array, Array]:
    m, q, x = operands(name, m, q, x)
    wide = [convert(a, dtypes.float64) for a in (m, q, x)]
    value, slope = convert(_FUNCTIONS[even, kind](*wide), q.aval.dtype)
    return value, slope


@library(quick=True)
@_docs
def mathieu_modcem1(m: ArrayLike, q: ArrayLike, x: ArrayLike) -> tuple[Array, Array]:
    """Even modified Mathieu function of the first kind, and its derivative.

    To 14 digits, relative to its amplitude.

    Special cases:
      Orders that are not integers or negative, and numbers out of range → nan.

    Example:
      >>> value, slope = mathieu_modcem1(2, 5.0, 0.5)
      >>> value.round(4)
      Array(0.3681, dtype=float32)
    """
    return _pair("mathieu_modcem1", True, 1, m, q, x)


@library(quick=True)
@_docs
def mathieu_modcem2(m: ArrayLike, q: ArrayLike, x: ArrayLike) -> tuple[Array, Array]:
    """Even modified Mathieu function of the second kind, and its derivative.

    To 14 digits for `x` ≥ 0, relative to its amplitude; 12 at -1.

    Special cases:
      Orders that are not integers or negative, and numbers out of range → nan.

    Example:
      >>> value, slope = mathieu_modcem2(2, 5.0, 0.5)
      >>> value.round(4)
      Array(0.2849, dtype=float32)
    """
    return _pair("mathieu_modcem2", True, 2, m, q, x)


@library(quick=True)
@_docs
def mathieu_modsem1(m: ArrayLike, q: ArrayLike, x: ArrayLike) -> tuple[Array, Array]:
    """Odd modified Mathieu function of the first kind, and its derivative.

    To 14 digits, relative to its amplitude.

    Special cases:
      Orders that are not integers or not positive, and numbers out of range → nan.

    Example:
      >>> value, slope = mathieu_modsem1(2, 5.0, 0.5)
      >>> value.round(4)
      Array(0.4168, dtype=float32)
    """
    return _pair("mathieu_modsem1", False, 1, m, q, x)


@library(quick=True)
@_docs
def mathieu_modsem2(m: ArrayLike, q: ArrayLike, x: ArrayLike) -> tuple[Array, Array]:
    """Odd modified Mathieu function of the second kind, and its derivative.

    To 14 digits for `x` ≥ 0, relative to its amplitude; 12 at -1.

    Special cases:
      Orders that are not integers or not positive, and numbers out of range → nan.

    Example:
      >>> value, slope = mathieu_modsem2(2, 5.0, 0.5)
      >>> value.round(4)
      Array(-0.0279, dtype=float32)
    """
    return _pair("mathieu_modsem2", False, 2, m, q, x)
