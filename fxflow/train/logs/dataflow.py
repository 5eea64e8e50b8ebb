"""A dataflow graph as TensorBoard draws it.

Nodes are named by the `named_scope`s they stand in, which fold; edges carry shapes. A
jitted function is a scope of its own; so are the bodies of loops and branches, beside
the operation that runs them.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from fxflow.core.arrays import Aval
from fxflow.core.interpreters.calls import GraphCall
from fxflow.core.ir.graph import Graph, Literal, Node, subgraphs
from fxflow.transforms.inspection import FunctionGraph

#: TensorFlow's numbers of dtypes.
_DTYPES = {
    "float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6,
    "complex64": 8, "int64": 9, "bool": 10, "bfloat16": 14, "uint16": 17,
    "complex128": 18, "float16": 19, "uint32": 22, "uint64": 23,
}  # fmt: skip


class _Writer:
    """Adds nodes to a `GraphDef`."""

    def __init__(self, proto: Any) -> None:
        self._proto = proto
        self.graph = proto.graph_pb2.GraphDef()
        self._used: Counter[str] = Counter()

    def name(self, scope: tuple[str, ...], last: str) -> str:
        """Returns a name that no other node has."""
        clean = [part.replace("/", "_") or "_" for part in (*scope, last)]
        name = "/".join(clean)
        self._used[name] += 1
        count = self._used[name]
        return name if count == 1 else f"{name}_{count - 1}"

    def add(
        self, name: str, operation: str, inputs: list[str], avals: list[Aval], text: str
    ) -> None:
        """Adds a node."""
        node = self.graph.node.add(name=name, op=operation, input=inputs)
        shapes = node.attr["_output_shapes"].list.shape
        for aval in avals:
            shape = shapes.add()
            for size in aval.shape:
                shape.dim.add(size=size)
        if avals:
            number = _DTYPES.get(str(avals[0].dtype))
            if number is not None:
                node.attr["T"].type = number
        if text:
            node.attr["source"].s = text.encode()

    def inside(
        self, graph: Graph, names: list[str], scope: tuple[str, ...]
    ) -> list[str]:
        """Adds the nodes of a graph; returns what its outputs are called.

        Args:
          graph: whose nodes to add.
          names: what its inputs are called.
          scope: where they stand.
        """
        known: dict[Any, str] = dict(zip(graph.inputs, names, strict=True))

        def called(atom: Any) -> str:
            if not isinstance(atom, Literal):
                return known[atom]
            name = self.name(scope, "constant")
            self.add(name, "Const", [], [atom.aval], str(atom.value))
            return name

        for node in graph.nodes:
            place = (*scope, *node.scope)
            inputs = [called(atom) for atom in node.inputs]
            outputs = self._node(node, inputs, place)
            known.update(zip(node.outputs, outputs, strict=True))
        return [called(atom) for atom in graph.outputs]

    def _node(self, node: Node, inputs: list[str], scope: tuple[str, ...]) -> list[str]:
        primitive = node.primitive
        if isinstance(primitive, GraphCall):
            inner = node.params["graph"]
            own = self.name(scope, inner.name).split("/")
            return self.inside(inner, inputs, tuple(own))
        name = self.name(scope, primitive.name)
        bodies = list(subgraphs(node.params))
        if bodies:
            # The operation stands in the scope of its bodies.
            for label, graph in bodies:
                place = (*name.split("/"), label)
                arguments = []
                for number, aval in enumerate(graph.in_avals):
                    argument = self.name(place, f"argument_{number}")
                    self.add(argument, "Placeholder", [], [aval], "")
                    arguments.append(argument)
                self.inside(graph, arguments, place)
            name = self.name(tuple(name.split("/")), primitive.name)
        avals = [variable.aval for variable in node.outputs]
        text = "" if node.source is None else str(node.source)
        self.add(name, primitive.name, inputs, avals, text)
        return [name if n == 0 else f"{name}:{n}" for n in range(len(avals))]


def graph_def(proto: Any, traced: FunctionGraph) -> Any:
    """Returns TensorFlow's `GraphDef` of a graph.

    Args:
      proto: where its message classes are (`tensorboardX.proto`).
      traced: the graph.
    """
    writer, graph = _Writer(proto), traced.graph
    names = []
    for number, aval in enumerate(graph.in_avals):
        name = writer.name((), f"argument_{number}")
        writer.add(name, "Placeholder", [], [aval], "")
        names.append(name)
    for number, output in enumerate(writer.inside(graph, names, ())):
        writer.add(
            writer.name((), f"result_{number}"),
            "Identity",
            [output],
            [graph.out_avals[number]],
            "",
        )
    writer.graph.versions.producer = 22
    return writer.graph
