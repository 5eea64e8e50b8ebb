"""Graph passes: what is rewritten between tracing and lowering, and in which order.

Each pass is a function from graph to graph that computes the same. It sees a graph that
is about to be compiled: derivatives, vectorization and what a user prints are those of
the program as it was written. `config.passes` says which run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fxflow._config import config
from fxflow.core.ir.discharge import discharge
from fxflow.core.ir.graph import Graph, Node, subgraphs, with_graphs
from fxflow.core.ir.higher_order import HigherOrder
from fxflow.core.runtime.eager import on_compile
from fxflow.devices.shardings import Sharding
from fxflow.lax.control_flow.scan import Scan
from fxflow.lax.dot import DotGeneral
from fxflow.lax.gather_scatter.gather import Gather
from fxflow.lax.gather_scatter.scatter import COMMUTING
from fxflow.lax.remat import CUSTOM_CALLS, Checkpoint, inlined
from fxflow.lax.sort import TopK
from fxflow.transforms import passes as all_passes
from fxflow.transforms.passes import GPU_PASSES, PASSES, rewriting
from fxflow.transforms.passes.rewriting import (
    ROW_STARTS,
    begins_chain,
    begins_rows,
)

# Operations on slices that passes look for; others begin at a scan, or a product.
_KERNELS = frozenset({"kernel_call", "sparse_product"})
_ROWS = COMMUTING | _KERNELS | {Gather.name, TopK.name, "conv_general_dilated"}
_COMPILE, _DIVIDE, _FUSE = "compile_kernels", "divide_kernels", "fuse_rows"
_JOIN, _FUSE_DIVIDED = "join_maps", "fuse_divided_rows"
# What a device has a kernel for in its part of a program.
_ON_PARTS = ROW_STARTS | _KERNELS
_STARTS = _ROWS | ROW_STARTS | {Scan.name, DotGeneral.name}
# Passes that may keep more in memory: never in what `checkpoint` computes again.
_STORING = frozenset({"split_loops"})
# Passes that make a program for this process's CPU: by kernels of our own, or because
# they were not measured elsewhere.
_NATIVE = frozenset(
    {
        *("scatter_sums", "pick_products", "flatten_products", "pack_products"),
        *("contract_convolutions", "fuse_rows", "compile_kernels"),
    }
)


def chosen_passes() -> tuple[str, ...]:
    """Returns the names of the passes that `config.passes` lets run, in order."""
    named = config.passes
    if named == "all":
        return tuple(PASSES)
    return tuple(name for name in PASSES if name in named.split(","))


def optimized(
    graph: Graph,
    passes: tuple[str, ...] | None = None,
    *,
    native: bool = False,
    triton: bool = False,
) -> Graph:
    """Returns a graph that computes the same, faster.

    Args:
      graph: of arrays on one device; one that names a mesh is left as it is.
      passes: names, in order; None: those of `config.passes`.
      native: whether the program is for the CPU of this process, and no other.
      triton: whether it is for a GPU for which XLA compiles kernels by Triton.

    Returns:
      A graph with the same inputs, and outputs of the same types; `graph` itself where
      there was nothing to do.
    """
    passes = chosen_passes() if passes is None else passes
    if triton:
        passes = tuple(GPU_PASSES.get(name, name) for name in passes)
    if not native:
        passes = tuple(name for name in passes if name not in _NATIVE)
    if not passes or not _has_work(graph):
        return graph
    # Its operations are divided over devices, which concatenating may undo.
    if graph.mesh is not None:
        return graph
    return _optimized(discharge(graph).graph, passes)


def _with_kernels(graph: Graph, placement: Any) -> Graph:
    """Returns the graph of an eager plan with its kernels compiled, as by `jit`.

    The other passes are for programs that run often enough to be jitted: they take time
    at the first call.
    """
    if graph.facts.names.isdisjoint(_KERNELS) or not placement.is_single:
        return graph
    if placement.platform != "cpu" or _COMPILE not in chosen_passes():
        return graph
    return optimized(graph, (_COMPILE,), native=True)


on_compile(_with_kernels)


def with_compiled_parts(
    graph: Graph,
    shardings: Sequence[Sharding | None] = (),
    *,
    triton: bool = False,
) -> Graph:
    """Returns a graph whose kernels are compiled where devices run them on parts.

    These are kernels in a `shard_map`, where functions of rows become kernels, too, and
    those whose operands' shardings say which programs a device runs. What the
    partitioner divides stays as it was written.

    Args:
      graph: of a program for this CPU's devices, or for GPUs.
      shardings: of its inputs; None where it is not known. Empty: none is.
      triton: whether it is for GPUs; see `optimized`.
    """
    chosen = chosen_passes()
    if _COMPILE not in chosen or graph.facts.names.isdisjoint(_ON_PARTS):
        return graph
    passes = tuple(name for name in (_FUSE, _COMPILE) if name in chosen)
    if triton:
        passes = (GPU_PASSES[_COMPILE],)
    if any(shardings) and _FUSE in passes:
        graph = getattr(all_passes, _FUSE_DIVIDED)(graph, shardings)
    if any(shardings) and not _KERNELS.isdisjoint(graph.facts.names):
        graph = getattr(all_passes, _DIVIDE)(graph, shardings, triton=triton)
    if _FUSE in passes:
        graph = getattr(all_passes, _JOIN)(graph)
    nodes = [_parts(node, passes) for node in graph.nodes]
    if all(a is b for a, b in zip(nodes, graph.nodes, strict=True)):
        return graph
    return graph.replace(nodes=nodes)


def _parts(node: Node, passes: tuple[str, ...]) -> Node:
    params = node.params
    if node.primitive.name != "shard_map":
        return node
    if params["graph"].facts.names.isdisjoint(_ON_PARTS):
        return node
    if set(params["axes"]) != set(params["mesh"].axis_names):
        return node
    with node.primitive.inside(params):
        inner = _optimized(params["graph"], passes)
    if inner.out_avals != params["graph"].out_avals:
        return node
    return node.replace(params={**params, "graph": inner})


def _has_work(graph: Graph) -> bool:
    """Returns whether a pass may find something, here or in a graph inside."""
    if graph.facts.names.isdisjoint(_STARTS):
        return False
    return graph.remembered("passes", lambda: _finds_work(graph))


def _finds_work(graph: Graph) -> bool:
    return any(
        node.primitive.name in _ROWS
        or (node.primitive.name == DotGeneral.name and node.outputs[0].aval.ndim > 2)
        or (node.primitive.name in ROW_STARTS and _begins_kernel(node))
        or (
            isinstance(node.primitive, HigherOrder)
            and (node.primitive.name == Scan.name or _work_inside(node))
        )
        for node in graph.nodes
    )


def _begins_kernel(node: Node) -> bool:
    aval = node.inputs[0].aval
    large = aval.is_symbolic or aval.size >= rewriting.LEAST
    return large and (begins_rows(node) or begins_chain(node))


def _work_inside(node: Node) -> bool:
    return any(_has_work(inner) for _, inner in subgraphs(node.params))


def _optimized(graph: Graph, passes: tuple[str, ...]) -> Graph:
    if not passes or not _has_work(graph):
        return graph
    return graph.remembered(("passes", passes), lambda: _run(graph, passes))


def _run(graph: Graph, passes: tuple[str, ...]) -> Graph:
    # What has a rule of its own is operations like any others now.
    start = changed = inlined(graph, CUSTOM_CALLS)
    nodes = [_inside(node, passes) for node in start.nodes]
    if any(a is not b for a, b in zip(nodes, start.nodes, strict=True)):
        changed = start.replace(nodes=nodes)
    for name in passes:
        changed = getattr(all_passes, name)(changed)
    if changed is start:
        return graph
    # A pass may not change a type, not even whether it is weak: callers rely on it.
    if changed.out_avals != graph.out_avals:
        return graph
    changed.num_consts = graph.num_consts
    return changed


def _inside(node: Node, passes: tuple[str, ...]) -> Node:
    """Returns the node with the graphs of its parameters rewritten."""
    if not (isinstance(node.primitive, HigherOrder) and _work_inside(node)):
        return node
    if node.primitive.name == Checkpoint.name:
        passes = tuple(name for name in passes if name not in _STORING)
    with node.primitive.inside(node.params):
        params = with_graphs(node.params, lambda inner: _optimized(inner, passes))
    if all(a is b for a, b in zip(params.values(), node.params.values(), strict=True)):
        return node
    return node.replace(params=params)
