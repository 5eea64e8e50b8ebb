"""Arithmetic, elementwise: the primitives, then the functions users call.

The primitives take operands of one dtype and one shape; a constant may be 0-d. Their
rules bind primitives: the functions take Python numbers beside arrays, too. Integers
have XLA's conventions: sums and products wrap, division truncates, dividing by zero
gives -1.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.core.docs import shared
from fxflow.core.interpreters.jet import leibniz
from fxflow.core.ir import arith
from fxflow.core.ir.graph import Literal, Var
from fxflow.core.ir.primitive import Dual, Values, Zero, register
from fxflow.core.runtime.lowering import Context
from fxflow.core.spmd import layouts
from fxflow.lax import _extrema_host
from fxflow.lax._operands import operands
from fxflow.lax.bitwise import bitwise_and, bitwise_or
from fxflow.lax.comparison import eq, ge, gt, lt, ne
from fxflow.lax.complex import complex as complex_
from fxflow.lax.complex import conj, imag, real
from fxflow.lax.families import ADDED, ANY, NUMERIC, REAL, Elementwise, kind
from fxflow.lax.gradient_control import StopGradient
from fxflow.lax.select import select


def without_sign(
    ctx: Context, operands: Sequence[str], write: Callable[..., str]
) -> str:
    """Writes products of integers, as of unsigned ones, which have the same bits.

    XLA takes the product of a signed integer and itself to be positive, though it wraps
    (`devices/faults`).

    Args:
      ctx: where to write.
      operands: of the result's type.
      write: takes a type and operands of it; returns the result's name.
    """
    out = ctx.avals_out[0]
    if not dtypes.is_signed(out.dtype):
        return write(out.mlir, *operands)
    bare = out.update(dtype=dtypes.dtype(f"uint{dtypes.bits(out.dtype)}")).mlir
    cast = {
        x: ctx.emit(f"stablehlo.bitcast_convert {x} : ({out.mlir}) -> {bare}")
        for x in dict.fromkeys(operands)
    }
    found = write(bare, *map(cast.__getitem__, operands))
    return ctx.emit(f"stablehlo.bitcast_convert {found} : ({bare}) -> {out.mlir}")


def _is_unit(value: Any) -> bool:
    return getattr(value, "size", 1) == 1 and bool(value in (1, -1))


class _Arithmetic(Elementwise):
    """A sum, a product, or the inverse of one.

    Attributes:
      joins: which of the two.
    """

    joins: ClassVar[str] = "sum"

    def lower(self, ctx: Context, *operands: str, **params: Any) -> str:
        """The operation; by a constant, apart from another one by a constant."""
        if Literal not in map(type, ctx.inputs):
            return super().lower(ctx, *operands, **params)
        constant = next(a for a in ctx.inputs if type(a) is Literal)
        inexact = dtypes.is_inexact(ctx.avals_out[0].dtype)
        if not inexact or _is_unit(constant.value):
            return super().lower(ctx, *operands, **params)
        out = super().lower(ctx, *ctx.apart(operands, self.joins), **params)
        ctx.made[out] = self.joins
        return out


# -- linear ----------------------------------------------------------------------------


@register
class Neg(Elementwise):
    """Minus x. dtypes: numeric. StableHLO: negate. Integers wrap."""

    name = "neg"
    host_kinds = ADDED
    kinds = NUMERIC
    hlo = "stablehlo.negate"
    numpy = np.negative
    partials = (-1,)
    linear = True
    sums: Callable[..., Any] = layouts.linear

    def transpose(self, cotangent: Any, *args: Any, **params: Any) -> Values:
        """Minus the cotangent."""
        return [self.bind(cotangent)]


@register
class Add(_Arithmetic):
    """x + y. dtypes: numeric. StableHLO: add. Integers wrap."""

    name = "add"
    host_kinds = ADDED
    kinds = NUMERIC
    hlo = "stablehlo.add"
    numpy = np.add
    partials = (1, 1)
    linear = True
    sums: Callable[..., Any] = layouts.linear

    def transpose(self, cotangent: Any, *args: Any, **params: Any) -> Values:
        """The cotangent, for each operand."""
        return [cotangent if type(a) is Var else None for a in args]


@register
class Sub(_Arithmetic):
    """x - y. dtypes: numeric. StableHLO: subtract. Integers wrap."""

    name = "sub"
    host_kinds = ADDED
    kinds = NUMERIC
    hlo = "stablehlo.subtract"
    numpy = np.subtract
    partials = (1, -1)
    linear = True
    sums: Callable[..., Any] = layouts.linear

    def transpose(self, cotangent: Any, *args: Any, **params: Any) -> Values:
        """The cotangent, and its negative."""
        x, y = args
        return [
            cotangent if type(x) is Var else None,
            arith.neg(cotangent) if type(y) is Var else None,
        ]


# -- products and quotients ------------------------------------------------------------


@register
class Mul(_Arithmetic):
    """x * y. dtypes: numeric. StableHLO: multiply. Integers wrap."""

    name = "mul"
    joins = "product"
    kinds = NUMERIC
    hlo = "stablehlo.multiply"
    numpy = np.multiply
    partials = (lambda _, x, y: y, lambda _, x, y: x)
    sums: Callable[..., Any] = layouts.scaled

    def lower(self, ctx: Context, *operands: str, **params: Any) -> str:
        """`multiply`; of signed integers that may be one, without the sign."""
        if Literal in map(type, ctx.inputs):
            return super().lower(ctx, *operands, **params)
        x, y = self.aligned(ctx, operands)
        out = without_sign(
            ctx, (x, y), lambda kind, x, y: ctx.emit(f"{self.hlo} {x}, {y} : {kind}")
        )
        if x == y:
            ctx.made[out] = "square"
        return out

    def taylor(
        self, out: Any, operands: Values, /, **params: Any
    ) -> Callable[[int], Any]:
        """Leibniz's sum."""
        return leibniz(self.bind, out, *operands)

    def transpose(self, cotangent: Any, *args: Any, **params: Any) -> Values:
        """The cotangent times the operand that is not linear."""
        x, y = args
        if type(x) is not Var:
            return [None, self.bind(cotangent, x)]
        if type(y) is Var:  # a product of what should be linear
            return super().transpose(cotangent, *args, **params)
        return [self.bind(cotangent, y), None]


