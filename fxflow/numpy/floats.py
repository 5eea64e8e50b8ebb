"""Rounding, the parts of floating-point and complex numbers, closeness."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow import lax
from fxflow.core.arrays import dtypes
from fxflow.core.arrays.array import Array
from fxflow.core.ir.arith import constant
from fxflow.core.runtime.eager import library
from fxflow.errors import DtypeError
from fxflow.numpy._declare import binary, primitive_binary, unary
from fxflow.numpy._operands import (
    ArrayLike,
    array_of,
    broadcast,
    convert,
    no_out,
    promote_dtypes,
    promote_floats,
    promote_inexact,
)
from fxflow.numpy.selection import choose_between

_BOOLS = "Array of bools of the shape of `x`."
_TIES_EVEN = lax.RoundingMethod.TO_NEAREST_EVEN


# -- rounding --------------------------------------------------------------------------


def _rounding(name: str, x: Array, function: Callable[[Array], Array]) -> Array:
    """Applies a rounding to floats; integers are round already."""
    if dtypes.is_complex(x.aval.dtype):
        raise DtypeError(f"{name}: complex numbers have no order, got {x.aval}")
    if dtypes.is_floating(x.aval.dtype):
        return function(x)
    return x


@unary("The next integer below, as a float.", kind="real")
def floor(x: Array) -> Array:
    """Rounded down."""
    return _rounding("floor", x, lax.floor)


@unary("The next integer above, as a float.", kind="real")
def ceil(x: Array) -> Array:
    """Rounded up."""
    return _rounding("ceil", x, lax.ceil)


@unary("The next integer towards zero, as a float.", kind="real")
def trunc(x: Array) -> Array:
    """Rounded towards zero."""
    return _rounding("trunc", x, _truncated)


def _truncated(x: Array) -> Array:
    return lax.select(lax.lt(x, 0), lax.ceil(x), lax.floor(x))


@unary("The nearest integer, as a float; of two the even one.", kind="numeric")
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
    up, down = (lax.mul, lax.div) if decimals > 0 else (lax.div, lax.mul)
    rounded = down(lax.round(up(wide, factor), _TIES_EVEN), factor)
    # Numbers too large to be scaled have no such decimals.
    rounded = lax.select(lax.is_finite(rounded), rounded, wide)
    return convert(rounded, dtype, x.aval.weak_type)


# -- what kind of number ---------------------------------------------------------------


def _bools_like(x: Array, value: bool) -> Array:
    return lax.broadcast_in_dim(constant(value, dtypes.bool_), x.aval.shape, ())


def _either_part(x: Array, function: Callable[[Array], Array]) -> Array:
    """Applies a question to the parts of complex numbers."""
    if dtypes.is_complex(x.aval.dtype):
        return lax.bitwise_or(function(lax.real(x)), function(lax.imag(x)))
    return function(x)


@unary("Whether a number is nan (either part, of a complex one).", returns=_BOOLS)
def isnan(x: Array) -> Array:
    """Whether a number is nan."""
    if not dtypes.is_inexact(x.aval.dtype):
        return _bools_like(x, False)
    return lax.ne(x, x)


@unary("Whether a number is ±inf (either part, of a complex one).", returns=_BOOLS)
def isinf(x: Array) -> Array:
    """Whether a number is infinite."""
    if not dtypes.is_inexact(x.aval.dtype):
        return _bools_like(x, False)
    return _either_part(x, lambda part: lax.eq(lax.abs(part), math.inf))


@unary("Whether a number is neither nan nor ±inf.", returns=_BOOLS)
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


@unary("Whether a number is +inf.", returns=_BOOLS, kind="real")
def isposinf(x: Array) -> Array:
    """Whether a number is +inf."""
    return _is_signed_infinity("isposinf", x, math.inf)


@unary("Whether a number is -inf.", returns=_BOOLS, kind="real")
def isneginf(x: Array) -> Array:
    """Whether a number is -inf."""
    return _is_signed_infinity("isneginf", x, -math.inf)


@unary("Whether the imaginary part is not zero.", returns=_BOOLS)
def iscomplex(x: Array) -> Array:
    """Whether the imaginary part is not zero."""
    if not dtypes.is_complex(x.aval.dtype):
        return _bools_like(x, False)
    return lax.ne(lax.imag(x), 0)


@unary("Whether the imaginary part is zero.", returns=_BOOLS)
def isreal(x: Array) -> Array:
    """Whether the imaginary part is zero."""
    if not dtypes.is_complex(x.aval.dtype):
        return _bools_like(x, True)
    return lax.eq(lax.imag(x), 0)


@unary(
    "Whether the sign bit is set.", returns=_BOOLS, kind="real", special="-0.0 → True."
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


# -- parts -----------------------------------------------------------------------------


@unary("Real part.", returns="Array of the shape of `x`, of the dtype of its parts.")
def real(x: Array) -> Array:
    """Real part."""
    return lax.real(x) if dtypes.is_complex(x.aval.dtype) else x


@unary(
    "Imaginary part.", returns="Array of the shape of `x`, of the dtype of its parts."
)
def imag(x: Array) -> Array:
    """Imaginary part."""
    if dtypes.is_complex(x.aval.dtype):
        return lax.imag(x)
    zero = constant(0, x.aval.dtype, x.aval.weak_type)
    return lax.broadcast_in_dim(zero, x.aval.shape, ())


@unary("Complex conjugate; real numbers are their own.")
def conjugate(x: Array) -> Array:
    """Complex conjugate."""
    return lax.conj(x) if dtypes.is_complex(x.aval.dtype) else x


@library("deg")
def angle(z: ArrayLike, deg: bool = False) -> Array:
    """Angle of complex numbers, from -π to π.

    Args:
      z: array-like.
      deg: whether in degrees.

    Returns:
      Float array of the shape of `z`.

    Raises:
      ArgumentError: `z` is not an array.

    Special cases:
      -0 is a negative number: its angle is π.

    Source: `numpy.angle`.
    """
    (x,) = promote_inexact("angle", z)
    if dtypes.is_complex(x.aval.dtype):
        out = lax.atan2(lax.imag(x), lax.real(x))
    else:
        dtype, weak = x.aval.dtype, x.aval.weak_type
        zero, half = constant(0, dtype, weak), constant(math.pi, dtype, weak)
        out = choose_between(signbit.function(x), half, zero)
        out = choose_between(lax.ne(x, x), x, out)
    return lax.mul(out, 180 / math.pi) if deg else out


def real_if_close(a: ArrayLike, tol: float = 100) -> Array:
    """Returns the real parts if the imaginary parts are all close to zero.

    Args:
      a: concrete array-like.
      tol: above 1: in machine epsilons; else the largest imaginary part itself.

    Returns:
      Array, real or complex: so `a` may not be traced.

    Raises:
      ConcretizationError: `a` is traced.

    Source: `numpy.real_if_close`.
    """
    x = array_of(a, "real_if_close")
    if not dtypes.is_complex(x.aval.dtype):
        return x
    if tol > 1:
        tol = tol * float(dtypes.finfo(x.aval.dtype).eps)
    close = bool((np.abs(np.asarray(x).imag) < tol).all())
    return real(x) if close else x


@unary("Absolute value, as a float.", kind="real")
def fabs(x: Array) -> Array:
    """Absolute value as a float."""
    if dtypes.is_complex(x.aval.dtype):
        raise DtypeError(f"fabs: takes real numbers, got {x.aval}: use abs")
    return lax.abs(promote_inexact("fabs", x)[0])


@binary(
    "`x1` with the sign of `x2`.",
    returns="Float array of the broadcast shape.",
    promotion=promote_floats,
)
def copysign(x: Array, y: Array) -> Array:
    """Magnitude of one, sign of the other."""
    if dtypes.is_complex(x.aval.dtype):
        raise DtypeError(f"copysign: complex numbers have no sign, got {x.aval}")
    size = lax.abs(x)
    return lax.select(signbit.function(y), lax.neg(size), size)


nextafter = primitive_binary(
    "nextafter",
    "The next float after `x1` in the direction of `x2`.",
    "nextafter",
    promotion=promote_floats,
    returns="Float array of the broadcast shape.",
    special="equal numbers give `x2`.",
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
    normal = lax.shift_left(lax.sub(exponent, mantissa_bits), mantissa_bits)
    one = lax.full_like(exponent, 1)
    subnormal = lax.shift_left(one, lax.max(lax.sub(exponent, 1), 0))
    step = lax.select(lax.gt(exponent, mantissa_bits), normal, subnormal)
    out = lax.bitcast_convert_type(step, dtype)
    largest = lax.eq(lax.abs(x), float(dtypes.finfo(dtype).max))
    return lax.select(largest, math.inf, out)


@unary(
    "Fractional and integral parts, both with the sign of `x`.",
    kind="float",
    returns="Two arrays of the shape and float dtype of `x`.",
    special="±inf → (±0, ±inf).",
)
def modf(x: Array) -> tuple[Array, Array]:
    """Fractional and integral parts."""
    x = promote_inexact("modf", x)[0]
    whole = _rounding("modf", x, _truncated)
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
)
def frexp(x: Array) -> tuple[Array, Array]:
    """Mantissa and exponent."""
    x = promote_inexact("frexp", x)[0]
    dtype = x.aval.dtype
    if dtype not in _LAYOUT:
        raise DtypeError(f"frexp: takes floats of 16 bits or more, got {x.aval}")
    mantissa_bits, bias = _LAYOUT[dtype]
    bits = dtypes.bits(dtype)
    # Subnormal numbers are made normal first.
    shift = mantissa_bits + 1
    tiny = lax.lt(lax.abs(x), float(dtypes.finfo(dtype).tiny))
    scaled = lax.select(tiny, lax.mul(x, float(2**shift)), x)
    word = lax.bitcast_convert_type(scaled, np.dtype(f"int{bits}"))
    mask = (1 << (bits - 1 - mantissa_bits)) - 1
    raised = lax.bitwise_and(lax.shift_right_logical(word, mantissa_bits), mask)
    exponent = lax.sub(lax.convert_element_type(raised, dtypes.int32), bias - 1)
    plain = lax.bitwise_or(lax.eq(x, 0), lax.bitwise_not(lax.is_finite(x)))
    # x times a power of two, which is exact and has a derivative; in two factors, since
    # one could be out of range.
    mantissa = scaled
    first = lax.div(exponent, 2)
    for power in (first, lax.sub(exponent, first)):
        word_of = lax.convert_element_type(lax.sub(bias, power), word.aval.dtype)
        factor = lax.bitcast_convert_type(lax.shift_left(word_of, mantissa_bits), dtype)
        mantissa = lax.mul(mantissa, factor)
    exponent = lax.select(tiny, lax.sub(exponent, shift), exponent)
    return lax.select(plain, x, mantissa), lax.select(plain, 0, exponent)


frexp.nout, frexp.nargs = 2, 3


@binary(
    "`x1 * 2**x2`.",
    returns="Float array of the broadcast shape.",
    raises="`x2` is not of integers, or `x1` is complex.",
    mixed=True,
    promotion=lambda name, x, y: _ldexp_operands(x, y),
)
def ldexp(x: Array, y: Array) -> Array:
    """A number times a power of two, in two steps, so that neither overflows alone."""
    dtype = x.aval.dtype
    limit = int(dtypes.finfo(dtype).maxexp) - 1
    y = lax.clamp(-4 * limit, y, 4 * limit)
    out = x
    for _ in range(3):
        step = lax.clamp(-limit + 1, y, limit)
        y = lax.sub(y, step)
        out = lax.mul(out, lax.exp2(lax.convert_element_type(step, dtype)))
    return out


def _ldexp_operands(x: Any, y: Any) -> list[Any]:
    y = array_of(y, "ldexp")
    if not dtypes.is_integer(y.aval.dtype) and not dtypes.is_bool(y.aval.dtype):
        raise DtypeError(f"ldexp: exponents must be integers, got {y.aval}")
    (x,) = promote_inexact("ldexp", x)
    if dtypes.is_complex(x.aval.dtype):
        raise DtypeError(f"ldexp: takes real numbers, got {x.aval}")
    return broadcast("ldexp", [x, convert(y, dtypes.int32)])


# -- whole numbers ---------------------------------------------------------------------


def _integers(name: str, x: Any, y: Any) -> list[Any]:
    x, y = promote_dtypes(name, x, y)
    if not dtypes.is_integer(x.aval.dtype):
        raise DtypeError(f"{name}: takes integers, got {x.aval} and {y.aval}")
    shape = lax.broadcast_shapes(x.aval.shape, y.aval.shape)
    return [_as_shape(a, shape) for a in (x, y)]


def _as_shape(x: Any, shape: Any) -> Any:
    if x.aval.shape == shape:
        return convert(x, x.aval.dtype)
    lead = len(shape) - x.aval.ndim
    wide = lax.broadcast_in_dim(x, shape, tuple(range(lead, len(shape))))
    return convert(wide, x.aval.dtype)


@binary(
    "Greatest common divisor.",
    special="gcd(0, 0) = 0; the result is not negative.",
    raises="the dtypes are not of integers.",
    promotion=_integers,
)
def gcd(x: Array, y: Array) -> Array:
    """Greatest common divisor, by Euclid's algorithm."""
    signed = dtypes.is_signed(x.aval.dtype)
    x, y = (lax.abs(a) if signed else a for a in (x, y))

    def going(pair: Any) -> Any:
        return lax.reduce_or(lax.ne(pair[1], 0), tuple(range(x.aval.ndim)))

    def step(pair: Any) -> Any:
        big, small = pair
        done = lax.eq(small, 0)
        rest = lax.rem(big, lax.select(done, 1, small))
        return lax.select(done, big, small), lax.select(done, 0, rest)

    found: Array = lax.while_loop(going, step, (x, y))[0]
    return found


@binary(
    "Least common multiple.",
    special="0 if either is 0; the result is not negative.",
    raises="the dtypes are not of integers.",
    promotion=_integers,
)
def lcm(x: Array, y: Array) -> Array:
    """Least common multiple."""
    if dtypes.is_signed(x.aval.dtype):
        x, y = lax.abs(x), lax.abs(y)
    divisor = gcd.function(x, y)
    none = lax.eq(divisor, 0)
    return lax.select(none, 0, lax.mul(x, lax.div(y, lax.select(none, 1, divisor))))
