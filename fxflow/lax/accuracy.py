"""How exact the compiler makes elementary functions."""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import Any

from fxflow.core.arrays import Array
from fxflow.core.ir.primitive import Values
from fxflow.core.runtime.lowering import Context
from fxflow.errors import ArgumentError
from fxflow.lax.families import Elementwise


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
