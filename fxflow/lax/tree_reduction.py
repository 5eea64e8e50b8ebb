"""Combining elements in pairs: a balanced tree of whole-array operations.

What XLA reduces in one operation has no derivative by itself; the tree has, from the
derivatives of what combines two elements. It costs O(n) work in O(log n) operations and
keeps the order of the elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from fxflow.core.arrays import typeof
from fxflow.core.interpreters.batching import batch_graph
from fxflow.core.ir.graph import Graph
from fxflow.lax.axes import kept_axes, without
from fxflow.lax.axis_order import transpose
from fxflow.lax.broadcasting import broadcast_in_dim
from fxflow.lax.concatenation import concatenate
from fxflow.lax.reshaping import reshape
from fxflow.lax.slicing import slice as slice_


def apply_elements(graph: Graph, values: Sequence[Any]) -> list[Any]:
    """Applies a graph of 0-d values to arrays, element by element.

    Args:
      graph: of 0-d inputs and outputs.
      values: arrays of one shape.
    """
    shape = typeof(values[0]).shape
    size = math.prod(shape)
    wide, _ = batch_graph(graph, size, (True,) * len(values), force=True)
    outs = wide.evaluate(*(reshape(v, (size,)) for v in values))
    return [reshape(out, shape) for out in outs]


def rows_of(values: Sequence[Any], axes: Sequence[int]) -> list[Any]:
    """Returns arrays with the reduced axes made one, in front, and the others one."""
    rows = []
    for value in values:
        shape = typeof(value).shape
        kept = kept_axes(len(shape), axes)
        length = math.prod(shape[a] for a in axes)
        width = math.prod(shape[a] for a in kept)
        moved = transpose(value, (*axes, *kept))
        rows.append(reshape(moved, (length, width)))
    return rows


def combine_pairs(
    rows: list[Any], combine: Callable[[list[Any], list[Any]], list[Any]]
) -> list[Any]:
    """Combines neighbours until one row is left."""
    length, width = typeof(rows[0]).shape
    while length > 1:
        half = length // 2
        even = [slice_(r, (0, 0), (2 * half, width), (2, 1)) for r in rows]
        odd = [slice_(r, (1, 0), (2 * half, width), (2, 1)) for r in rows]
        pairs = combine(even, odd)
        if length % 2:
            last = [slice_(r, (length - 1, 0), (length, width)) for r in rows]
            pairs = [
                concatenate([pair, rest], 0)
                for pair, rest in zip(pairs, last, strict=True)
            ]
        rows, length = pairs, half + length % 2
    return rows


def tree_reduce(graph: Graph, values: Sequence[Any], axes: Sequence[int]) -> list[Any]:
    """Reduces by a balanced tree of array operations, as derivatives need it.

    Args:
      graph: takes two elements of each array, gives one of each.
      values: arrays, then their 0-d initial values.
      axes: to reduce.
    """
    count = len(values) // 2
    arrays, inits = values[:count], values[count:]
    shape = typeof(arrays[0]).shape
    out_shape = without(shape, axes)
    outs = [broadcast_in_dim(i, out_shape, ()) for i in inits]
    if not all(shape[a] for a in axes):
        return outs
    rows = combine_pairs(
        rows_of(arrays, axes), lambda a, b: apply_elements(graph, [*a, *b])
    )
    return apply_elements(graph, [*outs, *(reshape(r, out_shape) for r in rows)])
