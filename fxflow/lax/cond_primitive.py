"""The primitive that runs one of several branches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays.aval import Aval
from fxflow.core.interpreters.batching import batch_graph
from fxflow.core.interpreters.jvp import jvp_graph
from fxflow.core.interpreters.linearize import LinearGraphs, linearize_graph
from fxflow.core.interpreters.transpose import transpose_graph
from fxflow.core.ir.effects import TOKEN
from fxflow.core.ir.graph import Graph, Node, Var, forwarded, prune, used_inputs
from fxflow.core.ir.higher_order import (
    HigherOrder,
    append_zeros,
    chosen,
    live_flags,
    rewired,
    run_host,
    spread,
)
from fxflow.core.ir.primitive import register
from fxflow.core.spmd.memories import FREE, Rewritten
from fxflow.lax.cond_rows import Graphs, select_branches


@register
class Cond(HigherOrder):
    """One of several branches. dtypes: any. StableHLO: case.

    The first operand is the branch's index (i32[], within range); all branches take the
    other operands. Only the chosen branch runs; vectorised over the index, all do.

    Params:
      branches: graphs of equal input and output types.
    """

    name = "cond"

    def abstract(self, *avals: Aval, branches: Graphs) -> list[Aval]:
        """Types of the branches' outputs, which differ along all their axes."""
        every = zip(*(b.out_avals for b in branches), strict=True)
        return [a.update(vma=a.vma.union(*(b.vma for b in rest))) for a, *rest in every]

    def lower(self, ctx: Any, *operands: str, branches: Graphs) -> list[str]:
        """`case`, whose regions use the operands from outside."""
        ordered = ctx.module.ordered
        outs = [a.mlir for a in branches[0].out_avals] + [TOKEN] * ordered
        token = ctx.token if ordered else ""

        def region(graph: Graph) -> str:
            def write(inner: Any, _: list[str]) -> list[str]:
                inner.token = token
                results: list[str] = inner.graph(graph, operands[1:])
                return [*results, inner.token] if ordered else results

            text: str = ctx.region([], write, outs)
            return text

        regions = ", ".join(map(region, branches))
        types = ", ".join(outs)
        names: list[str] = ctx.emit_many(
            len(outs),
            f'"stablehlo.case"({operands[0]}) ({regions}) : (tensor<i32>) -> ({types})',
        )
        if ordered:
            ctx.token = names.pop()
        return names

    def evaluate(self, *values: Any, branches: Graphs) -> list[Any]:
        """NumPy's evaluation of the chosen branch."""
        index = int(np.clip(values[0], 0, len(branches) - 1))
        return list(map(np.asarray, run_host(branches[index], values[1:])))

    def memories(self, node: Node, kinds: Sequence[Any], layout: Any) -> Any:
        """Those that all branches leave the results in; else the device's own."""
        rest = kinds[1:]
        branches = node.params["branches"]
        free = [FREE] * len(branches[0].outputs)
        found = [layout.place(b, rest, free).outs for b in branches]
        outs = [o[0] if len({*o}) == 1 else None for o in zip(*found, strict=True)]
        derived = tuple(layout.place(b, rest, outs).graph for b in branches)
        return Rewritten([None, *rest], outs, {"branches": derived})

    def forwarded(self, *, branches: Graphs) -> list[int | None]:
        """What all branches give alike."""
        each = zip(*map(forwarded, branches), strict=True)
        return [None if f is None or {f, *rest} != {f} else 1 + f for f, *rest in each]

    # -- derivatives -------------------------------------------------------------------

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], *, branches: Graphs
    ) -> tuple[list[Any], list[Any]]:
        """The branches' derivatives."""
        nonzero = live_flags(tangents[1:])
        have = [jvp_graph(b, nonzero)[1] for b in branches]
        has_tangent = [any(flags) for flags in zip(*have, strict=True)]
        derived = tuple(jvp_graph(b, nonzero, has_tangent)[0] for b in branches)
        outs = self.bind(*primals, *chosen(tangents[1:], nonzero), branches=derived)
        count = len(branches[0].outputs)
        avals = [a.tangent() for a in branches[0].out_avals]
        return outs[:count], spread(outs[count:], has_tangent, avals)

    def linearize(
        self, primals: Sequence[Any], tangents: Sequence[Any], *, branches: Graphs
    ) -> tuple[list[Any], list[Any]]:
        """The branches with what the tangents need of them; branches of tangents."""
        nonzero = live_flags(tangents[1:])
        key = ("cond_linear", tuple(nonzero), branches[1:])
        linear = branches[0].memo.get(key)
        if linear is None:
            linear = branches[0].memo[key] = _LinearCond(branches, nonzero)
        outs = self.bind(*primals, branches=linear.primal)
        count = len(branches[0].outputs)
        out_tangents: list[Any] = []
        if any(linear.has_tangent):
            out_tangents = self.bind(
                primals[0],
                *(primals[1 + i] for i in linear.given),
                *outs[count:],
                *chosen(tangents[1:], nonzero),
                branches=linear.tangent,
            )
        avals = [a.tangent() for a in branches[0].out_avals]
        return outs[:count], spread(out_tangents, linear.has_tangent, avals)

    def transpose(
        self, cotangent: Sequence[Any], *args: Any, branches: Graphs
    ) -> Sequence[Any]:
        """The branches' transposes."""
        index, *operands = args
        linear = [type(a) is Var for a in operands]
        nonzero = live_flags(cotangent)
        derived = tuple(
            transpose_graph(b, linear, nonzero, instantiated=True)[0] for b in branches
        )
        values = [a for a in operands if type(a) is not Var]
        outs = self.bind(index, *values, *chosen(cotangent, nonzero), branches=derived)
        rest = iter(outs)
        return [None, *(next(rest) if lin else None for lin in linear)]

    # -- vectorisation, pruning --------------------------------------------------------

    def batch_over(
        self,
        axis_name: Any,
        size: int,
        args: Sequence[Any],
        mapped: Sequence[bool],
        *,
        branches: Graphs,
    ) -> tuple[list[Any], list[bool]]:
        """Vectorised branches; if the index is mapped, all of them and a selection.

        There is nothing to select where all branches pass on the same operand.
        """
        index, *operands = args
        flags = list(mapped[1:])
        if not mapped[0]:
            have = [
                batch_graph(b, size, flags, axis_name=axis_name)[1] for b in branches
            ]
            out_mapped = [any(f) for f in zip(*have, strict=True)]
            derived = tuple(
                batch_graph(b, size, flags, out_mapped, axis_name)[0] for b in branches
            )
            return self.bind(index, *operands, branches=derived), out_mapped
        same = self.forwarded(branches=branches)
        differ = [s is None for s in same]
        if not all(differ):
            branches = tuple(prune(b, differ) for b in branches)
        found = iter(select_branches(axis_name, size, args, mapped, branches))
        outs = [next(found) if s is None else args[s] for s in same]
        return outs, [s is None or mapped[s] for s in same]

    def dce(self, node: Node, wanted: Sequence[bool]) -> Node:
        """Prunes the branches, and drops operands that none of them uses."""
        branches: Graphs = node.params["branches"]
        pruned = [prune(b, wanted) for b in branches]
        used = [any(u) for u in zip(*map(used_inputs, pruned), strict=True)]
        smaller = tuple(
            rewired(p, inputs=chosen(b.inputs, used))
            for p, b in zip(pruned, branches, strict=True)
        )
        return node.replace(
            inputs=[node.inputs[0], *chosen(node.inputs[1:], used)],
            outputs=chosen(node.outputs, wanted),
            params={"branches": smaller},
        )


