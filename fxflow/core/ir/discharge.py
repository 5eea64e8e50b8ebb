"""From graphs with references to graphs of arrays.

A reference that a graph is given becomes an input for what it holds and, where the
graph writes to it, an output for what it then holds. References made inside disappear.
The graph is evaluated with a cell for each reference (see `references`), so reads and
writes end up in the order of the program, and operations that hold graphs are
discharged in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fxflow.core.arrays import AbstractRef
from fxflow.core.ir.graph import (
    Graph,
    Node,
    any_node,
    bound,
    has_refs,
    interpret,
    subgraphs,
    with_graphs,
)
from fxflow.core.ir.references import GraphRef, Ref, contents, replace
from fxflow.core.ir.staging import trace_closed
from fxflow.core.ir.trace import state
from fxflow.errors import ArgumentError

REFS = frozenset((Ref, GraphRef))


def keeps_rules(graph: Graph) -> bool:
    """Returns whether a rule of the user's in a graph is given references.

    Discharging the graph would lose the rule.
    """
    return any_node(graph, "keeps_rules", _has_rule)


def _has_rule(node: Node) -> bool:
    return "rule" in node.params and has_refs(a.aval for a in node.inputs)


class Discharged:
    """A graph of arrays in place of one with references.

    Attributes:
      graph: takes contents for references; its last outputs are new contents.
      written: positions of the inputs that these are of.
    """

    __slots__ = ("graph", "written")

    graph: Graph
    written: tuple[int, ...]

    def __init__(self, graph: Graph, written: Sequence[int]) -> None:
        self.graph, self.written = graph, tuple(written)


def discharge(graph: Graph, also: frozenset[int] = frozenset()) -> Discharged:
    """Returns a graph without references.

    Args:
      graph: to discharge.
      also: positions of references to return the contents of, written to or not.
    """
    if not graph.facts.has_refs:
        return Discharged(graph, ())
    key = ("discharge", also)
    return graph.remembered(key, lambda: _discharged(graph, also))


def _discharged(graph: Graph, also: frozenset[int]) -> Discharged:
    written: list[int] = []

    def run(*values: Any) -> list[Any]:
        trace: Any = state.trace
        trace.records_refs = False
        cells: dict[int, Ref] = {}
        args = list(values)
        for i, var in enumerate(graph.inputs):
            if type(var.aval) is AbstractRef:
                args[i] = cells[i] = Ref(var.aval, trace, values[i])
        outs = interpret(graph, args, _step)
        written[:] = [
            i for i, c in cells.items() if i in also or c._value is not values[i]
        ]
        return [*outs, *(cells[i]._value for i in written)]

    avals = [a.inner_aval if type(a) is AbstractRef else a for a in graph.in_avals]
    pure = trace_closed(run, avals, name=graph.name)
    pure.num_consts = graph.num_consts
    return Discharged(pure, written)


def _step(node: Node, values: list[Any]) -> Sequence[Any]:
    """Binds an operation, without the references made in the graphs that it holds."""
    inside = not node.primitive.owns_refs and any(
        graph.facts.has_refs for _, graph in subgraphs(node.params)
    )
    if inside and not has_refs(a.aval for a in node.inputs):
        with node.primitive.inside(node.params):
            params = with_graphs(node.params, lambda graph: discharge(graph).graph)
        node = node.replace(params=params)
    return bound(node, values)


def require_distinct(
    args: Sequence[Any], what: str, labels: Sequence[str] | None = None
) -> None:
    """Checks that no reference is given twice.

    Args:
      args: operands.
      what: takes them.
      labels: what they are called.

    Raises:
      ArgumentError: two are one reference.
    """
    seen: dict[int, int] = {}
    for i, a in enumerate(args):
        if type(a) not in REFS:
            continue
        first = seen.setdefault(id(a._var) if type(a) is GraphRef else id(a), i)
        if first != i:
            how = f", as {labels[first]} and {labels[i]}" if labels else ""
            raise ArgumentError(
                f"{what} gets one reference {a.aval} twice{how}: what is written under "
                "one name would not be seen under the other; pass it once"
            )


def read_all(args: Sequence[Any]) -> list[Any]:
    """Returns the operands with contents in place of references."""
    return [contents(a) if type(a) in REFS else a for a in args]


def write_back(
    args: Sequence[Any], positions: Sequence[int], new: Sequence[Any]
) -> None:
    """Writes new contents to references among the operands."""
    for i, value in zip(positions, new, strict=True):
        replace(args[i], value)
