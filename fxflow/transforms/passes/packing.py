"""Products of few rows in loops, with matrices that are packed before the loop.

A step of a recurrent net multiplies a few rows by a matrix that no step changes, and
for few rows XLA:CPU is slow. Where a kernel of our own can be had (extra `kernels`),
the matrix is brought into the kernel's order once, before the loop, and each step calls
the kernel. XLA computes all else as before.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

from fxflow.core.arrays import dtypes, typeof
from fxflow.core.ir.graph import Graph, Node, Var, live_nodes
from fxflow.devices.contractions import Contraction, LoopAxis, Tile
from fxflow.devices.native import kernel_tile
from fxflow.lax.axis_order import Transpose, transpose
from fxflow.lax.control_flow.scan import Scan, ScanParams
from fxflow.lax.dot import DotGeneral
from fxflow.lax.remat import CALLS, inlined
from fxflow.lax.reshaping import reshape
from fxflow.transforms.passes.contracting import contract, packed
from fxflow.transforms.passes.rewriting import computed, traced

#: Rows from which XLA is as fast (docs/design/0015-packed-products.md).
_FEW = 128
#: Elements of a matrix from which the kernel is faster.
_LEAST = 1 << 12
#: Rows of all steps together from which packing has paid for itself.
_ROWS = 64


def pack_products(graph: Graph) -> Graph:
    """Returns the graph with the small products in its scans left to the kernel.

    Args:
      graph: of any operations; graphs inside are left as they are.
    """
    nodes: list[Node] = []
    for node in graph.nodes:
        if node.primitive.name == Scan.name:
            nodes += _packed(node)
        else:
            nodes.append(node)
    return graph if len(nodes) == len(graph.nodes) else graph.replace(nodes=nodes)


class _Product(NamedTuple):
    """A product that the kernel computes.

    Attributes:
      matrix: of the two operands the one that no step changes.
      axis: of it, which is summed over.
      rows: the other operand, whose last axis is.
      swapped: whether the matrix was the left one.
    """

    matrix: Var
    axis: int
    rows: Var
    swapped: bool


def _packed(scan: Node) -> list[Node]:
    """Returns what packs matrices, and the scan that multiplies by them."""
    p = ScanParams(**scan.params)
    if not p.num_consts:
        return [scan]
    body = inlined(p.graph, CALLS)
    products = _products(body, p)
    tile = kernel_tile() if products else None
    if tile is None:
        return [scan]
    outer: dict[Var, Any] = dict(zip(body.inputs, scan.inputs, strict=True))
    # By matrix and axis: a matrix may be used both ways.
    panels: dict[tuple[Var, int], Var] = {}
    before: list[Node] = []
    inside: list[Node] = []
    for node in body.nodes:
        product = products.get(node.outputs[0]) if node.outputs else None
        if product is None:
            inside.append(node)
            continue
        key = product.matrix, product.axis
        if key not in panels:
            pack = partial(_panels, axis=product.axis, columns=tile.columns)
            nodes, matrix = traced(node, pack, [outer[product.matrix]])
            before += nodes
            panels[key] = Var(matrix.aval)
            outer[panels[key]] = matrix
        count = node.outputs[0].aval.shape[0 if product.swapped else -1]
        multiply = partial(_multiply, count=count, swapped=product.swapped, tile=tile)
        inside += computed(node, multiply, [product.rows, panels[key]]) or [node]
    split = p.num_consts
    inputs = [*body.inputs[:split], *panels.values(), *body.inputs[split:]]
    inside = live_nodes(inside, body.outputs)
    new = p.replace(
        graph=Graph(inputs, inside, body.outputs, p.graph.name),
        num_consts=split + len(panels),
    )
    loop = scan.replace(inputs=[outer[v] for v in inputs], params=vars(new))
    # It does not read matrices any more of which only panels are multiplied.
    return [*before, loop.primitive.dce(loop, [True] * len(loop.outputs))]


def _products(body: Graph, p: ScanParams) -> dict[Var, _Product]:
    """Returns what the kernel is to compute, by name of the result."""
    consts, carry, _ = p.split(body.inputs)
    # Under which names a constant is read, and whether transposed.
    names: dict[Any, tuple[Var, bool]] = {v: (v, False) for v in consts}
    # What another step is waited for. Else a loop is written to need little memory.
    waiting: set[Any] = set(carry)
    found: dict[Var, _Product] = {}
    for node in body.nodes:
        if not waiting.isdisjoint(node.inputs):
            waiting.update(node.outputs)
        if node.primitive.name == Transpose.name and node.inputs[0] in names:
            if node.params["permutation"] == (1, 0):
                matrix, turned = names[node.inputs[0]]
                names[node.outputs[0]] = matrix, not turned
        elif node.primitive.name == DotGeneral.name:
            product = _product(node, names, p.length)
            if product is not None and product.rows in waiting:
                found[node.outputs[0]] = product
    return found


def _product(
    node: Node, names: dict[Any, tuple[Var, bool]], length: int
) -> _Product | None:
    side = int(node.inputs[1] in names)
    matrix, rows = node.inputs[side], node.inputs[1 - side]
    if matrix not in names or rows in names or type(rows) is not Var:
        return None
    (summed, batch), at = node.params["dimension_numbers"], rows.aval
    if batch[0] or summed[1 - side] != (at.ndim - 1,) or matrix.aval.ndim != 2:
        return None
    if any(v.aval.dtype != dtypes.float32 for v in (matrix, rows, node.outputs[0])):
        return None
    if at.is_symbolic or matrix.aval.is_symbolic:
        return None
    count = math.prod(at.shape[:-1])
    if not 0 < count < _FEW or matrix.aval.size < _LEAST or count * length < _ROWS:
        return None
    const, turned = names[matrix]
    return _Product(const, summed[side][0] ^ int(turned), rows, side == 0)


def _panels(matrix: Any, axis: int, columns: int) -> Any:
    return packed(transpose(matrix, (1, 0)) if axis else matrix, columns)


def _multiply(x: Any, panels: Any, *, count: int, swapped: bool, tile: Tile) -> Any:
    """Returns the product of rows and of `count` columns, which lie in panels."""
    *outer, sums = typeof(x).shape
    contraction = Contraction(
        (LoopAxis(math.prod(outer), sums),),
        (LoopAxis(sums, 1, tile.columns),),
        count,
        panel=sums * tile.columns,
    )
    out = reshape(contract(x, panels, contraction, tile), (math.prod(outer), count))
    if swapped:
        return reshape(transpose(out, (1, 0)), (count, *outer))
    return reshape(out, (*outer, count))