def _reciprocal_vanishes(divisor: Any) -> bool:
    """Returns whether a constant has an element whose reciprocal is subnormal."""
    if type(divisor) is not Literal or not dtypes.is_floating(divisor.aval.dtype):
        return False
    largest = _largest_divisor(divisor.aval.dtype)
    if not divisor.aval.shape:
        return largest < math.fabs(divisor.value) < math.inf
    sizes = np.abs(np.asarray(divisor.value, np.float64))
    return bool(np.any((sizes > largest) & (sizes < np.inf)))


@functools.cache
def _largest_divisor(dtype: Any) -> float:
    return 1 / float(dtypes.finfo(dtype).tiny)


def _zero_and_ones(dtype: Any) -> tuple[Any, Any]:
    zero = np.zeros((), dtype)
    return zero, np.subtract(zero, np.ones((), dtype))


def _host_div(x: Any, y: Any) -> Any:
    dtype = x.dtype
    letter = kind(dtype)
    if letter not in "iu":
        return np.divide(x, y)
    one = np.array(1).astype(dtype)
    # The least integer over -1 overflows: XLA wraps, as its negation does.
    unusual = (y == 0) | (y == -1) if letter == "i" else y == 0
    safe = np.where(unusual, one, y)
    quotient = np.floor_divide(x, safe)
    if letter == "i":
        # NumPy rounds the quotient down, XLA towards zero.
        inexact = np.multiply(quotient, safe) != x
        quotient = np.add(quotient, (inexact & ((x < 0) != (safe < 0))).astype(dtype))
        quotient = np.where(y == -1, np.negative(x), quotient)
    return np.where(y == 0, np.array(-1).astype(dtype), quotient)


