"""Kernels become calls of machine code, where LLVM can compile them (extra `kernels`).

A kernel that is not compiled is lowered as operations on whole arrays.
"""

from __future__ import annotations

from typing import Any

from fxflow.core.ir.graph import Graph, Node, renamed
from fxflow.core.ir.staging import trace_closed
from fxflow.lax.kernels.call import KernelCall
from fxflow.lax.kernels.native import native_call
from fxflow.lax.kernels.params import KernelParams
from fxflow.transforms.passes.rewriting import written_out


def compile_kernels(graph: Graph) -> Graph:
    """Returns the graph with its kernels compiled.

    Args:
      graph: of any operations; graphs inside are left as they are.
    """
    nodes: list[Node] = []
    names: dict[Any, Any] = {}
    for node in graph.nodes:
        node = node.replace(inputs=renamed(node.inputs, names))
        made = _compiled(node)
        if made is None:
            nodes.append(node)
            continue
        copied, results = made
        nodes += copied
        names.update(zip(node.outputs, results, strict=True))
    if not names:
        return graph
    return graph.replace(nodes=nodes, outputs=renamed(graph.outputs, names))


def _compiled(node: Node) -> tuple[list[Node], list[Any]] | None:
    if node.primitive.name != KernelCall.name:
        return None
    avals = [a.aval for a in node.inputs]
    call = native_call(KernelParams(**node.params), avals)
    if call is None:
        return None
    nodes, results = written_out(
        trace_closed(call, avals, name=KernelCall.name), node.inputs
    )
    return [n.replace(source=node.source, scope=node.scope) for n in nodes], results
