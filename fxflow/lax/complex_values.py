"""Functions of complex numbers at infinities, NaN, signed zeros and branch cuts.

XLA's own lose the sign of a zero, and with it the side of a branch cut, and give nan
for most arguments that are not finite. Here is what C99 (Annex G), the array API
standard and NumPy say. A *formula* takes the place of XLA's operation; a *rule* takes
XLA's result `w` of `z` and corrects it: a few selections beside the hundred operations
of an inverse function.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow.core.arrays import dtypes, typeof
from fxflow.core.ir.primitive import table
from fxflow.lax.bitwise import bitwise_and, bitwise_not, bitwise_or
from fxflow.lax.comparison import eq, gt, lt, ne
from fxflow.lax.complex import complex, imag, real
from fxflow.lax.elementwise import abs, add, div, mul, neg, sub
from fxflow.lax.select import select


def _of(name: str, x: Any) -> Any:
    """Returns a function of a real number (its module imports this one)."""
    return table[name].bind(x)


def _infinite(x: Any) -> Any:
    return eq(abs(x), math.inf)


def _finite(x: Any) -> Any:
    return _of("is_finite", x)


def _missing(x: Any) -> Any:
    return ne(x, x)


def _zero(x: Any) -> Any:
    return eq(x, 0.0)


def _signed(size: Any, sign: Any) -> Any:
    """Returns the absolute value of one number with the sign of another."""
    word = np.dtype(f"int{dtypes.bits(typeof(sign).dtype)}")
    bits = table["bitcast_convert_type"].bind(sign, new_dtype=word)
    size = abs(size)
    return select(lt(bits, 0), neg(size), size)


def _one_like(x: Any) -> Any:
    return table["integer_pow"].bind(x, y=0)


# -- exponential and hyperbolic functions ----------------------------------------------


def _limit(x: Any) -> float:
    """Returns a number whose exponential is still finite, as are its neighbours'."""
    return math.floor(math.log(float(dtypes.finfo(typeof(x).dtype).max))) - 1.0


def _reduced(x: Any, size: Any) -> tuple[Any, Any]:
    """Returns what to take the exponential of, and the factor that it lacks.

    Where eˣ overflows, eˣ times a small sine may not.

    Args:
      x: the exponent.
      size: `x`, or its absolute value if e⁻ˣ may overflow, too.
    """
    limit = _limit(x)
    half = math.floor(limit / 2)
    far = gt(size, limit)
    factor = select(far, math.exp(half), _one_like(x))
    return select(far, sub(x, _signed(mul(_one_like(x), half), x)), x), factor


def _turn(y: Any, fixed: Any) -> tuple[Any, Any]:
    """Returns the cosine, 1 where no angle matters, and the sine.

    Args:
      y: the angle.
      fixed: where an angle that is not finite does not matter.
    """
    alone = bitwise_and(fixed, bitwise_not(_finite(y)))
    return select(alone, 1.0, _of("cos", y)), _of("sin", y)


def exp(z: Any) -> Any:
    """Returns eᶻ."""
    x, y = real(z), imag(z)
    inner, factor = _reduced(x, x)
    return _turned(_of("exp", select(_infinite(x), x, inner)), factor, x, y)


def exp2(z: Any) -> Any:
    """Returns 2ᶻ."""
    x, y = real(z), mul(imag(z), math.log(2))
    return _turned(_of("exp2", x), _one_like(x), x, y)


def _turned(size: Any, factor: Any, x: Any, y: Any) -> Any:
    """Returns the number of a size, an exponential of x, and an angle."""
    cosine, sine = _turn(y, _infinite(x))
    out = mul(mul(size, sine), factor)
    # 0 for -inf, whatever the angle.
    nothing = bitwise_and(eq(x, -math.inf), bitwise_not(_finite(y)))
    out = select(nothing, 0.0, out)
    return complex(mul(mul(size, cosine), factor), select(_zero(y), y, out))


def expm1(z: Any) -> Any:
    """Returns eᶻ less 1.

    Its real part is expm1(x) cos y - 2 sin²(y / 2).
    """
    x, y = real(z), imag(z)
    whole = exp(z)
    half = _of("sin", mul(y, 0.5))
    cosine, _ = _turn(y, _infinite(x))
    lost = select(_finite(y), mul(mul(half, half), 2.0), 0.0)
    near = sub(mul(_of("expm1", x), cosine), lost)
    return complex(select(gt(x, 1.0), sub(real(whole), 1.0), near), imag(whole))


def sinh(z: Any) -> Any:
    """Returns the hyperbolic sine."""
    x, y = real(z), imag(z)
    inner, factor = _reduced(x, abs(x))
    cosine, sine = _turn(y, bitwise_or(_zero(x), _infinite(x)))
    across = mul(mul(_of("cosh", inner), sine), factor)
    return complex(
        mul(mul(_of("sinh", inner), cosine), factor), select(_zero(y), y, across)
    )


def cosh(z: Any) -> Any:
    """Returns the hyperbolic cosine."""
    x, y = real(z), imag(z)
    inner, factor = _reduced(x, abs(x))
    cosine, sine = _turn(y, _infinite(x))
    across = mul(mul(_of("sinh", inner), sine), factor)
    across = select(bitwise_and(_zero(x), bitwise_not(_finite(y))), x, across)
    across = select(_zero(y), mul(y, _signed(_one_like(x), x)), across)
    return complex(mul(mul(_of("cosh", inner), cosine), factor), across)


def tanh(w: Any, z: Any) -> Any:
    """Corrects the hyperbolic tangent."""
    x, y = real(z), imag(z)
    alone = bitwise_and(_zero(x), bitwise_not(_finite(y)))
    return complex(select(alone, x, real(w)), select(_zero(y), y, imag(w)))


