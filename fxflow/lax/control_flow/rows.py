"""Rows of a vectorized branch or loop: which take part, and what the others compute.

Every row runs what some row runs. The results of the others are not selected, but a
loop must end for them too. So where a loop is inside, they are given the operands of a
row that takes part: then they end when it does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow.core.arrays import dtypes, typeof
from fxflow.core.interpreters.batching import materialize
from fxflow.core.ir.graph import Graph
from fxflow.core.ir.primitive import Flags, Values, table
from fxflow.core.spmd.varying import divided_as
from fxflow.lax.arg_extremum import argmax
from fxflow.lax.dynamic_slicing import dynamic_index_in_dim


def has_loop(graph: Graph) -> bool:
    """Returns whether a graph may never end: whether it has a `while` anywhere."""
    return "while" in graph.facts.names


def has_scan(graph: Graph) -> bool:
    """Returns whether a graph has a `scan` anywhere."""
    return "scan" in graph.facts.names


def any_row(mask: Any) -> Any:
    """Returns whether a mask (bool[n]) has a row."""
    return table["reduce_or"].bind(mask, axes=(0,))


def filled(mask: Any, values: Values, mapped: Flags) -> list[Any]:
    """Returns operands in which every row is one row within a mask.

    Args:
      mask: bool[n]; it has a row if there is one.
      values: operands.
      mapped: which of them have a row each; the others stay as they are.
    """
    (size,) = typeof(mask).shape
    if not size:
        return list(values)
    row = argmax(mask, 0, np.int32)

    def repeated(x: Any) -> Any:
        aval = typeof(x)
        # One row cannot be divided as all are, over explicit axes of a mesh.
        whole = divided_as(x, aval.update(layout=None))
        one = dynamic_index_in_dim(whole, row, 0, keepdims=False)
        return divided_as(materialize(one, size, False), aval)

    return [repeated(x) if m else x for x, m in zip(values, mapped, strict=True)]


def select_rows(mask: Any, x: Any, y: Any) -> Any:
    """Returns `x` where a mask over the first axis is true, elsewhere `y`."""
    return select_cases(mask, [y, x])


def select_cases(index: Any, cases: Values) -> Any:
    """Returns for each row the case that an index (or bool) of that row names.

    Args:
      index: bool or i32 `[n]`.
      cases: arrays `[n, ...]` of one type.
    """
    aval = typeof(cases[0])
    if dtypes.is_key(aval.dtype):
        unwrap = table["random_unwrap"]
        data = select_cases(index, [unwrap.bind(case) for case in cases])
        return table["random_wrap"].bind(data, dtype=aval.dtype)
    if aval.ndim > 1:
        index = table["broadcast_in_dim"].bind(
            index, shape=aval.shape, broadcast_dimensions=(0,)
        )
    return table["select_n"].bind(index, *cases)
