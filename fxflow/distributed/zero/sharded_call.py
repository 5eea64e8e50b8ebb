"""Runs a function of unsharded arrays on shards.

An optimizer is written for unsharded arrays: it may compute the norm of all gradients,
use shapes, or treat rows alike. `sharded_call` traces its graph for unsharded arrays,
and runs the graph on this device's pieces, node by node:

- elementwise operations run on the pieces;
- reshapes leave the pieces unchanged, because they are flat, in C order;
- a reduction to one number reduces this device's piece, then over the devices;
- branches and calls run their own graphs in the same way;
- for any other operation the operands are gathered, and each device computes all of it.

So each optimizer gives the same results as on one device, and common optimizers compute
them on the pieces alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Aval, typeof
from fxflow.core.interpreters.calls import GraphCall
from fxflow.core.ir.graph import Graph, Node, interpret
from fxflow.core.ir.staging import trace_flat
from fxflow.distributed.zero.shards import ShardAxis, Sharded, is_sharded, type_of
from fxflow.lax.broadcasting import BroadcastInDim
from fxflow.lax.control_flow.cond import Cond
from fxflow.lax.conversion import ConvertElementType
from fxflow.lax.copying import Copy
from fxflow.lax.families import Elementwise, must_repeat
from fxflow.lax.reduction import ReduceAnd, ReduceMax, ReduceMin, ReduceOr, ReduceSum
from fxflow.lax.reshaping import Reshape
from fxflow.lax.select import SelectN
from fxflow.transforms.arguments import FlatFunction


def sharded_call(
    function: Callable[..., Any], axis: ShardAxis, *trees: Any, name: str
) -> Any:
    """Calls a function of unsharded arrays with sharded ones, inside a `shard_map`.

    Args:
      function: a function of pytrees of arrays.
      axis: the devices.
      *trees: arguments: pytrees of `Sharded`s and of replicated arrays.
      name: the function's name, for messages.

    Returns:
      The function's result: `Sharded`s, and replicated arrays of types that are not
      sharded (`axis.shards`).
    """
    leaves, treedef = tree.flatten(trees, is_sharded)
    flat = FlatFunction(function, treedef, name)
    graph, consts = trace_flat(flat, [type_of(x) for x in leaves], name=name)
    outs = _ShardedRun(axis).graph(graph, [*consts, *leaves])
    return flat.result(outs)


class _ShardedRun:
    """Runs graphs whose values are `Sharded`s and replicated arrays."""

    def __init__(self, axis: ShardAxis) -> None:
        self.axis = axis

    def graph(self, graph: Graph, args: Sequence[Any]) -> list[Any]:
        """Returns the outputs, sharded if their types are."""
        outs = interpret(graph, args, self.node)
        return [
            self.settled(out, aval)
            for out, aval in zip(outs, graph.out_avals, strict=True)
        ]

    def settled(self, value: Any, aval: Aval) -> Any:
        """Returns an output, sharded or replicated by its type, padded with zeros."""
        if not self.axis.shards(aval):
            return self.axis.whole(value)
        if not is_sharded(value):
            return self.axis.cut(value)
        zero = fnp.zeros((), aval.dtype)
        return Sharded(self.axis.filled(value, zero), value.shape)

    # -- nodes -------------------------------------------------------------------------

    def node(self, node: Node, values: list[Any]) -> Sequence[Any]:
        """Returns the results of one operation."""
        primitive: Any = node.primitive  # mypy takes names of primitives for classes
        if any(map(is_sharded, values)):
            outs = self.on_pieces(node, values)
            if outs is not None:
                return outs
        elif primitive is BroadcastInDim and typeof(values[0]).size == 1:
            aval = node.outputs[0].aval
            if self.axis.shards(aval):
                return [self.repeated(values[0], aval)]
        given = [self.axis.whole(v) for v in values]
        out = primitive.bind(*given, **node.params)
        return out if primitive.multi else [out]

    def on_pieces(self, node: Node, values: list[Any]) -> Sequence[Any] | None:
        """Returns the results from the pieces, or None if these are not enough."""
        primitive: Any = node.primitive  # mypy takes names of primitives for classes
        out = node.outputs[0].aval if node.outputs else None
        if primitive in REDUCTIONS and out is not None:
            return self.reduced(node, values[0]) if out.size == 1 else None
        if isinstance(primitive, GraphCall):
            return self.graph(node.params["graph"], values)
        if primitive is Cond:
            return self.branched(node, values)
        if out is None or not self.axis.shards(out):
            return None
        if isinstance(primitive, Elementwise) or primitive in ONE_BY_ONE:
            shape = out.shape
            pieces = [self.piece(v, shape) for v in values]
            return [Sharded(primitive.bind(*pieces, **node.params), shape)]
        if primitive is Reshape:
            return [Sharded(values[0].flat, out.shape)]
        if primitive is BroadcastInDim and out.size == values[0].size:
            return [Sharded(values[0].flat, out.shape)]  # new axes of length 1
        return None

    def piece(self, value: Any, shape: tuple[int, ...]) -> Any:
        """Returns this device's part of an operand of an elementwise operation."""
        if is_sharded(value):
            return value.flat
        if typeof(value).ndim:
            return self.axis.cut(value).flat
        if not must_repeat(value):
            return value
        return fnp.broadcast_to(value, (self.axis.piece(math.prod(shape)),))

    def repeated(self, value: Any, aval: Aval) -> Sharded:
        """Broadcasts one number to a type."""
        number = fnp.reshape(value, ())
        size = self.axis.piece(aval.size)
        return Sharded(fnp.broadcast_to(number, (size,)), aval.shape)

    def reduced(self, node: Node, value: Sharded) -> list[Any]:
        """Returns a reduction to one number."""
        primitive, aval = node.primitive, node.outputs[0].aval
        identity = fnp.asarray(primitive.identity(aval.dtype), aval.dtype)  # type: ignore[attr-defined]
        filled = self.axis.filled(value, identity)
        own = primitive.bind(filled, axes=(0,))
        total = REDUCTIONS[primitive](own, self.axis.name)
        return [fnp.reshape(total.astype(aval.dtype), aval.shape)]

    def branched(self, node: Node, values: list[Any]) -> list[Any]:
        """Returns the outputs of a `cond` whose branches run on the pieces."""
        index, *operands = values

        def branch(graph: Graph) -> Callable[..., list[Any]]:
            return lambda *args: self.graph(graph, args)

        branches = [branch(graph) for graph in node.params["branches"]]
        outs: list[Any] = lax.switch(self.axis.whole(index), branches, *operands)
        return outs


def _all(x: Any, axis: Any) -> Any:
    return lax.pmin(x.astype(fnp.int32), axis)


def _any(x: Any, axis: Any) -> Any:
    return lax.pmax(x.astype(fnp.int32), axis)


# Reductions, and the collectives that combine the devices' results.
REDUCTIONS: dict[Any, Callable[[Any, Any], Any]] = {
    ReduceSum: lax.psum,
    ReduceMax: lax.pmax,
    ReduceMin: lax.pmin,
    ReduceAnd: _all,
    ReduceOr: _any,
}

# Elementwise primitives that are not in the family `Elementwise`.
ONE_BY_ONE = (ConvertElementType, SelectN, Copy)
