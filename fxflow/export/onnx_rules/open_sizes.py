"""Symbolic sizes as values of an ONNX model: `b`, `2*t + 1`.

The counterpart of `core/sizes/stablehlo`: nodes before all others compute the names
from the shapes of the inputs, and every other size from the names, once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays import Aval
from fxflow.core.sizes import Size, names_of
from fxflow.core.sizes.solving import Equation, solved
from fxflow.errors import ExportError

_INT64 = np.dtype(np.int64)
_NODES = {"max": "Max", "min": "Min"}


class OpenSizes:
    """The symbolic sizes of a model.

    Attributes:
      nodes: nodes that compute the sizes from the inputs' shapes.
    """

    def __init__(self, writer: Any) -> None:
        self.nodes: list[Any] = []
        self._writer = writer
        self._known: dict[str, Any] = {}

    def settle(
        self, inputs: Sequence[tuple[Any, Aval]], outputs: Sequence[Aval]
    ) -> None:
        """Writes nodes that compute the names.

        Args:
          inputs: values and their types.
          outputs: types of the results.

        Raises:
          ExportError: the inputs do not determine a name.
        """
        equations = []
        for value, aval in inputs:
            lengths: tuple[Any, ...] = aval.shape
            for axis, size in enumerate(lengths):
                if isinstance(size, Size):
                    equations.append(Equation(size, (value, axis), str(value)))
        steps, missing = solved(equations)
        wanted = {n for a in outputs for size in a.shape for n in names_of(size)}
        missing |= wanted - {step.name for step in steps}
        if missing:
            raise ExportError(
                f"onnx: no input determines {', '.join(sorted(missing))}: each name "
                "must be the length of an axis of an unbound input, possibly times a "
                "number and plus other known sizes"
            )
        for (_, (value, axis), _), name, factor, rest in steps:
            if name is None:
                continue
            shape = self._op("Shape", value)
            length = self._op("Gather", shape, self._number(axis))
            if isinstance(rest, Size) or rest:
                length = self._op("Sub", length, self.value(rest))
            if factor != 1:
                length = self._op("Div", length, self._number(factor))
            self._known[name] = length

    def value(self, size: Any) -> Any:
        """Returns a size as a 0-d int64 value."""
        if not isinstance(size, Size):
            return self._number(size)
        key = size.text()
        if key not in self._known:
            total = None
            for monomial, count in size.terms.items():
                product = None if count == 1 and monomial else self._number(count)
                for atom, power in monomial:
                    for _ in range(power):
                        factor = self._atom(atom)
                        product = (
                            factor
                            if product is None
                            else self._op("Mul", product, factor)
                        )
                total = product if total is None else self._op("Add", total, product)
            self._known[key] = total
        return self._known[key]

    def vector(self, sizes: Sequence[Any]) -> Any:
        """Returns sizes as an int64 vector."""
        key = f"[{', '.join(map(str, sizes))}]"
        if key not in self._known:
            one = self._writer.ints(1)
            parts = [
                self._op("Reshape", self.value(n), one)
                if isinstance(n, Size)
                else self._writer.ints(n)
                for n in sizes
            ]
            self._known[key] = self._op("Concat", *parts, axis=0)
        return self._known[key]

    def _atom(self, atom: Any) -> Any:
        if isinstance(atom, str):
            return self._known[atom]
        operation, operands = atom
        a, b = map(self.value, operands)
        if operation in _NODES:
            return self._op(_NODES[operation], a, b)
        # ONNX rounds quotients towards zero; its remainders have the divisor's sign.
        rest = self._op("Mod", a, b)
        if operation == "mod":
            return rest
        return self._op("Div", self._op("Sub", a, rest), b)

    def _number(self, value: int) -> Any:
        return self._writer.constant(np.int64(value))

    def _op(self, kind: str, *inputs: Any, **attributes: Any) -> Any:
        w = self._writer
        outside, w.nodes = w.nodes, self.nodes
        try:
            return w.ops(kind, inputs, [_INT64], **attributes)[0]
        finally:
            w.nodes = outside
