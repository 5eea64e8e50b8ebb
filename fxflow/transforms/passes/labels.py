"""Elements of rows that labels choose, as comparisons with the labels.

A loss reads one number in each row, `log_softmax(z)[i, label[i]]`, and its gradient
writes one in each row of zeros. As a gather and a scatter these are operations of their
own, for which the whole array is in memory. As `sum(where(columns == label, x, 0))` and
`where(columns == label, slope, 0)` they are functions of rows, like those around them
(`rows`), and the array is never whole.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow.core.arrays import dtypes
from fxflow.core.ir.graph import Graph, Node, Var, live_nodes
from fxflow.lax.bitwise import bitwise_and
from fxflow.lax.broadcasting import broadcast_in_dim
from fxflow.lax.comparison import eq, ge, lt
from fxflow.lax.creation import broadcasted_iota
from fxflow.lax.families import Elementwise
from fxflow.lax.gather_scatter.dimension_numbers import GatherScatterMode
from fxflow.lax.gather_scatter.gather import Gather, fill_scalar
from fxflow.lax.reduction import reduce_sum
from fxflow.lax.reshaping import reshape
from fxflow.lax.select import clamp, select
from fxflow.transforms.passes.rewriting import begins_rows, computed


def compare_labels(graph: Graph) -> Graph:
    """Returns the graph with elements of rows chosen by comparisons.

    Only for arrays of the shape of which a function of rows is computed, too, that are
    not in memory anyway.

    Args:
      graph: of any operations; graphs inside are left as they are.
    """
    if graph.facts.names.isdisjoint((Gather.name, "scatter_add")):
        return graph
    shapes = {n.inputs[0].aval.shape for n in graph.nodes if begins_rows(n)}
    makers = {v: n for n in graph.nodes for v in n.outputs}
    nodes: list[Node] = []
    for node in graph.nodes:
        if _reads_labels(node, makers, shapes):
            nodes += computed(node, _read(node), node.inputs) or [node]
        elif _writes_labels(node, makers, shapes):
            nodes += computed(node, _written(node), node.inputs) or [node]
        else:
            nodes.append(node)
    if len(nodes) == len(graph.nodes):
        return graph
    return graph.replace(nodes=live_nodes(nodes, graph.outputs))


def _is_one_of_each(node: Node, shapes: Any, axes: tuple[Any, ...]) -> bool:
    """Returns whether one element of each row of floats is meant."""
    x, indices = (atom.aval for atom in node.inputs[:2])
    lead = tuple(range(x.ndim - 1))
    return bool(
        x.shape in shapes
        and x.dtype == dtypes.float32
        and axes == (lead, lead, (x.ndim - 1,))
        and indices.size == x.size // x.shape[-1]
        and indices.dtype == dtypes.int32
    )


def _reads_labels(node: Node, makers: dict[Any, Node], shapes: Any) -> bool:
    if node.primitive.name != Gather.name or type(node.inputs[0]) is not Var:
        return False
    numbers = node.params["dimension_numbers"]
    maker = makers.get(node.inputs[0])
    return (
        maker is not None
        and isinstance(maker.primitive, Elementwise)
        and not numbers.offset_dims
        and _is_one_of_each(
            node,
            shapes,
            (
                numbers.operand_batching_dims,
                numbers.start_indices_batching_dims,
                numbers.start_index_map,
            ),
        )
    )


def _writes_labels(node: Node, makers: dict[Any, Node], shapes: Any) -> bool:
    if node.primitive.name != "scatter_add" or type(node.inputs[0]) is not Var:
        return False
    numbers = node.params["dimension_numbers"]
    maker = makers.get(node.inputs[0])
    return (
        maker is not None
        and maker.primitive.name == "broadcast_in_dim"
        and _is_zero(maker.inputs[0])
        and not numbers.update_window_dims
        and _is_one_of_each(
            node,
            shapes,
            (
                numbers.operand_batching_dims,
                numbers.scatter_indices_batching_dims,
                numbers.scatter_dims_to_operand_dims,
            ),
        )
    )


def _is_zero(atom: Any) -> bool:
    return type(atom) is not Var and not np.asarray(atom.value).any()


def _labels(node: Node, indices: Any) -> tuple[Any, Any]:
    """Returns the label of each row, and where the columns are it."""
    shape = node.inputs[0].aval.shape
    labels = reshape(indices, shape[:-1])
    if node.params["mode"] is not GatherScatterMode.FILL_OR_DROP:
        end = np.asarray(shape[-1] - 1, labels.dtype)
        labels = clamp(np.zeros((), labels.dtype), labels, end)
    columns = broadcasted_iota(labels.dtype, shape, len(shape) - 1)
    axes = range(len(shape) - 1)
    return labels, eq(columns, broadcast_in_dim(labels, shape, axes))


def _read(node: Node) -> Any:
    (out,) = node.outputs
    fill = node.params["fill_value"]

    def compute(x: Any, indices: Any) -> Any:
        labels, hits = _labels(node, indices)
        found = reduce_sum(select(hits, x, np.zeros((), x.dtype)), (x.ndim - 1,))
        if node.params["mode"] is GatherScatterMode.FILL_OR_DROP:
            inside = bitwise_and(ge(labels, 0), lt(labels, np.int32(x.shape[-1])))
            found = select(inside, found, fill_scalar(fill, x.dtype))
        return reshape(found, out.aval.shape)

    return compute


def _written(node: Node) -> Any:
    def compute(zeros: Any, indices: Any, updates: Any) -> Any:
        _, hits = _labels(node, indices)
        shape = zeros.shape
        rows = reshape(updates, shape[:-1])
        wide = broadcast_in_dim(rows, shape, range(len(shape) - 1))
        return select(hits, wide, np.zeros((), zeros.dtype))

    return compute
