"""Floating-point numbers taken apart: sign, fraction, exponent, ulp."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow import lax
from fxflow.core.arrays import Array, dtypes
from fxflow.errors import DtypeError
from fxflow.numpy._operands import (
    array_of,
    broadcast,
    convert,
    promote_floats,
    promote_inexact,
)
from fxflow.numpy.number_kinds import signbit
from fxflow.numpy.rounding import rounded, truncated
from fxflow.numpy.ufuncs import Binary, binary, primitive_binary, unary


@unary(
    "Absolute value, as a float.",
    kind="real",
    example=("fabs(np.array([-2, 3]))", "Array([2., 3.], dtype=float32)"),
)
def fabs(x: Array) -> Array:
    """Absolute value as a float."""
    if dtypes.is_complex(x.aval.dtype):
        raise DtypeError(f"fabs: takes real numbers, got {x.aval}: use abs")
    return lax.abs(promote_inexact("fabs", x)[0])


@binary(
    "`x1` with the sign of `x2`.",
    returns="Float array of the broadcast shape.",
    promotion=promote_floats,
    example=(
        "copysign(np.array([1.0, -2.0]), -0.0)",
        "Array([-1., -2.], dtype=float32)",
    ),
)
def copysign(x: Array, y: Array) -> Array:
    """Magnitude of one, sign of the other."""
    if dtypes.is_complex(x.aval.dtype):
        raise DtypeError(f"copysign: complex numbers have no sign, got {x.aval}")
    size = lax.abs(x)
    return lax.select(signbit.function(y), lax.neg(size), size)


nextafter: Binary[Array] = primitive_binary(
    "nextafter",
    "The next float after `x1` in the direction of `x2`.",
    "nextafter",
    promotion=promote_floats,
    returns="Float array of the broadcast shape.",
    special="equal numbers give `x2`.",
    example=("nextafter(np.array([1.0]), 2.0)", "Array([1.0000001], dtype=float32)"),
)


# Bits of the mantissa and bias of the exponent; IEEE 754-2019, table 3.5.
_LAYOUT = {
    dtypes.float16: (10, 15),
    dtypes.bfloat16: (7, 127),
    dtypes.float32: (23, 127),
    dtypes.float64: (52, 1023),
}


@unary(
    "Distance to the next float away from zero, with the sign of `x`; of `float16` to "
    "the next larger one, which is positive.",
    kind="float",
    special="±inf, nan → nan.",
    example=(
        "spacing(np.array([1.0, 2.0])) * 2.0**23",
        "Array([1., 2.], dtype=float32)",
    ),
)
def spacing(x: Array) -> Array:
    """Distance to the next float."""
    if dtypes.is_complex(x.aval.dtype):
        raise DtypeError(f"spacing: takes real numbers, got {x.aval}")
    x = promote_inexact("spacing", x)[0]
    dtype = x.aval.dtype
    if dtype not in _LAYOUT:
        raise DtypeError(f"spacing: takes floats of 16 bits or more, got {x.aval}")
    if dtype == dtypes.float16:  # NumPy computes it apart, and otherwise
        step = lax.sub(lax.nextafter(x, lax.full_like(x, math.inf)), x)
    else:
        step = copysign.function(_last_place(x), lax.select(lax.eq(x, 0), 0.0, x))
    return lax.select(lax.is_finite(x), step, math.nan)


def _last_place(x: Array) -> Array:
    """Returns the value of the last bit of floats, by bits: the least are subnormal."""
    dtype = x.aval.dtype
    mantissa_bits, _ = _LAYOUT[dtype]
    bits = dtypes.bits(dtype)
    word = lax.bitcast_convert_type(x, np.dtype(f"int{bits}"))
    mask = (1 << (bits - 1 - mantissa_bits)) - 1
    exponent = lax.bitwise_and(lax.shift_right_logical(word, mantissa_bits), mask)
    # 2 to the exponent less the mantissa's bits, as the bits of a float.
    normal = lax.shift_left(lax.sub(exponent, mantissa_bits), mantissa_bits)
    one = lax.full_like(exponent, 1)
    subnormal = lax.shift_left(one, lax.max(lax.sub(exponent, 1), 0))
    step = lax.select(lax.gt(exponent, mantissa_bits), normal, subnormal)
    out = lax.bitcast_convert_type(step, dtype)
    # Its next float is infinite.
    largest = lax.eq(lax.abs(x), float(dtypes.finfo(dtype).max))
    return lax.select(largest, math.inf, out)


@unary(
    "Fractional and integral parts, both with the sign of `x`.",
    kind="float",
    returns="Two arrays of the shape and float dtype of `x`.",
    special="±inf → (±0, ±inf).",
    example=(
        "modf(np.array([1.5, -2.25]))",
        "(Array([ 0.5 , -0.25], dtype=float32), Array([ 1., -2.], dtype=float32))",
    ),
)
def modf(x: Array) -> tuple[Array, Array]:
    """Fractional and integral parts."""
    x = promote_inexact("modf", x)[0]
    whole = rounded("modf", x, truncated)
    infinite = lax.eq(lax.abs(x), math.inf)
    # Subtracted in the order that gives a zero the sign of x, and both the slope 1.
    below = signbit.function(x)
    rest = lax.select(below, lax.neg(lax.sub(whole, x)), lax.sub(x, whole))
    return lax.select(infinite, lax.mul(lax.sign(x), 0.0), rest), whole


modf.nout, modf.nargs = 2, 3


@unary(
    "Mantissa (0.5 ≤ |m| < 1) and exponent: `x = m * 2**e`.",
    kind="float",
    returns="A float array and an int32 array of the shape of `x`.",
    special="0, ±inf, nan → themselves with exponent 0.",
    example=(
        "frexp(np.array([8.0, 0.375]))",
        "(Array([0.5 , 0.75], dtype=float32), Array([ 4, -1], dtype=int32))",
    ),
)
def frexp(x: Array) -> tuple[Array, Array]:
    """Mantissa and exponent."""
    x = promote_inexact("frexp", x)[0]
    dtype = x.aval.dtype
    if dtype not in _LAYOUT:
        raise DtypeError(f"frexp: takes floats of 16 bits or more, got {x.aval}")
    mantissa_bits, bias = _LAYOUT[dtype]
    bits = dtypes.bits(dtype)
    whole = np.dtype(f"int{bits}")
    word = lax.bitcast_convert_type(x, whole)
    mask = (1 << (bits - 1 - mantissa_bits)) - 1
    # Subnormal numbers are made normal first, from their bits: compiled programs take
    # them for 0. What is added has the derivative, and the value 0.
    shift = mantissa_bits + 1
    fraction = lax.bitwise_and(word, (1 << mantissa_bits) - 1)
    field = lax.bitwise_and(lax.shift_right_logical(word, mantissa_bits), mask)
    small, empty = lax.eq(field, 0), lax.eq(fraction, 0)
    tiny = lax.bitwise_and(small, lax.bitwise_not(empty))
    signed = lax.select(lax.lt(word, 0), lax.neg(fraction), fraction)
    normal = lax.mul(lax.convert_element_type(signed, dtype), 2.0 ** (2 - bias))
    slope = lax.mul(lax.sub(x, lax.stop_gradient(x)), float(2**shift))
    scaled = lax.select(tiny, lax.add(normal, slope), x)
    word = lax.bitcast_convert_type(scaled, whole)
    raised = lax.bitwise_and(lax.shift_right_logical(word, mantissa_bits), mask)
    exponent = lax.sub(lax.convert_element_type(raised, dtypes.int32), bias - 1)
    plain = lax.bitwise_or(lax.bitwise_and(small, empty), lax.eq(field, mask))
    # x times a power of two, which is exact and has a derivative; in two factors, since
    # one could be out of range.
    mantissa = scaled
    first = lax.div(exponent, 2)
    for power in (first, lax.sub(exponent, first)):
        mantissa = lax.mul(mantissa, _power_of_two(lax.neg(power), dtype))
    exponent = lax.select(tiny, lax.sub(exponent, shift), exponent)
    return lax.select(plain, x, mantissa), lax.select(plain, 0, exponent)


frexp.nout, frexp.nargs = 2, 3


@binary(
    "`x1 * 2**x2`.",
    returns="Float array of the broadcast shape.",
    raises="`x2` is not of integers, or `x1` is complex.",
    mixed=True,
    promotion=lambda name, x, y: _ldexp_operands(x, y),
    example=(
        "ldexp(np.array([0.5, 0.75]), np.array([4, 2]))",
        "Array([8., 3.], dtype=float32)",
    ),
)
def ldexp(x: Array, y: Array) -> Array:
    """A number times a power of two, in steps, so that none overflows alone."""
    dtype = x.aval.dtype
    limit = int(dtypes.finfo(dtype).maxexp) - 1
    # XLA would make one factor of two constant ones, which may overflow.
    y = lax.optimization_barrier(lax.clamp(-4 * limit, y, 4 * limit))
    out = x
    for _ in range(3):
        step = lax.clamp(-limit + 1, y, limit)
        y = lax.sub(y, step)
        out = lax.mul(out, _power_of_two(step, dtype))
    return out


def _power_of_two(exponent: Array, dtype: Any) -> Array:
    """Returns 2 ** exponent of a normal number, from its bits: `exp2` may be off."""
    if dtype not in _LAYOUT:
        return lax.exp2(lax.convert_element_type(exponent, dtype))
    mantissa_bits, bias = _LAYOUT[dtype]
    whole = np.dtype(f"int{dtypes.bits(dtype)}")
    field = lax.convert_element_type(lax.add(exponent, bias), whole)
    return lax.bitcast_convert_type(lax.shift_left(field, mantissa_bits), dtype)


def _ldexp_operands(x: Any, y: Any) -> list[Any]:
    y = array_of(y, "ldexp")
    if not dtypes.is_integer(y.aval.dtype) and not dtypes.is_bool(y.aval.dtype):
        raise DtypeError(f"ldexp: exponents must be integers, got {y.aval}")
    (x,) = promote_inexact("ldexp", x)
    if dtypes.is_complex(x.aval.dtype):
        raise DtypeError(f"ldexp: takes real numbers, got {x.aval}")
    return broadcast("ldexp", [x, convert(y, dtypes.int32)])