@register
class Div(_Arithmetic):
    """x / y. dtypes: numeric. StableHLO: divide.

    Integers truncate towards zero; a zero divisor gives -1 (all bits set), and the
    smallest integer divided by -1 is itself.
    """

    name = "div"
    joins = "product"
    kinds = NUMERIC
    hlo = "stablehlo.divide"
    numpy = _host_div
    sums: Callable[..., Any] = layouts.scaled

    def lower(self, ctx: Context, *operands: str, **params: Any) -> str:
        """`divide`; by a constant in a way that XLA does not make a product of 0.

        XLA:CPU has 1 for the quotient of an integer by itself, and so for 0 by 0
        (`devices/faults`).
        """
        out = ctx.avals_out[0]
        if dtypes.is_integer(out.dtype) and type(ctx.inputs[1]) is not Literal:
            x, y = self.aligned(ctx, operands)
            quotient = ctx.emit(f"{self.hlo} {x}, {y} : {out.mlir}")
            zero, ones = (ctx.constant(v, out) for v in _zero_and_ones(out.dtype))
            sign = "SIGNED" if dtypes.is_signed(out.dtype) else "UNSIGNED"
            mask = out.update(dtype=dtypes.dtype("bool")).mlir
            none = ctx.emit(
                f"stablehlo.compare EQ, {y}, {zero}, {sign} : "
                f"({out.mlir}, {out.mlir}) -> {mask}"
            )
            return ctx.emit(
                f"stablehlo.select {none}, {ones}, {quotient} : {mask}, {out.mlir}"
            )
        if all(ctx.made.get(x) == "exp" for x in operands):
            operands = ctx.apart(operands, "exp")
        if _reciprocal_vanishes(ctx.inputs[1]):
            # XLA multiplies by the reciprocals of constants and of 0-d operands; CPUs
            # and GPUs take subnormal ones for 0.
            x, y = self.aligned(ctx, operands)
            whole = ctx.avals_out[0].mlir
            y = ctx.emit(f"stablehlo.optimization_barrier {y} : {whole}")
            return ctx.emit(f"{self.hlo} {x}, {y} : {whole}")
        return super().lower(ctx, *operands, **params)

    def taylor(
        self, out: Any, operands: Values, /, **params: Any
    ) -> Callable[[int], Any]:
        """From x = out · y: xₖ less the sum of outⱼ · yₖ₋ⱼ for j < k, over y₀."""
        x, y = operands

        def rule(k: int) -> Any:
            total = x[k]
            for j in range(k):
                if type(out[j]) is not Zero and type(y[k - j]) is not Zero:
                    total = arith.add(total, arith.neg(arith.mul(out[j], y[k - j])))
            return total if type(total) is Zero else self.bind(total, y[0])

        return rule

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """Dx / y - dy (x / y) / y."""
        x, y = primals
        dx, dy = tangents
        out = self.bind(x, y)
        total = None if type(dx) is Zero else self.bind(dx, y)
        if type(dy) is not Zero:
            # Not (x / y) / y, which XLA makes x / y²: that square may overflow.
            inverse = self.bind(arith.constant(1, typeof(y).dtype), y)
            slope = Neg.bind(Mul.bind(out, inverse))
            total = arith.add(total, arith.mul(dy, slope))
        return out, total

    def transpose(self, cotangent: Any, *args: Any, **params: Any) -> Values:
        """The cotangent divided by the same."""
        if type(args[1]) is Var:  # something divided by what should be linear
            return super().transpose(cotangent, *args, **params)
        return [self.bind(cotangent, args[1]), None]


def _host_rem(x: Any, y: Any) -> Any:
    if kind(x.dtype) not in "iu":
        return np.fmod(x, y)
    safe = np.where(y == 0, np.array(1).astype(y.dtype), y)
    return np.where(y == 0, x, np.fmod(x, safe))


