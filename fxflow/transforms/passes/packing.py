"""Products of few rows in loops, with matrices that are packed before the loop.

A step of a recurrent net multiplies a few rows by a matrix that no step changes, and
for so few rows XLA:CPU is slow. Where a kernel of our own can be had (extra `kernels`),
the matrix is brought into the kernel's order once, before the loop, and each step calls
the kernel. XLA computes all else as before.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from fxflow.core.arrays import Aval, dtypes
from fxflow.core.arrays.sizes import is_symbolic
from fxflow.core.ir.graph import Graph, Literal, Node, Var, live_nodes
from fxflow.devices.native import panel_columns
from fxflow.devices.packed_products import TARGET
from fxflow.lax.axis_order import Transpose
from fxflow.lax.control_flow.scan import Scan, ScanParams
from fxflow.lax.dot import DotGeneral
from fxflow.lax.foreign_calls import FfiCall
from fxflow.lax.padding import Pad
from fxflow.lax.remat import inlined
from fxflow.lax.reshaping import Reshape
from fxflow.transforms.passes.rewriting import made

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
    body = inlined(p.graph)
    products = _products(body, p)
    columns = panel_columns() if products else 0
    if not columns:
        return [scan]
    outer: dict[Var, Any] = dict(zip(body.inputs, scan.inputs, strict=True))
    # By matrix and axis: a matrix may be used both ways.
    panels: dict[tuple[Var, int], Var] = {}
    before: list[Node] = []
    inside: list[Node] = []
    for node in body.nodes:
        product = products.get(node.outputs[0])
        if product is None:
            inside.append(node)
            continue
        key = product.matrix, product.axis
        if key not in panels:
            before += _pack(node, outer[product.matrix], product.axis, columns)
            panels[key] = Var(before[-1].outputs[0].aval)
            outer[panels[key]] = before[-1].outputs[0]
        inside += _multiply(node, product, panels[key])
    split = p.num_consts
    inputs = [*body.inputs[:split], *panels.values(), *body.inputs[split:]]
    inside = live_nodes(inside, body.outputs)
    new = replace(
        p,
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
    if is_symbolic(at.shape) or is_symbolic(matrix.aval.shape):
        return None
    count = math.prod(at.shape[:-1])
    if not 0 < count < _FEW or matrix.aval.size < _LEAST or count * length < _ROWS:
        return None
    const, turned = names[matrix]
    return _Product(const, summed[side][0] ^ int(turned), rows, side == 0)


def _pack(like: Node, matrix: Any, axis: int, columns: int) -> list[Node]:
    """Returns nodes that bring a matrix into panels."""
    nodes: list[Node] = []

    def step(primitive: Any, *more: Any, **params: Any) -> None:
        operand = nodes[-1].outputs[0] if nodes else matrix
        nodes.append(made(like, primitive, [operand, *more], params))

    if axis == 1:
        step(Transpose, permutation=(1, 0))
    sums, count = (matrix.aval.shape[i] for i in (axis, 1 - axis))
    panels = -(-count // columns)
    if missing := panels * columns - count:
        zero = Literal(np.float32(0), Aval((), dtypes.float32))
        step(Pad, zero, padding_config=((0, 0, 0), (0, missing, 0)))
    step(Reshape, new_sizes=(sums, panels, columns))
    step(Transpose, permutation=(1, 0, 2))
    # Of three axes XLA would choose their order in memory itself, and change it later.
    step(Reshape, new_sizes=(panels * sums, columns))
    return nodes


def _multiply(node: Node, product: _Product, panels: Var) -> list[Node]:
    """Returns nodes that call the kernel in the place of a product."""
    (result,) = node.outputs
    *outer, sums = product.rows.aval.shape
    columns = result.aval.shape[0 if product.swapped else -1]
    rows = math.prod(outer)
    nodes: list[Node] = []

    def step(primitive: Any, *operands: Any, **params: Any) -> None:
        nodes.append(made(node, primitive, operands, params))

    step(Reshape, product.rows, new_sizes=(rows, sums))
    step(
        FfiCall,
        nodes[-1].outputs[0],
        panels,
        target=TARGET,
        out_avals=(Aval((rows, columns), dtypes.float32),),
        has_side_effect=False,
        vmap_method=None,
        in_layouts=((0, 1), (0, 1)),
        out_layouts=((0, 1),),
        aliases=(),
        config="{}",
        api_version=4,
    )
    if product.swapped:
        step(Transpose, nodes[-1].outputs[0], permutation=(1, 0))
    step(Reshape, nodes[-1].outputs[0], new_sizes=result.aval.shape)
    nodes[-1] = nodes[-1].replace(outputs=[result])
    return nodes