def logistic(z: Any) -> Any:
    """Returns 1 / (1 + e⁻ᶻ)."""
    power = exp(neg(z))
    one = complex(_one_like(real(z)), 0.0)
    out = div(one, complex(add(real(power), 1.0), imag(power)))
    # Where the divisor is infinite, in either part.
    gone = bitwise_or(_infinite(real(power)), _infinite(imag(power)))
    return select(gone, complex(mul(real(one), 0.0), mul(real(one), 0.0)), out)


# -- trigonometric functions: hyperbolic ones of iz ------------------------------------


def _ahead(z: Any) -> Any:
    """Returns iz."""
    return complex(neg(imag(z)), real(z))


def _back(z: Any) -> Any:
    """Returns -iz."""
    return complex(imag(z), neg(real(z)))


def sin(z: Any) -> Any:
    """Returns the sine."""
    return _back(sinh(_ahead(z)))


def cos(z: Any) -> Any:
    """Returns the cosine."""
    return cosh(_ahead(z))


def tan(w: Any, z: Any) -> Any:
    """Corrects the tangent."""
    return _back(tanh(_ahead(w), _ahead(z)))


# -- logarithms and roots --------------------------------------------------------------


def log(w: Any, z: Any) -> Any:
    """Corrects the logarithm of an infinity with an unknown angle."""
    gone = bitwise_or(_infinite(real(z)), _infinite(imag(z)))
    return complex(select(gone, math.inf, real(w)), imag(w))


def log1p(w: Any, z: Any) -> Any:
    """Corrects the logarithm of 1 + z, also beside -1, where |y|² may be 0."""
    x, y = real(z), imag(z)
    beside = bitwise_and(eq(x, -1.0), _finite(y))
    return log(complex(select(beside, _of("log", abs(y)), real(w)), imag(w)), z)


def sqrt(w: Any, z: Any) -> Any:
    """Corrects the square root, whose imaginary part has the sign of z's."""
    x, y = real(z), imag(z)
    unknown = _missing(y)
    endless = bitwise_or(_infinite(y), bitwise_and(eq(x, math.inf), unknown))
    along = select(endless, math.inf, real(w))
    across = select(bitwise_and(eq(x, -math.inf), unknown), math.inf, imag(w))
    across = select(_infinite(y), math.inf, across)
    return complex(along, _signed(across, y))


def rsqrt(w: Any, z: Any) -> Any:
    """Corrects 1 / √z, whose imaginary part has the sign opposite to z's."""
    return complex(abs(real(w)), _signed(imag(w), neg(imag(z))))


def pow(w: Any, x: Any, y: Any) -> Any:
    """Corrects a power: x⁰ is 1, and 0ʸ is 0 where y has a positive real part."""
    part = _one_like(real(x))
    one, zero = complex(part, 0.0), complex(mul(part, 0.0), 0.0)
    vanishes = bitwise_and(eq(x, zero), gt(real(y), 0.0))
    return select(eq(y, zero), one, select(vanishes, zero, w))


# -- inverse functions -----------------------------------------------------------------


def asinh(w: Any, z: Any) -> Any:
    """Corrects the inverse hyperbolic sine: each part has the sign of z's."""
    x, y = real(z), imag(z)
    along = select(bitwise_and(_missing(x), _finite(y)), math.nan, real(w))
    across = select(bitwise_and(_missing(x), _zero(y)), y, imag(w))
    return complex(_signed(along, x), _signed(across, y))


def asin(w: Any, z: Any) -> Any:
    """Corrects the inverse sine, -i asinh(iz)."""
    x, y = real(z), imag(z)
    out = _back(asinh(_ahead(w), _ahead(z)))
    return complex(select(bitwise_and(_zero(x), _missing(y)), x, real(out)), imag(out))


def acos(w: Any, z: Any) -> Any:
    """Corrects the inverse cosine: the imaginary part has the sign opposite to z's."""
    x, y = real(z), imag(z)
    along = select(bitwise_and(_zero(x), _missing(y)), math.pi / 2, real(w))
    across = select(bitwise_and(_missing(y), _finite(x)), math.nan, imag(w))
    return complex(along, _signed(across, neg(y)))


def acosh(w: Any, z: Any) -> Any:
    """Corrects the inverse hyperbolic cosine, acos z turned by a right angle."""
    turned = acos(complex(abs(imag(w)), real(w)), z)
    return complex(abs(imag(turned)), _signed(real(turned), imag(z)))


def atanh(w: Any, z: Any) -> Any:
    """Corrects the inverse hyperbolic tangent: each part has the sign of z's.

    Beside ±1 the square of the imaginary part may be 0 where log(2/|y|)/2 is finite.
    """
    x, y = real(z), imag(z)
    along = select(bitwise_and(_zero(x), _missing(y)), x, real(w))
    eps = float(dtypes.finfo(typeof(x).dtype).eps)
    beside = bitwise_and(eq(abs(x), 1.0), lt(abs(y), eps))
    along = select(beside, div(_of("log", div(2.0, abs(y))), 2.0), along)
    lost = bitwise_or(_missing(y), bitwise_and(_missing(x), _finite(y)))
    across = select(lost, math.nan, imag(w))
    return complex(_signed(along, x), _signed(across, y))


def atan(w: Any, z: Any) -> Any:
    """Corrects the inverse tangent, -i atanh(iz)."""
    x, y = real(z), imag(z)
    out = _back(atanh(_ahead(w), _ahead(z)))
    flat = bitwise_and(_missing(x), _zero(y))
    return complex(real(out), select(flat, y, imag(out)))
