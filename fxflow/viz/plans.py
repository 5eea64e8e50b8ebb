"""What a picture of a plan shows: fragments, and what they send and receive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fxflow.core.ir.graph import Literal, Var
from fxflow.dataflow.placing import place_name
from fxflow.dataflow.plan import Plan
from fxflow.viz.walk import (
    ARGUMENT,
    CONSTANT,
    RECV,
    RESULT,
    SEND,
    Item,
    Value,
    Walk,
)


def plan_items(plan: Plan, labels: Sequence[str] = ()) -> list[Item]:
    """Lists what a picture of a plan shows.

    Args:
      plan: of a dataflow function.
      labels: names of its arguments, captured values left out.

    Returns:
      Items as of `walk`. Each fragment is a scope; where a value passes from one device
      to another there is a `send` in the fragment that computes it and a `recv` in the
      first one there that takes it.
    """
    found, graph = Walk(), plan.graph
    names = [*(f"captured {i}" for i in range(graph.num_consts)), *labels]
    known: dict[tuple[Var, Any], Value] = {}
    arguments: dict[Var, Value] = {}
    for i, var in enumerate(graph.inputs):
        label = names[i] if i < len(names) else ""
        arguments[var] = found.end((), ARGUMENT, i, label, var.aval)
    sent: dict[int, list[Any]] = {}
    received: dict[int, list[Any]] = {}
    for edge in plan.edges:
        if edge.source is not None:
            sent.setdefault(edge.source, []).append(edge)
            received.setdefault(edge.users[0], []).append(edge)
    sends: dict[Any, Value] = {}
    maker: dict[Var, Any] = {}
    for fragment in plan.fragments:
        place, name = fragment.place, place_name(fragment.place)
        scope = found.path((), f"{fragment.action} on {name}")
        found.place = name

        def end(kind: str, label: str, value: Value, var: Var, scope: Any) -> Value:
            path = found.path(scope, kind)
            return found.add(Item(path, kind, label, (value,), (var.aval,))), 0

        for edge in received.get(fragment.index, ()):
            value = sends[edge.var, place]
            source = place_name(maker[edge.var])
            known[edge.var, place] = end(RECV, source, value, edge.var, scope)
        inputs = [
            known[var, place] if (var, place) in known else arguments[var]
            for var in fragment.graph.inputs
        ]
        outputs = found.inside(fragment.graph, inputs, scope, (), 1)
        for atom, value in zip(fragment.graph.outputs, outputs, strict=True):
            if isinstance(atom, Var):
                known[atom, place] = value
                maker[atom] = place
        for edge in sent.get(fragment.index, ()):
            target = place_name(edge.place)
            value = known[edge.var, place]
            sends[edge.var, edge.place] = end(SEND, target, value, edge.var, scope)
    found.place = ""
    for i, atom in enumerate(graph.outputs):
        if isinstance(atom, Literal):
            path = found.path((), CONSTANT)
            constant = Item(path, CONSTANT, str(atom.value), (), (atom.aval,))
            value = found.add(constant), 0
        elif atom in maker:
            value = known[atom, maker[atom]]
        else:
            value = arguments[atom]
        found.end((), RESULT, i, "", atom.aval, (value,))
    return found.items
