"""Converts dataflow graphs for TensorBoard.

Each `named_scope` becomes a scope that TensorBoard can fold; edges have shapes. Jitted
functions and the bodies of loops and branches become scopes too, the latter next to the
operation that runs them.
"""

from __future__ import annotations

from typing import Any

from fxflow.core import source
from fxflow.transforms.inspection import FunctionGraph
from fxflow.viz.walk import ARGUMENT, CONSTANT, RESULT, Item, walk

#: TensorFlow's numbers for dtypes.
_DTYPES = {
    "float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6,
    "complex64": 8, "int64": 9, "bool": 10, "bfloat16": 14, "uint16": 17,
    "complex128": 18, "float16": 19, "uint32": 22, "uint64": 23,
}  # fmt: skip

#: TensorFlow's operations for items that are not operations in fxflow.
_OPERATIONS = {ARGUMENT: "Placeholder", CONSTANT: "Const", RESULT: "Identity"}


def _add(graph: Any, items: list[Item], item: Item) -> None:
    """Adds an item to a `GraphDef`."""
    node = graph.node.add(
        name="/".join(item.path),
        op=_OPERATIONS.get(item.operation, item.operation),
        input=[
            "/".join(items[index].path) + (f":{output}" if output else "")
            for index, output in item.inputs
        ],
    )
    shapes = node.attr["_output_shapes"].list.shape
    for aval in item.avals:
        shape = shapes.add()
        for size in aval.shape:
            shape.dim.add(size=size)
    if item.avals:
        number = _DTYPES.get(str(item.avals[0].dtype))
        if number is not None:
            node.attr["T"].type = number
    if item.source is not None:
        node.attr["source"].s = source.describe(item.source).encode()
    if item.label:
        node.attr["label"].s = item.label.encode()
    for name, text in item.params:
        node.attr[name].s = text.encode()


def graph_def(proto: Any, traced: FunctionGraph) -> Any:
    """Returns a graph as TensorFlow's `GraphDef`.

    Args:
      proto: the package of TensorFlow's message classes (`tensorboardX.proto`).
      traced: the graph.
    """
    graph, items = proto.graph_pb2.GraphDef(), walk(traced.graph)
    for item in items:
        _add(graph, items, item)
    graph.versions.producer = 22
    return graph
