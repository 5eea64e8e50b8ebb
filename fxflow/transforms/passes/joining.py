"""A gradient through a `shard_map` is one `shard_map`: values and gradients together.

The derivative of a `shard_map` is two of them: one computes values and leaves
residuals, the other one takes them. Where nothing outside lies between the two, each
device may run both as one graph: residuals need no memory of their own then, and
functions of rows and their gradients become one kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import Any

from fxflow.core.ir.graph import Graph, Node, Var, prune, renamed
from fxflow.devices.meshes import PartitionSpec, names_of
from fxflow.lax.remat import CALLS, inlined
from fxflow.lax.shard_map import ShardMap, ShardMapParams
from fxflow.transforms.passes.rewriting import written_out


def join_maps(graph: Graph) -> Graph:
    """Returns the graph with `shard_map`s that read each other as one.

    Args:
      graph: of any operations; graphs inside are left as they are.
    """
    start = inlined(graph, CALLS)
    nodes = list(start.nodes)
    i = 0
    while i < len(nodes):
        found = _with_an_earlier(nodes, i, start.outputs)
        if found is None:
            i += 1
        else:
            nodes, i = found
    if len(nodes) == len(start.nodes):
        return graph
    return start.replace(nodes=nodes)


def _with_an_earlier(
    nodes: list[Node], i: int, outputs: Sequence[Any]
) -> tuple[list[Node], int] | None:
    """Returns the nodes with that at `i` joined to one before it, and where it is."""
    second = nodes[i]
    if not _is_pure_map(second):
        return None
    reads = {a for a in second.inputs if type(a) is Var}
    for j in range(i - 1, -1, -1):
        first = nodes[j]
        if not _is_pure_map(first) or reads.isdisjoint(first.outputs):
            continue
        # What the second one needs runs before it, everything else behind it.
        made = set(first.outputs)
        behind: list[Node] = []
        before: list[Node] = []
        for node in nodes[j + 1 : i]:
            depends = not made.isdisjoint(a for a in node.inputs if type(a) is Var)
            (behind if depends else before).append(node)
            if depends:
                made.update(node.outputs)
        others = made.difference(first.outputs)
        if any(node.effects for node in behind) or not reads.isdisjoint(others):
            continue
        rest = [*behind, *nodes[i + 1 :]]
        read = {a for node in rest for a in node.inputs if type(a) is Var}
        joined = _joined(
            first, second, read.union(a for a in outputs if type(a) is Var)
        )
        if joined is not None:
            return [*nodes[:j], *before, joined, *rest], j + len(before)
    return None


def _is_pure_map(node: Node) -> bool:
    return node.primitive.name == ShardMap.name and not node.effects


def _joined(first: Node, second: Node, read: set[Any]) -> Node | None:
    """Returns one node for two, with the results that others read.

    None if a device's part of an array between the two is not what it is in both.
    """
    p, q = ShardMapParams(**first.params), ShardMapParams(**second.params)
    if (p.mesh, p.axes, p.check) != (q.mesh, q.axes, q.check):
        return None
    made = {v: i for i, v in enumerate(first.outputs)}
    inputs, in_specs = list(first.inputs), list(p.in_specs)
    variables = [Var(v.aval) for v in p.graph.inputs]
    nodes, results = written_out(p.graph, variables)
    given: list[Any] = []
    for atom, spec, var in zip(second.inputs, q.in_specs, q.graph.inputs, strict=True):
        i = made.get(atom) if type(atom) is Var else None
        if i is None:
            inputs.append(atom)
            in_specs.append(spec)
            variables.append(Var(var.aval))
            given.append(variables[-1])
        elif results[i].aval == var.aval and _same(p.out_specs[i], spec):
            given.append(results[i])
        else:
            return None
    more, outs = written_out(q.graph, given)
    kept = [v in read for v in first.outputs]
    ends = [*compress(results, kept), *outs]
    whole = Graph(variables, *_without_reshapes([*nodes, *more], ends), q.graph.name)
    params = q.replace(
        graph=prune(whole),
        in_specs=tuple(in_specs),
        out_specs=(*compress(p.out_specs, kept), *q.out_specs),
    )
    outputs = [*compress(first.outputs, kept), *second.outputs]
    return second.replace(inputs=inputs, outputs=outputs, params=vars(params))


def _same(a: PartitionSpec, b: PartitionSpec) -> bool:
    """Returns whether two specs divide an array alike."""
    return _entries(a) == _entries(b)


def _entries(spec: PartitionSpec) -> list[Any]:
    entries = [names_of(entry) for entry in spec]
    while entries and not entries[-1]:
        entries.pop()
    return entries


def _without_reshapes(
    nodes: Sequence[Node], outputs: Sequence[Any]
) -> tuple[list[Node], list[Any]]:
    """Returns nodes and outputs; nothing is reshaped and back, as residuals were."""
    source: dict[Any, Any] = {}
    names: dict[Any, Any] = {}
    kept = []
    for node in nodes:
        node = node.replace(inputs=renamed(node.inputs, names))
        if node.primitive.name == "reshape" and type(node.inputs[0]) is Var:
            (out,), (given,) = node.outputs, node.inputs
            before = source.get(given)
            if before is not None and before.aval == out.aval:
                names[out] = before
                continue
            source[out] = given
        kept.append(node)
    return kept, renamed(outputs, names)
