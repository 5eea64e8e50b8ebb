"""Operations that are written as one.

Devices in several processes that add up many small arrays spend their time waiting,
once for each array. So an operation that says what it may be joined with
(`Primitive.joins`) is held back until a result of it is needed, and is then written
together with all of its kind whose operands are known by then. Values do not change,
nor what depends on what; all processes hold the same program and join alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fxflow.core.ir.graph import Node, Var

#: Bytes; operands that are written as one are copied next to each other.
LARGEST = 32 * 2**20


class Held:
    """The operations of a graph that are not written yet because others may join them.

    Args:
      nodes: of the graph.
      module: being written.
    """

    def __init__(self, nodes: Sequence[Node], module: Any) -> None:
        kinds: dict[Any, list[Node]] = {}
        for node in nodes:
            kind = node.primitive.joins(module, node)
            if kind is not None:
                kinds.setdefault(kind, []).append(node)
        # Those not written, held back or still to come, in the order of the program.
        self._left = {
            kind: dict.fromkeys(some) for kind, some in kinds.items() if len(some) > 1
        }
        self._kinds = {n: kind for kind, some in self._left.items() for n in some}
        self._results: dict[Var, Any] = {}

    def holds(self, node: Node) -> bool:
        """Returns whether a node is held back, or was written with others."""
        kind = self._kinds.get(node)
        if kind is None:
            return False
        if node in self._left[kind]:
            self._results[node.outputs[0]] = kind
        return True

    def needed(
        self, atoms: Sequence[Any], names: Mapping[Any, str]
    ) -> Iterator[list[Node]]:
        """Yields the groups of nodes to write before these values are used.

        Args:
          atoms: variables and literals.
          names: of what is written.
        """
        for atom in atoms:
            kind = self._results.get(atom) if type(atom) is Var else None
            if kind is None:
                continue
            ready = [
                node
                for node in self._left[kind]
                if all(type(x) is not Var or x in names for x in node.inputs)
            ]
            for node in ready:
                del self._left[kind][node]
                self._results.pop(node.outputs[0], None)
            yield from _portions(ready)


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
