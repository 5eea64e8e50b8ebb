"""Marks in a program that lead an instruction back to the user's scope and line.

Before the function is compiled, each node of its graph gets a scope of its own, `#12`.
XLA keeps the names of operations as metadata through all its passes, so an instruction
of the optimised program leads back to a node.
"""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from fxflow.core import source
from fxflow.core.ir.graph import Graph, Node, subgraphs, with_graphs


class Operation(NamedTuple):
    """A node of the graph, or of a graph inside.

    Attributes:
      name: of the primitive.
      scope: names of the enclosing `named_scope`s.
      line: `train.py:12 (loss)`, with the whole path.
      flops: of one run, estimated.
      bytes: that one run reads and writes, estimated.
    """

    name: str
    scope: tuple[str, ...]
    line: str
    flops: float
    bytes: float


#: What no operation of the user's asked for, such as copies that XLA adds.
OTHER = Operation("copies and others", (), "no line", 0.0, 0.0)


#: What stands for operations outside of any `named_scope`.
NO_SCOPE = "(no scope)"


def scopes(operation: Operation) -> Iterator[str]:
    """Yields the scopes an operation is in, the outermost first."""
    if not operation.scope:
        yield NO_SCOPE
    for depth in range(len(operation.scope)):
        yield "/".join(operation.scope[: depth + 1])


#: What an operation counts for in the rows of a report, by what they are of.
NAMES: dict[str, Callable[[Operation], Iterable[str]]] = {
    "scope": scopes,
    "line": lambda operation: [operation.line],
    "operation": lambda operation: [operation.name],
}

_MARK = re.compile(r"/#(\d+)(?=/)")


class Marks:
    """The marks of one graph, and of graphs inside.

    Attributes:
      operations: by number; the last is `OTHER`.
      graph: the graph with its marks.
    """

    def __init__(self, graph: Graph) -> None:
        self.operations: list[Operation] = []
        self.graph = self._marked(graph, (), {})
        self.operations.append(OTHER)

    def _marked(
        self, graph: Graph, around: tuple[str, ...], known: dict[Graph, Graph]
    ) -> Graph:
        """Returns a graph in which each node has a scope of its own."""
        if graph in known:
            return known[graph]
        nodes: list[Node] = []
        for node in graph.nodes:
            scope = node.scope or around
            mark = f"#{len(self.operations)}"
            self.operations.append(_operation(node, scope))
            mark_inside = functools.partial(self._marked, around=scope, known=known)
            params = with_graphs(node.params, mark_inside)
            nodes.append(node.replace(scope=(*scope, mark), params=params))
        known[graph] = graph.replace(nodes=nodes)
        return known[graph]

    def number(self, name: str) -> int:
        """Returns the number of what a name in a program, `op_name`, belongs to."""
        marks = _MARK.findall(name)
        return int(marks[-1]) if marks else len(self.operations) - 1


def _operation(node: Node, scope: tuple[str, ...]) -> Operation:
    primitive = node.primitive
    cost: dict[str, float] = {}
    # The work of what is inside is that of the operations there.
    if not subgraphs(node.params):
        # A primitive of a user's need not have one.
        with contextlib.suppress(Exception):
            cost = primitive.cost(*[a.aval for a in node.inputs], **node.params)
    return Operation(
        primitive.name,
        scope,
        source.describe(node.source),
        cost.get("flops", 0.0),
        cost.get("bytes", 0.0),
    )
