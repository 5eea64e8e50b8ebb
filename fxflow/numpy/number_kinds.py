"""What kind of number each element is: finite, real, negative."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow import lax
from fxflow.core.arrays import Array, dtypes
from fxflow.core.ir.arith import constant
from fxflow.errors import DtypeError
from fxflow.numpy._operands import (
    convert,
)
from fxflow.numpy.ufuncs import unary

_BOOLS = "Array of bools of the shape of `x`."


def _bools_like(x: Array, value: bool) -> Array:
    return lax.broadcast_in_dim(constant(value, dtypes.bool_), x.aval.shape, ())


def _either_part(x: Array, function: Callable[[Array], Array]) -> Array:
    """Applies a question to the parts of complex numbers."""
    if dtypes.is_complex(x.aval.dtype):
        return lax.bitwise_or(function(lax.real(x)), function(lax.imag(x)))
    return function(x)


@unary(
    "Whether a number is nan (either part, of a complex one).",
    returns=_BOOLS,
    example=(
        "isnan(np.array([1.0, np.inf, np.nan]))",
        "Array([False, False,  True], dtype=bool)",
    ),
)
def isnan(x: Array) -> Array:
    """Whether a number is nan."""
    if not dtypes.is_inexact(x.aval.dtype):
        return _bools_like(x, False)
    return lax.ne(x, x)


@unary(
    "Whether a number is ±inf (either part, of a complex one).",
    returns=_BOOLS,
    example=(
        "isinf(np.array([1.0, -np.inf, np.nan]))",
        "Array([False,  True, False], dtype=bool)",
    ),
)
def isinf(x: Array) -> Array:
    """Whether a number is infinite."""
    if not dtypes.is_inexact(x.aval.dtype):
        return _bools_like(x, False)
    return _either_part(x, lambda part: lax.eq(lax.abs(part), math.inf))


@unary(
    "Whether a number is neither nan nor ±inf.",
    returns=_BOOLS,
    example=(
        "isfinite(np.array([1.0, np.inf, np.nan]))",
        "Array([ True, False, False], dtype=bool)",
    ),
)
def isfinite(x: Array) -> Array:
    """Whether a number is finite."""
    if not dtypes.is_inexact(x.aval.dtype):
        return _bools_like(x, True)
    if dtypes.is_complex(x.aval.dtype):
        return lax.bitwise_and(lax.is_finite(lax.real(x)), lax.is_finite(lax.imag(x)))
    return lax.is_finite(x)


def _is_signed_infinity(name: str, x: Array, value: float) -> Array:
    if dtypes.is_complex(x.aval.dtype):
        raise DtypeError(f"{name}: complex numbers have no sign, got {x.aval}")
    if not dtypes.is_floating(x.aval.dtype):
        return _bools_like(x, False)
    return lax.eq(x, value)


@unary(
    "Whether a number is +inf.",
    returns=_BOOLS,
    kind="real",
    example=(
        "isposinf(np.array([np.inf, -np.inf, 1.0]))",
        "Array([ True, False, False], dtype=bool)",
    ),
)
def isposinf(x: Array) -> Array:
    """Whether a number is +inf."""
    return _is_signed_infinity("isposinf", x, math.inf)


@unary(
    "Whether a number is -inf.",
    returns=_BOOLS,
    kind="real",
    example=(
        "isneginf(np.array([np.inf, -np.inf, 1.0]))",
        "Array([False,  True, False], dtype=bool)",
    ),
)
def isneginf(x: Array) -> Array:
    """Whether a number is -inf."""
    return _is_signed_infinity("isneginf", x, -math.inf)


@unary(
    "Whether the imaginary part is not zero.",
    returns=_BOOLS,
    example=(
        "iscomplex(np.array([1 + 2j, 3 + 0j]))",
        "Array([ True, False], dtype=bool)",
    ),
)
def iscomplex(x: Array) -> Array:
    """Whether the imaginary part is not zero."""
    if not dtypes.is_complex(x.aval.dtype):
        return _bools_like(x, False)
    return lax.ne(lax.imag(x), 0)


@unary(
    "Whether the imaginary part is zero.",
    returns=_BOOLS,
    example=("isreal(np.array([1 + 2j, 3 + 0j]))", "Array([False,  True], dtype=bool)"),
)
def isreal(x: Array) -> Array:
    """Whether the imaginary part is zero."""
    if not dtypes.is_complex(x.aval.dtype):
        return _bools_like(x, True)
    return lax.eq(lax.imag(x), 0)


@unary(
    "Whether the sign bit is set.",
    returns=_BOOLS,
    kind="real",
    special="-0.0 → True.",
    example=("signbit(np.array([-0.0, 3.0]))", "Array([ True, False], dtype=bool)"),
)
def signbit(x: Array) -> Array:
    """Whether the sign bit is set."""
    dtype = x.aval.dtype
    if dtypes.is_complex(dtype):
        raise DtypeError(f"signbit: complex numbers have no sign, got {x.aval}")
    if dtypes.is_integer(dtype):
        return lax.lt(x, 0)
    if dtypes.is_bool(dtype):
        return _bools_like(x, False)
    word = np.dtype(f"int{_float_bits(dtype)}")
    return lax.lt(lax.bitcast_convert_type(_standard(x), word), 0)


def _float_bits(dtype: Any) -> int:
    return max(16, dtypes.bits(dtype))


def _standard(x: Any) -> Any:
    """Returns floats of less than 16 bits as f16, whose bits are an integer."""
    return x if dtypes.bits(x.aval.dtype) >= 16 else convert(x, dtypes.float16)
