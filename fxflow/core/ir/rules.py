"""Rules that only some operations have, with the answers of all others.

`Primitive` inherits them, so that any operation can be asked. What is here concerns one
device: running with NumPy, and a graph as data. What concerns several devices is in
`core/spmd/rules.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from fxflow.core.arrays import Aval, dtypes

if TYPE_CHECKING:
    from fxflow.core.ir.graph import Node

# In the signatures of rules.
Values = Sequence[Any]  # arrays, tracers, NumPy scalars; tangents may be `Zero`s
Flags = Sequence[bool]  # one for each value
Dual = tuple[Any, Any]  # results and their tangents: lists if `multi`
Batched = tuple[Any, Any]  # results and whether they are mapped: lists if `multi`


class HostRules:
    """How NumPy runs the operation when it is eager; see `core/runtime/eager.py`.

    Attributes:
      is_view: whether its NumPy evaluation only makes a view (so size does not matter).
      host_kinds: of which dtypes `evaluate` gives what XLA gives, special values
        included, and may replace it when eager: letters of `dtypes.host_kind`.
      host_bytes: bytes in and out above which XLA runs it when eager, if less than
        usual.
      inlines: whether it only runs the graph in its parameter `graph`, so that
        NumPy may run it where it may run that graph.
    """

    is_view: ClassVar[bool] = False
    host_kinds: ClassVar[frozenset[str]] = frozenset("biuf")
    host_bytes: ClassVar[int | None] = None
    inlines: ClassVar[bool] = False

    if TYPE_CHECKING:

        def evaluate(self, *values: Any, **params: Any) -> Any:
            """See `Primitive.evaluate`."""

    def runs_on_host(self, node: Node) -> bool:
        """Returns whether `evaluate` may run it when eager, whatever its size."""
        known = self.host_kinds
        return bool(known) and all(
            dtypes.host_kind(atom.aval.dtype) in known
            for atom in (*node.inputs, *node.outputs)
        )

    def host_function(self, **params: Any) -> Callable[..., Any]:
        """Returns the cheapest callable that computes `evaluate` with these params."""
        if not params:
            return self.evaluate
        evaluate = self.evaluate

        def call(*values: Any) -> Any:
            return evaluate(*values, **params)

        return call

    def plan(
        self, arg_types: Sequence[Any], params: dict[str, Any]
    ) -> Callable[..., Any] | None:
        """Returns a custom eager implementation, or None for the default one.

        Args:
          arg_types: of the arguments.
          params: as bound.

        Returns:
          A function of concrete arrays that gives what `bind` gives.
        """
        return None


class GraphRules:
    """What passes over graphs ask: effects, pruning, printing, cost."""

    if TYPE_CHECKING:

        def out_avals(
            self, avals: Sequence[Aval], params: dict[str, Any]
        ) -> list[Aval]:
            """See `Primitive.out_avals`."""

    def effects(self, **params: Any) -> frozenset[Any]:
        """Returns its side effects."""
        return frozenset()

    def dce(self, node: Node, wanted: Sequence[bool]) -> Node:
        """Returns a node that does not compute dead results.

        It may have fewer outputs (all wanted ones) and fewer inputs; a primitive that
        cannot save anything returns `node`.
        """
        return node

    def forwarded(self, **params: Any) -> list[int | None]:
        """Returns for each result the index of the operand it forwards, or None.

        Empty: no operand is forwarded.
        """
        return []

    def show(self, params: dict[str, Any]) -> dict[str, Any]:
        """Returns the parameters as they are to be printed."""
        return params

    def cost(self, *avals: Aval, **params: Any) -> dict[str, float]:
        """Returns an estimate: `flops` and `bytes`."""
        outs = self.out_avals(avals, params)
        moved = sum(a.nbytes for a in (*avals, *outs))
        return {"flops": float(sum(a.size for a in outs)), "bytes": float(moved)}
