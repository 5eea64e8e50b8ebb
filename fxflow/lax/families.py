"""Families of primitives: what is true of many operations, written once.

- `Elementwise`: an element of the result depends on the operands' elements there.
  Operands have one shape; a *constant* operand may be 0-d and stands for all indices
  (never a traced one, so it has no tangent and is never mapped).
- `Structural`: one operand, linear, moves data.
- `Linear`: linear in all operands together.
- `Bilinear`: linear in each of two operands.
- `Accurate`: elementwise, and a program can say how exact it must be.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from fxflow.core.arrays import Array, Aval, dtypes, typeof
from fxflow.core.interpreters.jet import leibniz
from fxflow.core.interpreters.linearize import Tape
from fxflow.core.ir import arith
from fxflow.core.ir.graph import Var
from fxflow.core.ir.primitive import Batched, Dual, Flags, Primitive, Values, Zero
from fxflow.core.ir.trace import Tracer, state
from fxflow.core.runtime.lowering import Context
from fxflow.core.spmd import layouts
from fxflow.errors import ArgumentError, DtypeError, ShapeError

# -- which dtypes an operation takes ---------------------------------------------------

Kinds = frozenset[str]
ANY: Kinds = frozenset("biufc")
NUMERIC: Kinds = frozenset("iufc")
INEXACT: Kinds = frozenset("fc")
FLOAT: Kinds = frozenset("f")
COMPLEX: Kinds = frozenset("c")
INTEGER: Kinds = frozenset("iu")
REAL: Kinds = frozenset("iuf")
BITS: Kinds = frozenset("biu")
ORDERED: Kinds = frozenset("biuf")

# The dtypes of which NumPy gives what XLA gives (`Primitive.host_kinds`): all where
# nothing is computed; complex ones where parts are added, but not where they are
# multiplied or a function is taken, which differs at infinities and on branch cuts.
MOVED: Kinds = ANY | {"n"}
ADDED: Kinds = ANY

_WORDS = {
    "b": "bool",
    "i": "signed integer",
    "u": "unsigned integer",
    "f": "floating point",
    "c": "complex",
}


def kind(dtype: Any) -> str:
    """Returns the kind of a dtype as one letter: b, i, u, f, c, k (keys) or v."""
    return dtypes.kinds.get(dtype, "v")


def require_kind(name: str, aval: Aval, kinds: Kinds) -> None:
    """Checks the dtype of an operand.

    Raises:
      DtypeError: the operation does not take it.
    """
    if kind(aval.dtype) not in kinds:
        accepted = ", ".join(word for letter, word in _WORDS.items() if letter in kinds)
        hint = "convert it with .astype(...) first"
        if dtypes.is_key(aval.dtype):
            hint = "fxflow.random.key_data gives key data"
        raise DtypeError(f"{name}: takes {accepted} arrays, got {aval}: {hint}")


# -- elementwise -----------------------------------------------------------------------

Partial = Callable[..., Any] | int | None


class Elementwise(Primitive):
    """Acts elementwise.

    Attributes:
      kinds: dtypes it takes; all operands have the same one.
      hlo: name of the StableHLO (or CHLO) operation.
      numpy: the NumPy function that computes it.
      complex_formula: what is computed of complex numbers instead of `hlo`.
      complex_rule: corrects the result of `hlo`, by it and the complex operands.
      partials: for each operand the derivative with respect to it: a function of
        `(result, *operands)`, the number 1 or -1, or None where it is zero. An empty
        table needs `nondifferentiable` or an own `jvp`.
    """

    kinds: ClassVar[Kinds] = ANY
    hlo: ClassVar[str] = ""
    numpy: ClassVar[Callable[..., Any] | None] = None
    complex_formula: ClassVar[Callable[..., Any] | None] = None
    complex_rule: ClassVar[Callable[..., Any] | None] = None
    partials: ClassVar[tuple[Partial, ...]] = ()
    repeats_numbers = True
    layout: Callable[..., Any] = layouts.elementwise
    sums: Callable[..., Any] = layouts.kept

    def result_dtype(self, dtype: Any) -> Any:
        """Returns the dtype of the result from that of the operands."""
        return dtype

    def abstract(self, *avals: Aval, **params: Any) -> Aval:
        """Same shape and dtype for all operands (constants may be 0-d)."""
        first = avals[0]
        if kind(first.dtype) not in self.kinds:
            require_kind(self.name, first, self.kinds)
        shape = first.shape
        weak = first.weak_type
        for other in avals[1:]:
            # Types are interned, and mostly all are one.
            if other is first:
                continue
            if other.dtype != first.dtype:
                raise DtypeError(
                    f"{self.name}: operands must have one dtype, got "
                    f"{', '.join(map(str, avals))}: convert one with .astype(...), or "
                    "use the function of fxflow.numpy, which promotes"
                )
            if other.shape != shape:
                if not shape:
                    shape = other.shape
                elif other.shape:
                    raise ShapeError(
                        f"{self.name}: operands must have one shape, got "
                        f"{', '.join(map(str, avals))}: reshape or broadcast one, or "
                        "use the function of fxflow.numpy, which broadcasts"
                    )
            weak = weak and other.weak_type
        return Aval(shape, self.result_dtype(first.dtype), weak)

    def lower(self, ctx: Context, *operands: str, **params: Any) -> str:
        """`op %x, %y : type`, with 0-d operands repeated."""
        if kind(ctx.avals_in[0].dtype) == "c":
            return self._lower_complex(ctx, *operands, **params)
        return self._operation(ctx, *operands, **params)

    def _lower_complex(self, ctx: Context, *operands: str, **params: Any) -> str:
        """The formula for complex numbers, or the operation and its correction."""
        formula, rule = type(self).complex_formula, type(self).complex_rule
        if formula is not None:
            return ctx.compose(formula, operands)[0]
        out = self._operation(ctx, *operands, **params)
        if rule is None:
            return out
        avals = [ctx.avals_out[0], *ctx.avals_in]
        return ctx.compose(rule, [out, *operands], avals)[0]

    def _operation(self, ctx: Context, *operands: str, **params: Any) -> str:
        """Writes the operation of StableHLO or CHLO."""
        out = ctx.avals_out[0]
        operands = self.aligned(ctx, operands)
        result_type = out.mlir
        operand = ctx.avals_in[0]
        if operand.shape != out.shape:
            operand = operand.update(shape=out.shape)
        operand_type = operand.mlir
        text = f"{self.hlo} {', '.join(operands)} : "
        if self.hlo.startswith("chlo."):
            types = ", ".join([operand_type] * len(operands))
            return ctx.emit(f"{text}{types} -> {result_type}")
        if result_type == operand_type:
            return ctx.emit(text + result_type)
        types = ", ".join([operand_type] * len(operands))
        return ctx.emit(f"{text}({types}) -> {result_type}")

    def aligned(self, ctx: Context, operands: Sequence[str]) -> tuple[str, ...]:
        """Returns the operands' names, 0-d ones repeated to the result's shape."""
        shape = ctx.avals_out[0].shape
        if not shape or () not in [aval.shape for aval in ctx.avals_in]:
            return tuple(operands)
        return tuple(
            name if aval.shape else ctx.broadcast(name, aval, shape)
            for name, aval in zip(operands, ctx.avals_in, strict=True)
        )

    def evaluate(self, *values: Any, **params: Any) -> Any:
        """Calls NumPy."""
        assert self.numpy is not None
        return type(self).numpy(*values)  # type: ignore[misc]

    def host_function(self, **params: Any) -> Callable[..., Any]:
        """The NumPy function itself where there is nothing to add."""
        if type(self).evaluate is Elementwise.evaluate and self.numpy is not None:
            return type(self).__dict__.get("numpy") or type(self).numpy  # type: ignore[return-value]
        return super().host_function(**params)

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """Sum of tangents times partial derivatives."""
        out = self.bind(*primals, **params)
        if not self.partials:
            if self.nondifferentiable:
                return out, Zero(typeof(out).tangent())
            return super().jvp(primals, tangents, **params)
        return out, self._tangent(arith, out, primals, tangents, params)

    def taylor(
        self, out: Any, operands: Values, /, **params: Any
    ) -> Callable[[int], Any] | None:
        """That of sums and differences; others by their partial derivatives."""
        if not self.partials or not all(p in (1, -1) for p in self.partials):
            return None

        def rule(k: int) -> Any:
            total: Any = Zero(typeof(out[0]).tangent())
            for series, sign in zip(operands, self.partials, strict=True):
                term = series[k]
                total = arith.add(total, term if sign == 1 else arith.neg(term))
            return total

        return rule

    def linearize(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """As `jvp`, written to the tape at once: the path of eager gradients."""
        tape = state.trace
        if (
            type(self).jvp is not Elementwise.jvp
            or not self.partials
            or type(tape) is not Tape
            or state.tracked
            or not all(type(t) is Zero or tape.has(t) for t in tangents)
        ):
            return self.jvp(primals, tangents, **params)
        state.trace = tape.parent
        try:
            out = self.bind(*primals, **params)
            return out, self._tangent(tape, out, primals, tangents, params)
        finally:
            state.trace = tape

    def _tangent(
        self,
        tangents_of: Any,
        out: Any,
        primals: Values,
        tangents: Values,
        params: dict[str, Any],
    ) -> Any:
        """Returns the sum of tangents times partial derivatives.

        Args:
          tangents_of: adds, multiplies and negates tangents: `arith`, or the tape.
          out: the result.
          primals: values.
          tangents: theirs.
          params: as bound.
        """
        total: Any = None
        for tangent, partial in zip(tangents, self.partials, strict=True):
            if type(tangent) is Zero or partial is None:
                continue
            if partial == 1:
                term = tangent
            elif partial == -1:
                term = tangents_of.neg(tangent)
            else:
                factor = partial(out, *primals, **params)  # type: ignore[operator]
                term = tangents_of.mul(tangent, factor)
            total = term if total is None else tangents_of.add(total, term)
        return Zero(typeof(out).tangent()) if total is None else total

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """The operation on whole batches; unmapped operands are repeated."""
        if not all(mapped):
            args = [
                a
                if m or not must_repeat(a)
                else arith.broadcast_front(a, typeof(a), size)
                for a, m in zip(args, mapped, strict=True)
            ]
        return self.bind(*args, **params), True


def must_repeat(value: Any) -> bool:
    """Returns whether an operand may not stay 0-d beside larger ones."""
    return isinstance(value, Tracer) or typeof(value).ndim > 0


# -- linear ----------------------------------------------------------------------------


class Linear(Primitive):
    """Linear in all its array operands together."""

    linear = True

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """The operation itself, on the tangents."""
        out = self.bind(*primals, **params)
        return out, self.bind(*map(arith.instantiate, tangents), **params)


class Structural(Linear):
    """Moves the elements of one operand.

    `is_view`: whether NumPy does it without a copy.
    """

    def batch(self, size: int, args: Values, mapped: Flags, **params: Any) -> Batched:
        """The same movement behind the mapped axis."""
        return self.bind(args[0], **self.batched_params(args[0], size, **params)), True

    def batched_params(self, value: Any, size: int, **params: Any) -> dict[str, Any]:
        """Returns the parameters that move what lies behind axis 0.

        Args:
          value: the operand, mapped axis in front.
          size: length of the mapped axis.
          **params: those of one slice.
        """
        raise NotImplementedError


class Bilinear(Primitive):
    """Linear in each of two operands.

    Subclasses give `transpose_left(ct, y, x_aval)` and `transpose_right`.
    """

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Dual:
        """The product rule."""
        x, y = primals
        tx, ty = tangents
        out = self.bind(x, y, **params)
        left = None if type(tx) is Zero else self.bind(tx, y, **params)
        right = None if type(ty) is Zero else self.bind(x, ty, **params)
        return out, arith.add(left, right)

    def taylor(
        self, out: Any, operands: Values, /, **params: Any
    ) -> Callable[[int], Any]:
        """Leibniz's sum."""
        return leibniz(lambda x, y: self.bind(x, y, **params), out, *operands)

    def transpose(self, cotangent: Any, *args: Any, **params: Any) -> Values:
        """The cotangent of the one linear operand."""
        x, y = args
        if type(x) is not Var:
            return [None, self.transpose_right(cotangent, x, y.aval, **params)]
        if type(y) is Var:  # a product of what should be linear
            return super().transpose(cotangent, *args, **params)
        return [self.transpose_left(cotangent, y, x.aval, **params), None]

    def transpose_left(self, ct: Any, y: Any, x_aval: Aval, **params: Any) -> Any:
        """Returns the cotangent of the first operand."""
        raise NotImplementedError

    def transpose_right(self, ct: Any, x: Any, y_aval: Aval, **params: Any) -> Any:
        """Returns the cotangent of the second operand."""
        raise NotImplementedError


