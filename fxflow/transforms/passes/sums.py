"""Scatter into sums: what adds to a few slices of an array reads and writes only these.

The gradient of a table of which a step reads some rows is an array of zeros with
updates added to those, and `table - rate * gradient` goes through the table three times
more. It is the same as `table.at[rows].add(-rate * updates)`. So is the gradient of a
loss of one logit of many that is added to another one.

No sum changes by a bit: updates of one slice are added up first, as among the zeros.

Where an array is computed element by element, one element of each line is added to it
while it is: XLA does both at once, in place.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from fxflow.core.arrays import Aval
from fxflow.core.ir.graph import Graph, Literal, Node, live_nodes
from fxflow.lax.broadcasting import BroadcastInDim, broadcast_in_dim
from fxflow.lax.comparison import eq
from fxflow.lax.creation import broadcasted_iota, full, iota
from fxflow.lax.elementwise import Add, Div, Mul, Neg, Sub, add, neg
from fxflow.lax.families import Elementwise
from fxflow.lax.gather_scatter.dimension_numbers import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
)
from fxflow.lax.gather_scatter.gather import gather
from fxflow.lax.gather_scatter.scatter import ScatterAdd, scatter_add, scatter_min
from fxflow.lax.reshaping import reshape
from fxflow.lax.select import select
from fxflow.transforms.passes.rewriting import computed, uses

#: Elements of an array from which it is worth the more operations
#: (docs/design/0017-sparse-sums.md).
_LEAST = 1 << 15
#: At most one element in this many of the array is updated.
_FEW = 4


class _Sparse(NamedTuple):
    """Zeros with slices added, and what is done to all of it behind.

    Attributes:
      scatter: what adds the slices.
      path: multiplications by numbers, in order.
    """

    scatter: Node
    path: tuple[tuple[Any, Literal | None], ...] = ()


def scatter_sums(graph: Graph) -> Graph:
    """Returns the graph with sums of an array and a sparse one made by scatters.

    Args:
      graph: of any operations; graphs inside are left as they are.
    """
    counts = uses(graph.nodes, graph.outputs)
    # Numbers, and arrays that hold one number only.
    numbers: dict[Any, Literal] = {}
    sparse: dict[Any, _Sparse] = {}
    elementwise: set[Any] = set()
    nodes: list[Node] = []
    changed = False
    for node in graph.nodes:
        made, out = [node], node.outputs[0] if len(node.outputs) == 1 else None
        name = node.primitive.name
        if name == BroadcastInDim.name and type(node.inputs[0]) is Literal:
            numbers[out] = node.inputs[0]
        elif name == ScatterAdd.name:
            if _is_zero(numbers.get(node.inputs[0])) and _is_small(node):
                sparse[out] = _Sparse(node)
        elif name in (Mul.name, Div.name, Neg.name):
            scaled = _scaled(node, sparse, numbers)
            if scaled is not None:
                sparse[out] = scaled
        elif name in (Add.name, Sub.name):
            made = _sum(node, sparse, elementwise) or made
            changed = changed or made[0] is not node
        if isinstance(node.primitive, Elementwise):
            elementwise.add(out)
        # Who else reads it needs it as an array.
        if counts[out] != 1:
            sparse.pop(out, None)
        nodes += made
    if not changed:
        return graph
    return graph.replace(nodes=live_nodes(nodes, graph.outputs))


def _is_zero(number: Literal | None) -> bool:
    return number is not None and not np.any(np.asarray(number.value))


def _is_small(scatter: Node) -> bool:
    """Returns whether a scatter adds few enough slices, and of a known kind."""
    x, _, updates = (atom.aval for atom in scatter.inputs)
    if x.is_symbolic or updates.is_symbolic:
        return False
    if x.size < _LEAST or _FEW * updates.size > x.size:
        return False
    return _is_distinct(scatter) or _adds_rows(scatter)


def _is_distinct(scatter: Node) -> bool:
    """Returns whether no element is written twice: each line has one index, if any."""
    numbers: ScatterDimensionNumbers = scatter.params["dimension_numbers"]
    lengths = scatter.inputs[1].aval.shape[:-1]
    lines = numbers.scatter_indices_batching_dims
    return bool(scatter.params["unique_indices"]) or all(
        n == 1 or d in lines for d, n in enumerate(lengths)
    )


def _adds_rows(scatter: Node) -> bool:
    """Returns whether each index is that of a whole row."""
    numbers: ScatterDimensionNumbers = scatter.params["dimension_numbers"]
    x, indices, updates = (atom.aval for atom in scatter.inputs)
    outer = indices.ndim - 1
    return bool(
        numbers.inserted_window_dims == (0,)
        and numbers.scatter_dims_to_operand_dims == (0,)
        and numbers.update_window_dims == tuple(range(outer, updates.ndim))
        and updates.shape[outer:] == x.shape[1:]
    )


def _scaled(
    node: Node, sparse: dict[Any, _Sparse], numbers: dict[Any, Literal]
) -> _Sparse | None:
    """Returns the sparse array that a node makes of another by a number, or None."""
    found = [sparse.get(atom) for atom in node.inputs]
    if node.primitive.name == Neg.name:
        (value,) = found
        return value and value._replace(path=(*value.path, (node.primitive, None)))
    by = [a if type(a) is Literal else numbers.get(a) for a in node.inputs]
    for value, factor in ((found[0], by[1]), (found[1], by[0])):
        if value is None or factor is None:
            continue
        number = np.asarray(factor.value)
        # Zero times it, or zero divided by it, is zero.
        if not np.isfinite(number) or not number.any():
            return None
        if node.primitive.name == Div.name and value is not found[0]:
            return None
        return value._replace(path=(*value.path, (node.primitive, factor)))
    return None


def _sum(node: Node, sparse: dict[Any, _Sparse], elementwise: set[Any]) -> list[Node]:
    """Returns nodes that add slices to one operand of a sum, or none."""
    left, right = node.inputs
    minus = node.primitive.name == Sub.name
    if right in sparse:
        x, value = left, sparse[right]
    elif left in sparse and not minus:
        x, value = right, sparse[left]
    else:
        return []
    (out,) = node.outputs
    if x.aval.shape != out.aval.shape or x.aval.dtype != out.aval.dtype:
        return []
    scatter = value.scatter
    selects = x in elementwise and _adds_to_lines(scatter)

    def compute(x: Any, indices: Any, updates: Any) -> Any:
        params = dict(scatter.params)
        if not _is_distinct(scatter):
            indices, updates = _added_up(x.aval, indices, updates, params["mode"])
            params["dimension_numbers"] = _rows(x.aval)
        for primitive, factor in value.path:
            more = () if factor is None else (factor.array,)
            updates = primitive.bind(updates, *more)
        if minus:
            updates = neg(updates)
        if selects:
            return add(x, _in_lines(x.aval, indices, updates))
        return ScatterAdd.bind(x, indices, updates, **params)

    return computed(node, compute, [x, *scatter.inputs[1:]])


def _added_up(
    x: Aval, indices: Any, updates: Any, mode: GatherScatterMode
) -> tuple[Any, Any]:
    """Returns a list of indices, and updates of which one alone is not zero for each.

    Updates of one row are added where its index comes first, in their order.
    """
    count = math.prod(indices.shape[:-1])
    indices = reshape(indices, (count, 1))
    updates = reshape(updates, (count, *x.shape[1:]))
    line = full((x.shape[0],), count, np.int32)
    order = iota(np.int32, count)
    places = scatter_min(line, indices, order, _rows(line.aval), mode=mode)
    clips = mode is GatherScatterMode.CLIP
    first = gather(
        places,
        indices,
        GatherDimensionNumbers((), (0,), (0,)),
        (1,),
        mode=mode if clips else GatherScatterMode.FILL_OR_DROP,
        fill_value=None if clips else count,  # outside: dropped below
    )
    sums = scatter_add(
        full(updates.shape, 0, updates.dtype),
        reshape(first, (count, 1)),
        updates,
        _rows(updates.aval),
    )
    return indices, sums


def _adds_to_lines(scatter: Node) -> bool:
    """Returns whether an index says one element of each line of the last axis."""
    numbers: ScatterDimensionNumbers = scatter.params["dimension_numbers"]
    x, indices, _ = (atom.aval for atom in scatter.inputs)
    lines = tuple(range(x.ndim - 1))
    return bool(
        numbers.operand_batching_dims == lines
        and numbers.scatter_indices_batching_dims == lines
        and numbers.inserted_window_dims == (x.ndim - 1,)
        and indices.size == x.size // x.shape[-1]
        and indices.dtype == np.int32
        and scatter.params["mode"] is not GatherScatterMode.CLIP
    )


def _in_lines(x: Aval, indices: Any, updates: Any) -> Any:
    """Returns zeros but for an update in each line, to be fused with something else."""
    lines = x.shape[:-1]
    axes = tuple(range(x.ndim - 1))
    at, new = (
        broadcast_in_dim(reshape(value, lines), x.shape, axes)
        for value in (indices, updates)
    )
    found = eq(at, broadcasted_iota(np.int32, x.shape, x.ndim - 1))
    return select(found, new, np.zeros((), x.dtype))


def _rows(x: Aval) -> ScatterDimensionNumbers:
    """Returns the dimension numbers for a list of rows."""
    return ScatterDimensionNumbers(tuple(range(1, x.ndim)), (0,), (0,))
