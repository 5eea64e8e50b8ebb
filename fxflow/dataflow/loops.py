"""Loops over parts of a batch, written out: fragments of different rounds can overlap.

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
from fxflow.core.source import describe
from fxflow.dataflow.placing import scopes_inside
from fxflow.dataflow.tables import counted
from fxflow.lax.concatenation import concatenate
from fxflow.lax.control_flow.scan import ScanParams
from fxflow.lax.remat import CALLS, inlined
from fxflow.lax.slicing import index_in_dim

#: Loops of more rounds stay loops.
MAX_ROUNDS = 1024


def unrolled(graph: Graph, notes: list[str] | None = None) -> tuple[Graph, list[int]]:
    """Writes out the loops and checkpoints that hold scopes of several places.

    A checkpoint's second computation is in fragments of its own then, which keeps the
    compiler from merging it with the first, but for what one fragment has of both.

    Args:
      graph: with its calls written out.
      notes: get a line for each loop that is written out.

    Returns:
      The graph, and the round of each node: 0 before the first loop, 1 for its first
      round, and so on; what depends on a loop's results comes after its last round.
    """
    if not any(map(_is_written_out, graph.nodes)):
        live = _live(graph.nodes, graph.outputs)
        kept = [node for node, used in zip(graph.nodes, live, strict=True) if used]
        return graph.replace(nodes=kept), [0] * len(kept)
    written = _Written([] if notes is None else notes)
    names: dict[Any, Any] = {}
    for node in graph.nodes:
        inputs = renamed(node.inputs, names)
        results = written.add(node.replace(inputs=inputs), 0)
        names.update(zip(node.outputs, results, strict=True))
    outputs = renamed(graph.outputs, names)
    live = _live(written.nodes, outputs)
    kept = [node for node, used in zip(written.nodes, live, strict=True) if used]
    rounds = [r for r, used in zip(written.rounds, live, strict=True) if used]
    return graph.replace(nodes=kept, outputs=outputs), rounds


class _Written:
    """The nodes written so far.

    Attributes:
      nodes: in order.
      rounds: of the nodes.

    Args:
      notes: get a line for each loop.
    """

    def __init__(self, notes: list[str]) -> None:
        self._notes = notes
        self.nodes: list[Node] = []
        self.rounds: list[int] = []
        self._made_in: dict[Var, int] = {}

    def _last_round(self, atoms: Sequence[Any]) -> int:
        rounds = (self._made_in.get(a, 0) for a in atoms if type(a) is Var)
        return max(rounds, default=0)

    def add(self, node: Node, least: int) -> Sequence[Any]:
        """Writes a node, or what it stands for; returns its results.

        Args:
          node: whose inputs have been written.
          least: the round that it is in, if its inputs are from no later one.
        """
        if _is_written_out(node):
            if node.primitive.name == _CHECKPOINT:
                return self._copy(node.params["graph"], node.inputs, node, least)
            return self._loop(node, least)
        number = max(least, self._last_round(node.inputs))
        self.nodes.append(node)
        self.rounds.append(number)
        self._made_in.update(dict.fromkeys(node.outputs, number))
        return node.outputs

    def _copy(
        self, graph: Graph, values: Sequence[Any], call: Node, least: int
    ) -> list[Any]:
        """Writes a graph's nodes with variables of their own; returns its results.

        Args:
          graph: to copy.
          values: atoms for its inputs.
          call: the node that it is a part of, whose scope holds where a node has none.
          least: see `add`.
        """
        graph = inlined(graph, CALLS)
        names: dict[Any, Any] = dict(zip(graph.inputs, values, strict=True))
        for node in graph.nodes:
            copy = node.replace(
                inputs=renamed(node.inputs, names),
                outputs=[Var(v.aval) for v in node.outputs],
                scope=node.scope or call.scope,
                source=node.source or call.source,
            )
            results = self.add(copy, least)
            names.update(zip(node.outputs, results, strict=True))
        return renamed(graph.outputs, names)

    def _loop(self, node: Node, least: int) -> list[Any]:
        """Writes the rounds of a `scan`; returns its results."""
        p = ScanParams(**node.params)
        rounds = counted(p.length, "round")
        places = counted(len(scopes_inside(inlined(p.graph, CALLS))), "place")
        self._notes.append(
            f"{node.primitive.name} ({describe(node.source)}) is written out as "
            f"{rounds}: its body has scopes of {places}"
        )
        before = max(least, self._last_round(node.inputs))
        consts, carry, xs = p.split(node.inputs)
        # Slices come before the rounds, whose programs are then equal.
        slices = [
            [self._copy(_slice_of(x.aval, i), [x], node, before)[0] for x in xs]
            for i in range(p.length)
        ]
        stacked: list[list[Any]] = [[] for _ in p.graph.outputs[p.num_carry :]]
        for number, row in enumerate(reversed(slices) if p.reverse else slices):
            values = [*consts, *carry, *row]
            outs = self._copy(p.graph, values, node, before + number + 1)
            carry = outs[: p.num_carry]
            for column, y in zip(stacked, outs[p.num_carry :], strict=True):
                column.append(y)
        after = before + p.length + 1
        columns = [column[::-1] if p.reverse else column for column in stacked]
        results = [
            *carry,
            *(self._copy(_stack_of(c), c, node, after)[0] for c in columns),
        ]
        self._made_in.update((a, after) for a in results if type(a) is Var)
        return results


_SCAN, _CHECKPOINT = "scan", "checkpoint"


def _is_written_out(node: Node) -> bool:
    """Returns whether a node is a loop or checkpoint over several places."""
    if node.primitive.name not in (_SCAN, _CHECKPOINT):
        return False
    inside = scopes_inside(inlined(node.params["graph"], CALLS))
    return len(inside) > 1 and 0 < node.params.get("length", 1) <= MAX_ROUNDS


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


def _slice_of(aval: Any, i: int) -> Graph:
    return trace_flat(lambda x: [index_in_dim(x, i, 0, False)], [aval], name="slice")[0]


def _stack_of(atoms: Sequence[Var | Literal]) -> Graph:
    def stack(*rows: Any) -> list[Any]:
        return [concatenate([row[None] for row in rows], 0)]

    return trace_flat(stack, [a.aval for a in atoms], name="stack")[0]
