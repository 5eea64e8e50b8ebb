"""Powers and roots."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow.core.arrays import Array, Aval, dtypes, typeof
from fxflow.core.ir import arith
from fxflow.core.ir.primitive import Dual, Values, Zero, register, table
from fxflow.core.runtime.lowering import Context
from fxflow.errors import ArgumentError, DtypeError
from fxflow.lax import complex_values
from fxflow.lax._operands import PYTHON_SCALARS, aligned, operands
from fxflow.lax.bitwise import bitwise_and, bitwise_not
from fxflow.lax.comparison import eq, ge
from fxflow.lax.conversion import convert
from fxflow.lax.elementwise import div, mul, neg, sub, without_sign
from fxflow.lax.exponential import log
from fxflow.lax.families import (
    FLOAT,
    INEXACT,
    NUMERIC,
    Accuracy,
    Accurate,
    Elementwise,
    bind_with,
    require_kind,
)
from fxflow.lax.select import select


@register
class Square(Elementwise):
    """x². dtypes: numeric. StableHLO: multiply."""

    name = "square"
    kinds = NUMERIC
    numpy = np.square
    partials = (lambda out, x: mul(x, _two(x)),)

    def lower(self, ctx: Context, *operands: str, **params: Any) -> str:
        """`multiply` by itself."""
        out = without_sign(
            ctx,
            operands,
            lambda kind, x: ctx.emit(f"stablehlo.multiply {x}, {x} : {kind}"),
        )
        ctx.made[out] = "square"
        return out


def _two(x: Any) -> Any:
    return arith.constant(2, typeof(x).dtype)


def _chain(x: Any, n: int, multiply: Callable[[Any, Any], Any]) -> Any:
    """Returns xⁿ for n ≥ 1 by repeated squaring."""
    out = None
    while True:
        if n & 1:
            out = x if out is None else multiply(out, x)
        n >>= 1
        if not n:
            return out
        x = multiply(x, x)


@register
class IntegerPow(Elementwise):
    """xⁿ for an integer n. dtypes: numeric (n ≥ 0 for integers).

    StableHLO: multiply (repeated squaring), divide. x⁰ is 1 for every x.
    """

    name = "integer_pow"
    kinds = NUMERIC

    def abstract(self, *avals: Aval, **params: Any) -> Aval:
        """The type of x."""
        out = super().abstract(*avals)
        if params["y"] < 0 and not dtypes.is_inexact(out.dtype):
            raise DtypeError(
                f"integer_pow: {out} cannot be raised to the negative power "
                f"{params['y']}: convert it to floats with .astype(...) first"
            )
        return out

    def lower(self, ctx: Context, *operands: str, **params: Any) -> str:
        """Products; of a negative power, the inverse."""
        (x,), y = operands, params["y"]
        out = ctx.avals_out[0]
        if y == 0:
            return ctx.constant(np.ones((), out.dtype), out)

        def write(kind: str, x: str) -> str:
            return str(
                _chain(
                    x,
                    abs(y),
                    lambda a, b: ctx.emit(f"stablehlo.multiply {a}, {b} : {kind}"),
                )
            )

        power = without_sign(ctx, [x], write)
        if y == 2:
            ctx.made[power] = "square"
        if y > 0:
            return power
        one = ctx.constant(np.ones((), out.dtype), out)
        return ctx.emit(f"stablehlo.divide {one}, {power} : {out.mlir}")

    def evaluate(self, *values: Any, **params: Any) -> Any:
        """The same products."""
        (x,), y = values, params["y"]
        if y == 0:
            return np.ones_like(x)
        power = _chain(x, abs(y), np.multiply)
        return power if y > 0 else np.divide(np.ones((), x.dtype), power)

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """Y xʸ⁻¹ dx."""
        (x,), (dx,), y = primals, tangents, params["y"]
        out = self.bind(x, y=y)
        if y == 0:
            return out, Zero(typeof(out).tangent())
        if y == 1:
            return out, dx
        # Not y xʸ / x, which is nan at 0.
        slope = x if y == 2 else self.bind(x, y=y - 1)
        return out, arith.mul(dx, mul(slope, arith.constant(y, typeof(x).dtype)))


@register
class Pow(Elementwise):
    """xʸ. dtypes: inexact x; y of the same dtype, or integer. StableHLO: power."""

    name = "pow"
    kinds = INEXACT

    def abstract(self, *avals: Aval, **params: Any) -> Aval:
        """The dtype of x."""
        x, y = avals
        require_kind(self.name, x, INEXACT)
        if dtypes.is_integer(y.dtype):
            y = y.update(dtype=x.dtype, weak_type=True)
        return super().abstract(x, y)

    def lower(self, ctx: Context, *operands: str, **params: Any) -> str:
        """`power`, of an exponent of the dtype of x."""
        x, y = self.aligned(ctx, ctx.apart(operands, "exp", "square", "power"))
        out = ctx.avals_out[0]
        y_aval = ctx.avals_in[1].update(shape=out.shape)
        if y_aval.dtype != out.dtype:
            y = ctx.emit(f"stablehlo.convert {y} : ({y_aval.mlir}) -> {out.mlir}")
        power = ctx.emit(f"stablehlo.power {x}, {y} : {out.mlir}")
        ctx.made[power] = "power"
        if not dtypes.is_complex(out.dtype):
            return power
        return ctx.compose(complex_values.pow, [power, x, y], [out] * 3)[0]

    def evaluate(self, *values: Any, **params: Any) -> Any:
        """`np.power`, which takes the square root if one exponent of 0.5 is for all."""
        x, y = values
        y = y if y.dtype == x.dtype else y.astype(x.dtype)
        if y.ndim == 0 and y == 0.5 and not dtypes.is_complex(x.dtype):
            # Of -inf and -0 the power is not the root, but inf and 0.
            x = np.where(x == -np.inf, -x, x)
            return np.add(np.sqrt(x), np.zeros((), x.dtype))
        return np.power(x, y)

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """Y xʸ⁻¹ dx + xʸ log(x) dy."""
        x, y = primals
        dx, dy = tangents
        out = self.bind(x, y)
        total = None
        if type(dx) is not Zero:
            total = arith.mul(dx, _slope_of_base(x, y))
        if type(dy) is not Zero:
            total = arith.add(total, arith.mul(dy, _slope_of_exponent(out, x)))
        return out, Zero(typeof(out).tangent()) if total is None else total


def _slope_of_base(x: Any, y: Any) -> Any:
    aval, dtype = typeof(y), typeof(x).dtype
    # x⁰ is flat everywhere: where x⁻¹ is not finite it would make that 0 · inf.
    least = arith.constant(dtypes.finfo(dtype).tiny, dtypes.to_real(dtype))
    size = table["abs"].bind(x)
    flat = bitwise_and(
        eq(y, arith.constant(0, aval.dtype)), bitwise_not(ge(size, least))
    )
    base = select(flat, arith.constant(1, dtype), x)
    factor = convert(y, dtype) if dtypes.is_integer(aval.dtype) else y
    return mul(factor, Pow.bind(base, sub(y, arith.constant(1, aval.dtype))))


def _slope_of_exponent(out: Any, x: Any) -> Any:
    dtype = typeof(x).dtype
    one, zero = arith.constant(1, dtype), arith.constant(0, dtype)
    # At x = 0 the result is 0 for y > 0, and 0 · log 0 would be nan.
    return mul(out, log(select(eq(x, zero), one, x)))


def _half(x: Any) -> Any:
    return arith.constant(0.5, typeof(x).dtype)


@register
class Sqrt(Accurate):
    """Square root. dtypes: inexact. StableHLO: sqrt. ±0 → ±0, x < 0 → nan."""

    name = "sqrt"
    kinds = INEXACT
    hlo = "stablehlo.sqrt"
    numpy = np.sqrt
    complex_rule = complex_values.sqrt
    partials = (lambda out, x: div(_half(x), out),)

    def lower(self, ctx: Context, *operands: str, **params: Any) -> str:
        """`sqrt`, not of a square as the absolute value."""
        return super().lower(ctx, *ctx.apart(operands, "square", "power"), **params)


def _host_rsqrt(x: Any) -> Any:
    return np.divide(np.ones((), x.dtype), np.sqrt(x))


@register
class Rsqrt(Accurate):
    """1 / √x. dtypes: inexact. StableHLO: rsqrt. ±0 → ±inf, x < 0 → nan."""

    name = "rsqrt"
    kinds = INEXACT
    hlo = "stablehlo.rsqrt"
    numpy = _host_rsqrt
    complex_rule = complex_values.rsqrt
    partials = (lambda out, x: neg(mul(_half(x), div(out, x))),)

    def lower(self, ctx: Context, *operands: str, **params: Any) -> str:
        """`rsqrt`, not of a square as the inverse of the absolute value."""
        operands = ctx.apart(operands, "square", "power")
        out = super().lower(ctx, *operands, **params)
        ctx.made[out] = "power"
        return out


@register
class Cbrt(Accurate):
    """Cube root. dtypes: float. StableHLO: cbrt. ±0 → ±0."""

    name = "cbrt"
    kinds = FLOAT
    hlo = "stablehlo.cbrt"
    numpy = np.cbrt
    partials = (
        lambda out, x: div(arith.constant(1 / 3, typeof(x).dtype), square(out)),
    )


# -- functions -------------------------------------------------------------------------


def pow(x: Any, y: Any, /) -> Array:
    """Returns x to the power y.

    Args:
      x: float or complex array.
      y: array of the same dtype, or of integers; or a Python number (an integer becomes
        `integer_pow`).

    Returns:
      An array of the dtype of `x` and their common shape.

    Raises:
      DtypeError: `x` is boolean or integer, or `y` is of another inexact dtype.
      ShapeError: the shapes are incompatible.

    Special cases:
      x⁰ is 1 for every x, nan included. A negative float to a power that is not an
      integer is nan. A complex 0 to a power with a positive real part is 0. At x = 0
      the derivative with respect to y is 0 for y > 0.

    Example:
      >>> pow(np.array([2.0, 3.0], "f4"), 3)
      Array([ 8., 27.], dtype=float32)

    Source: StableHLO `power`.
    """
    result: Array
    if type(y) is int:
        if type(x) in PYTHON_SCALARS or dtypes.is_inexact(typeof(x).dtype):
            require_kind("pow", typeof(x), INEXACT)
            result = IntegerPow.bind(x, y=y)
            return result
    elif type(y) not in PYTHON_SCALARS and dtypes.is_integer(typeof(y).dtype):
        # The exponent keeps its dtype; only the shapes must agree.
        require_kind("pow", typeof(x), INEXACT)
        result = Pow.bind(*aligned("pow", x, y))
        return result
    require_kind(
        "pow", typeof(x), INEXACT | frozenset("iu") if type(x) is int else INEXACT
    )
    result = Pow.bind(*operands("pow", x, y))
    return result


def integer_pow(x: Any, y: int) -> Array:
    """Returns x to a power that is a Python integer.

    Args:
      x: int, float or complex array.
      y: the power.

    Returns:
      An array of the dtype and shape of `x`.

    Raises:
      DtypeError: `x` is boolean, or of integers and `y` negative.
      ArgumentError: `y` is not an integer.

    Special cases:
      x⁰ is 1 for every x. Integers wrap.

    Example:
      >>> integer_pow(np.array([1, 2, 3], "i4"), 2)
      Array([1, 4, 9], dtype=int32)

    Source: StableHLO `multiply`, by repeated squaring.
    """
    try:
        power = operator.index(y)
    except TypeError:
        raise ArgumentError(
            f"integer_pow: the power must be a Python integer, got {y!r}: use lax.pow"
        ) from None
    return IntegerPow.bind(x, y=power)


def reciprocal(x: Any, /) -> Array:
    """Returns 1 / x.

    Args:
      x: float or complex array.

    Returns:
      An array of the dtype and shape of `x`.

    Raises:
      DtypeError: `x` is boolean or integer.

    Special cases:
      ±0 gives ±inf.

    Example:
      >>> reciprocal(4.0)
      Array(0.25, dtype=float32, weak_type=True)

    Source: StableHLO `divide`.
    """
    return integer_pow(x, -1)


def square(x: Any, /) -> Array:
    """Returns x².

    Args:
      x: int, float or complex array.

    Returns:
      An array of the dtype and shape of `x`.

    Raises:
      DtypeError: `x` is boolean.

    Special cases:
      Integers wrap.

    Example:
      >>> square(np.int32(-3))
      Array(9, dtype=int32)

    Source: StableHLO `multiply`.
    """
    return Square.bind(x)


def sqrt(x: Any, /, *, accuracy: Accuracy = None) -> Array:
    """Returns the square root.

    Args:
      x: float or complex array.
      accuracy: of the compiled function: a `Tolerance` that it should keep, an
        `AccuracyMode`, or None. Platforms with a single implementation ignore it.

    Returns:
      An array of the dtype and shape of `x`.

    Raises:
      DtypeError: `x` is boolean or integer.
      ArgumentError: `accuracy` is something else.

    Special cases:
      ±0 gives ±0, a negative float nan. Complex roots have a real part ≥ 0 and the
      imaginary part's sign, that of a zero too; infinities and nan as C99's `csqrt`.

    Example:
      >>> sqrt(4.0)
      Array(2., dtype=float32, weak_type=True)

    Source: StableHLO `sqrt`.
    """
    return Sqrt.bind(x) if accuracy is None else bind_with(Sqrt, x, accuracy)


def rsqrt(x: Any, /, *, accuracy: Accuracy = None) -> Array:
    """Returns 1 / √x.

    Args:
      x: float or complex array.
      accuracy: of the compiled function: a `Tolerance` that it should keep, an
        `AccuracyMode`, or None. Platforms with a single implementation ignore it.

    Returns:
      An array of the dtype and shape of `x`.

    Raises:
      DtypeError: `x` is boolean or integer.
      ArgumentError: `accuracy` is something else.

    Special cases:
      ±0 gives ±inf, a negative float nan, inf gives 0.

    Example:
      >>> rsqrt(4.0)
      Array(0.5, dtype=float32, weak_type=True)

    Source: StableHLO `rsqrt`.
    """
    return Rsqrt.bind(x) if accuracy is None else bind_with(Rsqrt, x, accuracy)


def cbrt(x: Any, /, *, accuracy: Accuracy = None) -> Array:
    """Returns the cube root, of the sign of x.

    Args:
      x: float array.
      accuracy: of the compiled function: a `Tolerance` that it should keep, an
        `AccuracyMode`, or None. Platforms with a single implementation ignore it.

    Returns:
      An array of the dtype and shape of `x`.

    Raises:
      DtypeError: `x` is not floating point.
      ArgumentError: `accuracy` is something else.

    Special cases:
      ±0 gives ±0.

    Example:
      >>> cbrt(-8.0)
      Array(-2., dtype=float32, weak_type=True)

    Source: StableHLO `cbrt`.
    """
    return Cbrt.bind(x) if accuracy is None else bind_with(Cbrt, x, accuracy)
