"""The branches of a vectorized condition: all of them run, and rows are selected.

A plain selection would be right for values alone. In a derivative the rows of a branch
that were not selected get cotangent zero, and zero times an infinite slope is nan. So
derivatives go by a second graph of the same values, in which no cotangent passes from
such a row to an operand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays import Aval, typeof
from fxflow.core.interpreters.batching import batch_graph
from fxflow.core.interpreters.calls import transposed, with_tangents
from fxflow.core.interpreters.jvp import jvp_graph
from fxflow.core.interpreters.linearize import graph_without_tangents, linearize_graph
from fxflow.core.interpreters.masking import masked_graph
from fxflow.core.ir import arith
from fxflow.core.ir.graph import Graph, Node, prune, used_inputs
from fxflow.core.ir.higher_order import (
    HigherOrder,
    carries_tangent,
    chosen,
    flow_through,
    live_flags,
    run_host,
    zeros_graph,
)
from fxflow.core.ir.primitive import Batched, Dual, Flags, Values, register, table
from fxflow.core.ir.staging import trace_closed
from fxflow.core.ir.trace import state
from fxflow.core.runtime.eager import EvalTrace
from fxflow.core.runtime.lowering import Context
from fxflow.core.spmd.memories import Rewritten
from fxflow.lax.control_flow.rows import (
    any_row,
    filled,
    has_loop,
    has_scan,
    select_cases,
    select_rows,
)
from fxflow.lax.gradient_control import stop_gradient

Graphs = tuple[Graph, ...]


@register
class CondRows(HigherOrder):
    """Branches of which each row has its own. dtypes: any. Lowered in place.

    Params:
      graph: of the index and the operands, to the selected rows.
      guarded: the same, as derivatives take it.
    """

    name = "cond_rows"
    inlines = True

    def abstract(self, *avals: Aval, graph: Graph, guarded: Graph) -> list[Aval]:
        """The graph's own types."""
        return graph.out_avals

    def lower(self, ctx: Context, *operands: str, graph: Graph, **_: Any) -> list[str]:
        """The graph, in place."""
        return ctx.graph(graph, operands)

    def evaluate(self, *values: Any, graph: Graph, guarded: Graph) -> list[Any]:
        """NumPy's evaluation of the graph."""
        return run_host(graph, values)

    def memories(self, node: Node, kinds: Values, layout: Any) -> Any:
        """The graph's."""
        graph, wanted, outs = layout.call(node.params["graph"], kinds)
        return Rewritten(wanted, outs, {**node.params, "graph": graph})

    # -- derivatives -------------------------------------------------------------------

    def jvp(self, primals: Values, tangents: Values, **params: Graph) -> Dual:
        """The derivative of the guarded graph, in place."""
        live = live_flags(tangents)
        derived, has = jvp_graph(params["guarded"], live)
        outs = derived.evaluate(*primals, *chosen(tangents, live))
        return with_tangents(outs, params["graph"].out_avals, has)

    def linearize(self, primals: Values, tangents: Values, **params: Graph) -> Dual:
        """The guarded graph's values and residuals, and its tangents, in place."""
        live = live_flags(tangents)
        graph = params["graph"]
        split = linearize_graph(params["guarded"], live)
        outs = split.primal.evaluate(*primals)
        count = len(graph.outputs)
        residuals = split.residuals(primals, outs[count:])
        linear = split.tangent.evaluate(*residuals, *chosen(tangents, live))
        outs = [*outs[:count], *linear]
        return with_tangents(outs, graph.out_avals, split.has_tangent)

    def without_tangents(
        self, avals: Sequence[Aval], known: Flags, params: dict[str, Any]
    ) -> dict[str, Any] | None:
        """Graphs of what reads no tangents, if that has effects."""
        each = {k: graph_without_tangents(g, known) for k, g in params.items()}
        return each if each["graph"].effects else None

    def transpose(
        self, cotangent: Values, *args: Any, graph: Graph, **_: Any
    ) -> Values:
        """The graph's transpose, in place: what is linear needs no guard."""
        return transposed(Graph.evaluate, graph, cotangent, args)

    # -- vectorization, pruning --------------------------------------------------------

    def batch_over(
        self,
        axis_name: Any,
        size: int,
        args: Values,
        mapped: Flags,
        *,
        graph: Graph,
        guarded: Graph,
    ) -> Batched:
        """The vectorized graphs."""
        wide, flags = (
            batch_graph(g, size, mapped, True, axis_name) for g in (graph, guarded)
        )
        return self.bind(*args, graph=wide[0], guarded=flags[0]), wide[1]

    def flows(
        self, sources: Flags, count: int, params: dict[str, Any]
    ) -> tuple[list[bool], list[Flags]]:
        """Those of the graph."""
        return flow_through(params["graph"], sources), [sources, sources]

    def dce(self, node: Node, wanted: Flags) -> Node:
        """Prunes the graphs, and drops operands that neither uses."""
        graphs = [prune(node.params[name], wanted) for name in ("graph", "guarded")]
        used = [any(u) for u in zip(*map(used_inputs, graphs), strict=True)]
        graph, guarded = (g.replace(inputs=chosen(g.inputs, used)) for g in graphs)
        return node.replace(
            inputs=chosen(node.inputs, used),
            outputs=chosen(node.outputs, wanted),
            params={"graph": graph, "guarded": guarded},
        )


