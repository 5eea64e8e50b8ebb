"""Join scatters: updates of one array, one after the other, become one scatter.

`out.at[i].add(a).at[j].add(b)` is two scatters, and XLA:CPU copies the whole array
between them; one scatter at the indices of both copies nothing. It adds, multiplies or
compares the same updates in the same order, so on the CPU the result is the same to the
bit. Plain writes stay apart: which of two wins is promised nowhere.

The gradient of a table that is read at several places is a sum of arrays of zeros with
updates added to each: these become one such array, in the order of the sum.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from fxflow.core.ir.graph import Graph, Literal, Node, Var, live_nodes
from fxflow.lax.broadcasting import BroadcastInDim
from fxflow.lax.concatenation import Concatenate
from fxflow.lax.conversion import ConvertElementType
from fxflow.lax.elementwise import Add
from fxflow.lax.gather_scatter.dimension_numbers import ScatterDimensionNumbers
from fxflow.lax.gather_scatter.scatter import COMMUTING, ScatterAdd
from fxflow.lax.reshaping import Reshape
from fxflow.transforms.passes.rewriting import made, uses


def join_scatters(graph: Graph) -> Graph:
    """Returns the graph with scatters into one array joined.

    Args:
      graph: of any operations; graphs inside are left as they are.
    """
    if sum(node.primitive.name in COMMUTING for node in graph.nodes) < 2:
        return graph
    counts = uses(graph.nodes, graph.outputs)
    zeros: set[Any] = set()
    # For each value that scatters make of an array: these scatters, in order.
    groups: dict[Any, list[Node]] = {}
    for node in graph.nodes:
        name = node.primitive.name
        if name == BroadcastInDim.name and _is_zero(node.inputs[0]):
            zeros.add(node.outputs[0])
        elif name in COMMUTING and _is_plain(node):
            x = node.inputs[0]
            before = groups.get(x, []) if counts[x] == 1 else []
            if before and _alike(before[0], node):
                del groups[x]
            else:
                before = []
            groups[node.outputs[0]] = [*before, node]
        elif name == Add.name:
            sides = [groups.get(a, []) if counts[a] == 1 else [] for a in node.inputs]
            both = [*sides[0], *sides[1]]
            if (
                all(sides)
                and all(_adds_to(side[0], zeros) for side in sides)
                and all(_alike(both[0], other) for other in both)
            ):
                for atom in node.inputs:
                    del groups[atom]
                groups[node.outputs[0]] = both
    groups = {var: group for var, group in groups.items() if len(group) > 1}
    if not groups:
        return graph
    nodes: list[Node] = []
    for node in graph.nodes:
        group = groups.get(node.outputs[0]) if len(node.outputs) == 1 else None
        nodes += [node] if group is None else _joined(group, node)
    # What was joined is read by nothing any more.
    return graph.replace(nodes=live_nodes(nodes, graph.outputs))


def _is_zero(atom: Any) -> bool:
    return type(atom) is Literal and not np.any(np.asarray(atom.value))


def _adds_to(scatter: Node, zeros: set[Any]) -> bool:
    """Returns whether a scatter adds to an array of zeros."""
    return scatter.primitive.name == ScatterAdd.name and scatter.inputs[0] in zeros


def _is_plain(scatter: Node) -> bool:
    """Returns whether the slices of a scatter can be listed along one axis."""
    numbers: ScatterDimensionNumbers = scatter.params["dimension_numbers"]
    x, indices, updates = (atom.aval for atom in scatter.inputs)
    outer = indices.ndim - 1
    last = tuple(range(outer, updates.ndim))
    return (
        bool(x.size and updates.size)
        and numbers.update_window_dims == last
        and not numbers.operand_batching_dims
    )


def _alike(first: Node, other: Node) -> bool:
    """Returns whether two scatters do the same with slices of the same shape."""
    if first.primitive.name != other.primitive.name:
        return False
    if first.params["mode"] is not other.params["mode"]:
        return False
    return _flat_numbers(first) == _flat_numbers(other) and _window(first) == _window(
        other
    )


def _window(scatter: Node) -> tuple[int, ...]:
    """Returns the shape of the slices."""
    outer = scatter.inputs[1].aval.ndim - 1
    shape: tuple[int, ...] = scatter.inputs[2].aval.shape
    return shape[outer:]


def _flat_numbers(scatter: Node) -> ScatterDimensionNumbers:
    """Returns the dimension numbers for slices listed along one axis."""
    numbers: ScatterDimensionNumbers = scatter.params["dimension_numbers"]
    window = tuple(range(1, 1 + len(_window(scatter))))
    return replace(numbers, update_window_dims=window)


def _joined(group: list[Node], last: Node) -> list[Node]:
    """Returns the nodes that compute the result of `last` by one scatter."""
    nodes: list[Node] = []

    def add(node: Node) -> Var:
        nodes.append(node)
        return node.outputs[0]

    # Indices may be of several dtypes: the widest holds all.
    integer = np.result_type(*(n.inputs[1].aval.dtype for n in group))
    if not np.issubdtype(integer, np.integer):
        return [last]
    indices: list[Any] = []
    updates: list[Any] = []
    for node in group:
        _, at, new = node.inputs
        count = math.prod(at.aval.shape[:-1])
        for atom, shape, into in (
            (at, (count, at.aval.shape[-1]), indices),
            (new, (count, *_window(node)), updates),
        ):
            if atom.aval.shape != shape:
                atom = add(made(node, Reshape, [atom], {"new_sizes": shape}))
            into.append(atom)
        if at.aval.dtype != integer:
            params = {"new_dtype": integer, "weak_type": False}
            indices[-1] = add(made(node, ConvertElementType, indices[-1:], params))
    joined = [
        add(made(last, Concatenate, parts, {"dimension": 0}))
        for parts in (indices, updates)
    ]
    first = group[0]
    params = first.params | {
        "dimension_numbers": _flat_numbers(first),
        "indices_are_sorted": False,
        "unique_indices": False,
    }
    inputs = [first.inputs[0], *joined]
    nodes.append(last.replace(primitive=first.primitive, inputs=inputs, params=params))
    return nodes
