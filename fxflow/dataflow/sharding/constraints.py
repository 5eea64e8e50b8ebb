"""Constraints: where a program says how a value is divided, besides its arguments.

The partitioner follows the shardings of arguments and results. What a plan moves in
between (a parameter that is gathered where it is used, a sum that is wanted in parts)
is written as `sdy.sharding_constraint`s in the graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fxflow.core.ir.graph import Graph, Node, Var, with_graphs
from fxflow.dataflow.sharding.program import Path
from fxflow.devices.shardings import NamedSharding
from fxflow.lax.copying import OptimizationBarrier
from fxflow.lax.remat import CALLS, inlined
from fxflow.lax.transfer import DevicePut


class Constraint(NamedTuple):
    """How an operand or a result of an operation is divided.

    Attributes:
      path: of the operation.
      position: of the operand, or `~i` for result `i`.
      shardings: that it has one after the other.
      is_gathered: whether it is stored in smaller parts: each use gathers it anew, or
        the whole would be kept from the first use to the last.
    """

    path: Path
    position: int
    shardings: tuple[NamedSharding, ...]
    is_gathered: bool


def constrain(graph: Graph, constraints: Sequence[Constraint]) -> Graph:
    """Returns a graph in which constraints are written.

    Args:
      graph: whose calls are written out where that is needed.
      constraints: to add.
    """
    at: dict[Path, list[Constraint]] = {}
    holders: set[Path] = set()
    for constraint in constraints:
        at.setdefault(constraint.path, []).append(constraint)
        holders.update(constraint.path[:i] for i in range(1, len(constraint.path), 2))
    return _rewritten(graph, (), at, holders) if at else graph


def _rewritten(
    graph: Graph,
    path: Path,
    at: Mapping[Path, list[Constraint]],
    holders: set[Path],
) -> Graph:
    graph = inlined(graph, CALLS)
    nodes: list[Node] = []
    names: dict[Var, Var] = {}
    for number, node in enumerate(graph.nodes):
        here = (*path, number)
        inputs = [names.get(a, a) if type(a) is Var else a for a in node.inputs]
        params = node.params
        if here in holders:
            inner = iter(range(len(params)))

            def rewrite(graph: Graph, here: Path = here, inner: Any = inner) -> Graph:
                return _rewritten(graph, (*here, next(inner)), at, holders)

            params = with_graphs(params, rewrite)
        after: list[Constraint] = []
        for constraint in at.get(here, ()):
            position = constraint.position
            if position < 0:
                after.append(constraint)
                continue
            atom = inputs[position]
            if constraint.is_gathered:
                atom = _add(nodes, node, OptimizationBarrier, atom, {})
            inputs[position] = _put(nodes, node, atom, constraint.shardings)
        outputs = list(node.outputs)
        nodes.append(node.replace(inputs=inputs, params=params))
        for constraint in after:
            var = outputs[~constraint.position]
            names[var] = _put(nodes, node, var, constraint.shardings)
    outs = [names.get(a, a) if type(a) is Var else a for a in graph.outputs]
    return graph.replace(nodes=nodes, outputs=outs)


def _put(
    nodes: list[Node], user: Node, atom: Var, shardings: Sequence[NamedSharding]
) -> Var:
    """Adds constraints; returns the value that has them."""
    for sharding in shardings:
        put = {"to": sharding, "memory": None}
        atom = _add(nodes, user, DevicePut, atom, put)
    return atom


def _add(
    nodes: list[Node], user: Node, primitive: Any, atom: Var, params: dict[str, Any]
) -> Var:
    """Adds an operation of one value; returns its result."""
    out = Var(atom.aval)
    made = Node(primitive, [atom], [out], params, user.source, user.scope)
    nodes.append(made)
    return out