@register
class Rem(Elementwise):
    """Remainder of truncating division, with the sign of x. dtypes: real.

    StableHLO: remainder. An integer divided by zero leaves itself, a float nan.
    """

    name = "rem"
    kinds = REAL
    hlo = "stablehlo.remainder"
    numpy = _host_rem
    # The quotient that was taken off: what is left over of x is exact. It is constant
    # between its jumps.
    partials = (
        1,
        lambda out, x, y: StopGradient.bind(Div.bind(Sub.bind(out, x), y)),
    )


# -- sign and order --------------------------------------------------------------------


def _host_sign(x: Any) -> Any:
    if kind(x.dtype) != "f":
        return np.sign(x)
    one = np.array(1).astype(x.dtype)
    # NumPy's sign of -0.0 is 0.0, XLA's is -0.0.
    return np.where((x == 0) | np.isnan(x), x, np.copysign(one, x))


def _direction(sign: Any, z: Any) -> Any:
    """Corrects z / |z|: an infinite part beside a finite one tells the direction."""
    x, y = real(z), imag(z)
    aval = typeof(x)
    along, across = eq(Abs.bind(x), np.inf), eq(Abs.bind(y), np.inf)
    one = bitwise_and(bitwise_and(eq(x, x), eq(y, y)), ne(along, across))
    # Zero with the sign of what is divided by infinity.
    unit = [
        select(there, Sign.bind(part), Mul.bind(part, arith.constant(0, aval.dtype)))
        for part, there in ((x, along), (y, across))
    ]
    return select(one, complex_(*unit), sign)


@register
class Sign(Elementwise):
    """-1, 0 or 1; x/|x| of complex x. dtypes: numeric. StableHLO: sign.

    ±0 → ±0, nan → nan.
    """

    name = "sign"
    kinds = NUMERIC
    hlo = "stablehlo.sign"
    numpy = _host_sign
    complex_rule = _direction

    def lower(self, ctx: Context, *operands: str, **params: Any) -> str:
        """`sign`; of unsigned integers, whether they are not zero."""
        aval = ctx.avals_in[0]
        if kind(aval.dtype) != "u":
            return super().lower(ctx, *operands, **params)
        one = ctx.constant(np.array(1, aval.dtype), aval)
        return ctx.emit(f"stablehlo.minimum {operands[0]}, {one} : {aval.mlir}")

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """Zero; of complex x, what turns x about the origin, divided by |x|."""
        (x,), (dx,) = primals, tangents
        out = self.bind(x)
        aval = typeof(out).tangent()
        if not dtypes.is_complex(aval.dtype):
            return out, Zero(aval)
        size = Abs.bind(x)
        along = real(Mul.bind(dx, conj(out)))
        across = Sub.bind(dx, Mul.bind(complex_(along, 0.0), out))
        # The side that is not taken must be finite, or its derivative times 0 is nan.
        safe = select(eq(size, 0.0), 1.0, size)
        inverse = select(eq(size, 0.0), 0.0, Div.bind(*operands("sign", 1.0, safe)))
        return out, Mul.bind(across, complex_(inverse, 0.0))


def _endless(size: Any, z: Any) -> Any:
    """Corrects |z|: infinite if either part is, even beside nan."""
    infinite = bitwise_or(eq(Abs.bind(real(z)), np.inf), eq(Abs.bind(imag(z)), np.inf))
    return select(infinite, np.inf, size)


