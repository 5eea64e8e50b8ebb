"""The largest elements of long rows: of the chunks that have the largest maxima.

XLA compares each element of a row with the least of those that it has so far. The `k`
largest elements are in the `k` chunks of a row whose maxima are the largest, so the
maxima, which a kernel finds (`rows`), and the elements of these chunks are enough.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fxflow.core.ir.graph import Graph, Node, renamed
from fxflow.core.ir.staging import trace_closed
from fxflow.devices.native import vector_lanes
from fxflow.lax.bitcasting import bitcast_convert_type
from fxflow.lax.bitwise import bitwise_xor
from fxflow.lax.comparison import lt
from fxflow.lax.elementwise import add, div, mul, rem
from fxflow.lax.gather_scatter.dimension_numbers import (
    GatherDimensionNumbers,
    GatherScatterMode,
)
from fxflow.lax.gather_scatter.gather import gather, take_along
from fxflow.lax.reduction import reduce_max
from fxflow.lax.reshaping import reshape
from fxflow.lax.select import select
from fxflow.lax.sort import TopK, sort, top_k
from fxflow.transforms.passes import rewriting
from fxflow.transforms.passes.rewriting import written_out

#: Elements of a row for each one that is wanted, from which on chunks are faster.
_LEAST = 500
_CHUNKS = GatherDimensionNumbers(
    offset_dims=(2,),
    collapsed_slice_dims=(1,),
    start_index_map=(1,),
    operand_batching_dims=(0,),
    start_indices_batching_dims=(0,),
)
#: Elements of a chunk.
_SHORTEST, _LONGEST = 16, 128


def select_by_chunks(graph: Graph) -> Graph:
    """Returns the graph with the largest elements of long rows found by chunks.

    Args:
      graph: of any operations; graphs inside are left as they are.
    """
    if TopK.name not in graph.facts.names or not vector_lanes():
        return graph
    nodes: list[Node] = []
    names: dict[Any, Any] = {}
    for node in graph.nodes:
        if names:
            node = node.replace(inputs=renamed(node.inputs, names))
        length = _chunk(node) if node.primitive.name == TopK.name else None
        if length is None:
            nodes.append(node)
            continue
        made = _by_chunks(node, length)
        if made.out_avals != [v.aval for v in node.outputs]:
            nodes.append(node)
            continue
        copied, results = written_out(made, node.inputs)
        nodes += [n.replace(source=node.source, scope=node.scope) for n in copied]
        names.update(zip(node.outputs, results, strict=True))
    if not names:
        return graph
    return graph.replace(nodes=nodes, outputs=renamed(graph.outputs, names))


def _chunk(node: Node) -> int | None:
    """Returns the length of the chunks of a row; None: XLA is as fast."""
    aval, k = node.inputs[0].aval, node.params["k"]
    if aval.dtype != np.float32 or aval.is_symbolic or not k:
        return None
    n = aval.shape[-1]
    if node.params["axis"] != aval.ndim - 1 or n < _LEAST * k:
        return None
    if aval.size < rewriting.LEAST:
        return None
    # As many maxima are compared as elements of chosen chunks.
    best = math.sqrt(n / k)
    lengths = [c for c in range(_SHORTEST, _LONGEST + 1) if n % c == 0]
    return min(lengths, key=lambda c: abs(math.log(c / best)), default=None)


def _by_chunks(node: Node, length: int) -> Graph:
    aval, k = node.inputs[0].aval, node.params["k"]
    count = aval.shape[-1] // length
    rows = aval.size // aval.shape[-1]
    size = np.int32(length)

    def find(x: Any) -> list[Any]:
        chunks = reshape(x, (rows, count, length))
        # Maxima of integers that are ordered as `top_k` orders floats.
        bits = reduce_max(_ordered(bitcast_convert_type(chunks, np.int32)), (2,))
        tops = bitcast_convert_type(_ordered(bits), np.float32)
        # Equal elements stay in the order of the row.
        chosen = sort(top_k(tops, k)[1])
        taken = gather(
            chunks,
            reshape(chosen, (rows, k, 1)),
            _CHUNKS,
            (1, 1, length),
            mode=GatherScatterMode.PROMISE_IN_BOUNDS,
        )
        values, at = top_k(reshape(taken, (rows, k * length)), k)
        chunk = take_along(chosen, div(at, size), 1)
        order = add(mul(chunk, size), rem(at, size))
        shape = (*aval.shape[:-1], k)
        return [reshape(values, shape), reshape(order, shape)]

    return trace_closed(find, [aval], name=TopK.name)


def _ordered(bits: Any) -> Any:
    """Returns the bits of floats as integers in the total order; and the way back."""
    return select(lt(bits, np.int32(0)), bitwise_xor(bits, np.int32(2**31 - 1)), bits)
