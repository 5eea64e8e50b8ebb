"""A compiled call that is given references, as a call of arrays.

The program takes the contents of references, given or captured, and returns new ones
for those that it writes to, into the same memory: these arguments are donated. What
another owner has, too, is copied first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fxflow.core.arrays import AbstractRef, Array
from fxflow.core.ir.discharge import discharge, require_distinct
from fxflow.core.ir.graph import Graph
from fxflow.core.ir.references import Ref, contents, new, replace


class Lifted:
    """A flat function with contents in place of references among its arguments.

    Called under the interpreter that the references then belong to; returns what they
    hold in the end behind the results.

    Args:
      function: of flat values.
      leaves: its arguments.
      refs: positions of the references to lift; None: of all there are.

    Attributes:
      refs: positions of the references.
      written: which of them the last call has written to.
    """

    __slots__ = ("_function", "_leaves", "refs", "written")

    def __init__(
        self,
        function: Callable[..., Any],
        leaves: Sequence[Any],
        refs: list[int] | None = None,
    ) -> None:
        self._function, self._leaves = function, leaves
        if refs is None:
            refs = [i for i, x in enumerate(leaves) if isinstance(x, Ref)]
        self.refs: list[int] = refs
        self.written: list[bool] = []

    def __call__(self, *values: Any) -> list[Any]:
        """Returns the results, then what the references hold."""
        args = list(values)
        for i in self.refs:
            args[i] = new(values[i], self._leaves[i].aval.kind)
        outs = list(self._function(*args))
        held = [contents(args[i]) for i in self.refs]
        self.written = [
            h is not values[i] for h, i in zip(held, self.refs, strict=True)
        ]
        return [*outs, *held]

    def read(self) -> list[Any]:
        """Returns the arguments with contents in place of references."""
        return [
            contents(x) if i in self.refs else x for i, x in enumerate(self._leaves)
        ]

    def write(self, held: Sequence[Any]) -> None:
        """Writes back what the references hold in the end."""
        for i, value, changed in zip(self.refs, held, self.written, strict=True):
            if changed:
                replace(self._leaves[i], value)


class RefCall:
    """How a traced function with references becomes one of arrays.

    Args:
      graph: of the function.
      consts: what it captured.
      name: of the function.
      labels: names of its arguments' leaves.

    Attributes:
      graph: takes captured arrays, the leaves with contents for references, and the
        contents of captured references; returns new contents, then the results.
      consts: the captured arrays.
      captured: the captured references.
      written: which leaves, or captured references behind them, get new contents.
      labels: names of what the graph takes.
    """

    __slots__ = ("captured", "consts", "graph", "labels", "name", "written")

    name: str

    graph: Graph
    written: list[int]

    def __init__(
        self, graph: Graph, consts: Sequence[Any], name: str, labels: Sequence[str]
    ) -> None:
        pure = discharge(graph)
        first, count = graph.num_consts, len(graph.outputs)
        is_ref = [type(a) is AbstractRef for a in graph.in_avals[:first]]
        arrays = [i for i in range(first) if not is_ref[i]]
        captured = [i for i in range(first) if is_ref[i]]
        order = [*arrays, *range(first, len(graph.inputs)), *captured]
        outputs = pure.graph.outputs
        self.graph = Graph(
            [pure.graph.inputs[i] for i in order],
            pure.graph.nodes,
            [*outputs[count:], *outputs[:count]],
            graph.name,
            len(arrays),
        )
        position = {old: new - len(arrays) for new, old in enumerate(order)}
        self.written = [position[i] for i in pure.written]
        self.consts: list[Any] = [consts[i] for i in arrays]
        self.captured: list[Ref] = [consts[i] for i in captured]
        self.name = name
        self.labels: list[str] = [*labels, *["a captured variable"] * len(captured)]

    def given(self, leaves: Sequence[Any]) -> list[Array]:
        """Returns what the graph takes, with memory of its own where it is written to.

        Raises:
          ArgumentError: a reference is given twice, or given and captured.
        """
        values = [*leaves, *self.captured]
        require_distinct(values, self.name, self.labels)
        for i in self.written:
            ref = values[i]
            # Another owner of the array would lose it.
            if ref._lent and ref._value is not None:
                ref._value = ref._value.__deepcopy__(None)
                ref._lent = False
        return [contents(v) if isinstance(v, Ref) else v for v in values]

    def store(self, leaves: Sequence[Any], outs: Sequence[Array]) -> list[Array]:
        """Puts new contents where they belong; returns the results.

        Args:
          leaves: of the arguments.
          outs: what the program returned.
        """
        count = len(leaves)
        for i, value in zip(self.written, outs, strict=False):
            ref = leaves[i] if i < count else self.captured[i - count]
            ref._value = value
            ref._lent = False
        return list(outs[len(self.written) :])
