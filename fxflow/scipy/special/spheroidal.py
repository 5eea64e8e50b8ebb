"""Spheroidal wave functions of integer order and degree (DLMF 30).

The coefficients of their series of Legendre functions are an eigenvector of a
tridiagonal matrix (`_tridiagonal.py`), whose eigenvalue is the characteristic value.
Radial functions have the same coefficients beside spherical Bessel functions (DLMF
30.11.3). Oblate functions are prolate ones with -c² for c².
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes
from fxflow.core.docs import shared
from fxflow.core.runtime.library import library
from fxflow.errors import ArgumentError
from fxflow.lax.axes import integer
from fxflow.numpy._operands import ArrayLike, convert
from fxflow.scipy.special._cylinder import half_orders
from fxflow.scipy.special._derivatives import by_forward
from fxflow.scipy.special._operands import docs_of, in_64_bits, operands
from fxflow.scipy.special._tridiagonal import (
    eigenvalue,
    eigenvector_sums,
    ratios_from_last,
    rising_rows,
    steps,
)
from fxflow.scipy.special.legendre import next_degree, powers_of_sine
from fxflow.transforms.jvp import jvp

# Rows of the table of coefficients, and what leaves them enough.
_ROWS = 128
_MOST_ORDER, _MOST_INDEX, _MOST_C = 100, 100, 75.0
_NEAR = 0.03
# Orders from which the ratios of Bessel functions start to converge.
_MORE = 40


class _Matrix(NamedTuple):
    """The matrix of an element, as `_tridiagonal` takes it.

    Attributes:
      q: c², or -c².
      m: the order.
      first: the degree of the first coefficient, less the order: 0 or 1.
      index: which of its eigenvalues is meant.
      top: the last row, a number.
    """

    q: Any
    m: Any
    first: Any
    index: Any
    top: Any

    def base(self, k: Any) -> Any:
        """Returns an entry of the diagonal where q is 0."""
        degree = self.m + (2 * k + self.first)
        return degree * (degree + 1)

    def bend(self, k: Any) -> Any:
        """Returns the derivative of an entry of the diagonal with respect to q."""
        twice = 2 * (self.m + (2 * k + self.first))
        above = 0.5 * twice * (twice + 2) - 2 * self.m * self.m - 1
        return above / ((twice - 1) * (twice + 3))

    def beside(self, k: Any) -> Any:
        """Returns the entry beside the diagonal of the row k, over q."""
        r = 2 * k + self.first
        both, twice = 2 * self.m + r, 2 * (self.m + r)
        above = (both + 2) * (both + 1) * (r + 2) * (r + 1)
        return lax.sqrt(above / ((twice + 1) * (twice + 5))) / (twice + 3)

    def largest(self, a: Any) -> Any:
        """Returns where the eigenvector of an eigenvalue is large."""
        degree = lax.sqrt(fnp.maximum(a - fnp.minimum(self.q, 0), 0) + 0.25) - 0.5
        return lax.round(0.5 * (degree - self.m - self.first))


def _matrix(m: Any, n: Any, q: Any) -> _Matrix:
    gap = n - m
    index = lax.floor(0.5 * gap)
    size = lax.stop_gradient(lax.sqrt(lax.abs(q)))
    top = lax.ceil(fnp.max(index + 0.75 * size, initial=1) + 20)
    return _Matrix(q, m, gap - 2 * index, index, top)


def _usual(m: Any, n: Any, c: Any) -> tuple[Any, Any, Any, Any]:
    """Returns where there is a function, and arguments that are harmless elsewhere."""
    known = (m == lax.floor(m)) & (n == lax.floor(n)) & (m >= 0) & (n >= m)
    known = known & (m <= _MOST_ORDER) & (n - m <= _MOST_INDEX)
    known = known & (lax.abs(c) <= _MOST_C)
    return known, *(fnp.where(known, x, other) for x, other in ((m, 0), (n, 0), (c, 1)))


# -- characteristic values -------------------------------------------------------------


def _values(sign: int, m: Any, n: Any, c: Any) -> Any:
    known, m, n, c = _usual(m, n, c)
    square = lax.stop_gradient(c * c)
    matrix, middle = _matrix(m, n, sign * square), n * (n + 1)
    # The perturbation is a multiplication with ±c² x².
    reach = square + 1e-9 * (1 + middle)
    low = middle - (1e-9 * (1 + middle) if sign > 0 else reach)
    high = middle + (reach if sign > 0 else 1e-9 * (1 + middle))
    return fnp.where(known, eigenvalue(matrix, low, high, _NEAR), math.nan)


def _slope(sign: int, m: Any, n: Any, c: Any) -> Any:
    known, m, n, c = _usual(m, n, c)
    a = _CHARACTERISTIC[sign](m, n, c)
    _, length, form = eigenvector_sums(_matrix(m, n, sign * c * c), a)
    return fnp.where(known, sign * 2 * c * (form / length), math.nan)


def _flat(m: Any, n: Any, c: Any) -> Any:
    return 0 * c


_CHARACTERISTIC: dict[int, Any] = {
    sign: by_forward(
        functools.partial(_values, sign),
        _flat,
        _flat,
        by_forward(functools.partial(_slope, sign), _flat, _flat, None),
    )
    for sign in (1, -1)
}


# -- series ----------------------------------------------------------------------------


def _height(m: Any, n: Any) -> Any:
    """Returns the Legendre function at 0, or its derivative where n - m is odd."""
    gap = n - m
    low = lax.floor(0.5 * gap)
    top = low + m + (gap - 2 * low)

    def step(j: Any, product: Any) -> Any:
        k = j + 1
        factor = fnp.where(k <= low, -(2 * k - 1) / (2 * k), 2 * k - 1)
        return (fnp.where(k <= top, product * factor, product),)

    return steps(fnp.max(top, initial=0), step, fnp.ones_like(n))[0]


def _angular(sign: int, m: Any, n: Any, c: Any, a: Any, x: Any) -> Any:
    """Returns the angular function of the first kind, for |x| ≤ 1."""
    matrix = _matrix(m, n, sign * c * c)
    odd = matrix.first == 1
    start, at_zero = powers_of_sine(m, x), powers_of_sine(m, 0 * x)

    def next_two(k: Any, z: Any, before: Any, here: Any) -> Any:
        for i in (1, 2):
            degree = m + (2 * k + matrix.first) + i
            new = next_degree(degree, m, z, here, before, True)
            before, here = here, new
        return before, here

    def risen(z: Any, first: Any) -> Any:
        """Returns the functions of the degrees m + p - 1 and m + p."""
        after = next_degree(m + 1, m, z, first, 0 * first, True)
        return fnp.where(odd, first, 0), fnp.where(odd, after, first)

    # At 0, as a function of z, whose derivative there is wanted if it is odd.
    def of_zero(k: Any, before: Any, here: Any, slopes: Any) -> Any:
        zero = 0 * x
        values, moved = jvp(
            lambda z, b, h: next_two(k, z, b, h),
            (zero, before, here),
            (zero + 1, slopes[0], slopes[1]),
        )
        return *values, moved

    def moved(k: Any, wave: Any) -> Any:
        (b, h), (b0, h0, slopes) = wave
        return next_two(k, x, b, h), of_zero(k, b0, h0, slopes)

    def terms(_: Any, weight: Any, wave: Any) -> Any:
        (_, here), (_, here_0, slopes) = wave
        return weight * here, weight * fnp.where(odd, slopes[1], here_0)

    zero = 0 * x
    values, slopes = jvp(lambda z: risen(z, at_zero), (zero,), (zero + 1,))
    wave = risen(x, start), (*values, slopes)
    ratios = ratios_from_last(matrix, a, _ROWS)
    total, at = rising_rows(matrix, a, ratios, terms, wave, moved)
    return _height(m, n) * (total / at)


def _bessel_ratios(order: Any, z: Any, count: Any) -> Any:
    """Returns a table of j of the order s over that of s - 1, of degrees above z.

    Args:
      order: the first order.
      z: the argument.
      count: how many orders are wanted, a number.
    """

    def step(j: Any, ratio: Any, table: Any) -> Any:
        s = count + _MORE - j
        ratio = 1 / ((2 * (order + s) + 1) / z - ratio)
        index = convert(fnp.minimum(s, 2 * _ROWS + 1), dtypes.int32)
        return ratio, lax.dynamic_update_index_in_dim(table, ratio, index, 0)

    table = fnp.zeros((2 * _ROWS + 2, *z.aval.shape), dtypes.float64)
    return steps(count + _MORE, step, 0 * z, table)[1]


def _radial(sign: int, m: Any, n: Any, c: Any, a: Any, z: Any) -> Any:
    """Returns the series of the radial function of the first kind, of z = c x > 0."""
    matrix = _matrix(m, n, sign * c * c)
    order = m + matrix.first
    halves, zs = fnp.stack([order + 0.5, order + 1.5]), fnp.stack([z, z])
    bessel = half_orders(halves, zs)[0] * lax.sqrt(0.5 * math.pi / zs)
    orders = _bessel_ratios(order, z, 2 * matrix.top + 1)

    def moved(k: Any, wave: Any) -> Any:
        now, after, weight = wave
        for i in (2, 3):
            s = 2 * k + i
            index = convert(s, dtypes.int32)
            ratio = lax.dynamic_index_in_dim(orders, index, 0, keepdims=False)
            up = (2 * (order + s) - 1) / z * after - now
            now, after = after, fnp.where(order + s <= z, up, ratio * after)
        r = 2 * k + matrix.first
        both, twice = 2 * m + r, 2 * (m + r)
        up = (both + 2) * (both + 1) * (twice + 5) / ((r + 2) * (r + 1) * (twice + 1))
        return now, after, -weight * lax.sqrt(up)

    def terms(_: Any, here: Any, wave: Any) -> Any:
        now, _, weight = wave
        return here * (weight * now), here * lax.abs(weight)

    wave = bessel[0], bessel[1], 0 * z + 1
    ratios = ratios_from_last(matrix, a, _ROWS)
    total, size = rising_rows(matrix, a, ratios, terms, wave, moved)
    odd = matrix.index != 2 * lax.floor(0.5 * matrix.index)
    return fnp.where(odd, -total, total) / size


# -- functions and their derivatives ---------------------------------------------------


def _with_slope(of: Any, x: Any) -> Any:
    return fnp.stack(jvp(of, (x,), (fnp.ones_like(x),)))


def _angular_pair(sign: int, m: Any, n: Any, c: Any, a: Any, x: Any) -> Any:
    known, m, n, c = _usual(m, n, c)
    known = known & (lax.abs(x) <= 1) & (a - a == 0)
    a, x = fnp.where(known, a, 0), fnp.where(known, x, 0)
    out = _with_slope(lambda x: _angular(sign, m, n, c, a, x), x)
    return fnp.where(known, out, math.nan)


def _radial_pair(sign: int, m: Any, n: Any, c: Any, a: Any, x: Any) -> Any:
    known, m, n, c = _usual(m, n, c)
    known = known & (c > 0) & (a - a == 0) & (x < math.inf)
    known = known & ((x >= 1) if sign > 0 else (x >= 0))
    a, c = fnp.where(known, a, 0), fnp.where(known, c, 1)
    x = fnp.where(known, x, 2)

    def of(x: Any) -> Any:
        # Nothing is divided by 0; the function is even or odd.
        x = x + fnp.where(x < 1e-9, 1e-9, 0)
        power = lax.exp(0.5 * m * lax.log1p(1 / (x * x)))
        if sign > 0:
            inside = x > 1
            less = (1 - 1 / fnp.where(inside, x, 2)) * (1 + 1 / x)
            power = lax.exp(0.5 * m * lax.log(less))
            power = fnp.where(inside, power, fnp.where(m == 0, 1.0, 0.0))
        return power * _radial(sign, m, n, c, a, c * x)

    value, slope = _with_slope(of, x)
    return fnp.where(known, fnp.stack([value, slope]), math.nan)


def _flat_pair(m: Any, n: Any, c: Any, a: Any, x: Any) -> Any:
    return fnp.stack([0 * x, 0 * x])


def _pair_of(values: Any, sign: int) -> Any:
    function = functools.partial(values, sign)
    return by_forward(function, _flat_pair, _flat_pair, None, None, None)


_ANGULAR = {sign: _pair_of(_angular_pair, sign) for sign in (1, -1)}
_RADIAL = {sign: _pair_of(_radial_pair, sign) for sign in (1, -1)}

# -- public ----------------------------------------------------------------------------

_docs = docs_of(
    """
