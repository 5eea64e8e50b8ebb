"""Masking: a graph whose effects happen only where a flag holds.

A vectorized condition runs every branch for all rows, and a vectorized loop runs until
the last row is done. A selection keeps values right, but nothing undoes an effect: a
callback must not run for a row that takes another branch or whose loop has ended. So
the graph of such a branch or body takes a flag first, whether the row takes part, and
hands it to the operations with effects (`Primitive.masked`), also within inner graphs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from fxflow.core.arrays import Aval, typeof
from fxflow.core.ir import arith
from fxflow.core.ir.graph import Graph, Node, bound, interpret
from fxflow.core.ir.higher_order import zeros_graph
from fxflow.core.ir.primitive import Primitive, table
from fxflow.core.ir.staging import trace_closed
from fxflow.core.ir.trace import state

_FLAG = Aval((), np.dtype(np.bool_))


def masked_graph(graph: Graph) -> Graph:
    """Returns a graph with a first input more: whether its effects happen (bool[]).

    Where they do not, results of operations with effects are zeros.
    """
    # What rules look up while they are traced belongs to the key.
    key = ("masked", state.axes, state.spmd)
    return graph.remembered(
        key,
        lambda: trace_closed(
            lambda active, *values: interpret(graph, values, partial(_step, active)),
            [_FLAG, *graph.in_avals],
            name=graph.name,
        ),
    )


def _step(active: Any, node: Node, values: list[Any]) -> Sequence[Any]:
    if not node.effects:
        return bound(node, values)
    return bound(node, values, partial(_masked, node.primitive, active))


def _masked(primitive: Primitive, active: Any, *args: Any, **params: Any) -> Any:
    """Binds an operation with effects, which happen where `active` holds."""
    known = primitive.masked(active, args, params)
    if known is not None:
        return known

    def call(*values: Any) -> Any:
        out: Any = primitive.bind(*values, **params)
        return out if primitive.multi else [out]

    run = trace_closed(call, list(map(typeof, args)), name=primitive.name)
    index = arith.cast(active, np.dtype(np.int32))
    branches = (zeros_graph(run), run)
    outs: Any = table["cond_in_turn"].bind(index, *args, branches=branches)
    return outs if primitive.multi else outs[0]
