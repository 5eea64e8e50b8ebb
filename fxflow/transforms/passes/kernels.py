"""Kernels become calls of machine code, where a compiler knows them.

For the CPU of this process LLVM compiles them (extra `kernels`); for NVIDIA's GPUs, XLA
does by Triton. A kernel that is not compiled is lowered as operations on whole arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fxflow.core.ir.graph import Graph, Node, renamed
from fxflow.core.ir.staging import trace_closed
from fxflow.lax.kernels.call import KernelCall
from fxflow.lax.kernels.in_place import free_operands
from fxflow.lax.kernels.native import native_call
from fxflow.lax.kernels.params import KernelParams
from fxflow.lax.kernels.triton_call import triton_call
from fxflow.lax.sparse_products import SparseProduct
from fxflow.lax.sparse_products import native_call as sparse_call
from fxflow.transforms.passes.rewriting import written_out

Compiler = Callable[..., Callable[..., list[Any]] | None]


def compile_kernels(graph: Graph) -> Graph:
    """Returns the graph with its kernels compiled for the CPU of this process.

    Args:
      graph: of any operations; graphs inside are left as they are.
    """
    return _with_calls(graph, native_call)


def compile_gpu_kernels(graph: Graph) -> Graph:
    """Returns the graph with its kernels as calls that XLA compiles by Triton.

    Args:
      graph: of any operations; graphs inside are left as they are.
    """
    return _with_calls(graph, triton_call)


def _with_calls(graph: Graph, compiler: Compiler) -> Graph:
    nodes: list[Node] = []
    names: dict[Any, Any] = {}
    free: dict[int, frozenset[int]] | None = None
    for i, node in enumerate(graph.nodes):
        if names:
            node = node.replace(inputs=renamed(node.inputs, names))
        if node.primitive.name not in (KernelCall.name, SparseProduct.name):
            nodes.append(node)
            continue
        free = free_operands(graph) if free is None else free
        made = _compiled(node, compiler, free[i])
        if made is None:
            nodes.append(node)
            continue
        copied, results = made
        nodes += copied
        names.update(zip(node.outputs, results, strict=True))
    if not names:
        return graph
    return graph.replace(nodes=nodes, outputs=renamed(graph.outputs, names))


def _compiled(
    node: Node, compiler: Compiler, free: frozenset[int]
) -> tuple[list[Node], list[Any]] | None:
    name = node.primitive.name
    avals = [a.aval for a in node.inputs]
    if name == KernelCall.name:
        params = KernelParams(**node.params)
        # XLA copies a named operand first if it is read afterwards.
        call = compiler(params, avals, free | {i for i, _ in params.aliases})
    elif compiler is native_call:
        call = sparse_call(avals, **node.params)
    else:
        call = None
    if call is None:
        return None
    nodes, results = written_out(trace_closed(call, avals, name=name), node.inputs)
    return [n.replace(source=node.source, scope=node.scope) for n in nodes], results
