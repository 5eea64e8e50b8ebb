"""Elementary functions: exponentials, logarithms, trigonometry."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from fxflow import lax
from fxflow.core.arrays import Array, dtypes
from fxflow.core.ir.arith import repeated
from fxflow.errors import DtypeError
from fxflow.numpy._operands import convert, joint_shape, promote_floats, promote_inexact
from fxflow.numpy.ufuncs import (
    Binary,
    Unary,
    binary,
    float_unary,
    primitive_binary,
    unary,
)
from fxflow.transforms.custom_jvp import custom_jvp

# -- exponentials and logarithms -------------------------------------------------------

exp: Unary[Array] = float_unary(
    "exp",
    "e to the power `x`.",
    special="-inf → 0; overflow → inf; complex numbers as C99's `cexp`.",
    example=(
        "exp(np.array([0.0, 1.0])).round(4)",
        "Array([1.    , 2.7183], dtype=float32)",
    ),
)
exp2: Unary[Array] = float_unary(
    "exp2",
    "2 to the power `x`.",
    special="-inf → 0; overflow → inf.",
    example=(
        "exp2(np.array([3.0, -1.0])).round(4)",
        "Array([8. , 0.5], dtype=float32)",
    ),
)
expm1: Unary[Array] = float_unary(
    "expm1",
    "`exp(x) - 1`, accurate near 0.",
    special="±0 → ±0; complex numbers as C99's `cexp`.",
    example=("expm1(np.array([0.0, -np.inf]))", "Array([ 0., -1.], dtype=float32)"),
)
log: Unary[Array] = float_unary(
    "log",
    "Natural logarithm.",
    special="±0 → -inf; negative → nan; inf → inf; complex numbers as C99's `clog`.",
    example=(
        "log(np.array([1.0, 10.0])).round(4)",
        "Array([0.    , 2.3026], dtype=float32)",
    ),
)
log1p: Unary[Array] = float_unary(
    "log1p",
    "`log(1 + x)`, accurate near 0.",
    special="-1 → -inf; below → nan; complex numbers as C99's `clog`.",
    example=("log1p(np.array([0.0, -1.0]))", "Array([  0., -inf], dtype=float32)"),
)
sqrt: Unary[Array] = float_unary(
    "sqrt",
    "Square root.",
    special="-0 → -0; negative → nan; complex numbers as C99's `csqrt`.",
    example=(
        "sqrt(np.array([4.0, 2.0])).round(4)",
        "Array([2.    , 1.4142], dtype=float32)",
    ),
)
cbrt: Unary[Array] = float_unary(
    "cbrt",
    "Cube root, of negative numbers as well.",
    example=(
        "cbrt(np.array([8.0, -27.0])).round(4)",
        "Array([ 2., -3.], dtype=float32)",
    ),
)


def _floats(name: str, x: Any) -> Any:
    """Returns floats that are not weak: factors of their own go into the result."""
    (x,) = promote_inexact(name, x)
    return convert(x, x.aval.dtype)


@unary(
    "Logarithm to base 2.",
    kind="float",
    special="±0 → -inf; negative → nan.",
    example=("log2(np.array([8.0, 0.5])).round(4)", "Array([ 3., -1.], dtype=float32)"),
)
def log2(x: Array) -> Array:
    """Logarithm to base 2."""
    return _logarithm(_floats("log2", x), math.log(2))


@unary(
    "Logarithm to base 10.",
    kind="float",
    special="±0 → -inf; negative → nan.",
    example=(
        "log10(np.array([100.0, 0.5])).round(4)",
        "Array([ 2.   , -0.301], dtype=float32)",
    ),
)
def log10(x: Array) -> Array:
    """Logarithm to base 10."""
    return _logarithm(_floats("log10", x), math.log(10))


def _logarithm(x: Any, scale: float) -> Array:
    out = lax.log(x)
    if not dtypes.is_complex(out.aval.dtype):
        return lax.div(out, scale)
    # By parts: an infinite number over a complex one is nan in the other part.
    return lax.complex(lax.div(lax.real(out), scale), lax.div(lax.imag(out), scale))


def _strong_pair(name: str, x: Any, y: Any) -> list[Any]:
    """Returns two operands of one inexact dtype, not weak, and one shape."""
    return [convert(a, a.aval.dtype) for a in promote_floats(name, x, y)]


# -- trigonometry ----------------------------------------------------------------------

sin: Unary[Array] = float_unary(
    "sin",
    "Sine of `x` in radians.",
    special="±inf → nan; complex numbers as C99's `csin`.",
    example=(
        "sin(np.array([0.0, 1.0])).round(4)",
        "Array([0.    , 0.8415], dtype=float32)",
    ),
)
cos: Unary[Array] = float_unary(
    "cos",
    "Cosine of `x` in radians.",
    special="±inf → nan; complex numbers as C99's `ccos`.",
    example=(
        "cos(np.array([0.0, 1.0])).round(4)",
        "Array([1.    , 0.5403], dtype=float32)",
    ),
)
tan: Unary[Array] = float_unary(
    "tan",
    "Tangent of `x` in radians.",
    special="±inf → nan; complex numbers as C99's `ctan`.",
    example=(
        "tan(np.array([0.0, 1.0])).round(4)",
        "Array([0.    , 1.5574], dtype=float32)",
    ),
)
arcsin: Unary[Array] = float_unary(
    "arcsin",
    "Inverse sine, from -π/2 to π/2.",
    primitive="asin",
    special="|x|>1 → nan; complex numbers as C99's `casin`.",
    example=(
        "arcsin(np.array([0.0, 1.0])).round(4)",
        "Array([0.    , 1.5708], dtype=float32)",
    ),
)
arccos: Unary[Array] = float_unary(
    "arccos",
    "Inverse cosine, from 0 to π.",
    primitive="acos",
    special="|x|>1 → nan; complex numbers as C99's `cacos`.",
    example=(
        "arccos(np.array([1.0, 0.0])).round(4)",
        "Array([0.    , 1.5708], dtype=float32)",
    ),
)
arctan: Unary[Array] = float_unary(
    "arctan",
    "Inverse tangent, from -π/2 to π/2.",
    primitive="atan",
    special="±inf → ±π/2; complex numbers as C99's `catan`.",
    example=(
        "arctan(np.array([0.0, 1.0])).round(4)",
        "Array([0.    , 0.7854], dtype=float32)",
    ),
)
sinh: Unary[Array] = float_unary(
    "sinh",
    "Hyperbolic sine.",
    special="complex numbers as C99's `csinh`.",
    example=(
        "sinh(np.array([0.0, 1.0])).round(4)",
        "Array([0.    , 1.1752], dtype=float32)",
    ),
)
cosh: Unary[Array] = float_unary(
    "cosh",
    "Hyperbolic cosine.",
    special="complex numbers as C99's `ccosh`.",
    example=(
        "cosh(np.array([0.0, 1.0])).round(4)",
        "Array([1.    , 1.5431], dtype=float32)",
    ),
)
tanh: Unary[Array] = float_unary(
    "tanh",
    "Hyperbolic tangent.",
    special="±inf → ±1; complex numbers as C99's `ctanh`.",
    example=(
        "tanh(np.array([0.0, 1.0])).round(4)",
        "Array([0.    , 0.7616], dtype=float32)",
    ),
)
arcsinh: Unary[Array] = float_unary(
    "arcsinh",
    "Inverse hyperbolic sine.",
    primitive="asinh",
    special="complex numbers as C99's `casinh`.",
    example=(
        "arcsinh(np.array([0.0, 1.0])).round(4)",
        "Array([0.    , 0.8814], dtype=float32)",
    ),
)
arccosh: Unary[Array] = float_unary(
    "arccosh",
    "Inverse hyperbolic cosine.",
    primitive="acosh",
    special="x<1 → nan; complex numbers as C99's `cacosh`.",
    example=(
        "arccosh(np.array([1.0, 2.0])).round(4)",
        "Array([0.   , 1.317], dtype=float32)",
    ),
)
arctanh: Unary[Array] = float_unary(
    "arctanh",
    "Inverse hyperbolic tangent.",
    primitive="atanh",
    special="±1 → ±inf; |x|>1 → nan; complex numbers as C99's `catanh`.",
    example=(
        "arctanh(np.array([0.0, 0.5])).round(4)",
        "Array([0.    , 0.5493], dtype=float32)",
    ),
)
arctan2: Binary[Array] = primitive_binary(
    "arctan2",
    "Angle of the point (`x2`, `x1`), from -π to π.",
    "atan2",
    promotion=promote_floats,
    returns="Float array of the broadcast shape.",
    special="(±0, -1) → ±π; (±0, +1) → ±0.",
    example=(
        "arctan2(np.array([1.0, -1.0]), -1.0).round(4)",
        "Array([ 2.3562, -2.3562], dtype=float32)",
    ),
)


@unary(
    "Converts degrees to radians: `x * π / 180`.",
    kind="float",
    example=(
        "deg2rad(np.array([0.0, 180.0])).round(4)",
        "Array([0.    , 3.1416], dtype=float32)",
    ),
)
def deg2rad(x: Array) -> Array:
    """Degrees to radians."""
    return lax.mul(_floats("deg2rad", x), math.pi / 180)


@unary(
    "Converts radians to degrees: `x * 180 / π`.",
    kind="float",
    example=(
        "rad2deg(np.array([0.0, np.pi])).round(4)",
        "Array([  0., 180.], dtype=float32)",
    ),
)
def rad2deg(x: Array) -> Array:
    """Radians to degrees."""
    return lax.mul(_floats("rad2deg", x), 180 / math.pi)


@unary(
    "`sin(πx) / (πx)`.",
    kind="float",
    special="0 → 1.",
    example=(
        "sinc(np.array([0.0, 0.5])).round(4)",
        "Array([1.    , 0.6366], dtype=float32)",
    ),
)
def sinc(x: Array) -> Array:
    """Normalised sine cardinal, near 0 by its Taylor series, for derivatives."""
    x = _floats("sinc", x)
    turned = lax.mul(x, math.pi)
    near = lax.lt(lax.abs(turned), 1)
    t = lax.square(lax.select(near, turned, 0))
    # Ten terms: 1e-19 of the value, and all derivatives below the 20th at 0.
    series = lax.full_like(t, 1 / math.factorial(19))
    for k in range(17, 0, -2):
        series = lax.sub(1 / math.factorial(k), lax.mul(series, t))
    # The side that is not taken must be finite, or its derivative times 0 is nan.
    safe = lax.select(near, 1, turned)
    return lax.select(near, series, lax.div(lax.sin(safe), safe))


def flat_at_zero(root: Callable[[Any], Any], x: Any) -> Array:
    """Returns a root, whose derivative at 0 is taken for 0 and not for infinity.

    For roots of sums of squares: those have a kink there, and 0 is one of its slopes.
    """
    zero = lax.eq(x, 0)
    return lax.select(zero, 0, root(lax.select(zero, 1, x)))


# -- of two numbers --------------------------------------------------------------------


def _of_one_shape(name: str, x: Array, y: Array) -> list[Array]:
    shape = joint_shape(name, [x.aval, y.aval])
    return [repeated(a, shape) for a in (x, y)]


@binary(
    "`sqrt(x1² + x2²)` without overflow.",
    identity=0,
    returns="Float array of the broadcast shape.",
    special="inf if either is infinite, even beside nan. At (0, 0) the derivative is "
    "taken for 0.",
    promotion=_strong_pair,
    example=(
        "hypot(np.array([3.0, 5.0]), np.array([4.0, 12.0])).round(4)",
        "Array([ 5., 13.], dtype=float32)",
    ),
)
def hypot(x: Array, y: Array) -> Array:
    """Length of the hypotenuse."""
    if dtypes.is_complex(x.aval.dtype):
        raise DtypeError(f"hypot: takes real numbers, got {x.aval} and {y.aval}")
    out: Array = _hypot(*_of_one_shape("hypot", x, y))
    return out


@custom_jvp
def _hypot(x: Any, y: Any) -> Array:
    x, y = lax.abs(x), lax.abs(y)
    infinite = lax.bitwise_or(_is_inf(x), _is_inf(y))
    big, small = lax.max(x, y), lax.min(x, y)
    zero = lax.eq(big, 0)
    # Divided by the larger: its square alone could overflow.
    ratio = lax.div(small, lax.select(zero, 1, big))
    length = lax.mul(big, lax.sqrt(lax.add(lax.square(ratio), 1)))
    length = lax.select(zero, big, length)
    return lax.select(infinite, math.inf, length)


def _is_inf(x: Any) -> Any:
    return lax.eq(lax.abs(x), math.inf)


def _share_of_length(tangent: Any, length: Any, x: Any, y: Any) -> Any:
    """Returns the tangent times x / length, 0 where that is not a number."""
    lost = lax.bitwise_or(lax.eq(length, 0), lax.bitwise_or(_is_inf(x), _is_inf(y)))
    slope = lax.div(x, lax.select(lost, 1, length))
    return lax.mul(tangent, lax.select(lost, 0, slope))


_hypot.defjvps(
    _share_of_length, lambda tangent, out, x, y: _share_of_length(tangent, out, y, x)
)


def _log_sum(x: Array, y: Array, base: float | None) -> Array:
    """Returns the logarithm of the sum of two exponentials."""
    scale = 1.0 if base is None else math.log(base)
    if dtypes.is_complex(x.aval.dtype):
        first = lax.select(lax.ge(lax.real(x), lax.real(y)), x, y)
        other = lax.sub(lax.add(x, y), first)
        rest = lax.exp(lax.mul(lax.sub(other, first), scale))
        out = lax.add(first, lax.div(lax.log1p(rest), scale))
        return lax.complex(lax.real(out), _principal(lax.imag(out), scale))
    x, y = _of_one_shape("logaddexp", x, y)
    return _real_log_sum(x, y, scale)


@functools.partial(custom_jvp, nondiff_argnums=(2,))
def _real_log_sum(x: Any, y: Any, scale: float) -> Array:
    most = lax.max(x, y)
    gap = lax.sub(lax.min(x, y), most)
    rest = lax.exp(lax.mul(gap, scale))
    total = lax.add(most, lax.div(lax.log1p(rest), scale))
    # Where both are the same infinity the gap is nan.
    same = lax.ne(gap, gap)
    return lax.select(same, lax.add(x, y), total)


@_real_log_sum.defjvp
def _log_sum_rule(scale: float, primals: Any, tangents: Any) -> Any:
    (x, y), (dx, dy) = primals, tangents
    # Two infinities of one sign share alike, as all that is equal.
    same = lax.bitwise_and(lax.eq(x, y), _is_inf(x))
    gap = lax.mul(lax.select(same, 0, lax.sub(x, y)), scale)
    tangent = lax.add(
        lax.mul(dx, lax.logistic(gap)), lax.mul(dy, lax.logistic(lax.neg(gap)))
    )
    return _real_log_sum(x, y, scale), tangent


def _principal(angle: Array, scale: float) -> Array:
    """Returns the imaginary part of a logarithm, less multiples of 2π / scale."""
    turned = lax.mul(angle, scale)
    inside = lax.div(lax.atan2(lax.sin(turned), lax.cos(turned)), scale)
    return lax.select(lax.gt(lax.abs(turned), math.pi), inside, angle)


@binary(
    "`log(exp(x1) + exp(x2))`.",
    identity=-math.inf,
    returns="Float or complex array of the broadcast shape.",
    special="two infinities of one sign → that infinity. The imaginary part of a "
    "complex result is in [-π, π].",
    promotion=promote_floats,
    example=(
        "logaddexp(np.array([0.0, 1.0]), 1.0).round(4)",
        "Array([1.3133, 1.6931], dtype=float32)",
    ),
)
def logaddexp(x: Array, y: Array) -> Array:
    """Logarithm of the sum of exponentials."""
    return _log_sum(x, y, None)


@binary(
    "`log2(2**x1 + 2**x2)`.",
    identity=-math.inf,
    returns="Float array of the broadcast shape.",
    special="two infinities of one sign → that infinity.",
    promotion=_strong_pair,
    example=(
        "logaddexp2(np.array([3.0, 5.0]), 3.0).round(4)",
        "Array([4.    , 5.3219], dtype=float32)",
    ),
)
def logaddexp2(x: Array, y: Array) -> Array:
    """Logarithm to base 2 of the sum of powers of 2."""
    return _log_sum(x, y, 2.0)


@binary(
    "Step function: 0 below 0, 1 above, `x2` at 0.",
    returns="Float array of the broadcast shape.",
    special="nan → nan.",
    promotion=promote_floats,
    example=(
        "heaviside(np.array([-1.0, 0.0, 1.0]), 0.5)",
        "Array([0. , 0.5, 1. ], dtype=float32)",
    ),
)
def heaviside(x: Array, y: Array) -> Array:
    """Step function."""
    step = convert(lax.gt(x, 0), x.aval.dtype)
    out = lax.select(lax.eq(x, 0), y, step)
    return lax.select(lax.ne(x, x), x, out)
