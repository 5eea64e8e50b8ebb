"""Dependences: which inputs each element of a derivative depends on.

A graph of a directional derivative, `t → f'(x) t`, is linear in `t`. `dependences`
walks over it and finds for each element of each result the set of the elements of `t`
that reach it, whatever `x` is: the pattern of the Jacobian. It is found from the
operations alone: nothing is probed, so no entry is missed, and an entry is only in the
pattern without need where operations cancel (`t - t`), or where an index or a mask
depends on data that the program is given. Values that do not (constants, counters of
loops) are computed with NumPy on the way; factors that are 0 take entries out.

Operations without a rule are taken for dense: each result depends on all that reaches
an operand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from fxflow.core.arrays import Aval, Shape, dtypes
from fxflow.core.interpreters.calls import GraphCall
from fxflow.core.ir.graph import Graph, Literal, Node, interpret
from fxflow.lax.control_flow.cond import Branching
from fxflow.lax.control_flow.scan import ScanParams
from fxflow.lax.control_flow.while_loop import WhileParams
from fxflow.sparse.dependence_rules import rule_of
from fxflow.sparse.index_sets import Dependence, Given, empty, same, union

#: Elements of a known value up to which NumPy computes it on the way.
_LARGEST_KNOWN = 1 << 22
#: Operations that steps of one loop may run before a fixed point is sought instead.
_MOST_STEPS = 50_000


# -- graphs ----------------------------------------------------------------------------


def dependences(
    graph: Graph, given: Sequence[Given], known: Sequence[Any]
) -> list[tuple[Given, Any]]:
    """Returns for each output of a graph its index sets and its value.

    Args:
      graph: linear in the inputs that have index sets.
      given: of each input: its index sets; None: it does not depend on them.
      known: of each input: its value as a NumPy array; None: it is not known.

    Returns:
      Likewise for each output.
    """

    def step(node: Node, operands: list[tuple[Given, Any]]) -> list[tuple[Given, Any]]:
        sets, values = [g for g, _ in operands], [v for _, v in operands]
        if all(s is None for s in sets):
            return [(None, value) for value in _folded(node, values)]
        inside = _INSIDE.get(node.primitive.name)
        if inside is None and isinstance(node.primitive, GraphCall):
            inside = _call
        if inside is None and isinstance(node.primitive, Branching):
            inside = _cond
        if inside is not None:
            return inside(node, sets, values)
        return [(out, None) for out in rule_of(node)(node, sets, values)]

    def constant(literal: Literal) -> tuple[Given, Any]:
        return None, np.asarray(literal.value)

    inputs = list(zip(given, known, strict=True))
    return interpret(graph, inputs, step, constant)


def _folded(node: Node, values: Sequence[Any]) -> list[Any]:
    """Returns the values of a node's results, if they are known and small."""
    unknown = [None] * len(node.outputs)
    if any(v is None for v in values) or node.effects:
        return unknown
    atoms = [*node.inputs, *node.outputs]
    if any(a.aval.size > _LARGEST_KNOWN or not _plain(a.aval) for a in atoms):
        return unknown
    cost = node.primitive.cost(*[a.aval for a in node.inputs], **node.params)
    if cost["flops"] > 8 * _LARGEST_KNOWN:
        return unknown
    with np.errstate(all="ignore"):
        out = node.primitive.evaluate(*values, **node.params)
    return list(out) if node.primitive.multi else [np.asarray(out)]


def _plain(aval: Aval) -> bool:
    return isinstance(aval, Aval) and dtypes.kinds.get(aval.dtype, "v") in "biufc"


# -- operations that hold graphs -------------------------------------------------------

Found: TypeAlias = list[tuple[Given, Any]]


def _barrier(node: Node, sets: Sequence[Given], values: Sequence[Any]) -> Found:
    return list(zip(sets, values, strict=True))


def _call(node: Node, sets: Sequence[Given], values: Sequence[Any]) -> Found:
    return dependences(node.params["graph"], sets, values)


def _cond(node: Node, sets: Sequence[Given], values: Sequence[Any]) -> Found:
    branches = node.params["branches"]
    which = values[0]
    if which is not None:
        branches = [branches[int(np.clip(int(which), 0, len(branches) - 1))]]
    return _either([dependences(b, sets[1:], values[1:]) for b in branches])


def _either(found: Sequence[Found]) -> Found:
    if len(found) == 1:
        return found[0]
    return [
        (union(s for s, _ in outs), _agreed([v for _, v in outs]))
        for outs in zip(*found, strict=True)
    ]