m: array-like of integers from 0 to 100: the order.
n: array-like of integers from `m` to `m` + 100: the degree.
c: real array-like from -75 to 75: the spheroidal parameter.
""",
    ", with derivatives with respect to `c`; DLMF 30",
)


@library(quick=True)
@_docs
def pro_cv(m: ArrayLike, n: ArrayLike, c: ArrayLike) -> Array:
    """Characteristic value of prolate spheroidal functions.

    To a few units in the last place.

    Special cases:
      Arguments out of range → nan.

    Example:
      >>> pro_cv(1, 2, 3.0).round(4)
      Array(9.556, dtype=float32)
    """
    return in_64_bits(_CHARACTERISTIC[1], "pro_cv", m, n, c)


@library(quick=True)
@_docs
def obl_cv(m: ArrayLike, n: ArrayLike, c: ArrayLike) -> Array:
    """Characteristic value of oblate spheroidal functions.

    To a few units in the last place of n (n + 1) + c².

    Special cases:
      Arguments out of range → nan.

    Example:
      >>> obl_cv(1, 2, 3.0).round(4)
      Array(1.8215, dtype=float32)
    """
    return in_64_bits(_CHARACTERISTIC[-1], "obl_cv", m, n, c)


_sequence_docs = shared("""
    Args:
      m: Python integer from 0 to 100: the order.
      n: Python integer from `m` to `m` + 100: the highest degree.
      c: real array-like from -75 to 75: the spheroidal parameter.

    Returns:
      Float array[n - m + 1, ...]: of the degrees `m` to `n`.

    Raises:
      ArgumentError: `m` or `n` is not one of these integers.
      DtypeError: `c` is complex.

    Source: `scipy.special.{name}`, with derivatives with respect to `c`; DLMF 30.
