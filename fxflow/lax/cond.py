"""`cond` and `switch`: run one of several functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fxflow._config import config
from fxflow.core import tree
from fxflow.core.arrays import dtypes
from fxflow.core.arrays.aval import Aval
from fxflow.core.arrays.convert import (
    as_array,
    is_arraylike,
    not_an_array,
    read_only,
    typeof,
    unwrapped,
)
from fxflow.core.boundary import boundary
from fxflow.core.ir import arith
from fxflow.core.ir.graph import Graph
from fxflow.core.ir.higher_order import with_consts
from fxflow.core.ir.primitive import table
from fxflow.core.ir.trace import Tracer
from fxflow.core.runtime.bodies import Body, trace_body
from fxflow.core.spmd.varying import cast
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.lax.carry import (
    as_type,
    leaves_of,
    name_of,
    paths_of,
    require_callable,
    require_structure,
)
from fxflow.lax.cond_primitive import Cond


@boundary
def cond(
    pred: Any,
    true_fun: Callable[..., Any],
    false_fun: Callable[..., Any],
    *operands: Any,
) -> Any:
    """Calls one of two functions, as a condition says.

    Only the chosen one runs, unless `pred` is mapped by `vmap`: then both do, and the
    results are selected. Both are traced, since their results must have one type.

    Args:
      pred: bool[] (a number is compared with zero).
      true_fun: called with the operands if `pred` holds.
      false_fun: called with them if not; returns the same structure, shapes and dtypes.
      *operands: pytrees of arrays.

    Returns:
      The result of the one or the other.

    Raises:
      ArgumentError: `pred` is no number, or a function is not callable.
      ShapeError, DtypeError, TreeError: the results have different types.

    Example:
      >>> float(cond(True, lax.neg, lambda x: x, 2.0))
      -2.0

    Source: StableHLO case.
    """
    pred = unwrapped(pred)
    aval = _scalar(pred, "cond: pred")
    require_callable(true_fun, "cond: true_fun")
    require_callable(false_fun, "cond: false_fun")
    if not isinstance(pred, Tracer):
        index: Any = int(bool(np.asarray(pred)))
    else:
        if not dtypes.is_bool(aval.dtype):
            pred = table["ne"].bind(pred, arith.constant(0, aval.dtype))
        index = arith.cast(pred, np.dtype(np.int32))
    return _branch(
        "cond", ("false_fun", "true_fun"), index, (false_fun, true_fun), operands
    )


@boundary
def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """Calls one of several functions, as an index says.

    Args:
      index: integer[]; clamped to the range of branches.
      branches: functions of the operands; all return the same structure, shapes and
        dtypes.
      *operands: pytrees of arrays.

    Returns:
      The result of `branches[index]`.

    Raises:
      ArgumentError: there are no branches, or one is not callable.
      DtypeError: `index` is no integer.
      ShapeError, DtypeError, TreeError: the results have different types.

    Example:
      >>> float(switch(1, [lax.neg, lax.exp, lax.sin], 0.0))
      1.0

    Source: StableHLO case.
    """
    branches = tuple(branches)
    if not branches:
        raise ArgumentError("switch: needs at least one branch, got none")
    for i, branch in enumerate(branches):
        require_callable(branch, f"switch: branches[{i}]")
    index = unwrapped(index)
    aval = _scalar(index, "switch: index")
    if not dtypes.is_integer(aval.dtype):
        raise DtypeError(f"switch: index must be an integer, got {aval}")
    if len(branches) == 1:
        return branches[0](*operands)
    last = len(branches) - 1
    if not isinstance(index, Tracer):
        index = min(max(int(np.asarray(index)), 0), last)
    else:
        index = table["max"].bind(index, arith.constant(0, aval.dtype))
        if last <= dtypes.iinfo(aval.dtype).max:
            index = table["min"].bind(index, arith.constant(last, aval.dtype))
        index = arith.cast(index, np.dtype(np.int32))
    labels = tuple(f"branches[{i}]" for i in range(len(branches)))
    return _branch("switch", labels, index, branches, operands)


def _scalar(value: Any, what: str) -> Aval:
    """Returns the type of a condition or index.

    Raises:
      ArgumentError: it is no array.
      ShapeError: it has axes.
      DtypeError: it is no number.
    """
    if not is_arraylike(value):
        raise not_an_array(value, f"{what} is")
    aval = typeof(value)
    if aval.shape:
        raise ShapeError(
            f"{what} must be a scalar, got {aval}: reduce it with .any() or .all(), or "
            "use select for a choice in each place"
        )
    if dtypes.is_key(aval.dtype) or dtypes.is_complex(aval.dtype):
        raise DtypeError(f"{what} must be a bool or a real number, got {aval}")
    return aval


def _branch(
    operation: str,
    labels: Sequence[str],
    index: Any,
    functions: Sequence[Callable[..., Any]],
    operands: Sequence[Any],
) -> Any:
    """Runs the function that an index (an int, or a traced i32[], in range) names."""
    if config.disable_jit and isinstance(index, int):
        return functions[index](*read_only(tuple(operands)))
    leaves, in_tree = leaves_of(tuple(operands), f"{operation}: operands")
    avals = [typeof(x) for x in leaves]
    bodies = [
        trace_body(f, in_tree, avals, name=f"{operation}_{name_of(f)}")
        for f in functions
    ]
    out_tree, outs = _agreed(operation, labels, bodies)
    if isinstance(index, int):
        # The choice is known: the branch's operations run where this one would.
        body = bodies[index]
        results = body.graph.evaluate(*body.consts, *leaves)
        values = [_as(value, aval) for value, aval in zip(results, outs, strict=True)]
        return out_tree.unflatten(values)
    consts, graphs = _with_common_consts(bodies)
    given = [*consts, *leaves]
    differs = typeof(index).vma
    if differs:
        # Devices that choose different branches have different results, and cannot meet
        # in a branch to sum cotangents of what they share: it is cast outside.
        outs = [a.update(vma=a.vma | differs) for a in outs]
        given = [cast(value, differs) for value in given]
    ins = [typeof(value) for value in given]
    typed = tuple(_typed(graph, ins, outs) for graph in graphs)
    return out_tree.unflatten(Cond.bind(index, *given, branches=typed))


def _agreed(
    operation: str, labels: Sequence[str], bodies: Sequence[Body]
) -> tuple[Any, list[Aval]]:
    """Returns the structure and the types that all branches return.

    Raises:
      ShapeError, DtypeError, TreeError: they differ.
    """
    first = bodies[0]
    avals = list(first.graph.out_avals)
    for label, body in zip(labels[1:], bodies[1:], strict=True):
        outs = body.graph.out_avals
        require_structure(
            first.out_tree,
            body.out_tree,
            outs,
            f"{operation}: branches must return one structure, but {label} differs "
            f"from {labels[0]}:",
        )
        for i, (a, b) in enumerate(zip(avals, outs, strict=True)):
            if a.shape != b.shape or a.dtype != b.dtype:
                kind = ShapeError if a.shape != b.shape else DtypeError
                path = paths_of(first.out_tree)[i]
                raise kind(
                    f"{operation}: branches must return one type, but {labels[0]} "
                    f"returns {a} and {label} returns {b}"
                    f"{f' at {path}' if path else ''}: convert or reshape one"
                )
            if a is not b:
                weak = a.weak_type and b.weak_type
                avals[i] = a.update(weak_type=weak, vma=a.vma | b.vma)
    return first.out_tree, avals


def _as(value: Any, aval: Aval) -> Any:
    """Returns a branch's result as an array of the agreed type."""
    return as_type(as_array(value), aval)


def _with_common_consts(bodies: Sequence[Body]) -> tuple[list[Any], list[Graph]]:
    """Returns what any branch captured, and branches that take all of that."""
    consts = list({id(c): c for body in bodies for c in body.consts}.values())
    return consts, [with_consts(b.graph, b.consts, consts) for b in bodies]


def _typed(graph: Graph, ins: Sequence[Aval], outs: Sequence[Aval]) -> Graph:
    """Returns a branch of agreed types: weak only where all branches are."""
    if graph.in_avals == list(ins) and graph.out_avals == list(outs):
        return graph
    key = ("typed", tuple(ins), tuple(outs))
    known: Graph | None = graph.memo.get(key)
    if known is None:
        body = trace_body(
            lambda *values: [
                _as(v, a) for v, a in zip(graph.evaluate(*values), outs, strict=True)
            ],
            tree.structure(tuple(range(len(graph.inputs)))),
            ins,
            name=graph.name,
        )
        known = graph.memo[key] = body.graph
    return known
