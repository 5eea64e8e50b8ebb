"""A call of a graph: what a jitted function becomes inside another trace."""

from __future__ import annotations

from typing import Any

from fxflow.core.interpreters.calls import GraphCall, with_tangents
from fxflow.core.interpreters.linearize import linearize_graph
from fxflow.core.ir.arith import instantiate
from fxflow.core.ir.graph import Graph
from fxflow.core.ir.higher_order import chosen, live_flags
from fxflow.core.ir.primitive import Dual, Values, register
from fxflow.core.runtime.lowering import Context
from fxflow.core.spmd.memories import settled


@register
class JitCall(GraphCall):
    """Call of a graph. dtypes: any. Lowered to a call of a private function.

    Params:
      graph: what is called.
    """

    name = "jit"

    def lower(self, ctx: Context, *operands: str, graph: Graph) -> list[str]:
        """`func.call`."""
        return ctx.call(graph, operands)

    def linearize(self, primals: Values, tangents: Values, *, graph: Graph) -> Dual:
        """A call for the values and their residuals, and a linear call."""
        nonzero = live_flags(tangents)
        split = linearize_graph(graph, nonzero)
        count = len(graph.outputs)
        outs = self.bind(*primals, graph=split.primal)
        residuals = split.residuals(primals, outs[count:])
        tangent = settled(split.primal, split.tangent, primals)
        linear = self.bind(*residuals, *chosen(tangents, nonzero), graph=tangent)
        outs = [*outs[:count], *linear]
        return with_tangents(outs, graph.out_avals, split.has_tangent)


def call(graph: Graph, *args: Any) -> list[Any]:
    """Calls a graph as one node.

    Args:
      graph: to call.
      *args: one value for each input; `Zero`s are made arrays.

    Returns:
      The list of its outputs.
    """
    return JitCall.bind(*map(instantiate, args), graph=graph)