""")


def _sequence(name: str, sign: int, m: Any, n: Any, c: Any) -> Array:
    order, degree = integer(name, "m", m), integer(name, "n", n)
    if not 0 <= order <= _MOST_ORDER:
        raise ArgumentError(f"{name}: m must be from 0 to {_MOST_ORDER}, got {m!r}")
    if not order <= degree <= order + _MOST_INDEX:
        raise ArgumentError(
            f"{name}: n must be from m = {order} to {order + _MOST_INDEX}, got {n!r}"
        )
    (c,) = operands(name, c)
    degrees = fnp.arange(order, degree + 1, dtype=c.aval.dtype)
    degrees = degrees.reshape(-1, *(1,) * c.aval.ndim)
    first = fnp.full_like(degrees, order)
    return in_64_bits(_CHARACTERISTIC[sign], name, first, degrees, c)


@library("m", "n", quick=True)
@_sequence_docs
def pro_cv_seq(m: int, n: int, c: ArrayLike) -> Array:
    """Characteristic values of prolate spheroidal functions of rising degrees.

    Example:
      >>> pro_cv_seq(0, 2, 1.0).round(4)
      Array([0.319 , 2.5931, 6.5335], dtype=float32)
    """
    return _sequence("pro_cv_seq", 1, m, n, c)


@library("m", "n", quick=True)
@_sequence_docs
def obl_cv_seq(m: int, n: int, c: ArrayLike) -> Array:
    """Characteristic values of oblate spheroidal functions of rising degrees.

    Example:
      >>> obl_cv_seq(0, 2, 1.0).round(4)
      Array([-0.3486,  1.3932,  5.4868], dtype=float32)
    """
    return _sequence("obl_cv_seq", -1, m, n, c)


_pair_docs = shared("""
    Args:
      m: array-like of integers from 0 to 100: the order.
      n: array-like of integers from `m` to `m` + 100: the degree.
      c: real array-like up to 75: the spheroidal parameter; not negative for radial
        functions.
      cv: real array-like: the characteristic value.
      x: real array-like: the coordinate.

    Returns:
      Two float arrays of the broadcast shape: the function, and its derivative with
      respect to `x`.

    Raises:
      ArgumentError: an argument is not an array.
      DtypeError: an argument is complex.

    Source: `scipy.special.{name}`, with derivatives with respect to `c` and `x` (and
    `cv`); DLMF 30.