class Exponential(Elementwise):
    """A function of one operand that XLA computes through eˣ.

    XLA:CPU converts the exponent to an integer. LLVM has no value for the integer of
    a NaN, and where it sees that the operand is a constant NaN, the result becomes
    arbitrary (`devices/faults`).
    """

    def _operation(self, ctx: Context, *operands: str, **params: Any) -> str:
        """Writes the operation; NaN stays as it is in programs with such a constant."""
        name = super()._operation(ctx, *operands, **params)
        out = ctx.avals_out[0]
        if ctx.platform != "cpu" or not ctx.module.has_nan or kind(out.dtype) == "c":
            return name
        (x,) = self.aligned(ctx, operands)
        mask = out.update(dtype=dtypes.dtype("bool")).mlir
        missing = ctx.emit(
            f"stablehlo.compare NE, {x}, {x}, FLOAT : "
            f"({out.mlir}, {out.mlir}) -> {mask}"
        )
        return ctx.emit(f"stablehlo.select {missing}, {x}, {name} : {mask}, {out.mlir}")


# -- accuracy --------------------------------------------------------------------------


class AccuracyMode(enum.Enum):
    """Which of the platform's implementations of a function is taken.

    Attributes:
      DEFAULT: the compiler's choice.
      HIGHEST: the most exact one.
    """

    DEFAULT = 0
    HIGHEST = 1


