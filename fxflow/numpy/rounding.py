"""Rounding to integers and to decimals."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from fxflow import lax
from fxflow.core.arrays import Array, dtypes
from fxflow.core.runtime.library import library
from fxflow.errors import DtypeError
from fxflow.numpy._operands import (
    ArrayLike,
    array_of,
    convert,
    no_out,
    promote_inexact,
)
from fxflow.numpy.ufuncs import unary

_TIES_EVEN = lax.RoundingMethod.TO_NEAREST_EVEN


def rounded(name: str, x: Array, function: Callable[[Array], Array]) -> Array:
    """Applies a rounding to floats; integers are round already."""
    if dtypes.is_complex(x.aval.dtype):
        raise DtypeError(f"{name}: complex numbers have no order, got {x.aval}")
    if dtypes.is_floating(x.aval.dtype):
        return function(x)
    return x


@unary(
    "The next integer below, as a float.",
    kind="real",
    example=("floor(np.array([1.2, -1.2]))", "Array([ 1., -2.], dtype=float32)"),
)
def floor(x: Array) -> Array:
    """Rounded down."""
    return rounded("floor", x, lax.floor)


@unary(
    "The next integer above, as a float.",
    kind="real",
    example=("ceil(np.array([1.2, -1.2]))", "Array([ 2., -1.], dtype=float32)"),
)
def ceil(x: Array) -> Array:
    """Rounded up."""
    return rounded("ceil", x, lax.ceil)


@unary(
    "The next integer towards zero, as a float.",
    kind="real",
    example=("trunc(np.array([1.7, -1.7]))", "Array([ 1., -1.], dtype=float32)"),
)
def trunc(x: Array) -> Array:
    """Rounded towards zero."""
    return rounded("trunc", x, truncated)


def truncated(x: Array) -> Array:
    """Returns floats rounded towards zero."""
    return lax.select(lax.lt(x, 0), lax.ceil(x), lax.floor(x))


@unary(
    "The nearest integer, as a float; of two the even one.",
    kind="numeric",
    example=("rint(np.array([0.5, 1.5, 2.6]))", "Array([0., 2., 3.], dtype=float32)"),
)
def rint(x: Array) -> Array:
    """Rounded to the nearest."""
    if dtypes.is_complex(x.aval.dtype):
        return lax.complex(
            *(lax.round(p, _TIES_EVEN) for p in (lax.real(x), lax.imag(x)))
        )
    if not dtypes.is_floating(x.aval.dtype):
        x = promote_inexact("rint", x)[0]
    return lax.round(x, _TIES_EVEN)


@library("decimals")
def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """Rounds to a number of decimal places; of two nearest numbers the even one.

    Args:
      a: array-like.
      decimals: places behind the point; negative ones are before it.
      out: not supported; arrays never change.

    Returns:
      Array of the shape and dtype of `a`.

    Raises:
      ArgumentError: `out` is given.

    Example:
      >>> round(np.float32(2.345), 1)
      Array(2.3, dtype=float32)

    Source: `numpy.round`.
    """
    no_out("round", out)
    x = array_of(a, "round")
    dtype = x.aval.dtype
    if dtypes.is_inexact(dtype) and decimals:
        x = convert(x, dtype)
    if dtypes.is_bool(dtype):
        return x
    if dtypes.is_complex(dtype):
        parts = (lax.real(x), lax.imag(x))
        return lax.complex(*(round(p, decimals) for p in parts))
    if dtypes.is_integer(dtype):
        if decimals >= 0:
            return x
        unit = 10 ** (-decimals)
        if unit > int(dtypes.iinfo(dtype).max):
            return lax.mul(x, 0)
        halves = lax.div(lax.convert_element_type(x, np.float64), float(unit))
        rounded = lax.convert_element_type(lax.round(halves, _TIES_EVEN), dtype)
        return lax.mul(rounded, unit)
    if not decimals:
        return lax.round(x, _TIES_EVEN)
    # Small floats cannot hold the scaled number.
    wide = convert(x, dtypes.float32) if dtypes.bits(dtype) < 32 else x
    most = int(math.log10(float(dtypes.finfo(wide.aval.dtype).max)))
    if decimals < -most:
        return lax.full_like(x, 0)
    factor = 10.0 ** min(abs(decimals), most)
    up, down = (lax.mul, _over) if decimals > 0 else (_over, lax.mul)
    scaled = up(wide, factor)
    rounded = down(lax.round(scaled, _TIES_EVEN), factor)
    # Numbers that are whole when scaled, or too large to be, have no such decimals.
    within = lax.lt(lax.abs(scaled), 2.0 ** dtypes.finfo(wide.aval.dtype).nmant)
    rounded = lax.select(within, rounded, wide)
    return convert(rounded, dtype, x.aval.weak_type)


def _over(x: Array, factor: float) -> Array:
    """Returns `x / factor`, in two steps where XLA would lose it.

    XLA multiplies by the reciprocal of a constant, and flushes one that is subnormal.
    """
    if 1 / factor >= float(dtypes.finfo(x.aval.dtype).tiny):
        return lax.div(x, factor)
    return lax.div(lax.optimization_barrier(lax.div(x, 10.0)), factor / 10)
