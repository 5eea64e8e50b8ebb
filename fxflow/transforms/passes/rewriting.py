"""What graph passes share: new nodes, and copies of nodes under other names."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from fxflow.core.arrays import dtypes
from fxflow.core.ir.graph import Graph, Node, Var, renamed
from fxflow.core.ir.staging import trace_closed

#: Reductions that `fuse_rows` knows; XLA is slow at the first ones.
SEARCHES = frozenset({"argmax", "argmin"})
REDUCTIONS = SEARCHES | {"reduce_max", "reduce_min", "reduce_sum"}
#: Primitives that are twice as fast in a kernel as in XLA, or more, which calls the
#: C library for each number.
SLOW_IN_XLA = frozenset(
    {
        *("acos", "asin", "atan", "atan2", "cbrt", "cos", "pow", "sin", "sinh"),
        "tan",
    }
)
#: What begins a function of rows.
ROW_STARTS = REDUCTIONS | SLOW_IN_XLA
#: Elements, rows and columns of an array for which a kernel of its rows is faster than
#: XLA (docs/design/0021-gallery.md).
LEAST, _ROWS, _COLUMNS = 1 << 16, 2, 16


def made(
    like: Node, primitive: Any, inputs: Sequence[Any], params: dict[str, Any]
) -> Node:
    """Returns a node whose types are derived, with the line and scope of another.

    Args:
      like: the node that it stands for.
      primitive: what is done.
      inputs: variables and literals.
      params: as bound.
    """
    avals = primitive.out_avals([a.aval for a in inputs], params)
    outputs = [Var(aval) for aval in avals]
    return Node(primitive, inputs, outputs, params, like.source, like.scope)


def uses(nodes: Iterable[Node], outputs: Iterable[Any]) -> Counter[Any]:
    """Returns how often each variable is read by nodes and outputs."""
    found: Counter[Any] = Counter(a for a in outputs if type(a) is Var)
    for node in nodes:
        found.update(a for a in node.inputs if type(a) is Var)
    return found


def written_out(graph: Graph, operands: Sequence[Any]) -> tuple[list[Node], list[Any]]:
    """Copies the nodes of a graph into another.

    Args:
      graph: whose nodes to copy.
      operands: variables and literals of the other graph, one for each input.

    Returns:
      The nodes, with variables of their own, and what the outputs are called.
    """
    names: dict[Var, Any] = dict(zip(graph.inputs, operands, strict=True))
    nodes = []
    for node in graph.nodes:
        outputs = [Var(v.aval) for v in node.outputs]
        nodes.append(node.replace(inputs=renamed(node.inputs, names), outputs=outputs))
        names.update(zip(node.outputs, outputs, strict=True))
    return nodes, renamed(graph.outputs, names)


def traced(
    like: Node, compute: Callable[..., Any], operands: Sequence[Any]
) -> tuple[list[Node], Any]:
    """Returns the nodes that a function makes, and what its result is called.

    Args:
      like: whose line and scope they have.
      compute: of values like operands.
      operands: variables and literals.
    """
    avals = [a.aval for a in operands]
    graph = trace_closed(lambda *xs: [compute(*xs)], avals, name=like.primitive.name)
    nodes, (result,) = written_out(graph, operands)
    return [n.replace(source=like.source, scope=like.scope) for n in nodes], result


def computed(
    like: Node, compute: Callable[..., Any], operands: Sequence[Any]
) -> list[Node]:
    """Returns nodes that compute the one result of another in another way.

    Args:
      like: the node that they stand for.
      compute: gives the result, as the last that it computes, of values like operands.
      operands: variables and literals.

    Returns:
      The nodes; none if the type is another.
    """
    nodes, result = traced(like, compute, operands)
    if result.aval != like.outputs[0].aval:
        return []
    return [*nodes[:-1], nodes[-1].replace(outputs=like.outputs)]


def reduced_axes(node: Node) -> tuple[int, ...]:
    """Returns the axes that a reduction drops."""
    params = node.params
    return tuple(params["axes"]) if "axes" in params else (params["axis"],)


def begins_rows(node: Node) -> bool:
    """Returns whether a node reduces the rows of an array that is large enough."""
    if node.primitive.name not in REDUCTIONS:
        return False
    aval, axes = node.inputs[0].aval, reduced_axes(node)
    count = aval.ndim - len(axes)
    if aval.is_symbolic or not axes or not count or axes != (*range(count, aval.ndim),):
        return False
    rows = math.prod(aval.shape[:count])
    return bool(aval.size >= LEAST and rows >= _ROWS and aval.size >= _COLUMNS * rows)


def begins_chain(node: Node) -> bool:
    """Returns whether a node is a function of a large array that XLA is slow at."""
    if node.primitive.name not in SLOW_IN_XLA or len(node.outputs) != 1:
        return False
    aval = node.outputs[0].aval
    narrow = dtypes.is_floating(aval.dtype) and aval.dtype.itemsize <= 4
    return bool(narrow and not aval.is_symbolic and aval.size >= LEAST)
