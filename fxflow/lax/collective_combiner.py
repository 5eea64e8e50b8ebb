"""Combines small collectives of one kind into one: a pass from graph to graph.

Devices in several processes that add up many small arrays spend their time waiting,
once for each array. So such an operation is held back until a result of it is needed,
and is then done together with all of its kind whose operands are known by then. Values
do not change, nor what depends on what; all processes combine alike, as they have the
same graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from fxflow.core.ir.graph import Graph, Node, Var, renamed, with_graphs

#: Bytes; operands that are combined are copied next to each other.
LARGEST = 32 * 2**20

Kind = Callable[[Node], Any]


def combined(
    graph: Graph, kind: Kind, combine: Callable[[Sequence[Node]], Graph]
) -> Graph:
    """Returns a graph that computes the same with fewer operations of each kind.

    Args:
      graph: to rewrite, with the graphs in its parameters; it remembers the result.
      kind: returns equal keys for operations, of one operand and one result, that can
        be one; None for others.
      combine: returns a graph from all their operands to all their results.
    """

    def derive() -> Graph:

        def inside(held: Graph) -> Graph:
            return combined(held, kind, combine)

        # What a variable is in the new graph, where that is another one.
        names: dict[Var, Any] = {}

        nodes: list[Node] = []
        for group in in_groups(graph, kind):
            if len(group) == 1:
                (node,) = group
                params = with_graphs(node.params, inside)
                nodes.append(
                    node.replace(inputs=renamed(node.inputs, names), params=params)
                )
                continue
            one = combine(group)
            operands = renamed((x for node in group for x in node.inputs), names)
            names.update(zip(one.inputs, operands, strict=True))
            nodes += [
                part.replace(inputs=renamed(part.inputs, names)) for part in one.nodes
            ]
            results = [v for node in group for v in node.outputs]
            names.update(zip(results, renamed(one.outputs, names), strict=True))
        outputs = renamed(graph.outputs, names)
        return graph.replace(nodes=nodes, outputs=outputs)

    return graph.remembered(("combined", kind), derive)


def in_groups(graph: Graph, kind: Kind) -> Iterator[list[Node]]:
    """Yields the nodes of a graph in order of execution, those that are one in a list.

    Args:
      graph: to order.
      kind: see `combined`.
    """
    kinds: dict[Any, list[Node]] = {}
    for node in graph.nodes:
        key = kind(node)
        if key is not None:
            kinds.setdefault(key, []).append(node)
    # Those not done yet, held back or still to come, in the order of the graph.
    left = {key: dict.fromkeys(some) for key, some in kinds.items() if len(some) > 1}
    key_of = {node: key for key, some in left.items() for node in some}
    held: dict[Var, Any] = {}
    known = set(graph.inputs)

    def needed(atoms: Sequence[Any]) -> Iterator[list[Node]]:
        for atom in atoms:
            key = held.get(atom) if type(atom) is Var else None
            if key is None:
                continue
            ready = [
                node
                for node in left[key]
                if all(type(x) is not Var or x in known for x in node.inputs)
            ]
            for node in ready:
                del left[key][node]
                held.pop(node.outputs[0], None)
                known.update(node.outputs)
            yield from _portions(ready)

    for node in graph.nodes:
        yield from needed(node.inputs)
        key = key_of.get(node)
        if key is None:
            yield [node]
            known.update(node.outputs)
        elif node in left[key]:
            held[node.outputs[0]] = key
    yield from needed(graph.outputs)


def _portions(nodes: Sequence[Node]) -> Iterator[list[Node]]:
    """Yields the nodes in groups that are not too large."""
    group: list[Node] = []
    size = 0
    for node in nodes:
        nbytes = sum(x.aval.nbytes for x in node.inputs)
        if group and size + nbytes > LARGEST:
            yield group
            group, size = [], 0
        group.append(node)
        size += nbytes
    yield group