def select_branches(
    axis_name: Any, size: int, args: Values, mapped: Flags, branches: Graphs
) -> list[Any]:
    """Runs all branches on whole batches and selects rows.

    Args:
      axis_name: of the batch, if a branch names it.
      size: size of the batch.
      args: the index, which is mapped, and the operands.
      mapped: which are mapped.
      branches: graphs of one row.
    """
    flags = list(mapped[1:])

    def run(values: Values, guard: bool = False) -> list[Any]:
        index, *operands = values
        results = []
        for i, branch in enumerate(branches):
            given, masks = operands, []
            # What a branch takes of other rows by a collective stays what it is.
            loops = axis_name is None and has_loop(branch)
            # A scan ends in any case, but is worth a test of whether a row needs it.
            skips = loops or (axis_name is None and has_scan(branch))
            if guard or skips or branch.effects:
                mask = table["eq"].bind(index, arith.constant(i, typeof(index).dtype))
            if guard or loops:
                given = _guarded(mask, operands, flags, loops)
            if branch.effects:
                branch, masks = masked_graph(branch), [mask]
            own = [True] * len(masks) + flags
            graph, _ = batch_graph(branch, size, own, True, axis_name)
            if skips:
                results.append(_if_any(mask, graph, [*masks, *given]))
            else:
                results.append(graph.evaluate(*masks, *given))
        return [select_cases(index, cases) for cases in zip(*results, strict=True)]

    differentiable = any(map(carries_tangent, branches[0].in_avals))
    final = isinstance(state.trace, EvalTrace) or state.trace.final
    if final or not differentiable or axis_name is not None:
        return run(args)
    avals = tuple(map(typeof, args))
    key = ("cond_rows", avals, tuple(mapped), branches[1:])
    known = branches[0].remembered(
        key,
        lambda: tuple(
            trace_closed(
                lambda *values, guard=guard: run(values, guard),
                avals,
                name=branches[0].name,
            )
            for guard in (False, True)
        ),
    )
    graph, guarded = known
    return CondRows.bind(*args, graph=graph, guarded=guarded)


def _if_any(mask: Any, graph: Graph, operands: Values) -> list[Any]:
    """Runs a vectorized branch with a loop or scan, unless no row takes it."""
    index = arith.cast(any_row(mask), np.dtype(np.int32))
    return table["cond"].bind(  # type: ignore[return-value]
        index, *operands, branches=(zeros_graph(graph), graph)
    )


def _guarded(mask: Any, operands: Values, mapped: Flags, loops: bool) -> list[Any]:
    """Returns operands to which no cotangent passes from rows that are not selected.

    A row's own cotangent is selected. That of an operand that all rows share is summed
    over them by whatever uses the operand, where it is too late to select: so the rows
    that are not selected get the values of one that is, whose slopes do no harm.

    Args:
      mask: bool[size]: the rows that are selected.
      operands: of the branch.
      mapped: which of them have a row each.
      loops: whether the branch has a loop, which must end for the other rows too.
    """
    moves = [carries_tangent(typeof(x)) for x in operands]
    shared = any(move and not m for move, m in zip(moves, mapped, strict=True))
    # A row that takes this branch: its values, unlike another row's, are within the
    # branch's domain.
    fill = shared or loops
    fixed = [stop_gradient(x) for x in operands]
    others = filled(mask, fixed, mapped) if fill else fixed
    some = any_row(mask)
    values = []
    for x, other, m, move in zip(operands, others, mapped, moves, strict=True):
        if m and (move or fill):
            x = select_rows(mask, x, other)
        elif move:
            x = table["select_n"].bind(some, other, x)
        values.append(x)
    return values
