"""Mathieu functions of integer order and their characteristic values (DLMF 28).

A characteristic value is an eigenvalue of a symmetric tridiagonal matrix, one of four
by the parities of the function and the order (`_tridiagonal.py`). Its eigenvector holds
the Fourier coefficients.
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
from fxflow.numpy._operands import ArrayLike, convert
from fxflow.scipy.special._blocks import in_blocks
from fxflow.scipy.special._derivatives import by_forward
from fxflow.scipy.special._operands import docs_of, in_64_bits, operands
from fxflow.scipy.special._tridiagonal import eigenvalue, eigenvector_sums

_HIGHEST, _LARGEST = 1000, 1e5
# Eigenvalues of one matrix are at least 3 apart.
_NEAR = 0.03


class _Matrix(NamedTuple):
    """The matrix of an element, as `_tridiagonal` takes it.

    Attributes:
      q: the parameter.
      first: the frequency of the first coefficient: 0, 1 or 2.
      corner: what q is multiplied with in the first entry: 1, -1 or 0.
      index: which of its eigenvalues is meant.
      top: the last row, a number.
    """

    q: Any
    first: Any
    corner: Any
    index: Any
    top: Any

    def frequency(self, k: Any) -> Any:
        """Returns the frequency of a coefficient."""
        return 2 * k + self.first

    def base(self, k: Any) -> Any:
        """Returns an entry of the diagonal where q is 0."""
        return lax.square(self.frequency(k))

    def bend(self, k: Any) -> Any:
        """Returns the derivative of an entry of the diagonal with respect to q."""
        return fnp.where(k == 0, self.corner, 0)

    def beside(self, k: Any) -> Any:
        """Returns the entry beside the diagonal of the row k, over q."""
        return fnp.where((k == 0) & (self.first == 0), math.sqrt(2), 1.0)

    def largest(self, a: Any) -> Any:
        """Returns where the eigenvector of an eigenvalue is large."""
        size = lax.sqrt(fnp.maximum(a + 2 * lax.abs(self.q), 0))
        return lax.round(0.5 * (size - self.first))


def matrix_of(even: bool, m: Any, q: Any) -> _Matrix:
    """Returns the matrix of even or odd functions of an order."""
    odd = m - 2 * lax.floor(m / 2)
    first = odd if even else 2 - odd
    root = lax.stop_gradient(lax.sqrt(lax.abs(q)))
    # From there on coefficients fall faster than by 6 with each, by more for small q.
    top = 0.5 * m + 1.4 * root + 16 + 8 * root / (root + 20)
    top = lax.ceil(fnp.max(top, initial=1))
    return _Matrix(q, first, odd if even else -odd, (m - first) / 2, top)


def _sums(matrix: _Matrix, a: Any, terms: Any = None, x: Any = None) -> Any:
    """Returns what `eigenvector_sums` does, of multiples of an angle.

    Args:
      matrix: the matrix.
      a: the eigenvalue.
      terms: of k and the cosine and sine of its frequency times x: what the
        coefficients are multiplied with in each sum. None: there are no sums.
      x: the angle.
    """
    if terms is None:
        return eigenvector_sums(matrix, a)
    turn_c, turn_s = lax.cos(2 * x), lax.sin(2 * x)

    def wave_of(k: Any) -> Any:
        f = matrix.frequency(k)
        return lax.cos(f * x), lax.sin(f * x)

    def turned(wave: Any, sign: float) -> Any:
        """Returns the cosine and sine of the next frequency, or of the one before."""
        (c, s), sine = wave, sign * turn_s
        return c * turn_c - s * sine, s * turn_c + c * sine

    return eigenvector_sums(matrix, a, lambda k, wave: terms(k, *wave), wave_of, turned)


def _known(even: bool, m: Any, q: Any) -> Any:
    least = 0 if even else 1
    known = (m == lax.floor(m)) & (m >= least) & (m <= _HIGHEST)
    return known & (lax.abs(q) <= _LARGEST)


def _usual(even: bool, m: Any, q: Any) -> Any:
    known = _known(even, m, q)
    return known, fnp.where(known, m, 1), fnp.where(known, q, 0)


def _key(m: Any, q: Any, *_: Any) -> Any:
    """Returns how many rows of the matrix an element needs, in eighths."""
    _, m, q = _usual(True, m, q)
    return 4 * m + 12 * lax.sqrt(lax.abs(q))


def _values(even: bool, m: Any, q: Any) -> Any:
    return in_blocks(functools.partial(_block, even), _key, m, q)


def _block(even: bool, m: Any, q: Any) -> Any:
    known, m, q = _usual(even, m, q)
    matrix = matrix_of(even, m, lax.stop_gradient(q))
    middle = lax.square(matrix.frequency(matrix.index))
    reach = 2 * lax.abs(matrix.q) + 1e-9 * (1 + middle)
    a = eigenvalue(matrix, middle - reach, middle + reach, _NEAR)
    return fnp.where(known, a, math.nan)


def _slope(even: bool, m: Any, q: Any) -> Any:
    known, m, q = _usual(even, m, q)
    a = _CHARACTERISTIC[even](m, q)
    _, length, form = _sums(matrix_of(even, m, q), a)
    return fnp.where(known, form / length, math.nan)


def _flat(m: Any, q: Any, *_: Any) -> Any:
    return 0 * q


_CHARACTERISTIC: dict[bool, Any] = {
    even: by_forward(
        functools.partial(_values, even),
        _flat,
        by_forward(functools.partial(_slope, even), _flat, None),
    )
    for even in (True, False)
}


def characteristic(even: bool, m: Any, q: Any) -> Any:
    """Returns characteristic values of arrays of 64 bits."""
    return _CHARACTERISTIC[even](m, q)


def _functions(even: bool, m: Any, q: Any, x: Any) -> Any:
    """Returns a function and its derivative with respect to x, of radians."""
    return fnp.stack(in_blocks(functools.partial(_waves, even), _key, m, q, x))


def _waves(even: bool, m: Any, q: Any, x: Any) -> tuple[Any, Any]:
    known, m, q = _usual(even, m, q)
    known = known & (x - x == 0)
    x = fnp.where(known, x, 0)
    a, matrix = _CHARACTERISTIC[even](m, q), matrix_of(even, m, q)

    def sign_of(k: Any, f: Any, size: Any) -> Any:
        """Returns the terms of a sum that is positive.

        At 0 a function or its derivative is. For positive q both may be tiny there, and
        the one at π/2 is large, and has a sign for each zero on the way.
        """
        at_end = fnp.where(matrix.first == (1 if even else 2), f, size)
        away = k - matrix.index
        odd = away != 2 * lax.floor(away / 2)
        at_end = fnp.where(odd, -at_end, at_end)
        return fnp.where(q > 0, at_end, size if even else f)

    def terms(k: Any, c: Any, s: Any) -> Any:
        f = matrix.frequency(k)
        size = fnp.where((k == 0) & (matrix.first == 0), math.sqrt(0.5), 1.0)
        c, s = size * c, size * s
        if even:
            return c, -f * s, sign_of(k, f, size)
        return s, f * c, sign_of(k, f, size)

    _, length, _, value, slope, sign = _sums(matrix, a, terms, x)
    scale = fnp.where(sign < 0, -1.0, 1.0) / lax.sqrt(length)
    value, slope = (fnp.where(known, scale * v, math.nan) for v in (value, slope))
    return value, slope


def _function_slopes(even: bool, m: Any, q: Any, x: Any) -> Any:
    value, slope = _FUNCTIONS[even](m, q, x)
    bend = (2 * q * lax.cos(2 * x) - _CHARACTERISTIC[even](m, q)) * value
    return fnp.stack([slope, bend])


def _flat_pair(m: Any, q: Any, x: Any) -> Any:
    return fnp.stack([0 * q, 0 * q])


_FUNCTIONS: dict[bool, Any] = {
    even: by_forward(
        functools.partial(_functions, even),
        _flat_pair,
        None,
        functools.partial(_function_slopes, even),
    )
    for even in (True, False)
}

# -- functions -------------------------------------------------------------------------

_docs = docs_of(
    """
