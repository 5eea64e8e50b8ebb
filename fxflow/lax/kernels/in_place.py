"""Kernels that write a result into the memory of an operand.

Where nothing reads an operand after the kernel, XLA may give a result its memory. That
is right if each program reads no block of the operand but the one that it writes, and
reads it before.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from fxflow.core.arrays import Aval
from fxflow.core.ir.graph import Graph, Node, Var, renamed
from fxflow.core.ir.ref_index import WHOLE
from fxflow.lax.kernels.blocks import ARBITRARY
from fxflow.lax.kernels.params import KernelParams
from fxflow.lax.kernels.uses import uses_of
from fxflow.lax.remat import CALLS, inlined

#: An operand, and the result that has its memory.
Pair = tuple[int, int]
#: The least bytes of an operand whose memory is taken: such a kernel has a text of its
#: own, which is compiled once more.
LEAST = 1 << 20
#: Operations whose result XLA leaves where the operand is.
_VIEWS = frozenset({"reshape"})


def in_place(
    params: KernelParams, in_avals: Sequence[Aval], free: Collection[int]
) -> tuple[KernelParams, tuple[Pair, ...]]:
    """Returns a kernel, and which of its results take the memory of an operand.

    The result's reference then holds the operand's contents before the body, which
    reads them there.

    Args:
      params: of the kernel.
      in_avals: types of the operands.
      free: operands whose memory nothing reads after the kernel.
    """
    if params.aliases:
        _, operands, _, _ = params.split(uses_of(params.graph))
        alone = [not (use.reads or use.writes) for use in operands]
        return params, tuple(
            (i, k) for i, k in params.aliases if i in free and alone[i]
        )
    free = [i for i in free if in_avals[i].nbytes >= LEAST]
    if not free or not _is_apart(params):
        return params, ()
    for i in sorted(free, key=lambda i: -in_avals[i].nbytes):
        for out, aval in enumerate(params.outs):
            if (in_avals[i].shape, in_avals[i].dtype) != (aval.shape, aval.dtype):
                continue
            if params.in_blocks[i] != params.out_blocks[out]:
                continue
            graph = _reading_result(params, i, out)
            if graph is not None:
                return params.replace(graph=graph), ((i, out),)
    return params, ()


def _is_apart(params: KernelParams) -> bool:
    """Returns whether no program reads what another one writes, whatever it reads."""
    return all(
        n == 1 or kind != ARBITRARY
        for n, kind in zip(params.grid, params.kinds, strict=True)
    )


def _reading_result(params: KernelParams, i: int, out: int) -> Graph | None:
    """Returns a body that reads a result in place of an operand, and writes it last.

    None if programs share a block, or the body does more with them than to read the one
    and to write the whole of the other once.
    """
    index = params.out_blocks[out].axes
    if index is None or any(
        index.count(g) != 1 for g, n in enumerate(params.grid) if n > 1
    ):
        return None
    graph = inlined(params.graph, CALLS)
    _, inputs, outs, _ = params.split(graph.inputs)
    operand, result = inputs[i], outs[out]
    write = None
    nodes: list[Node] = []
    for node in graph.nodes:
        if operand in node.inputs and node.primitive.name != "get":
            return None
        if result not in node.inputs:
            nodes.append(node.replace(inputs=renamed(node.inputs, {operand: result})))
            continue
        if write is not None or not _writes_all(node, result, graph):
            return None
        write = node
    if write is None or operand is result:
        return None
    return graph.replace(nodes=[*nodes, write])


def _writes_all(node: Node, result: Var, graph: Graph) -> bool:
    return (
        node.primitive.name == "swap"
        and node.inputs[0] is result
        and node.params["index"] == WHOLE
        and not any(node.outputs[0] in n.inputs for n in graph.nodes)
    )


# -- which memory is free --------------------------------------------------------------


def free_operands(graph: Graph) -> dict[int, frozenset[int]]:
    """Returns for each node which of its operands nothing reads afterwards.

    These are made in the graph: a graph's inputs belong to its caller.

    Args:
      graph: of any operations.
    """
    root: dict[Var, Var] = {}
    last: dict[Var, int] = {}
    kept = set(graph.inputs)
    for i, node in enumerate(graph.nodes):
        own = [a for a in node.inputs if type(a) is Var]
        for a in own:
            last[root.get(a, a)] = i
        for v in node.outputs:
            known = node.primitive.name in _VIEWS and own
            root[v] = root.get(own[0], own[0]) if known else v
            # What is computed from numbers alone, XLA may keep as a constant.
            if not own:
                kept.add(v)
    kept.update(root.get(a, a) for a in graph.outputs if type(a) is Var)
    found = {}
    for i, node in enumerate(graph.nodes):
        roots = [root.get(a, a) if type(a) is Var else None for a in node.inputs]
        found[i] = frozenset(
            k
            for k, r in enumerate(roots)
            if r is not None and r not in kept
            if last[r] == i and roots.count(r) == 1
        )
    return found
