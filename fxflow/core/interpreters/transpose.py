"""Reverse mode, second half: transpose a linear tape.

Each node's `transpose` rule turns the cotangent of its result into cotangents of its
linear arguments. Cotangents of a variable that is used several times are added; what
devices share gets the sum of their cotangents (see `core/spmd/varying`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fxflow.core.arrays import Axes, typeof
from fxflow.core.interpreters.double_where import explained, selection_after
from fxflow.core.ir.arith import add, instantiate
from fxflow.core.ir.graph import Graph, Node, Var, bound, interpret
from fxflow.core.ir.primitive import Zero
from fxflow.core.ir.staging import trace_closed
from fxflow.core.ir.trace import state
from fxflow.core.runtime.eager import open_layouts
from fxflow.core.source import Backward
from fxflow.core.spmd.varying import divided_as, matched
from fxflow.devices.meshes import explicit
from fxflow.errors import NonFiniteError


def backward(
    nodes: Sequence[Node],
    inputs: Sequence[Var],
    outputs: Sequence[Any],
    cotangents: Sequence[Any],
) -> list[Any]:
    """Transposes a tape.

    Args:
      nodes: linear operations; inputs that are not a `Var` are values.
      inputs: variables of the linear arguments.
      outputs: a `Var`, or a `Zero`, for each result.
      cotangents: of the results; values or `Zero`s.

    Returns:
      The cotangent of each input: a value, or `Zero`.
    """
    known: dict[Var, Any] = {}
    tracked = bool(state.tracked)
    # Contributions that are still to be summed over devices, by the axes: once for all.
    apart: dict[Var, dict[Axes, Any]] = {}

    divided = explicit.used and (
        bool(getattr(state.trace, "spmd", ()))
        or any(v.aval.layout for v in inputs)
        or any(v.aval.layout for node in nodes for v in node.outputs)
    )

    def contribute(var: Var, ct: Any) -> None:
        if divided:
            ct = divided_as(ct, var.aval.cotangent())
        if tracked:
            axes = typeof(ct).vma - var.aval.vma
            if axes:
                parts = apart.setdefault(var, {})
                parts[axes] = add(parts.get(axes), ct)
                return
            ct = matched(ct, var.aval.vma)
        known[var] = add(known.get(var), ct)

    def taken(var: Var) -> Any:
        # All uses of a variable come after its node, and have been visited: the
        # sum is complete, and its memory can go when the rule has used it.
        ct = known.pop(var, None)
        for part in apart.pop(var, {}).values():
            ct = add(ct, matched(part, var.aval.vma))
        return ct

    def cotangent(node: Node) -> Any:
        if not node.primitive.multi:
            (var,) = node.outputs
            parts = apart.get(var, ())
            # Devices add up the cotangent of what was broadcast: they exchange less.
            repeats = node.primitive.name == "broadcast_in_dim"
            if repeats and len(parts) == 1 and var not in known:
                return apart.pop(var).popitem()[1]
            return taken(var)
        cts = list(map(taken, node.outputs))
        # No rule is asked where nothing depends on the results.
        if all(ct is None for ct in cts):
            return None
        return [
            Zero(var.aval) if c is None else c
            for c, var in zip(cts, node.outputs, strict=True)
        ]

    for out, given in zip(outputs, cotangents, strict=True):
        if type(out) is Var and type(given) is not Zero:
            contribute(out, given)
    outside = state.scope, state.source
    try:
        for node in reversed(nodes):
            ct = cotangent(node)
            if ct is None:
                continue
            # What the derivative of an operation costs is the operation's.
            state.scope = node.scope or outside[0]
            line = node.source or outside[1]
            state.source = line and Backward(line)
            transpose = node.primitive.transpose
            try:
                if divided:
                    # How cotangents are divided is known from their values.
                    with open_layouts(True):
                        found = transpose(ct, *node.inputs, **node.params)
                else:
                    found = transpose(ct, *node.inputs, **node.params)
            except NonFiniteError as error:
                raise _explained(error, node, ct, nodes) from None
            for arg, ct_in in zip(node.inputs, found, strict=True):
                if ct_in is None or type(ct_in) is Zero or type(arg) is not Var:
                    continue
                contribute(arg, ct_in)
    finally:
        state.scope, state.source = outside
    sums = [taken(var) for var in inputs]
    return [
        Zero(var.aval.cotangent()) if ct is None else ct
        for ct, var in zip(sums, inputs, strict=True)
    ]


def _explained(
    error: NonFiniteError, node: Node, ct: Any, nodes: Sequence[Node]
) -> NonFiniteError:
    """Returns an error that says more of a nan in the transpose of a node."""
    if node.primitive.name == "jit":
        # Again, one operation at a time.
        graph: Graph = node.params["graph"]
        pairs = list(zip(graph.inputs, node.inputs, strict=True))
        values = {var: a for var, a in pairs if type(a) is not Var}
        variables = [var for var, a in pairs if type(a) is Var]
        try:
            backward_with_values(graph, values, variables, ct)
        except NonFiniteError as inner:
            if "double where" in str(inner):
                return inner
            error = inner
    where = selection_after(node, nodes)
    return error if where is None else explained(error, node.source, where.source)


def transpose_graph(
    graph: Graph,
    linear: Sequence[bool],
    nonzero: Sequence[bool],
    instantiated: bool = False,
) -> tuple[Graph, list[bool]]:
    """Returns the transpose of a graph that is linear in some inputs.

    Args:
      graph: inputs `r…` and linear `t…` mixed as `linear` says.
      linear: which inputs it is linear in.
      nonzero: which outputs have a cotangent.
      instantiated: whether zero results are arrays of zeros.

    Returns:
      A graph of inputs `r…, ct…` (in order; cotangents where `nonzero`) and outputs the
      cotangents of the linear inputs that are not zero, and for each linear input
      whether it has one.
    """
    key = ("transpose", tuple(linear), tuple(nonzero), instantiated)

    def derive() -> tuple[Graph, list[bool]]:
        constants = [v for v, lin in zip(graph.inputs, linear, strict=True) if not lin]
        variables = [v for v, lin in zip(graph.inputs, linear, strict=True) if lin]
        has_cotangent: list[bool] = []

        def transposed(*values: Any) -> list[Any]:
            given = iter(values[len(constants) :])
            cts = [
                next(given) if live else Zero(a.aval)
                for a, live in zip(graph.outputs, nonzero, strict=True)
            ]
            outs = backward_with_values(
                graph, dict(zip(constants, values, strict=False)), variables, cts
            )
            has_cotangent[:] = [type(ct) is not Zero or instantiated for ct in outs]
            return [
                instantiate(ct)
                for ct, kept in zip(outs, has_cotangent, strict=True)
                if kept
            ]

        avals = [v.aval for v in constants]
        avals += [a for a, live in zip(graph.out_avals, nonzero, strict=True) if live]
        derived = trace_closed(transposed, avals, name=f"transpose_{graph.name}")
        return derived, has_cotangent

    return graph.remembered(key, derive)


def backward_with_values(
    graph: Graph, values: dict[Var, Any], variables: Sequence[Var], cts: Sequence[Any]
) -> list[Any]:
    """Transposes a graph: nodes that do not depend on `variables` are run first.

    Args:
      graph: linear in `variables`.
      values: of the other inputs.
      variables: linear inputs.
      cts: cotangents of the outputs; values or `Zero`s.

    Returns:
      Cotangents of `variables`; values or `Zero`s.
    """
    tape: list[Node] = []

    def step(node: Node, operands: list[Any]) -> Sequence[Any]:
        # A variable stands for itself where its value depends on `variables`.
        if not any(type(a) is Var for a in operands):
            return bound(node, operands)
        tape.append(node.replace(inputs=operands))
        return node.outputs

    outs = interpret(graph, [values.get(v, v) for v in graph.inputs], step)
    outputs = [
        out if type(out) is Var else Zero(atom.aval)
        for out, atom in zip(outs, graph.outputs, strict=True)
    ]
    return backward(tape, variables, outputs, cts)
