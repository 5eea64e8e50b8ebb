"""Exponentials and logarithms."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.core.docs import shared
from fxflow.core.ir import arith
from fxflow.core.ir.primitive import register, table
from fxflow.core.runtime.lowering import Context
from fxflow.lax import complex_values
from fxflow.lax.elementwise import add, div, mul, neg
from fxflow.lax.families import (
    FLOAT,
    INEXACT,
    Accuracy,
    Accurate,
    Elementwise,
    Exponential,
    bind_with,
    kind,
)


def _one(x: Any) -> Any:
    return arith.constant(1, typeof(x).dtype)


def _scaled(factor: float, x: Any) -> Any:
    return mul(x, arith.constant(factor, typeof(x).dtype))


@register
class Exp(Exponential, Accurate):
    """eˣ. dtypes: inexact. StableHLO: exponential."""

    name = "exp"
    kinds = INEXACT
    hlo = "stablehlo.exponential"
    numpy = np.exp
    complex_formula = complex_values.exp
    partials = (lambda out, x: out,)

    def lower(self, ctx: Context, *operands: str, **params: Any) -> str:
        """`exponential`."""
        out = super().lower(ctx, *operands, **params)
        ctx.made[out] = "exp"
        return out


@register
class Exp2(Accurate):
    """2ˣ. dtypes: inexact. StableHLO: exponential, of x log 2."""

    name = "exp2"
    kinds = INEXACT
    numpy = np.exp2
    complex_formula = complex_values.exp2
    partials = (lambda out, x: mul(out, arith.constant(math.log(2), typeof(x).dtype)),)

    def lower(self, ctx: Context, *operands: str, **params: Any) -> str:
        """`power` with base 2: the product x log 2 would lose digits of large x."""
        out = ctx.avals_out[0]
        if dtypes.is_complex(out.dtype):
            return self._lower_complex(ctx, *operands)
        base = ctx.constant(np.array(2).astype(out.dtype), out)
        power = ctx.emit(f"stablehlo.power {base}, {operands[0]} : {out.mlir}")
        ctx.made[power] = "power"
        return power


@register
class Expm1(Exponential, Accurate):
    """eˣ - 1, exact near 0. dtypes: inexact. StableHLO: exponential_minus_one."""

    name = "expm1"
    kinds = INEXACT
    hlo = "stablehlo.exponential_minus_one"
    numpy = np.expm1
    complex_formula = complex_values.expm1
    # Not the result plus 1, which cancels far below 0.
    partials = (lambda out, x: Exp.bind(x),)


@register
class Log(Accurate):
    """Natural logarithm. dtypes: inexact. StableHLO: log. ±0 → -inf, x < 0 → nan."""

    name = "log"
    kinds = INEXACT
    hlo = "stablehlo.log"
    numpy = np.log
    complex_rule = complex_values.log
    partials = (lambda out, x: div(_one(x), x),)

    def lower(self, ctx: Context, *operands: str, **params: Any) -> str:
        """`log`, not of an exponential or a power as their exponent."""
        return super().lower(ctx, *ctx.apart(operands, "exp", "power"), **params)


# Below √½ - 1, log(1 + x) is as exact as any formula.
_FAR_FROM_0 = math.sqrt(0.5) - 1


@register
class Log1p(Accurate):
    """log(1 + x), exact near 0. dtypes: inexact. StableHLO: log_plus_one."""

    name = "log1p"
    kinds = INEXACT
    hlo = "stablehlo.log_plus_one"
    numpy = np.log1p
    complex_rule = complex_values.log1p
    partials = (lambda out, x: div(_one(x), add(x, _one(x))),)

    def lower(self, ctx: Context, *operands: str, **params: Any) -> str:
        """`log_plus_one`; on jaxlib 0.10 it is off by 120 ulp of 64 bits at -0.414."""
        near = super().lower(ctx, *operands, **params)
        (x,), out = operands, ctx.avals_out[0]
        if out.dtype != np.float64:
            return near
        bools = out.update(dtype=dtypes.bool_).mlir
        bound, one = (ctx.constant(np.asarray(c), out) for c in (_FAR_FROM_0, 1.0))
        is_far = ctx.emit(
            f"stablehlo.compare LT, {x}, {bound}, FLOAT : "
            f"({out.mlir}, {out.mlir}) -> {bools}"
        )
        total = ctx.emit(f"stablehlo.add {x}, {one} : {out.mlir}")
        far = ctx.emit(f"stablehlo.log {total} : {out.mlir}")
        chosen = f"{is_far}, {far}, {near}"
        return ctx.emit(f"stablehlo.select {chosen} : {bools}, {out.mlir}")


# -- the logistic function, and slopes of sigmoids -------------------------------------


def _host_slope(x: Any, steepness: int = 1) -> Any:
    t = np.exp(np.multiply(np.abs(x), np.asarray(-steepness, x.dtype)))
    total = np.add(t, np.ones((), x.dtype))
    above = np.multiply(t, np.asarray(steepness**2, x.dtype))
    return np.divide(above, np.multiply(total, total))


def _host_tanh_slope(x: Any) -> Any:
    return _host_slope(x, 2)


class SigmoidSlope(Elementwise):
    """Slope of a sigmoid: s² t / (1 + t)², with t = e^(-s |x|).

    The sigmoid's value y does not give it: y (1 - y) and 1 - y² lose their digits where
    y is near 1. One operation, whose derivative is a product again, also keeps the
    graphs of higher derivatives small.

    Attributes:
      steepness: s.
    """

    kinds = FLOAT
    steepness: ClassVar[int]

    def _operation(self, ctx: Context, *operands: str, **params: Any) -> str:
        """Writes the formula."""
        out = ctx.avals_out[0]
        (x,) = self.aligned(ctx, operands)

        def emit(operation: str, *names: str) -> str:
            return ctx.emit(f"stablehlo.{operation} {', '.join(names)} : {out.mlir}")

        def constant(value: int) -> str:
            array = np.asarray(value, out.dtype)
            name = ctx.constant(array, out.update(shape=()))
            return ctx.broadcast(name, out.update(shape=()), out.shape)

        size = emit("abs", x)
        t = table["exp"].lower(ctx, emit("multiply", size, constant(-self.steepness)))
        total = emit("add", t, constant(1))
        above = t
        if self.steepness != 1:
            above = emit("multiply", t, constant(self.steepness**2))
        return emit("divide", above, emit("multiply", total, total))


@register
class LogisticSlope(SigmoidSlope):
    """Slope of the logistic function. dtypes: floats."""

    name = "logistic_slope"
    steepness = 1
    numpy = _host_slope
    partials = (lambda out, x: mul(out, table["tanh"].bind(_scaled(-0.5, x))),)


@register
class TanhSlope(SigmoidSlope):
    """Slope of the hyperbolic tangent. dtypes: floats."""

    name = "tanh_slope"
    steepness = 2
    numpy = _host_tanh_slope
    partials = (lambda out, x: mul(out, _scaled(-2, table["tanh"].bind(x))),)


def _slope_of_logistic(out: Any, x: Any) -> Any:
    """Returns y (1 - y): not by the result, which has lost digits far above 0."""
    if kind(typeof(x).dtype) == "c":
        return mul(out, Logistic.bind(neg(x)))
    return LogisticSlope.bind(x)


def _host_logistic(x: Any) -> Any:
    one = np.ones((), x.dtype)
    return np.divide(one, np.add(one, np.exp(np.negative(x))))


@register
class Logistic(Exponential, Accurate):
    """1 / (1 + e⁻ˣ). dtypes: inexact. StableHLO: logistic."""

    name = "logistic"
    kinds = INEXACT
    hlo = "stablehlo.logistic"
    numpy = _host_logistic
    complex_formula = complex_values.logistic
    partials = (_slope_of_logistic,)


_exponential_docs = shared("""
    Args:
      x: float or complex array.
      accuracy: of the compiled function: a `Tolerance` that it should keep, an
        `AccuracyMode`, or None. Platforms with a single implementation ignore it.

    Returns:
      An array of the dtype and shape of `x`.

    Raises:
      DtypeError: `x` is boolean or integer.
