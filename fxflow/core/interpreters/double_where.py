"""Says where a nan in a derivative is from if a `where` hid an infinite slope.

The derivative of `where(x > 0, f(x), 0)` multiplies the slope of `f` by 0 where the
other case is selected, and 0 times infinity is nan. This looks for such a pair, an
operation and the selection that its result went through, once a nan has been found.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow._config import config
from fxflow.core import source
from fxflow.core.arrays import Array, dtypes, host_of
from fxflow.core.ir.graph import Graph, Literal, Node, Var, bound
from fxflow.errors import NonFiniteError

#: What is said of the lines of an operation and of a selection.
DOUBLE_WHERE = (
    "This is a double where: the derivative of the operation at {} is infinite where "
    "its result is not selected at {}, and 0 times infinity is nan. Let the operation "
    "see safe operands only: lax.masked(condition, function, x), or "
    "where(condition, x, 1) in its argument"
)


def explained(error: NonFiniteError, place: Any, where: Any) -> NonFiniteError:
    """Returns an error that names both lines.

    Args:
      error: that of the nan.
      place: the source of the operation whose slope is infinite.
      where: the source of the selection.
    """
    lines = source.describe(place), source.describe(where)
    return NonFiniteError(f"{error}. {DOUBLE_WHERE.format(*lines)}")


def selection_after(node: Node, nodes: Sequence[Node]) -> Node | None:
    """Returns the first selection on a tape that depends on the results of a node."""
    reached = set(node.outputs)
    at = next(i for i, n in enumerate(nodes) if n is node)
    for later in nodes[at + 1 :]:
        if not any(type(a) is Var and a in reached for a in later.inputs):
            continue
        if later.primitive.name == "select_n":
            return later
        reached.update(later.outputs)
    return None


def pair_in(graph: Graph, args: Sequence[Any]) -> tuple[Any, Any] | None:
    """Returns the sources of such a pair in a program that gives nan, or None.

    Args:
      graph: of the program with its derivative.
      args: the values of its inputs.
    """
    with config.override(debug_nans=False, debug_infs=False):
        return _pair_in(graph, args)


def _pair_in(graph: Graph, args: Sequence[Any]) -> tuple[Any, Any] | None:
    values: dict[Any, Any] = dict(zip(graph.inputs, args, strict=True))
    made: dict[Any, Node] = {}
    for node in graph.nodes:
        operands = [a.value if type(a) is Literal else values[a] for a in node.inputs]
        outs = bound(node, operands)
        values.update(zip(node.outputs, outs, strict=True))
        made.update(dict.fromkeys(node.outputs, node))
        lost = [_nans(out) for out in outs]
        if not any(n.any() for n in lost) or any(_nans(x).any() for x in operands):
            continue
        inner = node.params.get("graph")
        if node.primitive.name == "jit" and inner is not None:
            return _pair_in(inner, operands)
        for atom, x in zip(node.inputs, operands, strict=True):
            zero = _host(x) == 0
            if np.shape(zero) != lost[0].shape or not np.any(zero & lost[0]):
                continue
            where = _selection_before(atom, made)
            if where is not None:
                return node.source, where.source
        return None
    return None


def _selection_before(atom: Any, made: dict[Any, Node]) -> Node | None:
    """Returns the last selection that a value depends on."""
    front = [atom]
    seen: set[Any] = set()
    while front:
        atom = front.pop(0)
        node = None if type(atom) is Literal else made.get(atom)
        if node is None or id(node) in seen:
            continue
        seen.add(id(node))
        if node.primitive.name == "select_n":
            return node
        front.extend(node.inputs)
    return None


def _host(x: Any) -> Any:
    return host_of(x) if isinstance(x, Array) else np.asarray(x)


def _nans(x: Any) -> Any:
    value = _host(x)
    if not dtypes.is_inexact(value.dtype):
        return np.zeros(value.shape, bool)
    return np.isnan(value)
