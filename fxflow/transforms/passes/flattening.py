"""Flat products: a large result of several axes of rows is computed with one.

XLA multiplies `(20, 16, n) @ (n, m)` as a product of 320 rows, and computes what
follows with the axes that it was written with. An array of one shape does not take the
place of one of another, so each step from one form to the other costs as much memory
again. Here what is computed element by element from such a product stays flat.

So are gradients of matrices, sums over all axes of rows, products of flat arrays: with
one axis XLA multiplies the transposed rows as they lie, with several it writes them
anew first, column by column.
"""

from __future__ import annotations

import math
from typing import Any

from fxflow.core.ir.graph import Graph, Literal, Node, live_nodes
from fxflow.lax.broadcasting import BroadcastInDim
from fxflow.lax.dot import DotGeneral
from fxflow.lax.families import Elementwise
from fxflow.lax.reduction import Reduction
from fxflow.lax.reshaping import Reshape
from fxflow.lax.select import SelectN
from fxflow.transforms.passes.rewriting import made

#: Elements of a product from which it matters.
_LARGE = 1 << 16


def flatten_products(graph: Graph) -> Graph:
    """Returns the graph with large products of several axes of rows flattened.

    Args:
      graph: of any operations; graphs inside are left as they are.
    """
    if not any(_is_large(node) for node in graph.nodes):
        return graph
    work = _Flattening()
    for node in graph.nodes:
        work.note(node)
        if not (work.product(node) or work.rest(node)):
            work.nodes.append(node)
    return graph.replace(nodes=live_nodes(work.nodes, graph.outputs))


def _is_large(node: Node) -> bool:
    """Returns whether a node multiplies rows along several axes by a matrix."""
    if node.primitive.name != DotGeneral.name:
        return False
    rows, matrix = (atom.aval for atom in node.inputs)
    out = node.outputs[0].aval
    (summed, _), (batch, _) = node.params["dimension_numbers"]
    return bool(
        not batch
        and rows.ndim > 2
        and matrix.ndim == 2
        and summed == (rows.ndim - 1,)
        and not out.is_symbolic
        and not rows.is_symbolic
        and out.size >= _LARGE
    )


class _Flattening:
    """A graph that is being rewritten.

    Attributes:
      nodes: so far.
      flat: for values of several axes of rows, the same with one.
      repeated: for values that are one number along each row, these numbers.
    """

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.flat: dict[Any, Any] = {}
        self.repeated: dict[Any, Any] = {}

    def step(self, like: Node, primitive: Any, *inputs: Any, **params: Any) -> Any:
        """Adds a node; returns its result."""
        self.nodes.append(made(like, primitive, inputs, params))
        return self.nodes[-1].outputs[0]

    def rows(self, like: Node, atom: Any) -> Any:
        """Returns a value with one axis of rows."""
        if atom not in self.flat:
            *lines, length = atom.aval.shape
            sizes = (math.prod(lines), length)
            repeated = self.repeated.get(atom)
            if repeated is not None:  # one number for each row
                numbers = self.step(like, Reshape, repeated, new_sizes=sizes[:1])
                params = {"shape": sizes, "broadcast_dimensions": (0,)}
                self.flat[atom] = self.step(like, BroadcastInDim, numbers, **params)
            else:
                self.flat[atom] = self.step(like, Reshape, atom, new_sizes=sizes)
        return self.flat[atom]

    def note(self, node: Node) -> None:
        """Remembers what repeats a number for each row along the row."""
        if node.primitive.name != BroadcastInDim.name:
            return
        (number,), (out,) = node.inputs, node.outputs
        lines = out.aval.shape[:-1]
        given = number.aval.shape
        in_order = node.params["broadcast_dimensions"] == tuple(range(len(given)))
        if in_order and given in (lines, (*lines, 1)) and len(lines) > 1:
            self.repeated[out] = number

    def define(self, node: Node, value: Any) -> bool:
        """Makes a node's result of a flat one."""
        (out,) = node.outputs
        shaped = made(node, Reshape, [value], {"new_sizes": out.aval.shape})
        self.nodes.append(shaped.replace(outputs=[out]))
        return True

    def product(self, node: Node) -> bool:
        """Flattens a product, if it is large or one with something flat."""
        if node.primitive.name != DotGeneral.name:
            return False
        lhs, rhs = node.inputs
        (lc, rc), (batch, _) = node.params["dimension_numbers"]
        if _is_large(node) or (
            lhs in self.flat
            and not batch
            and rhs.aval.ndim == 2
            and lc == (lhs.aval.ndim - 1,)
        ):
            params = node.params | {"dimension_numbers": (((1,), rc), ((), ()))}
            value = self.step(node, DotGeneral, self.rows(node, lhs), rhs, **params)
            self.flat[node.outputs[0]] = value
            return self.define(node, value)
        lines = tuple(range(lhs.aval.ndim - 1))
        if (
            (lhs in self.flat or rhs in self.flat)
            and lhs.aval.ndim == rhs.aval.ndim
            and not batch
            and lc == rc == lines
        ):
            params = node.params | {"dimension_numbers": (((0,), (0,)), ((), ()))}
            sides = [self.rows(node, lhs), self.rows(node, rhs)]
            self.nodes.append(
                made(node, DotGeneral, sides, params).replace(outputs=node.outputs)
            )
            return True
        return False

    def rest(self, node: Node) -> bool:
        """Flattens what is computed of something flat, by elements or by lines."""
        found = [a for a in node.inputs if type(a) is not Literal and a in self.flat]
        if not found or len(node.outputs) != 1:
            return False
        primitive, shape = node.primitive, found[0].aval.shape
        if isinstance(primitive, Reduction) and node.params == {
            "axes": (len(shape) - 1,)
        }:
            (operand,) = node.inputs
            value = self.step(node, primitive, self.flat[operand], axes=(1,))
            return self.define(node, value)
        if not isinstance(primitive, Elementwise) and primitive.name != SelectN.name:
            return False
        if any(a.aval.ndim and a.aval.shape != shape for a in node.inputs):
            return False
        inputs = [self.rows(node, a) if a.aval.ndim else a for a in node.inputs]
        value = self.step(node, primitive, *inputs, **node.params)
        self.flat[node.outputs[0]] = value
        return self.define(node, value)
