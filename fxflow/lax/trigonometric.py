"""Trigonometric functions, hyperbolic ones, and their inverses; angles in radians."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.core.docs import shared
from fxflow.core.ir import arith
from fxflow.core.ir.primitive import register
from fxflow.lax import complex_values
from fxflow.lax._operands import operands
from fxflow.lax.comparison import ge, gt, lt
from fxflow.lax.complex import complex as complex_
from fxflow.lax.complex import imag, real
from fxflow.lax.creation import full_like
from fxflow.lax.elementwise import abs as abs_
from fxflow.lax.elementwise import add, div, mul, neg, sub
from fxflow.lax.exponential import TanhSlope, exp
from fxflow.lax.families import (
    INEXACT,
    Accuracy,
    Accurate,
    Elementwise,
    Exponential,
    bind_with,
)
from fxflow.lax.powers import rsqrt, square
from fxflow.lax.select import select


def _one(x: Any) -> Any:
    return arith.constant(1, typeof(x).dtype)


def _scaled(factor: float, x: Any) -> Any:
    return mul(x, arith.constant(factor, typeof(x).dtype))


# -- derivatives that neither cancel nor overflow --------------------------------------


def _is_complex(x: Any) -> bool:
    return dtypes.is_complex(typeof(x).dtype)


def _times_i(x: Any) -> Any:
    return complex_(neg(imag(x)), real(x))


def _one_minus_square(x: Any) -> Any:
    """Returns 1 - x²: by factors, but near 0, where their derivatives would cancel."""
    near = lt(abs_(x), 0.5)
    factors = mul(sub(_one(x), x), add(_one(x), x))
    return select(near, sub(_one(x), square(x)), factors)


def _slope_of_asin(x: Any) -> Any:
    """Returns 1 / √(1 - x²)."""
    if not _is_complex(x):
        return rsqrt(_one_minus_square(x))
    # By factors of the root: the square of a large number would overflow.
    near = lt(abs_(x), 0.5)
    inner = square(select(near, x, 0.0))
    factors = mul(rsqrt(sub(_one(x), x)), rsqrt(add(_one(x), x)))
    return select(near, rsqrt(sub(_one(x), inner)), factors)


def _slope_of_asinh(x: Any) -> Any:
    """Returns 1 / √(1 + x²)."""
    if _is_complex(x):
        return _slope_of_asin(_times_i(x))
    large = gt(abs_(x), 1.0)
    inverse = div(_one(x), select(large, x, 1.0))
    ratio = select(large, inverse, x)
    root = rsqrt(add(square(ratio), _one(x)))
    return select(large, mul(root, abs_(inverse)), root)


def _over_square_sum(x: Any, y: Any) -> Any:
    """Returns x / (x² + y²), of quotients by the larger: squares would overflow."""
    first = ge(abs_(x), abs_(y))
    larger = select(first, x, y)
    ratio = div(select(first, y, x), larger)
    if _is_complex(x):
        one_plus_square = _one_minus_square(_times_i(ratio))
    else:
        one_plus_square = add(square(ratio), _one(x))
    part = select(first, _one(x), ratio)
    return div(div(part, larger), one_plus_square)


def _slope_of_atan(x: Any) -> Any:
    """Returns 1 / (1 + x²)."""
    return _over_square_sum(full_like(x, 1), x)


def _slope_of_atanh(x: Any) -> Any:
    """Returns 1 / (1 - x²)."""
    if _is_complex(x):
        return _slope_of_atan(_times_i(x))
    return div(_one(x), _one_minus_square(x))


def _slope_of_tanh(out: Any, x: Any) -> Any:
    """Returns 1 / cosh² x: of complex x 1 - y² near 0, 4t / (1 + t)² beyond."""
    if not _is_complex(x):
        return TanhSlope.bind(x)
    near = sub(_one(x), square(out))
    t = exp(_scaled(-2, select(ge(real(x), 0.0), x, neg(x))))
    beyond = div(_scaled(4, t), square(add(t, _one(x))))
    return select(lt(abs_(out), 0.5), near, beyond)


def _slope_of_tan(out: Any, x: Any) -> Any:
    """Returns 1 / cos² x."""
    if _is_complex(x):
        # 1 + tan² x cancels far from the real axis.
        return _slope_of_tanh(_times_i(out), _times_i(x))
    return add(_one(x), square(out))


# -- trigonometric functions -----------------------------------------------------------


@register
class Sin(Accurate):
    """Sine. dtypes: inexact. StableHLO: sine. ±0 → ±0, ±inf → nan."""

    name = "sin"
    kinds = INEXACT
    hlo = "stablehlo.sine"
    numpy = np.sin
    complex_formula = complex_values.sin
    partials = (lambda out, x: Cos.bind(x),)


@register
class Cos(Accurate):
    """Cosine. dtypes: inexact. StableHLO: cosine. ±inf → nan."""

    name = "cos"
    kinds = INEXACT
    hlo = "stablehlo.cosine"
    numpy = np.cos
    complex_formula = complex_values.cos
    partials = (lambda out, x: neg(Sin.bind(x)),)


@register
class Tan(Accurate):
    """Tangent. dtypes: inexact. StableHLO: tan. ±0 → ±0, ±inf → nan."""

    name = "tan"
    kinds = INEXACT
    hlo = "stablehlo.tan"
    numpy = np.tan
    complex_rule = complex_values.tan
    partials = (_slope_of_tan,)


@register
class Asin(Elementwise):
    """Inverse sine. dtypes: inexact. CHLO: asin. |x| > 1 → nan."""

    name = "asin"
    kinds = INEXACT
    hlo = "chlo.asin"
    numpy = np.arcsin
    complex_rule = complex_values.asin
    partials = (lambda out, x: _slope_of_asin(x),)


@register
class Acos(Elementwise):
    """Inverse cosine. dtypes: inexact. CHLO: acos. |x| > 1 → nan."""

    name = "acos"
    kinds = INEXACT
    hlo = "chlo.acos"
    numpy = np.arccos
    complex_rule = complex_values.acos
    partials = (lambda out, x: neg(_slope_of_asin(x)),)


@register
class Atan(Elementwise):
    """Inverse tangent. dtypes: inexact. CHLO: atan. ±inf → ±π/2."""

    name = "atan"
    kinds = INEXACT
    hlo = "chlo.atan"
    numpy = np.arctan
    complex_rule = complex_values.atan
    partials = (lambda out, x: _slope_of_atan(x),)


def _host_atan2(y: Any, x: Any) -> Any:
    if dtypes.is_complex(y.dtype):
        # -i log((x + iy) / √(x² + y²)), to which XLA expands atan2 of complex numbers.
        size = np.sqrt(np.add(np.square(x), np.square(y)))
        minus_i = np.array(-1j, y.dtype)
        return minus_i * np.log(np.divide(x + np.array(1j, y.dtype) * y, size))
    return np.arctan2(y, x)


@register
class Atan2(Elementwise):
    """Angle of the point (x, y). dtypes: inexact. StableHLO: atan2."""

    name = "atan2"
    kinds = INEXACT
    hlo = "stablehlo.atan2"
    numpy = _host_atan2
    partials = (
        lambda out, y, x: _over_square_sum(x, y),
        lambda out, y, x: neg(_over_square_sum(y, x)),
    )


_trigonometric_docs = shared("""
    Args:
      x: float or complex array.
      accuracy: of the compiled function: a `Tolerance` that it should keep, an
        `AccuracyMode`, or None. Platforms with a single implementation ignore it.

    Returns:
      An array of the dtype and shape of `x`.

    Raises:
      DtypeError: `x` is boolean or integer.
