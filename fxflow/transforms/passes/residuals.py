"""Residuals: what one loop stacks for another, and the other can compute itself.

The derivative of a loop is a second one, which reads what each step of the first kept.
Of `s = logistic(x)` that is both `s` and `s * (1 - s)`: the second follows from the
first by two operations, which cost less than to write it and to read it again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fxflow.core.ir.graph import Graph, Node, Var, live_nodes, renamed
from fxflow.lax.control_flow.scan import Scan, ScanParams
from fxflow.lax.elementwise import Add, Mul, Neg, Sub
from fxflow.lax.remat import inlined
from fxflow.transforms.passes.rewriting import written_out

#: Operations that cost less than to read an element from memory.
_CHEAP = frozenset(p.name for p in (Add, Sub, Mul, Neg))
#: So many of them.
_FEW = 4


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
    for scan in scans:
        recipes.update(_recipes(scan, wanted))
    if not recipes:
        return graph
    nodes = [
        _recomputing(n, recipes) if n.primitive.name == Scan.name else n
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


def _recipes(scan: Node, wanted: set[Var]) -> dict[Var, tuple[list[Var], Graph]]:
    """Returns which of the outputs of a scan follow from its others, and how."""
    p = ScanParams(**scan.params)
    body = inlined(p.graph)
    stacked: dict[Any, Var] = {}
    found: dict[Var, tuple[list[Var], Graph]] = {}
    pairs = zip(body.outputs[p.num_carry :], scan.outputs[p.num_carry :], strict=True)
    # Of what is stacked twice one is enough.
    for atom, out in sorted(pairs, key=lambda pair: pair[1] in wanted):
        if type(atom) is not Var or stacked.setdefault(atom, out) is out:
            continue
        if out in wanted:
            found[out] = [stacked[atom]], Graph([atom], [], [atom], "residual")
    makers = {n.outputs[0]: n for n in body.nodes if n.primitive.name in _CHEAP}
    gone: set[Var] = set()
    # In order: what another one follows from has been decided on before it.
    for atom in (a for n in body.nodes for a in n.outputs if a in stacked):
        out = stacked[atom]
        if out not in wanted or atom not in makers:
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
                steps = [n for n in body.nodes if id(n) in nodes]
                recipe = Graph(list(sources), steps, [atom], "residual")
                found[out] = [stacked[v] for v in sources], recipe
    return found


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
