"""A call of a graph: what a jitted function becomes inside another trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fxflow.core.arrays.aval import Aval
from fxflow.core.interpreters.batching import batch_graph
from fxflow.core.interpreters.jvp import jvp_graph
from fxflow.core.interpreters.linearize import linearize_graph
from fxflow.core.interpreters.transpose import transpose_graph
from fxflow.core.ir.arith import instantiate
from fxflow.core.ir.graph import (
    Graph,
    Literal,
    Node,
    Var,
    forwarded,
    prune,
    used_inputs,
)
from fxflow.core.ir.higher_order import cotangents_for
from fxflow.core.ir.primitive import Primitive, Zero, register
from fxflow.core.spmd.memories import Rewritten, settled


@register
class JitCall(Primitive):
    """Call of a graph. dtypes: any. Lowered to a call of a private function.

    Params:
      graph: what is called.
    """

    name = "jit"
    multi = True
    host_kinds = frozenset()
    types_inside = True

    def abstract(self, *avals: Aval, graph: Graph) -> list[Aval]:
        """The graph's own types."""
        return graph.out_avals

    def effects(self, graph: Graph) -> frozenset[Any]:
        """The graph's."""
        return graph.effects

    def lower(self, ctx: Any, *operands: str, graph: Graph) -> list[str]:
        """`func.call`."""
        called: list[str] = ctx.call(graph, operands)
        return called

    def evaluate(self, *values: Any, graph: Graph) -> list[Any]:
        """Evaluates each node with NumPy."""
        env: dict[Any, Any] = dict(zip(graph.inputs, values, strict=True))

        def read(atom: Var | Literal) -> Any:
            return atom.value if type(atom) is Literal else env[atom]

        for node in graph.nodes:
            out = node.primitive.evaluate(*map(read, node.inputs), **node.params)
            outs = out if node.primitive.multi else [out]
            env.update(zip(node.outputs, outs, strict=True))
        return [read(atom) for atom in graph.outputs]

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], *, graph: Graph
    ) -> tuple[list[Any], list[Any]]:
        """A call of the derivative's graph."""
        nonzero = [type(t) is not Zero for t in tangents]
        derived, has_tangent = jvp_graph(graph, nonzero)
        live = [t for t in tangents if type(t) is not Zero]
        outs = self.bind(*primals, *live, graph=derived)
        return spread(outs, graph, has_tangent)

    def linearize(
        self, primals: Sequence[Any], tangents: Sequence[Any], *, graph: Graph
    ) -> tuple[list[Any], list[Any]]:
        """A call for the values and their residuals, and a linear call."""
        nonzero = [type(t) is not Zero for t in tangents]
        split = linearize_graph(graph, nonzero)
        count = len(graph.outputs)
        outs = self.bind(*primals, graph=split.primal)
        residuals = split.residuals(primals, outs[count:])
        live = [t for t in tangents if type(t) is not Zero]
        tangent = settled(split.primal, split.tangent, primals)
        linear = self.bind(*residuals, *live, graph=tangent)
        return spread([*outs[:count], *linear], graph, split.has_tangent)

    def transpose(
        self, cotangent: Sequence[Any], *args: Any, graph: Graph
    ) -> list[Any]:
        """A call of the transposed graph."""
        linear = [type(a) is Var for a in args]
        nonzero = [type(ct) is not Zero for ct in cotangent]
        derived, has_cotangent = transpose_graph(graph, linear, nonzero)
        values = [a for a in args if type(a) is not Var]
        live = [ct for ct in cotangent if type(ct) is not Zero]
        outs = self.bind(*values, *live, graph=derived)
        return cotangents_for(args, outs, has_cotangent)

    def batch(
        self, size: int, args: Sequence[Any], mapped: Sequence[bool], *, graph: Graph
    ) -> tuple[list[Any], list[bool]]:
        """A call of the vectorised graph."""
        derived, out_mapped = batch_graph(graph, size, mapped)
        return self.bind(*args, graph=derived), out_mapped

    def batch_named(
        self,
        axis_name: Any,
        size: int,
        args: Sequence[Any],
        mapped: Sequence[bool],
        *,
        graph: Graph,
    ) -> tuple[list[Any], list[bool]]:
        """A call of the graph vectorised under the named axis."""
        derived, out_mapped = batch_graph(graph, size, mapped, axis_name=axis_name)
        return self.bind(*args, graph=derived), out_mapped

    def uses_axis(self, axis_name: Any, params: dict[str, Any]) -> bool:
        """Whether any operation inside names the axis."""
        return graph_uses_axis(params["graph"], axis_name)

    def memories(self, node: Node, kinds: Sequence[Any], layout: Any) -> Any:
        """The graph's."""
        graph, wanted, outs = layout.call(node.params["graph"], kinds)
        return Rewritten(wanted, outs, {"graph": graph})

    axis_params = ("graph",)

    def forwarded(self, *, graph: Graph) -> list[int | None]:
        """The graph's."""
        return forwarded(graph)

    def dce(self, node: Node, wanted: Sequence[bool]) -> Node:
        """Calls a pruned graph."""
        graph = node.params["graph"]
        key = ("dce", tuple(wanted))
        known = graph.memo.get(key)
        if known is None:
            pruned = prune(graph, wanted)
            used = used_inputs(pruned)
            kept = [v for v, u in zip(pruned.inputs, used, strict=True) if u]
            smaller = Graph(kept, pruned.nodes, pruned.outputs, graph.name)
            known = graph.memo[key] = smaller, used
        smaller, used = known
        return node.replace(
            inputs=[a for a, u in zip(node.inputs, used, strict=True) if u],
            outputs=[v for v, w in zip(node.outputs, wanted, strict=True) if w],
            params={**node.params, "graph": smaller},
        )


def spread(
    outs: Sequence[Any], graph: Graph, has_tangent: Sequence[bool]
) -> tuple[list[Any], list[Any]]:
    """Returns results and tangents, with `Zero` where there is no tangent.

    Args:
      outs: results, then the tangents that exist.
      graph: the graph whose derivative was called.
      has_tangent: for each result.
    """
    count = len(graph.outputs)
    live = iter(outs[count:])
    tangents = [
        next(live) if have else Zero(a.aval.tangent())
        for a, have in zip(graph.outputs, has_tangent, strict=True)
    ]
    return list(outs[:count]), tangents


def graph_uses_axis(graph: Graph, axis_name: Any) -> bool:
    """Returns whether any operation of a graph names the axis."""
    return any(
        node.primitive.axis_params and node.primitive.uses_axis(axis_name, node.params)
        for node in graph.nodes
    )


def call(graph: Graph, *args: Any) -> list[Any]:
    """Calls a graph as one node.

    Args:
      graph: to call.
      *args: one value for each input; `Zero`s are made arrays.

    Returns:
      The list of its outputs.
    """
    outs: list[Any] = JitCall.bind(*map(instantiate, args), graph=graph)
    return outs