""")


@_exponential_docs
def exp(x: Any, /, *, accuracy: Accuracy = None) -> Array:
    """Returns eˣ.

    Special cases:
      -inf gives 0, inf gives inf. Complex infinities, nan and signed zeros as C99's
      `cexp`: -inf + iy gives 0 for every y, inf + i inf gives inf + i nan.

    Example:
      >>> exp(0.0)
      Array(1., dtype=float32, weak_type=True)

    Source: StableHLO `exponential`.
    """
    return Exp.bind(x) if accuracy is None else bind_with(Exp, x, accuracy)


@_exponential_docs
def exp2(x: Any, /, *, accuracy: Accuracy = None) -> Array:
    """Returns 2ˣ.

    Special cases:
      Exact where x is an integer. -inf gives 0, inf gives inf.

    Example:
      >>> exp2(3.0)
      Array(8., dtype=float32, weak_type=True)

    Source: StableHLO `power`.
    """
    return Exp2.bind(x) if accuracy is None else bind_with(Exp2, x, accuracy)


@_exponential_docs
def expm1(x: Any, /, *, accuracy: Accuracy = None) -> Array:
    """Returns eˣ - 1, without loss of digits near 0.

    Special cases:
      ±0 gives ±0, -inf gives -1, inf gives inf; complex numbers as `exp`.

    Example:
      >>> expm1(np.float32(1e-8))
      Array(1.e-08, dtype=float32)

    Source: StableHLO `exponential_minus_one`.
    """
    return Expm1.bind(x) if accuracy is None else bind_with(Expm1, x, accuracy)


@_exponential_docs
def log(x: Any, /, *, accuracy: Accuracy = None) -> Array:
    """Returns the natural logarithm.

    Special cases:
      ±0 gives -inf, a negative float nan, inf gives inf. The imaginary part of a
      complex logarithm is in [-π, π], with the sign of that of x; its real part is inf
      where either part of x is infinite, even beside nan (C99's `clog`).

    Example:
      >>> log(1.0)
      Array(0., dtype=float32, weak_type=True)

    Source: StableHLO `log`.
    """
    return Log.bind(x) if accuracy is None else bind_with(Log, x, accuracy)


@_exponential_docs
def log1p(x: Any, /, *, accuracy: Accuracy = None) -> Array:
    """Returns log(1 + x), without loss of digits near 0.

    Special cases:
      ±0 gives ±0, -1 gives -inf, what is below -1 nan; complex numbers as `log`.

    Example:
      >>> log1p(np.float32(1e-8))
      Array(1.e-08, dtype=float32)

    Source: StableHLO `log_plus_one`.
    """
    return Log1p.bind(x) if accuracy is None else bind_with(Log1p, x, accuracy)


@_exponential_docs
def logistic(x: Any, /, *, accuracy: Accuracy = None) -> Array:
    """Returns the logistic function 1 / (1 + e⁻ˣ).

    Special cases:
      -inf gives 0, inf gives 1.

    Example:
      >>> logistic(0.0)
      Array(0.5, dtype=float32, weak_type=True)

    Source: StableHLO `logistic`.
    """
    return Logistic.bind(x) if accuracy is None else bind_with(Logistic, x, accuracy)
