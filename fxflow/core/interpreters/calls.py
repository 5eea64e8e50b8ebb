"""Operations that do nothing but call a graph: `jit`, `checkpoint`.

Their rules are the interpreters' own graph-to-graph functions: the derivative of a call
is a call of the derivative. Code that looks into a graph and through its calls
asks `isinstance(node.primitive, GraphCall)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fxflow.core.arrays import Aval
from fxflow.core.interpreters.batching import batch_graph
from fxflow.core.interpreters.jet import jet_graph, listed_terms, spread_terms
from fxflow.core.interpreters.jvp import jvp_graph
from fxflow.core.interpreters.linearize import graph_without_tangents
from fxflow.core.interpreters.masking import masked_graph
from fxflow.core.interpreters.transpose import transpose_graph
from fxflow.core.ir.discharge import discharge, keeps_rules, read_all, write_back
from fxflow.core.ir.graph import Graph, Node, Var, forwarded, prune, used_inputs
from fxflow.core.ir.higher_order import (
    HigherOrder,
    chosen,
    cotangents_for,
    flow_through,
    live_flags,
    run_host,
    spread,
)
from fxflow.core.ir.primitive import Batched, Dual, Flags, Values
from fxflow.core.spmd.memories import Rewritten


class GraphCall(HigherOrder):
    """Calls a graph with its operands.

    Params:
      graph: what is called; subclasses may have others.
    """

    has_jet = True

    def abstract(self, *avals: Aval, graph: Graph, **params: Any) -> list[Aval]:
        """The graph's own types."""
        return graph.out_avals

    def evaluate(self, *values: Any, graph: Graph, **params: Any) -> list[Any]:
        """NumPy's evaluation of the graph."""
        return run_host(graph, values)

    def discharge(self, args: Values, params: dict[str, Any]) -> list[Any]:
        """A call of the graph of arrays; see `HigherOrder.discharge`."""
        graph: Graph = params["graph"]
        if keeps_rules(graph):
            # Written out: the backward passes have the references themselves.
            return graph.evaluate(*args)
        pure = discharge(graph)
        outs = self.bind(*read_all(args), **{**params, "graph": pure.graph})
        count = len(graph.outputs)
        write_back(args, pure.written, outs[count:])
        return outs[:count]

    def jvp(
        self, primals: Values, tangents: Values, *, graph: Graph, **params: Any
    ) -> Dual:
        """A call of the derivative's graph."""
        nonzero = live_flags(tangents)
        # Remembered by the graph, so all calls of one graph share one derivative.
        derived, has = jvp_graph(graph, nonzero)
        outs = self.bind(*primals, *chosen(tangents, nonzero), graph=derived, **params)
        return with_tangents(outs, graph.out_avals, has)

    def jet(
        self,
        primals: Values,
        series: Values,
        order: int,
        *,
        graph: Graph,
        **params: Any,
    ) -> Dual:
        """A call of the graph of coefficients."""
        nonzero = live_flags(series)
        derived, has = jet_graph(graph, order, nonzero)
        terms = listed_terms(series, nonzero, order)
        outs = self.bind(*primals, *terms, graph=derived, **params)
        return with_terms(outs, graph.out_avals, has, order)

    def transpose(
        self, cotangent: Values, *args: Any, graph: Graph, **params: Any
    ) -> list[Any]:
        """A call of the transposed graph."""

        def call(derived: Graph, *operands: Any) -> Values:
            return self.bind(*operands, graph=derived, **params)

        return transposed(call, graph, cotangent, args)

    def batch_over(
        self,
        axis_name: Any,
        size: int,
        args: Values,
        mapped: Flags,
        *,
        graph: Graph,
        **params: Any,
    ) -> Batched:
        """A call of the vectorized graph."""
        derived, out_mapped = batch_graph(graph, size, mapped, axis_name=axis_name)
        return self.bind(*args, graph=derived, **params), out_mapped

    def masked(self, active: Any, args: Values, params: dict[str, Any]) -> Any:
        """A call of the masked graph."""
        graph = masked_graph(params["graph"])
        return self.bind(active, *args, **{**params, "graph": graph})

    def memories(self, node: Node, kinds: Values, layout: Any) -> Any:
        """The graph's."""
        graph, wanted, outs = layout.call(node.params["graph"], kinds)
        return Rewritten(wanted, outs, {**node.params, "graph": graph})

    def forwarded(self, *, graph: Graph, **params: Any) -> list[int | None]:
        """The graph's."""
        return forwarded(graph)

    def flows(
        self, sources: Flags, count: int, params: dict[str, Any]
    ) -> tuple[list[bool], list[Flags]]:
        """Those of the graph."""
        return flow_through(params["graph"], sources), [sources]

    def without_tangents(
        self, avals: Sequence[Aval], known: Flags, params: dict[str, Any]
    ) -> dict[str, Any] | None:
        """A call of what reads no tangents, if that has effects."""
        graph = graph_without_tangents(params["graph"], known)
        return {**params, "graph": graph} if graph.effects else None

    def dce(self, node: Node, wanted: Flags) -> Node:
        """Calls a pruned graph."""
        graph: Graph = node.params["graph"]
        key = ("dce", tuple(wanted))

        def derive() -> tuple[Graph, list[bool]]:
            pruned = prune(graph, wanted)
            used = used_inputs(pruned)
            # Operands that only dead results needed go, too, and with them their nodes.
            return pruned.replace(inputs=chosen(pruned.inputs, used)), used

        smaller, used = graph.remembered(key, derive)
        return node.replace(
            inputs=chosen(node.inputs, used),
            outputs=chosen(node.outputs, wanted),
            params={**node.params, "graph": smaller},
        )


def with_tangents(
    outs: Values, avals: Sequence[Aval], has_tangent: Flags
) -> tuple[list[Any], list[Any]]:
    """Returns results and tangents, with `Zero` where there is no tangent.

    Args:
      outs: results, then the tangents that exist.
      avals: types of the results.
      has_tangent: for each result.
    """
    count = len(avals)
    types = [a.tangent() for a in avals]
    return list(outs[:count]), spread(outs[count:], has_tangent, types)


def with_terms(
    outs: Values, avals: Sequence[Aval], has: Flags, order: int
) -> tuple[list[Any], list[Any]]:
    """Returns results and their Taylor coefficients; compare `with_tangents`."""
    count = len(avals)
    types = [a.tangent() for a in avals]
    return list(outs[:count]), spread_terms(outs[count:], has, types, order)


def transposed(
    call: Callable[..., Values], graph: Graph, cotangent: Values, args: Values
) -> list[Any]:
    """Returns a cotangent, `Zero` or None for each operand of a call of a graph.

    Args:
      call: of the transposed graph with its operands.
      graph: that was called.
      cotangent: of the results; values or `Zero`s.
      args: the operands, linear ones being `Var`s.
    """
    linear = [type(a) is Var for a in args]
    nonzero = live_flags(cotangent)
    derived, has = transpose_graph(graph, linear, nonzero)
    values = [a for a in args if type(a) is not Var]
    outs = call(derived, *values, *chosen(cotangent, nonzero))
    return cotangents_for(args, outs, has)