""")


def _pair(
    name: str, table: Any, sign: int, m: Any, n: Any, c: Any, x: Any, cv: Any = None
) -> tuple[Array, Array]:
    given = operands(name, m, n, c, x, *(() if cv is None else (cv,)))
    m, n, c, x, *cvs = (convert(a, dtypes.float64) for a in given)
    a = cvs[0] if cvs else _CHARACTERISTIC[sign](m, n, c)
    value, slope = convert(table[sign](m, n, c, a, x), given[0].aval.dtype)
    return value, slope


@library(quick=True)
@_pair_docs
def pro_ang1(
    m: ArrayLike, n: ArrayLike, c: ArrayLike, x: ArrayLike
) -> tuple[Array, Array]:
    """Prolate spheroidal angular function of the first kind.

    To 15 digits.

    Special cases:
      abs(x) > 1, and arguments out of range → nan.

    Example:
      >>> value, slope = pro_ang1(1, 2, 3.0, 0.5)
      >>> value.round(4)
      Array(1.1176, dtype=float32)
    """
    return _pair("pro_ang1", _ANGULAR, 1, m, n, c, x)


@library(quick=True)
@_pair_docs
def pro_ang1_cv(
    m: ArrayLike, n: ArrayLike, c: ArrayLike, cv: ArrayLike, x: ArrayLike
) -> tuple[Array, Array]:
    """Prolate spheroidal angular function of the first kind, of a known value `cv`.

    To 15 digits.

    Special cases:
      abs(x) > 1, and arguments out of range → nan.

    Example:
      >>> value, slope = pro_ang1_cv(1, 2, 3.0, 9.556, 0.5)
      >>> value.round(4)
      Array(1.1176, dtype=float32)
    """
    return _pair("pro_ang1_cv", _ANGULAR, 1, m, n, c, x, cv)


@library(quick=True)
@_pair_docs
def pro_rad1(
    m: ArrayLike, n: ArrayLike, c: ArrayLike, x: ArrayLike
) -> tuple[Array, Array]:
    """Prolate spheroidal radial function of the first kind.

    To 14 digits for `c` up to 10, 10 at 20 and 7 at 40, where coefficients cancel.

    Special cases:
      `x` below 1, `c` not positive, and arguments out of range → nan.

    Example:
      >>> value, slope = pro_rad1(1, 2, 3.0, 1.5)
      >>> value.round(4)
      Array(0.2983, dtype=float32)
    """
    return _pair("pro_rad1", _RADIAL, 1, m, n, c, x)


@library(quick=True)
@_pair_docs
def pro_rad1_cv(
    m: ArrayLike, n: ArrayLike, c: ArrayLike, cv: ArrayLike, x: ArrayLike
) -> tuple[Array, Array]:
    """Prolate spheroidal radial function of the first kind, of a known value `cv`.

    To 14 digits for `c` up to 10, 10 at 20 and 7 at 40, where coefficients cancel.

    Special cases:
      `x` below 1, `c` not positive, and arguments out of range → nan.

    Example:
      >>> value, slope = pro_rad1_cv(1, 2, 3.0, 9.556, 1.5)
      >>> value.round(4)
      Array(0.2983, dtype=float32)
    """
    return _pair("pro_rad1_cv", _RADIAL, 1, m, n, c, x, cv)


@library(quick=True)
@_pair_docs
def obl_ang1(
    m: ArrayLike, n: ArrayLike, c: ArrayLike, x: ArrayLike
) -> tuple[Array, Array]:
    """Oblate spheroidal angular function of the first kind.

    To 15 digits for `c` up to 10, and 11 at 40, since its value or slope at 0, by
    which it is scaled, may be small.

    Special cases:
      abs(x) > 1, and arguments out of range → nan.

    Example:
      >>> value, slope = obl_ang1(1, 2, 3.0, 0.5)
      >>> value.round(4)
      Array(1.5406, dtype=float32)
    """
    return _pair("obl_ang1", _ANGULAR, -1, m, n, c, x)


@library(quick=True)
@_pair_docs
def obl_ang1_cv(
    m: ArrayLike, n: ArrayLike, c: ArrayLike, cv: ArrayLike, x: ArrayLike
) -> tuple[Array, Array]:
    """Oblate spheroidal angular function of the first kind, of a known value `cv`.

    To 15 digits for `c` up to 10, and 11 at 40, since its value or slope at 0, by
    which it is scaled, may be small.

    Special cases:
      abs(x) > 1, and arguments out of range → nan.

    Example:
      >>> value, slope = obl_ang1_cv(1, 2, 3.0, 1.8215, 0.5)
      >>> value.round(4)
      Array(1.5406, dtype=float32)
    """
    return _pair("obl_ang1_cv", _ANGULAR, -1, m, n, c, x, cv)


@library(quick=True)
@_pair_docs
def obl_rad1(
    m: ArrayLike, n: ArrayLike, c: ArrayLike, x: ArrayLike
) -> tuple[Array, Array]:
    """Oblate spheroidal radial function of the first kind.

    To 14 digits.

    Special cases:
      Negative `x`, `c` not positive, and arguments out of range → nan.

    Example:
      >>> value, slope = obl_rad1(1, 2, 3.0, 0.5)
      >>> value.round(4)
      Array(0.1981, dtype=float32)
    """
    return _pair("obl_rad1", _RADIAL, -1, m, n, c, x)


@library(quick=True)
@_pair_docs
def obl_rad1_cv(
    m: ArrayLike, n: ArrayLike, c: ArrayLike, cv: ArrayLike, x: ArrayLike
) -> tuple[Array, Array]:
    """Oblate spheroidal radial function of the first kind, of a known value `cv`.

    To 14 digits.

    Special cases:
      Negative `x`, `c` not positive, and arguments out of range → nan.

    Example:
      >>> value, slope = obl_rad1_cv(1, 2, 3.0, 1.8215, 0.5)
      >>> value.round(4)
      Array(0.1981, dtype=float32)
    """
    return _pair("obl_rad1_cv", _RADIAL, -1, m, n, c, x, cv)