m: array-like of integers up to 1,000: the order.
q: real array-like from -100,000 to 100,000: the parameter.
""",
    ", with derivatives with respect to `q`; DLMF 28.2",
)


@library(quick=True)
@_docs
def mathieu_a(m: ArrayLike, q: ArrayLike) -> Array:
    """Characteristic value of an even Mathieu function.

    Special cases:
      Orders that are not integers or negative, and numbers out of range → nan.

    Example:
      >>> mathieu_a(2, 5.0).round(4)
      Array(7.4491, dtype=float32)
    """
    return in_64_bits(_CHARACTERISTIC[True], "mathieu_a", m, q)


@library(quick=True)
@_docs
def mathieu_b(m: ArrayLike, q: ArrayLike) -> Array:
    """Characteristic value of an odd Mathieu function.

    Special cases:
      Orders that are not integers or not positive, and numbers out of range → nan.

    Example:
      >>> mathieu_b(2, 5.0).round(4)
      Array(2.0995, dtype=float32)
    """
    return in_64_bits(_CHARACTERISTIC[False], "mathieu_b", m, q)


_function_docs = shared("""
    Args:
      m: array-like of integers up to 1,000: the order.
      q: real array-like from -100,000 to 100,000: the parameter.
      x: real array-like: the angle in degrees.

    Returns:
      Two float arrays of the broadcast shape: the function, and its derivative with
      respect to the angle in radians.

    Raises:
      ArgumentError: an argument is not an array.
      DtypeError: an argument is complex.

    Source: `scipy.special.{name}`, with derivatives with respect to `q` and `x`; DLMF
    28.4.
""")


def _pair(name: str, even: bool, m: Any, q: Any, x: Any) -> tuple[Array, Array]:
    m, q, x = operands(name, m, q, x)
    wide = [convert(a, dtypes.float64) for a in (m, q, x)]
    out = _FUNCTIONS[even](*wide[:2], wide[2] * (math.pi / 180))
    value, slope = convert(out, q.aval.dtype)
    return value, slope


@library(quick=True)
@_function_docs
def mathieu_cem(m: ArrayLike, q: ArrayLike, x: ArrayLike) -> tuple[Array, Array]:
    """Even Mathieu function and its derivative.

    Accurate to a few units in the last place, relative to its maximum.

    Special cases:
      Orders that are not integers or negative, and numbers out of range → nan.

    Example:
      >>> value, slope = mathieu_cem(2, 5.0, 30.0)
      >>> value.round(4)
      Array(0.9065, dtype=float32)
    """
    return _pair("mathieu_cem", True, m, q, x)


@library(quick=True)
@_function_docs
def mathieu_sem(m: ArrayLike, q: ArrayLike, x: ArrayLike) -> tuple[Array, Array]:
    """Odd Mathieu function and its derivative.

    Accurate to a few units in the last place, relative to its maximum.

    Special cases:
      Orders that are not integers or not positive, and numbers out of range → nan.

    Example:
      >>> value, slope = mathieu_sem(2, 5.0, 30.0)
      >>> value.round(4)
      Array(0.5046, dtype=float32)
    """
    return _pair("mathieu_sem", False, m, q, x)