@register
class Abs(Elementwise):
    """Absolute value. dtypes: signed, float, complex. StableHLO: abs.

    The smallest integer is its own absolute value. The derivative at 0 is 1; at the
    complex 0 it is 0.
    """

    name = "abs"
    kinds = frozenset("ifc")
    hlo = "stablehlo.abs"
    numpy = np.abs
    complex_rule = _endless

    def result_dtype(self, dtype: Any) -> Any:
        """Real."""
        return dtypes.to_real(dtype) if dtypes.is_complex(dtype) else dtype

    def lower(self, ctx: Context, *operands: str, **params: Any) -> str:
        """`abs`; of integers max(x, -x), which XLA does not take to be positive."""
        out = ctx.avals_out[0]
        if not dtypes.is_signed(out.dtype):
            return super().lower(ctx, *operands, **params)
        (x,) = operands
        minus = ctx.emit(f"stablehlo.negate {x} : {out.mlir}")
        return ctx.emit(f"stablehlo.maximum {x}, {minus} : {out.mlir}")

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """The tangent's part along x."""
        (x,), (dx,) = primals, tangents
        out = self.bind(x)
        if not dtypes.is_complex(typeof(x).dtype):
            return out, select(ge(x, 0.0), dx, Neg.bind(dx))
        return out, real(Mul.bind(dx, conj(Sign.bind(x))))


def _share(out: Any, mine: Any, other: Any) -> Any:
    """Returns what part of a maximum's derivative an operand gets: half of a tie."""
    tie = select(eq(other, out), 0.5, 1.0)
    dtype = typeof(out).dtype
    return select(eq(mine, out), arith.cast(tie, dtype), arith.constant(0, dtype))


class _Extremum(Elementwise):
    """Maximum or minimum. Complex numbers are ordered by real, then imaginary part."""

    kinds = ANY
    partials = (
        lambda out, x, y: _share(out, x, y),
        lambda out, x, y: _share(out, y, x),
    )

    def lower(self, ctx: Context, *operands: str, **params: Any) -> str:
        """One operation; of complex numbers, a comparison of the parts."""
        if kind(ctx.avals_in[0].dtype) != "c":
            return super().lower(ctx, *operands, **params)
        names = self.aligned(ctx, operands)
        better = gt if self.name == "max" else lt

        def choose(x: Any, y: Any) -> Any:
            first = bitwise_or(
                better(real(x), real(y)),
                bitwise_and(eq(real(x), real(y)), better(imag(x), imag(y))),
            )
            return select(bitwise_or(first, ne(x, x)), x, y)

        return ctx.compose(choose, names, [ctx.avals_out[0]] * 2)[0]


@register
class Max(_Extremum):
    """The larger of two. dtypes: any. StableHLO: maximum. nan if either is.

    Each operand of a tie gets half of the derivative.
    """

    name = "max"
    hlo = "stablehlo.maximum"
    numpy = _extrema_host.maximum


@register
class Min(_Extremum):
    """The smaller of two. dtypes: any. StableHLO: minimum. nan if either is.

    Each operand of a tie gets half of the derivative.
    """

    name = "min"
    hlo = "stablehlo.minimum"
    numpy = _extrema_host.minimum


# -- public ----------------------------------------------------------------------------


def neg(x: Any, /) -> Array:
    """Returns minus x.

    Args:
      x: int, float or complex array.

    Returns:
      An array of the dtype and shape of `x`.

    Raises:
      DtypeError: `x` is boolean.

    Special cases:
      Integers wrap: minus the smallest one is itself; unsigned ones are modulo 2ⁿ.

    Example:
      >>> neg(2.0)
      Array(-2., dtype=float32, weak_type=True)

    Source: StableHLO `negate`.
    """
    return Neg.bind(x)


_elementwise_docs = shared("""
    Args:
      x: int, float or complex array, or a Python number.
      y: of the same dtype, or a Python number.

    Returns:
      An array of their dtype and common shape.

    Raises:
      DtypeError: the dtypes differ, or the operation does not take them.
      ShapeError: the shapes are incompatible.
""")


@_elementwise_docs
def add(x: Any, y: Any, /) -> Array:
    """Returns x + y.

    Special cases:
      Integers wrap.

    Example:
      >>> add(np.array([1, 2], "i4"), 1)
      Array([2, 3], dtype=int32)

    Source: StableHLO `add`.
    """
    return Add.bind(*operands("add", x, y))


