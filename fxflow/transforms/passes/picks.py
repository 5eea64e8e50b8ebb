"""Picks: of a product of which single elements are read, these are products of rows.

A loss of classes reads one logit in each row, `(h @ w.T)[i, label[i]]`, which is
`sum(h[i] * w[label[i]])`. If nothing else reads the product it is not computed at all.
If something does, it need no longer be kept for this: the exponentials of a softmax
over many classes take its place in memory.

A product of rows rounds otherwise than the whole product does. A value that is compared
with others of the same product, as in `logits[i, label[i]] >= max(logits[i])`, stays
one of its elements.
"""

from __future__ import annotations

from typing import Any

from fxflow.core.arrays import dtypes
from fxflow.core.ir.graph import Graph, Node, live_nodes, subgraphs
from fxflow.lax.axis_order import Transpose
from fxflow.lax.comparison import Comparison
from fxflow.lax.dot import DotGeneral
from fxflow.lax.elementwise import mul
from fxflow.lax.families import Elementwise, Structural
from fxflow.lax.gather_scatter.dimension_numbers import GatherDimensionNumbers
from fxflow.lax.gather_scatter.gather import Gather, gather
from fxflow.lax.reduction import ReduceSum
from fxflow.lax.reshaping import reshape
from fxflow.transforms.passes.rewriting import computed

#: Elements of a product from which it is worth the more operations.
_LEAST = 1 << 16
#: So many elements of it, at least, for each that is multiplied for a pick.
_MANY = 4


def pick_products(graph: Graph) -> Graph:
    """Returns the graph with elements of products computed by themselves.

    Args:
      graph: of any operations; graphs inside are left as they are.
    """
    makers: dict[Any, Node] = {}
    # The picks of each product, by name.
    picks: dict[Any, set[Any]] = {}
    for node in graph.nodes:
        if node.primitive.name in (DotGeneral.name, Transpose.name):
            makers[node.outputs[0]] = node
        elif node.primitive.name == Gather.name:
            product = makers.get(node.inputs[0])
            if product is not None and _is_pick(node, product):
                picks.setdefault(node.inputs[0], set()).update(node.outputs)
    chosen: set[Any] = set()
    for value, outputs in picks.items():
        if not _are_compared(graph, makers[value], outputs):
            chosen |= outputs
    if not chosen:
        return graph
    nodes: list[Node] = []
    for node in graph.nodes:
        picked = not chosen.isdisjoint(node.outputs)
        nodes += _picked(node, makers[node.inputs[0]], makers) if picked else [node]
    return graph.replace(nodes=live_nodes(nodes, graph.outputs))


def _are_compared(graph: Graph, product: Node, picks: set[Any]) -> bool:
    """Returns whether picks are compared with what else is made of their product.

    Who compares them expects equal elements to be equal to the bit. A function that is
    called may do so, too. The product may be written several times.
    """
    elements: set[Any] = {*picks}
    others: set[Any] = set()
    for node in graph.nodes:
        if node.primitive.name == DotGeneral.name and node.inputs == product.inputs:
            others.update(node.outputs)
        if not picks.isdisjoint(node.outputs):
            continue
        of_picks = not elements.isdisjoint(node.inputs)
        of_others = not others.isdisjoint(node.inputs)
        compares = isinstance(node.primitive, Comparison) or subgraphs(node.params)
        if of_picks and of_others and compares:
            return True
        if of_picks and isinstance(node.primitive, Elementwise | Structural):
            elements.update(node.outputs)
        if of_others:
            others.update(node.outputs)
    return False


def _is_pick(node: Node, product: Node) -> bool:
    """Returns whether one element is read of each line of a product with a matrix."""
    if product.primitive.name != DotGeneral.name:
        return False
    x, indices = (atom.aval for atom in node.inputs)
    rows, matrix = (atom.aval for atom in product.inputs)
    if any(a.is_symbolic for a in (x, indices)) or matrix.ndim != 2:
        return False
    (summed, _), (batch, _) = product.params["dimension_numbers"]
    numbers: GatherDimensionNumbers = node.params["dimension_numbers"]
    lines = tuple(range(x.ndim - 1))
    return bool(
        {rows.dtype, matrix.dtype, x.dtype} == {dtypes.float32}
        and not batch
        and summed == (rows.ndim - 1,)
        and numbers.operand_batching_dims == lines
        and numbers.start_indices_batching_dims == lines
        and numbers.start_index_map == (x.ndim - 1,)
        and indices.size == x.size // x.shape[-1]
        and node.params["slice_sizes"][-1] == 1
        and node.params["fill_value"] is None
        and x.size >= _LEAST
        and rows.shape[-1]
        and x.shape[-1] >= _MANY * rows.shape[-1]
    )


def _picked(node: Node, product: Node, makers: dict[Any, Node]) -> list[Node]:
    """Returns nodes that multiply each row by the one that its index says."""
    rows, matrix = product.inputs
    (_, (summed,)), _ = product.params["dimension_numbers"]
    turned = makers.get(matrix)
    if (
        turned is not None
        and turned.primitive.name == Transpose.name
        and turned.params["permutation"] == (1, 0)
    ):
        # XLA would write the transposed matrix to read rows of it.
        matrix, summed = turned.inputs[0], 1 - summed
    (out,) = node.outputs

    def compute(rows: Any, matrix: Any, indices: Any) -> Any:
        *lines, length = rows.shape
        picked = 1 - summed
        sizes = tuple(1 if axis == picked else length for axis in range(2))
        found = gather(
            matrix,
            reshape(indices, (*lines, 1)),
            GatherDimensionNumbers((len(lines),), (picked,), (picked,)),
            sizes,
            mode=node.params["mode"],
        )
        sums = ReduceSum.bind(mul(rows, found), axes=(len(lines),))
        return reshape(sums, out.aval.shape)

    return computed(node, compute, [rows, matrix, node.inputs[1]]) or [node]
