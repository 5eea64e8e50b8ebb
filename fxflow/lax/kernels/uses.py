"""How the body of a kernel uses the references that it is given."""

from __future__ import annotations

from collections.abc import Set
from typing import Any, NamedTuple

from fxflow.core.ir.graph import Graph, Node, Var, subgraphs
from fxflow.core.ir.ref_index import Index
from fxflow.lax.remat import CALLS, inlined


class Use(NamedTuple):
    """How a graph uses one of its inputs, a reference.

    Attributes:
      reads: whether it reads it.
      writes: how often it writes it; twice if it does in a loop or a branch.
      covers_first: whether it writes all of it before anything else.
      first_write: the first operation that writes it, or None.
    """

    reads: bool
    writes: int
    covers_first: bool
    first_write: Node | None


def uses_of(graph: Graph) -> list[Use]:
    """Returns how a graph uses each of its inputs, here and in graphs inside.

    Args:
      graph: with references among its inputs.
    """
    return graph.remembered("uses of inputs", lambda: _found(inlined(graph, CALLS)))


def written_refs(graph: Graph) -> frozenset[Var]:
    """Returns the references that a graph writes to, here or in graphs inside.

    Args:
      graph: without calls; see `inlined`.
    """

    def find() -> frozenset[Var]:
        found: set[Var] = set()
        for node in graph.nodes:
            if node.primitive.name in ("swap", "addupdate"):
                found.add(node.inputs[0])
            found.update(a for a, use in _inner(node) if use.writes)
        return frozenset(found)

    return graph.remembered("written references", find)


def _found(graph: Graph) -> list[Use]:
    read = {a for node in graph.nodes for a in node.inputs}
    found = []
    for var in graph.inputs:
        users = [node for node in graph.nodes if var in node.inputs]
        reads, writes, first = False, 0, None
        for node in users:
            name = node.primitive.name
            wrote = None
            if name == "swap" and var is node.inputs[0]:
                reads |= node.outputs[0] in read
                writes, wrote = writes + 1, node
            elif name == "addupdate" and var is node.inputs[0]:
                reads, writes, wrote = True, writes + 1, node
            elif name == "get":
                reads = True
            else:
                # A loop or a branch: what it does with it, in any round.
                inner = [use for a, use in _inner(node) if a is var]
                reads |= any(u.reads for u in inner)
                writes += 2 * sum(u.writes for u in inner)
                wrote = next((u.first_write for u in inner if u.writes), None)
            first = first or wrote
        covers = bool(users) and _covers(users[0], var, read)
        found.append(Use(reads, writes, covers, first))
    return found


def _covers(node: Node, var: Any, read: Set[Any]) -> bool:
    """Returns whether a node writes all of a reference, and does not read it."""
    if node.primitive.name != "swap" or node.inputs[0] is not var:
        return False
    return node.outputs[0] not in read and _is_all(node.params["index"], var.aval)


def _inner(node: Node) -> list[tuple[Any, Use]]:
    """Returns operands of an operation, and how graphs inside of it use them."""
    found: list[tuple[Any, Use]] = []
    for name, graph in subgraphs(node.params):
        count = len(graph.inputs)
        # Inputs of the graph are the last operands.
        operands = list(node.inputs)[-count:] if count else []
        if name == "condition":
            known = node.params["num_condition"]
            operands[:known] = node.inputs[:known]
        found += zip(operands, uses_of(graph), strict=True)
    return found


def _is_all(index: Index, aval: Any) -> bool:
    """Returns whether an index names all elements of a reference."""
    shape = getattr(aval, "inner_aval", aval).shape
    items = [i for i in index.items if i is not None]
    at = next((i for i, item in enumerate(items) if item is Ellipsis), len(items))
    behind = len(items) - at - 1
    lengths = [*shape[:at], *(shape[-behind:] if behind > 0 else ())]
    rest = [item for item in items if item is not Ellipsis]
    return all(
        n == 1
        if type(item) is int
        else type(item) is tuple and len(range(*slice(*item).indices(n))) == n
        for item, n in zip(rest, lengths, strict=True)
    )
