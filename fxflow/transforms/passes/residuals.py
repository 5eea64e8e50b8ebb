"""Residuals: what one loop stacks for another, and the other can compute itself.

The derivative of a loop is a second loop, which reads what each step of the first kept.
If that is both `s` and `s * s`, the second follows from the first by one operation,
which costs less than to write the result and to read it again.

The slopes of `logistic` and `tanh` do not follow from the value, which has lost its
digits near 1. The loop stacks one number from which both follow: the value where it is
small, and beyond that 1 / partner, the partner being small there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

import numpy as np

from fxflow.core.arrays import dtypes
from fxflow.core.ir.graph import Graph, Literal, Node, Var, live_nodes, renamed
from fxflow.core.ir.primitive import Primitive
from fxflow.core.ir.staging import trace_closed
from fxflow.lax.comparison import Lt, lt
from fxflow.lax.control_flow.scan import Scan, ScanParams
from fxflow.lax.elementwise import (
    Abs,
    Add,
    Div,
    Mul,
    Neg,
    Sub,
    add,
    div,
    mul,
    sign,
    sub,
)
from fxflow.lax.elementwise import abs as abs_
from fxflow.lax.exponential import Exp, Logistic
from fxflow.lax.powers import Square
from fxflow.lax.remat import CALLS, inlined
from fxflow.lax.select import SelectN, select
from fxflow.lax.trigonometric import Tanh
from fxflow.transforms.passes.rewriting import traced, written_out

#: Operations that cost less than to read an element from memory.
_CHEAP = frozenset(p.name for p in (Abs, Add, Div, Lt, Mul, Neg, SelectN, Square, Sub))
#: So many of them.
_FEW = 4
#: As many if they read a partner: the slope of `tanh` takes nine.
_FEW_OF_PAIRS = 10


class _Pair(NamedTuple):
    """A value and its partner, by which its slope keeps its digits.

    Attributes:
      value: logistic(x) or tanh(x).
      partner: logistic(-x) or exp(-2 |x|).
      number: from which both follow.
      nodes: compute the number from the pair.
      unpack: a graph of the pair from the number.
    """

    value: Var
    partner: Var
    number: Var
    nodes: list[Node]
    unpack: Graph


def recompute_residuals(graph: Graph) -> Graph:
    """Returns the graph with scans that compute what another one would stack.

    Args:
      graph: of any operations; graphs inside are left as they are.
    """
    scans = [n for n in graph.nodes if n.primitive.name == Scan.name]
    if len(scans) < 2:
        return graph
    wanted = _only_sliced(graph)
    # How each residual follows from others: their names, and a graph of them.
    recipes: dict[Var, tuple[list[Var], Graph]] = {}
    stacking: dict[int, Node] = {}
    for scan in scans:
        stacking[id(scan)], found = _recipes(scan, wanted)
        recipes.update(found)
    if not recipes:
        return graph
    nodes = [
        _recomputing(stacking[id(n)], recipes) if id(n) in stacking else n
        for n in graph.nodes
    ]
    return graph.replace(nodes=live_nodes(nodes, graph.outputs))


def _only_sliced(graph: Graph) -> set[Var]:
    """Returns the variables that nothing but scans read, slice by slice."""
    found: set[Var] = set()
    whole = {a for a in graph.outputs if type(a) is Var}
    for node in graph.nodes:
        slices: list[Any] = []
        others: Iterable[Any] = node.inputs
        if node.primitive.name == Scan.name:
            consts, carry, slices = ScanParams(**node.params).split(node.inputs)
            others = (*consts, *carry)
        whole.update(a for a in others if type(a) is Var)
        found.update(a for a in slices if type(a) is Var)
    return found - whole


def _recipes(
    scan: Node, wanted: set[Var]
) -> tuple[Node, dict[Var, tuple[list[Var], Graph]]]:
    """Returns which outputs of a scan follow from its others, and how.

    The scan comes first, with the numbers of pairs stacked as well.
    """
    p = ScanParams(**scan.params)
    body = inlined(p.graph, CALLS)
    stacked: dict[Any, Var] = {}
    # Each that follows from others: what it is, those, and the nodes between.
    found: dict[Var, tuple[Var, Collection[Var], list[Node]]] = {}
    ys = zip(body.outputs[p.num_carry :], scan.outputs[p.num_carry :], strict=True)
    # What is stacked twice is kept once.
    for atom, out in sorted(ys, key=lambda y: y[1] in wanted):
        if type(atom) is not Var or stacked.setdefault(atom, out) is out:
            continue
        if out in wanted:
            found[out] = atom, [atom], []
    kept = {a for a, out in stacked.items() if out not in wanted}
    pairs = _pairs(body, stacked.keys() - kept, kept)
    makers = {n.outputs[0]: n for n in body.nodes if n.primitive.name in _CHEAP}
    used: dict[Var, _Pair] = {}
    gone: set[Var] = set()
    # In order: what another one follows from has been decided on before it.
    for atom in (a for n in body.nodes for a in n.outputs if a in stacked):
        out = stacked[atom]
        if out not in wanted or atom not in makers:
            continue
        nodes: dict[int, Node] = {}
        sources: dict[Var, None] = {}
        waiting: list[Any] = [atom]
        while waiting and len(nodes) <= _FEW_OF_PAIRS:
            var = waiting.pop()
            known = var in pairs or (var in stacked and var not in gone)
            if known and var is not atom:
                sources[var] = None
            elif var in makers:
                nodes[id(makers[var])] = makers[var]
                waiting += [a for a in makers[var].inputs if type(a) is Var]
            else:
                break
        else:
            partners = [v for v in sources if v in pairs and v is pairs[v].partner]
            if sources and len(nodes) <= (_FEW_OF_PAIRS if partners else _FEW):
                gone.add(atom)
                found[out] = atom, sources, [n for n in body.nodes if id(n) in nodes]
                used.update((v, pairs[v]) for v in partners)
    outer: list[Var] = []
    unpacked: dict[Var, _Pair] = {}
    for pair in used.values():
        aval = pair.number.aval
        outer.append(Var(aval.update(shape=(p.length, *aval.shape))))
        stacked[pair.number] = outer[-1]
        for var in {pair.value, pair.partner} & stacked.keys():
            found[stacked[var]] = var, [var], []
        unpacked |= {pair.value: pair, pair.partner: pair}
    if used:
        packing = [n for pair in used.values() for n in pair.nodes]
        body = body.replace(
            nodes=[*body.nodes, *packing],
            outputs=[*body.outputs, *(pair.number for pair in used.values())],
        )
        scan = scan.replace(
            outputs=[*scan.outputs, *outer], params=vars(p.replace(graph=body))
        )
    recipes = {}
    for out, (atom, variables, steps) in found.items():
        recipe = _recipe(atom, variables, steps, unpacked)
        recipes[out] = [stacked[v] for v in recipe.inputs], recipe
    return scan, recipes


def _recipe(
    atom: Var,
    sources: Iterable[Var],
    steps: Iterable[Node],
    unpacked: dict[Var, _Pair],
) -> Graph:
    """Returns a graph of `atom` from `sources`, or from the numbers of their pairs."""
    inputs: dict[Var, None] = {}
    names: dict[Var, Any] = {}
    nodes: list[Node] = []
    for source in sources:
        pair = unpacked.get(source)
        if pair is None:
            inputs[source] = None
        elif pair.number not in inputs:
            inputs[pair.number] = None
            unpacking, results = written_out(pair.unpack, [pair.number])
            nodes += unpacking
            names.update(zip((pair.value, pair.partner), results, strict=True))
    nodes += [n.replace(inputs=renamed(n.inputs, names)) for n in steps]
    outputs = renamed([atom], names)
    return Graph(list(inputs), live_nodes(nodes, outputs), outputs, "residual")


# -- a value and its partner in one number ---------------------------------------------


def _pairs(
    body: Graph, wanted: Collection[Var], kept: Collection[Var]
) -> dict[Var, _Pair]:
    """Returns the pairs of a loop's body, by their values and by their partners.

    Args:
      body: of the loop.
      wanted: the variables that a number may replace; a value must be one of them.
      kept: the variables that stay stacked; a partner must not be one of them.
    """
    makers = {v: n for n in body.nodes for v in n.outputs}
    names = (Logistic.name, Tanh.name)
    values = {
        (n.primitive.name, n.inputs[0]): n
        for n in body.nodes
        if n.primitive.name in names and type(n.inputs[0]) is Var
    }
    found: dict[Var, _Pair] = {}
    for node in body.nodes:
        if node.primitive.name == Logistic.name:
            of, x = Logistic.name, _made(makers, node.inputs[0], Neg)
        elif node.primitive.name == Exp.name:
            of, x = Tanh.name, _made(makers, node.inputs[0], Mul, -2.0)
            x = _made(makers, x, Abs)
        else:
            continue
        maker = values.get((of, x)) if type(x) is Var else None
        if maker is None:
            continue
        value, partner = maker.outputs[0], node.outputs[0]
        if value not in wanted or partner in kept or {value, partner} & found.keys():
            continue
        # Floats of 8 bits may lack infinities.
        if not dtypes.is_floating(value.aval.dtype) or value.aval.dtype.itemsize < 2:
            continue
        pack, unpack = _PACKING[of]
        nodes, number = traced(node, pack, [value, partner])
        unpacking = trace_closed(unpack, [number.aval], name="residual")
        if unpacking.out_avals == [value.aval, partner.aval]:
            pair = _Pair(value, partner, number, nodes, unpacking)
            found[value] = found[partner] = pair
    return found


def _made(
    makers: dict[Var, Node], var: Any, by: type[Primitive], factor: float | None = None
) -> Any:
    """Returns what an operation made a variable of, or None: another one made it."""
    maker = makers.get(var) if type(var) is Var else None
    if maker is None or maker.primitive.name != by.name:
        return None
    x, *others = maker.inputs
    if factor is not None and not _is_number(others[0], factor):
        return None
    return x


def _is_number(atom: Any, number: float) -> bool:
    return type(atom) is Literal and np.asarray(atom.value).item() == number


# The value where it is below 1/2, and beyond that 1 / partner, which is at least 2:
# neither has lost digits.


def _pack_logistic(value: Any, partner: Any) -> Any:
    return select(lt(value, 0.5), value, div(1.0, partner))


def _unpack_logistic(number: Any) -> list[Any]:
    near = lt(number, 1.0)
    small = select(near, number, div(1.0, number))
    rest = sub(1.0, small)
    return [select(near, small, rest), select(near, rest, small)]


def _pack_tanh(value: Any, partner: Any) -> Any:
    return select(lt(abs_(value), 0.5), value, div(sign(value), partner))


def _unpack_tanh(number: Any) -> list[Any]:
    size = abs_(number)
    near = lt(size, 1.0)
    small = select(near, size, div(1.0, size))
    # The partner if the value is small, else the size of the value.
    other = div(sub(1.0, small), add(1.0, small))
    value = select(near, number, mul(sign(number), other))
    return [value, select(near, other, small)]


_PACKING: dict[str, tuple[Any, Any]] = {
    Logistic.name: (_pack_logistic, _unpack_logistic),
    Tanh.name: (_pack_tanh, _unpack_tanh),
}


def _recomputing(scan: Node, recipes: dict[Var, tuple[list[Var], Graph]]) -> Node:
    """Returns a scan that computes residuals instead of reading them."""
    p = ScanParams(**scan.params)
    split = len(scan.inputs) - len(p.split(scan.inputs)[2])
    slices = list(zip(scan.inputs[split:], p.graph.inputs[split:], strict=True))
    if not any(outer in recipes for outer, _ in slices):
        return scan
    kept = [(outer, var) for outer, var in slices if outer not in recipes]
    known = dict(kept)
    nodes: list[Node] = []
    names: dict[Var, Any] = {}
    for outer, var in slices:
        if outer not in recipes:
            continue
        sources, recipe = recipes[outer]
        for source, inner in zip(sources, recipe.inputs, strict=True):
            if source not in known:
                known[source] = Var(inner.aval)
                kept.append((source, known[source]))
        steps, outputs = written_out(recipe, [known[source] for source in sources])
        nodes += steps
        names[var] = outputs[0]
    nodes += [n.replace(inputs=renamed(n.inputs, names)) for n in p.graph.nodes]
    body = Graph(
        [*p.graph.inputs[:split], *(var for _, var in kept)],
        nodes,
        renamed(p.graph.outputs, names),
        p.graph.name,
    )
    inputs = [*scan.inputs[:split], *(outer for outer, _ in kept)]
    return scan.replace(inputs=inputs, params=vars(p.replace(graph=body)))
