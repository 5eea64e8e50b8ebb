"""Whether numbers are close, and arrays equal."""

from __future__ import annotations

from typing import Any

from fxflow import lax
from fxflow.core.arrays import Array, dtypes
from fxflow.core.ir.arith import constant
from fxflow.core.ir.primitive import table
from fxflow.core.runtime.library import library
from fxflow.numpy._operands import (
    ArrayLike,
    array_of,
    broadcast,
    convert,
    promote,
    promote_inexact,
)
from fxflow.numpy.number_kinds import isfinite


@library("equal_nan")
def isclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: Any = 1e-05,
    atol: Any = 1e-08,
    equal_nan: bool = False,
) -> Array:
    """Whether `|a - b| <= atol + rtol * |b|`, element by element.

    Args:
      a: array-like.
      b: array-like, the reference.
      rtol: relative tolerance.
      atol: absolute tolerance.
      equal_nan: whether nan is close to nan.

    Returns:
      Array of bools of the broadcast shape.

    Raises:
      ShapeError: the shapes do not broadcast.

    Special cases:
      Infinities are close if they are equal; so are keys.

    Example:
      >>> isclose(np.array([1.0, np.nan]), np.array([1.0, np.nan]), equal_nan=True)
      Array([ True,  True], dtype=bool)

    Source: `numpy.isclose`.
    """
    x, y = promote("isclose", a, b)
    if dtypes.is_key(x.aval.dtype):
        return lax.eq(x, y)
    if dtypes.is_bool(x.aval.dtype):
        x, y = (convert(v, dtypes.default_int()) for v in (x, y))
    if not dtypes.is_inexact(x.aval.dtype):
        x, y = promote_inexact("isclose", x, y)
    x, y = broadcast("isclose", (x, y))
    part = dtypes.to_real(x.aval.dtype)
    rtol, atol = (_tolerance(t, part) for t in (rtol, atol))
    gap = lax.abs(lax.sub(x, y))
    bound = table["add"].bind(*broadcast("isclose", (atol, _product(rtol, lax.abs(y)))))
    near = table["le"].bind(*broadcast("isclose", (gap, bound)))
    finite = lax.bitwise_and(
        *broadcast("isclose", (isfinite.function(x), isfinite.function(y)))
    )
    near = lax.bitwise_and(*broadcast("isclose", (near, finite)))
    # Equal infinities are close, though their difference is nan.
    near = lax.bitwise_or(*broadcast("isclose", (near, lax.eq(x, y))))
    if equal_nan:
        both = lax.bitwise_and(*broadcast("isclose", (lax.ne(x, x), lax.ne(y, y))))
        near = lax.bitwise_or(*broadcast("isclose", (near, both)))
    return near


def _tolerance(value: Any, dtype: Any) -> Any:
    if isinstance(value, int | float):
        return constant(float(value), dtype)
    return convert(array_of(value, "isclose"), dtype)


def _product(x: Any, y: Any) -> Any:
    return table["mul"].bind(*broadcast("isclose", (x, y)))


def _all(x: Any) -> Array:
    return lax.reduce_and(x, tuple(range(x.aval.ndim)))


@library("equal_nan")
def allclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: Any = 1e-05,
    atol: Any = 1e-08,
    equal_nan: bool = False,
) -> Array:
    """Whether all elements are close, in the sense of `isclose`.

    Args:
      a: array-like.
      b: array-like, the reference.
      rtol: relative tolerance.
      atol: absolute tolerance.
      equal_nan: whether nan is close to nan.

    Returns:
      0-d array of bool.

    Raises:
      ShapeError: the shapes do not broadcast.

    Example:
      >>> allclose(np.array([1.0, 2.0]), np.array([1.0, 2.1]), atol=0.2)
      Array(True, dtype=bool)

    Source: `numpy.allclose`.
    """
    return _all(isclose(a, b, rtol, atol, equal_nan))


@library("equal_nan")
def _array_equal(a1: Any, a2: Any, equal_nan: bool) -> Array:
    x, y = promote("array_equal", a1, a2)
    same = lax.eq(x, y)
    if equal_nan and dtypes.is_inexact(x.aval.dtype):
        same = lax.bitwise_or(same, lax.bitwise_and(lax.ne(x, x), lax.ne(y, y)))
    return _all(same)


def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> Array:
    """Whether two arrays have one shape and equal elements.

    Args:
      a1: array-like.
      a2: array-like.
      equal_nan: whether nan equals nan.

    Returns:
      0-d array of bool.

    Raises:
      ArgumentError: an argument is not an array.

    Example:
      >>> array_equal(np.array([1, 2]), np.array([[1, 2]]))
      Array(False, dtype=bool)

    Source: `numpy.array_equal`.
    """
    x, y = array_of(a1, "array_equal"), array_of(a2, "array_equal")
    if x.aval.shape != y.aval.shape:
        return constant(False, dtypes.bool_)
    return _array_equal(x, y, equal_nan)


def array_equiv(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Whether two arrays broadcast together to equal elements.

    Args:
      a1: array-like.
      a2: array-like.

    Returns:
      0-d array of bool.

    Raises:
      ArgumentError: an argument is not an array.

    Example:
      >>> array_equiv(np.array([1, 2]), np.array([[1, 2], [1, 2]]))
      Array(True, dtype=bool)

    Source: `numpy.array_equiv`.
    """
    x, y = array_of(a1, "array_equiv"), array_of(a2, "array_equiv")
    pairs = zip(x.aval.shape[::-1], y.aval.shape[::-1], strict=False)
    if any(n != m and 1 not in (n, m) for n, m in pairs):
        return constant(False, dtypes.bool_)
    return _array_equal(x, y, False)