class _LinearCond:
    """The derivative of branches: for each, a graph of values and one of tangents.

    What the tangents need of the values is handed over in slots that the branches
    share: a slot holds one value of a type for whichever branch runs, and zeros if that
    branch needs fewer.

    Attributes:
      primal: branches of outputs and slots.
      tangent: branches of the operands that any of them needs, the slots, and the
        tangents that are not zero.
      given: positions of those operands.
      has_tangent: which results have a tangent.
    """

    def __init__(self, branches: Graphs, nonzero: Sequence[bool]) -> None:
        have = [linearize_graph(b, nonzero).has_tangent for b in branches]
        self.has_tangent = [any(flags) for flags in zip(*have, strict=True)]
        parts = [linearize_graph(b, nonzero, self.has_tangent) for b in branches]
        needed = {i for p in parts for i in p.residual_inputs if i is not None}
        self.given = sorted(needed)
        count = len(branches[0].outputs)
        slots: list[Aval] = []
        places = []
        for part in parts:
            free = list(range(len(slots)))
            taken: list[int] = []
            for atom in part.primal.outputs[count:]:
                aval = atom.aval.strong()
                slot = next((s for s in free if slots[s] is aval), None)
                if slot is None:
                    slot = len(slots)
                    slots.append(aval)
                else:
                    free.remove(slot)
                taken.append(slot)
            places.append(taken)
        self.primal = tuple(
            self._values(part, count, slots, taken)
            for part, taken in zip(parts, places, strict=True)
        )
        given_avals = [branches[0].in_avals[i] for i in self.given]
        tangent_avals = [a.tangent() for a in chosen(branches[0].in_avals, nonzero)]
        self.tangent = tuple(
            self._tangents(part, given_avals, slots, taken, tangent_avals)
            for part, taken in zip(parts, places, strict=True)
        )

    def _values(
        self, part: LinearGraphs, count: int, slots: list[Aval], taken: list[int]
    ) -> Graph:
        graph = part.primal
        extra = dict(zip(taken, graph.outputs[count:], strict=True))
        empty = [s for s in range(len(slots)) if s not in extra]
        nodes, zeros = append_zeros(graph, [slots[s] for s in empty])
        extra.update(zip(empty, zeros, strict=True))
        return rewired(
            graph,
            nodes=[*graph.nodes, *nodes],
            outputs=[*graph.outputs[:count], *(extra[s] for s in range(len(slots)))],
        )

    def _tangents(
        self,
        part: LinearGraphs,
        given_avals: list[Aval],
        slots: list[Aval],
        taken: list[int],
        tangent_avals: list[Aval],
    ) -> Graph:
        graph = part.tangent
        operands = [Var(a) for a in given_avals]
        held = [Var(a) for a in slots]
        extra = iter(taken)
        for var, position in zip(graph.inputs, part.residual_inputs, strict=False):
            if position is None:
                held[next(extra)] = var
            else:
                operands[self.given.index(position)] = var
        tangents = graph.inputs[len(part.residual_inputs) :]
        assert len(tangents) == len(tangent_avals)
        return rewired(graph, inputs=[*operands, *held, *tangents])
