"""Loops over parts of a batch, written out: each round's fragments can overlap others'.

A loop (`scan`) is one program, so it runs in one place. If its body holds scopes of
several places it is written out instead, one copy of the body for each round: the
rounds of a pipeline's stages then overlap, as a schedule says. Equal fragments of
different rounds are one program.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fxflow.core.ir.graph import Graph, Literal, Node, Var, renamed
from fxflow.core.ir.staging import trace_flat
from fxflow.dataflow.placing import scopes_inside
from fxflow.lax.concatenation import concatenate
from fxflow.lax.control_flow.scan import ScanParams
from fxflow.lax.remat import CALLS, inlined
from fxflow.lax.slicing import index_in_dim

#: Loops of more rounds stay loops.
MAX_ROUNDS = 1024


def unrolled(graph: Graph) -> tuple[Graph, list[int]]:
    """Writes out the loops whose bodies hold scopes of several places.

    Args:
      graph: with its calls written out.

    Returns:
      The graph, and the round of each node: 0 before the first loop, 1 for its first
      round, and so on; what depends on a loop's results comes after its last round.
    """
    nodes: list[Node] = []
    rounds: list[int] = []
    names: dict[Any, Any] = {}
    made_in: dict[Var, int] = {}

    def add(new: Sequence[Node], number: int) -> None:
        nodes.extend(new)
        rounds.extend([number] * len(new))
        for node in new:
            made_in.update(dict.fromkeys(node.outputs, number))

    for node in graph.nodes:
        inputs = renamed(node.inputs, names)
        last = max((made_in.get(a, 0) for a in inputs if type(a) is Var), default=0)
        if not _is_unrolled(node):
            add([node.replace(inputs=inputs)], last)
            continue
        p = ScanParams(**node.params)
        body = inlined(p.graph, CALLS)
        consts, carry, xs = p.split(inputs)
        stacked: list[list[Any]] = [[] for _ in body.outputs[p.num_carry :]]
        steps = range(p.length)
        for number, i in enumerate(reversed(steps) if p.reverse else steps):
            row = []
            for x in xs:
                # Before the rounds, whose programs are then equal.
                new, (out,) = _copied(_slice_of(x.aval, i), [x], node)
                add(new, last)
                row.append(out)
            new, outs = _copied(body, [*consts, *carry, *row], node)
            add(new, last + number + 1)
            carry = outs[: p.num_carry]
            for column, y in zip(stacked, outs[p.num_carry :], strict=True):
                column.append(y)
        results = list(carry)
        for column in stacked:
            column = column[::-1] if p.reverse else column
            new, (out,) = _copied(_stack_of(column), column, node)
            add(new, last + p.length + 1)
            results.append(out)
        names.update(zip(node.outputs, results, strict=True))
        made_in.update((a, last + p.length + 1) for a in results if type(a) is Var)
    outputs = renamed(graph.outputs, names)
    live = _live(nodes, outputs)
    kept = [node for node, used in zip(nodes, live, strict=True) if used]
    rounds = [number for number, used in zip(rounds, live, strict=True) if used]
    return graph.replace(nodes=kept, outputs=outputs), rounds


def _live(nodes: Sequence[Node], outputs: Sequence[Any]) -> list[bool]:
    """Returns which nodes outputs depend on, or have effects."""
    needed = set(map(id, outputs))
    found = []
    for node in reversed(nodes):
        used = bool(node.effects) or any(id(v) in needed for v in node.outputs)
        if used:
            needed.update(map(id, node.inputs))
        found.append(used)
    return found[::-1]


def _is_unrolled(node: Node) -> bool:
    if node.primitive.name != "scan" or node.params["length"] > MAX_ROUNDS:
        return False
    return len(scopes_inside(inlined(node.params["graph"], CALLS))) > 1


def _copied(
    graph: Graph, values: Sequence[Any], call: Node
) -> tuple[list[Node], list[Any]]:
    """Returns a graph's nodes with variables of their own, and its results.

    Args:
      graph: to copy.
      values: atoms for its inputs.
      call: the node that it is a part of, whose scope holds where a node has none.
    """
    names: dict[Any, Any] = dict(zip(graph.inputs, values, strict=True))
    nodes = []
    for node in graph.nodes:
        outputs = [Var(v.aval) for v in node.outputs]
        inputs = renamed(node.inputs, names)
        scope, source = node.scope or call.scope, node.source or call.source
        nodes.append(
            node.replace(inputs=inputs, outputs=outputs, scope=scope, source=source)
        )
        names.update(zip(node.outputs, outputs, strict=True))
    return nodes, renamed(graph.outputs, names)


def _slice_of(aval: Any, i: int) -> Graph:
    return trace_flat(lambda x: [index_in_dim(x, i, 0, False)], [aval], name="slice")[0]


def _stack_of(atoms: Sequence[Var | Literal]) -> Graph:
    def stack(*rows: Any) -> list[Any]:
        return [concatenate([row[None] for row in rows], 0)]

    return trace_flat(stack, [a.aval for a in atoms], name="stack")[0]
