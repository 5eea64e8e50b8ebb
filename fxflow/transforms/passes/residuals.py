"""Residuals: what one loop stacks for another, and the other can compute itself.

The derivative of a loop is a second loop, which reads what each step of the first kept.
If that is both `s` and `s * s`, the second follows from the first by one operation,
which costs less than to write the result and to read it again.

The slopes of `logistic` and `tanh` do not follow from the value, which has lost its
digits near 1. Where a loop stacks both, it stacks one number instead, from which both
follow without an exponential.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple

import numpy as np

from fxflow.core.arrays import Aval, typeof
from fxflow.core.caches import Cache
from fxflow.core.ir.graph import Graph, Node, Var, live_nodes, renamed
from fxflow.core.ir.staging import trace_closed
from fxflow.lax.bitcasting import bitcast_convert_type
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
    neg,
    sign,
    sub,
)
from fxflow.lax.elementwise import abs as abs_
from fxflow.lax.exponential import Logistic, LogisticSlope, TanhSlope, logistic
from fxflow.lax.powers import Square
from fxflow.lax.remat import CALLS, inlined
from fxflow.lax.select import SelectN, select
from fxflow.lax.trigonometric import Tanh, tanh
from fxflow.transforms.passes.rewriting import written_out

#: Operations that cost less than to read an element from memory.
_CHEAP = frozenset(p.name for p in (Abs, Add, Div, Lt, Mul, Neg, SelectN, Square, Sub))
#: So many of them.
_FEW = 4


class _Recipe(NamedTuple):
    """How a residual follows from others.

    Attributes:
      sources: those, as the first loop stacks them.
      graph: computes it from one slice of each.
      output: which output of the graph it is.
    """

    sources: list[Var]
    graph: Graph
    output: int = 0


class _Pair(NamedTuple):
    """A value and its slope, which both follow from one number.

    Attributes:
      maker: the node of the value, logistic(x) or tanh(x).
      variables: the value and the slope.
      number: from which both follow.
      nodes: compute the value and the number from x.
      unpack: a graph of the value and the slope from the number.
    """

    maker: Node
    variables: tuple[Var, Var]
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
    # How each residual follows from others.
    recipes: dict[Var, _Recipe] = {}
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


def _recipes(scan: Node, wanted: set[Var]) -> tuple[Node, dict[Var, _Recipe]]:
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
    pairs = _pairs(body, {a for a, out in stacked.items() if out in wanted})
    unpacked = {v: pair for pair in pairs for v in pair.variables}
    makers = {n.outputs[0]: n for n in body.nodes if n.primitive.name in _CHEAP}
    gone: set[Var] = set()
    # In order: what another one follows from has been decided on before it.
    for atom in (a for n in body.nodes for a in n.outputs if a in stacked):
        out = stacked[atom]
        if out not in wanted or atom not in makers or atom in unpacked:
            continue
        nodes: dict[int, Node] = {}
        sources: dict[Var, None] = {}
        waiting: list[Any] = [atom]
        while waiting and len(nodes) <= _FEW:
            var = waiting.pop()
            if var is not atom and var in stacked and var not in gone:
                sources[var] = None
            elif var in makers:
                nodes[id(makers[var])] = makers[var]
                waiting += [a for a in makers[var].inputs if type(a) is Var]
            else:
                break
        else:
            if sources and len(nodes) <= _FEW:
                gone.add(atom)
                found[out] = atom, sources, [n for n in body.nodes if id(n) in nodes]
    if pairs:
        numbers = [pair.number for pair in pairs]
        outer = [Var(v.aval.update(shape=(p.length, *v.aval.shape))) for v in numbers]
        stacked.update(zip(numbers, outer, strict=True))
        packing = {id(pair.maker): pair.nodes for pair in pairs}
        body = body.replace(
            nodes=[new for n in body.nodes for new in packing.get(id(n), (n,))],
            outputs=[*body.outputs, *numbers],
        )
        scan = scan.replace(
            outputs=[*scan.outputs, *outer], params=vars(p.replace(graph=body))
        )
    recipes = {}
    for out, (atom, variables, steps) in found.items():
        graph = _recipe(atom, variables, steps, unpacked)
        recipes[out] = _Recipe([stacked[v] for v in graph.inputs], graph)
    for pair in pairs:
        for i, var in enumerate(pair.variables):
            recipes[stacked[var]] = _Recipe([stacked[pair.number]], pair.unpack, i)
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
            names.update(zip(pair.variables, results, strict=True))
    nodes += [n.replace(inputs=renamed(n.inputs, names)) for n in steps]
    outputs = renamed([atom], names)
    return Graph(list(inputs), live_nodes(nodes, outputs), outputs, "residual")


# -- a value and its slope in one number -----------------------------------------------


def _pairs(body: Graph, replaceable: Collection[Any]) -> list[_Pair]:
    """Returns the values and slopes of which a loop stacks both.

    Args:
      body: of the loop.
      replaceable: the stacked variables that need not be stacked.
    """
    slopes = {
        (n.primitive.name, n.inputs[0]): n
        for n in body.nodes
        if n.primitive.name in _SLOPES and n.outputs[0] in replaceable
    }
    found = []
    for node in body.nodes if slopes else ():
        kind = _PACKING.get(node.primitive.name)
        if kind is None or node.outputs[0] not in replaceable:
            continue
        slope = slopes.pop((kind.slope, node.inputs[0]), None)
        # Floats of 8 bits may lack infinities.
        if slope is None or node.outputs[0].aval.dtype.itemsize < 2:
            continue
        outs = node.outputs[0], slope.outputs[0]
        pack = _traced(kind.pack, node.inputs[0].aval)
        unpack = _traced(kind.unpack, pack.out_avals[0])
        nodes, (number, value) = written_out(pack, node.inputs)
        avals = [v.aval for v in outs]
        if type(value) is Var and [value.aval, avals[1]] == unpack.out_avals == avals:
            # The value keeps its name.
            own = {value: outs[0]}
            nodes = [
                n.replace(
                    inputs=renamed(n.inputs, own),
                    outputs=renamed(n.outputs, own),
                    source=node.source,
                    scope=node.scope,
                )
                for n in nodes
            ]
            found.append(_Pair(node, outs, number, nodes, unpack))
    return found


_graphs: Cache[Any, Graph] = Cache("graphs of residuals")


def _traced(compute: Callable[..., list[Any]], aval: Aval) -> Graph:
    """Returns the graph of a function of one array, which passes write out often."""
    known = _graphs.get((compute, aval))
    if known is None:
        known = trace_closed(compute, [aval], name="residual")
        _graphs[compute, aval] = known
    return known


def _pack_logistic(x: Any) -> list[Any]:
    """The smaller of logistic(x) and logistic(-x), negative if it is the second."""
    small = logistic(neg(abs_(x)))
    below = lt(x, 0.0)
    value = select(below, small, sub(1.0, small))
    return [select(below, small, neg(small)), value]


def _unpack_logistic(number: Any) -> list[Any]:
    # By its sign bit: the smaller one may be 0.
    bits = np.dtype(f"i{typeof(number).dtype.itemsize}")
    above = lt(bitcast_convert_type(number, bits), np.zeros((), bits)[()])
    small = abs_(number)
    rest = sub(1.0, small)
    return [select(above, rest, small), mul(small, rest)]


def _pack_tanh(x: Any) -> list[Any]:
    """tanh(x) below 1/2; beyond, the inverse of what is missing to 1: at least 2."""
    value = tanh(x)
    beyond = div(add(sign(value), value), TanhSlope.bind(x))
    return [select(lt(abs_(value), 0.5), value, beyond), value]


def _unpack_tanh(number: Any) -> list[Any]:
    size = abs_(number)
    near = lt(size, 1.0)
    missing = select(near, sub(1.0, size), div(1.0, size))
    value = select(near, number, mul(sign(number), sub(1.0, missing)))
    return [value, mul(missing, sub(2.0, missing))]


class _Packing(NamedTuple):
    """How a value and its slope become one number, and follow from it again.

    Attributes:
      slope: name of the primitive that computes the slope.
      pack: gives the number and the value for an operand.
      unpack: gives the value and the slope for a number.
    """

    slope: str
    pack: Callable[..., list[Any]]
    unpack: Callable[..., list[Any]]


_PACKING = {
    Logistic.name: _Packing(LogisticSlope.name, _pack_logistic, _unpack_logistic),
    Tanh.name: _Packing(TanhSlope.name, _pack_tanh, _unpack_tanh),
}
_SLOPES = frozenset(packing.slope for packing in _PACKING.values())


def _recomputing(scan: Node, recipes: dict[Var, _Recipe]) -> Node:
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
    # A value and its slope are two outputs of one graph.
    written: dict[Any, list[Any]] = {}
    for outer, var in slices:
        if outer not in recipes:
            continue
        sources, graph, output = recipes[outer]
        for source, inner in zip(sources, graph.inputs, strict=True):
            if source not in known:
                known[source] = Var(inner.aval)
                kept.append((source, known[source]))
        key = (graph, *sources)
        if key not in written:
            steps, outputs = written_out(graph, [known[source] for source in sources])
            nodes += steps
            written[key] = outputs
        names[var] = written[key][output]
    nodes += [n.replace(inputs=renamed(n.inputs, names)) for n in p.graph.nodes]
    outs = renamed(p.graph.outputs, names)
    body = Graph(
        [*p.graph.inputs[:split], *(var for _, var in kept)],
        live_nodes(nodes, outs),
        outs,
        p.graph.name,
    )
    inputs = [*scan.inputs[:split], *(outer for outer, _ in kept)]
    return scan.replace(inputs=inputs, params=vars(p.replace(graph=body)))
