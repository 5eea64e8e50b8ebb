"""Whether a traced function is linear, or adds something.

Transposing finds an operation that is not linear by itself. What it cannot see is a
constant: in x + c it follows x, and c is dropped. A function that is linear but for
such constants is zero at zero if and only if each of its operations is, given zeros for
what depends on the arguments. So the few operations that could add something are run on
zeros: those that join the two kinds of operands, and loops and branches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays import as_array, dtypes, typeof
from fxflow.core.interpreters.calls import GraphCall
from fxflow.core.ir.graph import Graph, Node, bound, interpret
from fxflow.core.ir.higher_order import HigherOrder
from fxflow.core.ir.trace import Tracer, under
from fxflow.core.runtime.eager import interpreter
from fxflow.errors import NotDifferentiableError
from fxflow.lax.families import Bilinear

_LINEAR = object()
"""Sentinel for a value that depends on the arguments."""
_UNKNOWN = object()
"""Sentinel for a value that is traced, or computed from one that is."""


def require_linear(graph: Graph, consts: Sequence[Any], name: str) -> None:
    """Checks that a function adds no constant that is not zero.

    Values that are traced are not known: what is computed of them is taken to be right.

    Args:
      graph: traced; its first inputs are `consts`, the others the arguments.
      consts: arrays or tracers.
      name: of the function, for the message.

    Raises:
      NotDifferentiableError: it adds a constant, or returns one.
    """
    values = [_UNKNOWN if isinstance(c, Tracer) else c for c in consts]
    values += [_LINEAR] * (len(graph.inputs) - len(values))
    arguments = graph.in_avals[len(consts) :]
    whole = any(dtypes.is_integer(a.dtype) for a in arguments)

    def require() -> None:
        outs = _followed(graph, values, name, whole)
        found = [
            out is _LINEAR or _is_zero(out, whole)
            for out, aval in zip(outs, graph.out_avals, strict=True)
            if whole or dtypes.is_inexact(aval.dtype)
        ]
        if not all(found):
            raise _not_linear(name, "it returns a constant that is not zero")

    # At once, even under `jit`: the zeros are known, and nothing is to be recorded.
    under(interpreter(), require)


def _not_linear(name: str, why: str) -> NotDifferentiableError:
    return NotDifferentiableError(
        f"linear_transpose: {name} is not linear: {why}, and the transpose would drop "
        "it; subtract what the function gives for zeros"
    )


def _followed(graph: Graph, values: Sequence[Any], name: str, whole: bool) -> list[Any]:
    """Returns the results of a graph: values, `_LINEAR` or `_UNKNOWN`.

    Integers count (`whole`) if any is among the arguments: else they are indices.
    """

    def step(node: Node, operands: list[Any]) -> Sequence[Any]:
        # Looked into, for the message to name the operation inside that adds.
        if isinstance(node.primitive, GraphCall):
            return _followed(node.params["graph"], operands, name, whole)
        if not any(v is _LINEAR for v in operands):
            return _run(node, operands)
        if _adds(node, operands, whole):
            raise _not_linear(
                name, f"{node.primitive.name} adds a constant that is not zero"
            )
        return [_LINEAR] * len(node.outputs)

    return interpret(graph, values, step)


def _run(node: Node, operands: list[Any]) -> Sequence[Any]:
    """Returns the results of a node; unknown ones if an operand is unknown."""
    if node.effects or any(v is _UNKNOWN for v in operands):
        return [_UNKNOWN] * len(node.outputs)
    return bound(node, operands)


def _adds(node: Node, operands: Sequence[Any], whole: bool) -> bool:
    """Returns whether a node gives something else than zeros for linear zeros."""
    primitive = node.primitive
    if isinstance(primitive, Bilinear) or primitive.name in ("mul", "div"):
        return False  # zero times anything
    others = [v for v in operands if v is not _LINEAR]
    holds_graphs = isinstance(primitive, HigherOrder)  # and constants in them
    # The common case: no operand is a constant, so nothing need be evaluated.
    if not holds_graphs and all(_is_zero(v, whole) for v in others):
        return False
    zeros = [
        as_array(np.zeros(a.aval.shape, a.aval.dtype), a.aval.dtype)
        if v is _LINEAR
        else v
        for a, v in zip(node.inputs, operands, strict=True)
    ]
    # A linear operation gives zeros for zeros, whatever its constants are.
    return not all(_is_zero(v, whole) for v in _run(node, zeros))


def _is_zero(value: Any, whole: bool) -> bool:
    """Returns whether a value is zero everywhere, or has none that is known."""
    if value is _UNKNOWN:
        return True
    dtype = typeof(value).dtype
    if not (dtypes.is_inexact(dtype) or (whole and dtypes.is_integer(dtype))):
        return True
    return not np.any(np.asarray(value))