@_elementwise_docs
def sub(x: Any, y: Any, /) -> Array:
    """Returns x - y.

    Special cases:
      Integers wrap.

    Example:
      >>> sub(np.array([1, 2], "i4"), 1)
      Array([0, 1], dtype=int32)

    Source: StableHLO `subtract`.
    """
    return Sub.bind(*operands("sub", x, y))


@_elementwise_docs
def mul(x: Any, y: Any, /) -> Array:
    """Returns x y.

    Special cases:
      Integers wrap. 0 · inf is nan.

    Example:
      >>> mul(np.array([1, 2], "i4"), 3)
      Array([3, 6], dtype=int32)

    Source: StableHLO `multiply`.
    """
    return Mul.bind(*operands("mul", x, y))


@_elementwise_docs
def div(x: Any, y: Any, /) -> Array:
    """Returns x / y.

    Special cases:
      Integer quotients are truncated towards zero. An integer divided by 0 is -1 (all
      bits set), the smallest integer divided by -1 is itself.

    Example:
      >>> div(np.array([7, -7, 1], "i4"), np.array([2, 2, 0], "i4"))
      Array([ 3, -3, -1], dtype=int32)

    Source: StableHLO `divide`.
    """
    return Div.bind(*operands("div", x, y))


@_elementwise_docs
def rem(x: Any, y: Any, /) -> Array:
    """Returns what truncating division of x by y leaves, with the sign of x.

    Args:
      x: int or float array, or a Python number.

    Special cases:
      An integer divided by 0 leaves itself; a float divided by 0 leaves nan.

    Example:
      >>> rem(np.array([7.0, -7.0], "f4"), 4.0)
      Array([ 3., -3.], dtype=float32)

    Source: StableHLO `remainder`.
    """
    return Rem.bind(*operands("rem", x, y))


def sign(x: Any, /) -> Array:
    """Returns -1, 0 or 1; of a complex number, x / abs(x).

    Args:
      x: int, float or complex array.

    Returns:
      An array of the dtype and shape of `x`.

    Raises:
      DtypeError: `x` is boolean.

    Special cases:
      ±0 gives ±0, nan gives nan. The derivative of a real sign is 0 everywhere.

    Example:
      >>> sign(np.array([-2.0, 0.0, 3.0], "f4"))
      Array([-1.,  0.,  1.], dtype=float32)

    Source: StableHLO `sign`.
    """
    return Sign.bind(x)


def abs(x: Any, /) -> Array:
    """Returns the absolute value.

    Args:
      x: signed int, float or complex array.

    Returns:
      An array of the shape of `x`, real where `x` is complex.

    Raises:
      DtypeError: `x` is boolean or unsigned.

    Special cases:
      The smallest integer is its own absolute value. A complex number with an infinite
      part has the value inf, even beside nan. The derivative at 0 is 1; at the complex
      0 it is 0.

    Example:
      >>> abs(np.complex64(3 + 4j))
      Array(5., dtype=float32)

    Source: StableHLO `abs`.
    """
    return Abs.bind(x)


@_elementwise_docs
def max(x: Any, y: Any, /) -> Array:
    """Returns the larger of x and y.

    Args:
      x: bool, int, float or complex array, or a Python number.

    Special cases:
      nan where either is nan. Complex numbers are compared by their real, then their
      imaginary parts. Where the two are equal, each gets half of the derivative.

    Example:
      >>> max(np.array([1, 5], "i4"), 3)
      Array([3, 5], dtype=int32)

    Source: StableHLO `maximum`.
    """
    return Max.bind(*operands("max", x, y))


@_elementwise_docs
def min(x: Any, y: Any, /) -> Array:
    """Returns the smaller of x and y.

    Args:
      x: bool, int, float or complex array, or a Python number.

    Special cases:
      nan where either is nan. Complex numbers are compared by their real, then their
      imaginary parts. Where the two are equal, each gets half of the derivative.

    Example:
      >>> min(np.array([1, 5], "i4"), 3)
      Array([1, 3], dtype=int32)

    Source: StableHLO `minimum`.
    """
    return Min.bind(*operands("min", x, y))