def _agreed(values: Sequence[Any]) -> Any:
    """Returns what all of them are; None if they differ or one is not known."""
    first = values[0]
    if first is None or any(v is None or not _equal(first, v) for v in values[1:]):
        return None
    return first


def _equal(a: Any, b: Any) -> bool:
    return a is b or np.array_equal(a, b)


def _slice(s: Given, value: Any, i: int) -> tuple[Given, Any]:
    part = None if s is None else s.taken(s.ids[i])
    return part, None if value is None else np.asarray(value[i])


def _scan(node: Node, sets: Sequence[Given], values: Sequence[Any]) -> Found:
    p = ScanParams(**node.params)
    consts, carry, xs = p.split(list(zip(sets, values, strict=True)))
    steps = range(p.length)
    body = p.graph
    stacked: list[list[Any]] = [[] for _ in body.outputs[p.num_carry :]]
    if p.length * max(len(body.nodes), 1) > _MOST_STEPS:
        return _scan_settled(p, consts, carry, xs)
    for i in reversed(steps) if p.reverse else steps:
        outs = _run(body, [*consts, *carry, *(_slice(*x, i) for x in xs)])
        carry = outs[: p.num_carry]
        for rows, out in zip(stacked, outs[p.num_carry :], strict=True):
            rows.append(out)
    shapes = [tuple(v.aval.shape) for v in node.outputs[p.num_carry :]]
    return [
        *carry,
        *(
            _stack(rows[::-1] if p.reverse else rows, shape)
            for rows, shape in zip(stacked, shapes, strict=True)
        ),
    ]


def _run(graph: Graph, inputs: Sequence[tuple[Given, Any]]) -> Found:
    return dependences(graph, [s for s, _ in inputs], [v for _, v in inputs])


def _stack(rows: Sequence[tuple[Given, Any]], shape: Shape) -> tuple[Given, Any]:
    some = next((s for s, _ in rows if s is not None), None)
    values = [v for _, v in rows]
    value = np.stack(values) if values and all(v is not None for v in values) else None
    if some is None:
        return None, value
    parts = [empty(shape[1:], some.count) if s is None else s for s, _ in rows]
    sources = np.concatenate([s.sources for s in parts])
    lengths = np.concatenate([np.diff(s.starts) for s in parts])
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Dependence(shape, starts, sources, some.count), value


def _scan_settled(p: ScanParams, consts: Found, carry: Found, xs: Found) -> Found:
    """All steps alike: the unions over all of them."""
    each = [
        (None if s is None else s.pooled([0]).reshaped(s.shape[1:]), None)
        for s, _ in xs
    ]
    carry, outs = _settled(
        lambda now: _run(p.graph, [*consts, *now, *each]), carry, p.num_carry
    )
    ys = [
        (
            None
            if s is None
            else s.reshaped((1, *s.shape)).spread((p.length, *s.shape)),
            None,
        )
        for s, _ in outs[p.num_carry :]
    ]
    return [*carry, *ys]


def _settled(
    step: Callable[[Found], Found], carry: Found, count: int
) -> tuple[Found, Found]:
    """Returns the carry that a step does not widen, and what the step gives then."""
    while True:
        outs = step(carry)
        grown = _either([carry, outs[:count]])
        if all(_unchanged(a, b) for a, b in zip(carry, grown, strict=True)):
            return carry, outs
        carry = grown


def _unchanged(a: tuple[Given, Any], b: tuple[Given, Any]) -> bool:
    if (a[1] is None) != (b[1] is None):
        return False
    if a[0] is None or b[0] is None:
        return a[0] is b[0]
    return same(a[0], b[0])


def _while(node: Node, sets: Sequence[Given], values: Sequence[Any]) -> Found:
    """Step by step where the condition is known, else the unions over all steps."""
    p = WhileParams(**node.params)
    of_condition, of_body, first = p.split(list(zip(sets, values, strict=True)))
    carry, steps = first, 0
    while steps * max(len(p.body.nodes), 1) <= _MOST_STEPS:
        ((_, goes_on),) = _run(p.condition, [*of_condition, *carry])
        if goes_on is None:
            break
        if not goes_on:
            return carry
        carry = _run(p.body, [*of_body, *carry])
        steps += 1
    settled, _ = _settled(lambda now: _run(p.body, [*of_body, *now]), first, len(first))
    return settled


_INSIDE: dict[str, Callable[..., Found]] = {
    "scan": _scan,
    "while": _while,
    "optimization_barrier": _barrier,
}