@dataclass(frozen=True)
class Tolerance:
    """The largest error of a function's results.

    Attributes:
      atol: absolute error.
      rtol: relative error.
      ulps: units in the last place.

    Raises:
      ArgumentError: one is negative or not a number, or none is given.

    Example:
      >>> Tolerance(ulps=2)
      Tolerance(atol=0.0, rtol=0.0, ulps=2)
    """

    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0

    def __post_init__(self) -> None:
        """Checks the numbers."""
        given = self.atol, self.rtol, self.ulps
        numbers = all(isinstance(x, int | float) and 0 <= x < math.inf for x in given)
        if not numbers or self.ulps != int(self.ulps):
            raise ArgumentError(
                "Tolerance: atol and rtol must be numbers from 0 on and ulps an "
                f"integer, got {self.atol!r}, {self.rtol!r} and {self.ulps!r}"
            )
        if not any(given):
            raise ArgumentError("Tolerance: give one of atol, rtol and ulps")


Accuracy = Tolerance | AccuracyMode | None


def bind_with(primitive: Any, x: Any, accuracy: Any) -> Array:
    """Applies a function of one operand.

    Args:
      primitive: the function.
      x: array.
      accuracy: a `Tolerance` or an `AccuracyMode`.

    Raises:
      ArgumentError: `accuracy` is something else.
    """
    if accuracy is AccuracyMode.DEFAULT:
        result: Array = primitive.bind(x)
        return result
    if not isinstance(accuracy, AccuracyMode | Tolerance):
        raise ArgumentError(
            f"{primitive.name}: accuracy must be a lax.Tolerance, a lax.AccuracyMode "
            f"or None, got {accuracy!r}"
        )
    result = primitive.bind(x, accuracy=accuracy)
    return result