""")


@_trigonometric_docs
def sin(x: Any, /, *, accuracy: Accuracy = None) -> Array:
    """Returns the sine.

    Special cases:
      ±0 gives ±0, ±inf gives nan. Complex infinities, nan and signed zeros as C99's
      `csin`.

    Example:
      >>> sin(0.0)
      Array(0., dtype=float32, weak_type=True)

    Source: StableHLO `sine`.
    """
    return Sin.bind(x) if accuracy is None else bind_with(Sin, x, accuracy)


@_trigonometric_docs
def cos(x: Any, /, *, accuracy: Accuracy = None) -> Array:
    """Returns the cosine.

    Special cases:
      ±inf gives nan. Complex infinities, nan and signed zeros as C99's `ccos`.

    Example:
      >>> cos(0.0)
      Array(1., dtype=float32, weak_type=True)

    Source: StableHLO `cosine`.
    """
    return Cos.bind(x) if accuracy is None else bind_with(Cos, x, accuracy)


@_trigonometric_docs
def tan(x: Any, /, *, accuracy: Accuracy = None) -> Array:
    """Returns the tangent.

    Special cases:
      ±0 gives ±0, ±inf gives nan. Complex infinities, nan and signed zeros as C99's
      `ctan`.

    Example:
      >>> tan(0.0)
      Array(0., dtype=float32, weak_type=True)

    Source: StableHLO `tan`.
    """
    return Tan.bind(x) if accuracy is None else bind_with(Tan, x, accuracy)


@_trigonometric_docs
def asin(x: Any, /) -> Array:
    """Returns the inverse sine, in [-π/2, π/2].

    Special cases:
      ±0 gives ±0; floats outside [-1, 1] give nan. Complex infinities, nan and signed
      zeros (which tell the side of a branch cut) as C99's `casin`.

    Example:
      >>> asin(1.0)
      Array(1.5707964, dtype=float32, weak_type=True)

    Source: CHLO `asin`.
    """
    return Asin.bind(x)


@_trigonometric_docs
def acos(x: Any, /) -> Array:
    """Returns the inverse cosine, in [0, π].

    Special cases:
      Floats outside [-1, 1] give nan. Complex infinities, nan and signed zeros (which
      tell the side of a branch cut) as C99's `cacos`.

    Example:
      >>> acos(1.0)
      Array(0., dtype=float32, weak_type=True)

    Source: CHLO `acos`.
    """
    return Acos.bind(x)


@_trigonometric_docs
def atan(x: Any, /) -> Array:
    """Returns the inverse tangent, in [-π/2, π/2].

    Special cases:
      ±0 gives ±0, ±inf gives ±π/2. Complex infinities, nan and signed zeros (which tell
      the side of a branch cut) as C99's `catan`.

    Example:
      >>> atan(0.0)
      Array(0., dtype=float32, weak_type=True)

    Source: CHLO `atan`.
    """
    return Atan.bind(x)


def atan2(x: Any, y: Any, /) -> Array:
    """Returns the angle of the point (second argument, first argument), in [-π, π].

    Args:
      x: float or complex array, or a Python number: the ordinate of the point.
      y: of the same dtype, or a Python number: its abscissa.

    Returns:
      An array of their dtype and common shape.

    Raises:
      DtypeError: the dtypes differ, or the operation does not take them.
      ShapeError: the shapes are incompatible.

    Special cases:
      As of C's `atan2`: the signs of zeros tell the quadrant. At the origin the
      derivative is nan.

    Example:
      >>> atan2(np.float32(1), -1.0)
      Array(2.3561945, dtype=float32)

    Source: StableHLO `atan2`.
    """
    return Atan2.bind(*operands("atan2", x, y))


# -- hyperbolic functions --------------------------------------------------------------


@register
class Sinh(Exponential):
    """Hyperbolic sine. dtypes: inexact. CHLO: sinh."""

    name = "sinh"
    kinds = INEXACT
    hlo = "chlo.sinh"
    numpy = np.sinh
    complex_formula = complex_values.sinh
    partials = (lambda out, x: Cosh.bind(x),)


@register
class Cosh(Exponential):
    """Hyperbolic cosine. dtypes: inexact. CHLO: cosh."""

    name = "cosh"
    kinds = INEXACT
    hlo = "chlo.cosh"
    numpy = np.cosh
    complex_formula = complex_values.cosh
    partials = (lambda out, x: Sinh.bind(x),)


@register
class Tanh(Accurate):
    """Hyperbolic tangent. dtypes: inexact. StableHLO: tanh."""

    name = "tanh"
    kinds = INEXACT
    hlo = "stablehlo.tanh"
    numpy = np.tanh
    complex_rule = complex_values.tanh
    partials = (_slope_of_tanh,)


@register
class Asinh(Elementwise):
    """Inverse hyperbolic sine. dtypes: inexact. CHLO: asinh."""

    name = "asinh"
    kinds = INEXACT
    hlo = "chlo.asinh"
    numpy = np.arcsinh
    complex_rule = complex_values.asinh
    partials = (lambda out, x: _slope_of_asinh(x),)


@register
class Acosh(Elementwise):
    """Inverse hyperbolic cosine. dtypes: inexact. CHLO: acosh. x < 1 → nan."""

    name = "acosh"
    kinds = INEXACT
    hlo = "chlo.acosh"
    numpy = np.arccosh
    complex_rule = complex_values.acosh
    # By factors: x² - 1 loses digits near 1 and overflows.
    partials = (lambda out, x: mul(rsqrt(sub(x, _one(x))), rsqrt(add(x, _one(x)))),)


@register
class Atanh(Elementwise):
    """Inverse hyperbolic tangent. dtypes: inexact. CHLO: atanh. |x| > 1 → nan."""

    name = "atanh"
    kinds = INEXACT
    hlo = "chlo.atanh"
    numpy = np.arctanh
    complex_rule = complex_values.atanh
    partials = (lambda out, x: _slope_of_atanh(x),)


@_trigonometric_docs
def sinh(x: Any, /) -> Array:
    """Returns the hyperbolic sine.

    Special cases:
      ±0 gives ±0, ±inf gives ±inf. Complex infinities, nan and signed zeros as C99's
      `csinh`.

    Example:
      >>> sinh(0.0)
      Array(0., dtype=float32, weak_type=True)

    Source: CHLO `sinh`.
    """
    return Sinh.bind(x)


@_trigonometric_docs
def cosh(x: Any, /) -> Array:
    """Returns the hyperbolic cosine.

    Special cases:
      ±inf gives inf. Complex infinities, nan and signed zeros as C99's `ccosh`.

    Example:
      >>> cosh(0.0)
      Array(1., dtype=float32, weak_type=True)

    Source: CHLO `cosh`.
    """
    return Cosh.bind(x)


@_trigonometric_docs
def tanh(x: Any, /, *, accuracy: Accuracy = None) -> Array:
    """Returns the hyperbolic tangent.

    Special cases:
      ±0 gives ±0, ±inf gives ±1. Complex infinities, nan and signed zeros as C99's
      `ctanh`.

    Example:
      >>> tanh(0.0)
      Array(0., dtype=float32, weak_type=True)

    Source: StableHLO `tanh`.
    """
    return Tanh.bind(x) if accuracy is None else bind_with(Tanh, x, accuracy)


@_trigonometric_docs
def asinh(x: Any, /) -> Array:
    """Returns the inverse hyperbolic sine.

    Special cases:
      ±0 gives ±0, ±inf gives ±inf. Complex infinities, nan and signed zeros (which tell
      the side of a branch cut) as C99's `casinh`.

    Example:
      >>> asinh(0.0)
      Array(0., dtype=float32, weak_type=True)

    Source: CHLO `asinh`.
    """
    return Asinh.bind(x)


@_trigonometric_docs
def acosh(x: Any, /) -> Array:
    """Returns the inverse hyperbolic cosine.

    Special cases:
      Floats below 1 give nan, inf gives inf. Complex infinities, nan and signed zeros
      (which tell the side of a branch cut) as C99's `cacosh`.

    Example:
      >>> acosh(1.0)
      Array(0., dtype=float32, weak_type=True)

    Source: CHLO `acosh`.
    """
    return Acosh.bind(x)


@_trigonometric_docs
def atanh(x: Any, /) -> Array:
    """Returns the inverse hyperbolic tangent.

    Special cases:
      ±0 gives ±0, ±1 gives ±inf; floats beyond give nan. Complex infinities, nan and
      signed zeros (which tell the side of a branch cut) as C99's `catanh`.

    Example:
      >>> atanh(0.0)
      Array(0., dtype=float32, weak_type=True)

    Source: CHLO `atanh`.
    """
    return Atanh.bind(x)