class Accurate(Elementwise):
    """A function of one operand, of which a program can say how exact it must be.

    Params:
      accuracy: an `AccuracyMode` or a `Tolerance`; absent, the compiler's choice.
    """

    def _operation(self, ctx: Context, *operands: str, **params: Any) -> str:
        """Writes `op %x {result_accuracy = …} : type`."""
        if "accuracy" not in params or not self.hlo.startswith("stablehlo."):
            return super()._operation(ctx, *operands)
        accuracy = _text(params["accuracy"])
        return ctx.emit(
            f"{self.hlo} {operands[0]} {{result_accuracy = "
            f"#stablehlo.result_accuracy<{accuracy}>}} : {ctx.avals_out[0].mlir}"
        )

    def _tangent(
        self,
        tangents_of: Any,
        out: Any,
        primals: Values,
        tangents: Values,
        params: dict[str, Any],
    ) -> Any:
        """As of the function without an accuracy."""
        return super()._tangent(tangents_of, out, primals, tangents, {})


def _text(accuracy: AccuracyMode | Tolerance) -> str:
    if isinstance(accuracy, AccuracyMode):
        return f"mode = #stablehlo.result_accuracy_mode<{accuracy.name}>"
    return (
        f"atol = {float(accuracy.atol):.17e}, rtol = {float(accuracy.rtol):.17e}, "
        f"ulps = {int(accuracy.ulps)}, "
        "mode = #stablehlo.result_accuracy_mode<TOLERANCE>"
    )
