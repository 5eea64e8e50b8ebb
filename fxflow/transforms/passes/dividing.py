"""Kernels of divided arrays: each device runs the programs of its part.

The partitioner divides operations on whole arrays; of a call of machine code it knows
nothing. Where a graph's inputs say how a kernel's operands are divided, and blocks do
not cross from one device's part to another's, the kernel becomes a `shard_map`: along
an axis of the grid that counts blocks of all operands with that axis, each device has a
part of the programs. What the axis sums is added up between devices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from fxflow.core.arrays import Aval
from fxflow.core.ir.graph import Graph, Node, Var, renamed, used_inputs
from fxflow.core.ir.staging import trace_closed
from fxflow.devices.meshes import Mesh, PartitionSpec
from fxflow.devices.shardings import NamedSharding, Sharding
from fxflow.lax.collectives import psum
from fxflow.lax.families import Elementwise
from fxflow.lax.kernels.blocks import SUM, Block
from fxflow.lax.kernels.call import KernelCall
from fxflow.lax.kernels.native import why_not
from fxflow.lax.kernels.params import KernelParams
from fxflow.lax.kernels.triton_call import why_no_triton
from fxflow.lax.linear_calls import LinearCall, LinearCallParams
from fxflow.lax.remat import CALLS, inlined
from fxflow.transforms.passes.divisions import Names, mesh_of, names_in
from fxflow.transforms.passes.rewriting import written_out
from fxflow.transforms.shard_map import shard_map


def divide_kernels(
    graph: Graph, shardings: Sequence[Sharding | None], *, triton: bool = False
) -> Graph:
    """Returns the graph with kernels of divided operands as `shard_map`s.

    Args:
      graph: of a program for CPU devices, or for GPUs; graphs inside are left as they
        are.
      shardings: of its inputs; None where it is not known.
      triton: whether it is for GPUs.
    """
    mesh = mesh_of(shardings)
    if mesh is None or KernelCall.name not in graph.facts.names:
        return graph
    start = _written_out(graph)
    names: dict[Any, Names] = {}
    for var, sharding in zip(start.inputs, shardings, strict=True):
        if isinstance(sharding, NamedSharding):
            names[var] = names_in(sharding.spec, var.aval.ndim)
    nodes: list[Node] = []
    replaced: dict[Any, Any] = {}
    for node in start.nodes:
        node = node.replace(inputs=renamed(node.inputs, replaced))
        made = None
        if node.primitive.name == KernelCall.name:
            made = _divided(node, mesh, names, why_no_triton if triton else why_not)
        if made is None:
            nodes.append(node)
            found = _followed(node, names)
            if found is not None:
                names[node.outputs[0]] = found
            continue
        copied, results, specs = made
        nodes += copied
        replaced.update(zip(node.outputs, results, strict=True))
        names.update(zip(results, specs, strict=True))
    if not replaced:
        return graph
    outputs = renamed(start.outputs, replaced)
    return start.replace(nodes=nodes, outputs=outputs)


def _written_out(graph: Graph) -> Graph:
    """Returns a graph with its calls written out, also those of linear functions."""
    graph = inlined(graph, CALLS)
    if LinearCall.name not in graph.facts.names:
        return graph
    nodes: list[Node] = []
    replaced: dict[Any, Any] = {}
    for node in graph.nodes:
        node = node.replace(inputs=renamed(node.inputs, replaced))
        if node.primitive.name != LinearCall.name:
            nodes.append(node)
            continue
        p = LinearCallParams(**node.params)
        copied, results = written_out(_written_out(p.graph), p.used(node.inputs))
        nodes += copied
        replaced.update(zip(node.outputs, results, strict=True))
    outputs = renamed(graph.outputs, replaced)
    return graph.replace(nodes=nodes, outputs=outputs)


def _followed(node: Node, names: dict[Any, Names]) -> Names | None:
    """Returns how an elementwise result is divided, if its operands say so."""
    if not isinstance(node.primitive, Elementwise) or len(node.outputs) != 1:
        return None
    shape = node.outputs[0].aval.shape
    arrays = [a for a in node.inputs if type(a) is Var and a.aval.shape == shape]
    found = {names.get(a) for a in arrays}
    return found.pop() if len(found) == 1 else None


class _Division(NamedTuple):
    """How a kernel is divided.

    Attributes:
      params: of the kernel of one device.
      axes: the mesh axes that divide each axis of the grid.
    """

    params: KernelParams
    axes: dict[int, tuple[Any, ...]]

    def names(self, block: Block) -> Names:
        """Returns the mesh axes that divide each axis of an array with such blocks."""
        if block.axes is None:
            return tuple(() for _ in block.shape)
        return tuple(() if g is None else self.axes.get(g, ()) for g in block.axes)

    def summed(self, block: Block) -> tuple[Any, ...]:
        """Returns the mesh axes over which a result with such blocks is a sum."""
        found: tuple[Any, ...] = ()
        for g, names in self.axes.items():
            if self.params.kinds[g] == SUM and not block.uses(g):
                found += names
        return found


def _divided(
    node: Node, mesh: Mesh, known: dict[Any, Names], why: Callable[..., str]
) -> tuple[list[Node], list[Any], list[Names]] | None:
    """Returns nodes in place of a kernel, its results, and how these are divided.

    None if blocks cross devices' parts, or there is a reason (`why`) not to compile it.
    """
    avals = [a.aval for a in node.inputs]
    given = [known.get(a) if type(a) is Var else None for a in node.inputs]
    found = _division(KernelParams(**node.params), avals, given, mesh)
    if found is None:
        return None
    params = found.params
    parts = [
        a.update(shape=_part(a.shape, found.names(b), mesh))
        for a, b in zip(avals, params.in_blocks, strict=True)
    ]
    if why(params, parts):
        return None

    def run(*operands: Any) -> list[Any]:
        results = []
        outs = KernelCall.bind(*operands, **vars(params))
        for x, block in zip(outs, params.out_blocks, strict=True):
            over = found.summed(block)
            results.append(psum(x, over) if over else x)
        return results

    in_specs = tuple(_spec(found.names(b)) for b in params.in_blocks)
    out_names = [found.names(b) for b in params.out_blocks]
    mapped = shard_map(
        run,
        mesh=mesh,
        in_specs=in_specs,
        out_specs=[_spec(names) for names in out_names],
        check=False,
    )
    graph = trace_closed(mapped, avals, name=params.graph.name)
    if graph.out_avals != [v.aval for v in node.outputs]:
        return None
    nodes, results = written_out(graph, node.inputs)
    nodes = [n.replace(source=node.source, scope=node.scope) for n in nodes]
    return nodes, results, out_names


def _spec(names: Names) -> PartitionSpec:
    return PartitionSpec(*(entry or None for entry in names))


def _part(shape: Sequence[int], names: Names, mesh: Mesh) -> tuple[int, ...]:
    """Returns the shape of one device's part."""
    return tuple(n // _size(entry, mesh) for n, entry in zip(shape, names, strict=True))


def _size(names: tuple[Any, ...], mesh: Mesh) -> int:
    return math.prod(mesh.shape[name] for name in names)


def _division(
    p: KernelParams, avals: Sequence[Aval], given: Sequence[Names | None], mesh: Mesh
) -> _Division | None:
    """Returns how the operands divide a kernel, or None if they do not."""
    axes: dict[int, tuple[Any, ...]] = {}
    for block, names in zip(p.in_blocks, given, strict=True):
        for d, entry in enumerate(names or ()):
            if not entry:
                continue
            g = None if block.axes is None else block.axes[d]
            if g is None or axes.setdefault(g, entry) != entry:
                return None
    used = [name for entry in axes.values() for name in entry]
    free = p.mapped_axes()
    reads_id = used_inputs(p.graph)
    if not axes or len(set(used)) < len(used) or p.pure.effects:
        return None
    for g, entry in axes.items():
        # A body that reads the id would count the programs of its device alone.
        if g not in free or reads_id[g] or p.grid[g] % _size(entry, mesh):
            return None
    for aval, block in zip((*avals, *p.outs), p.blocks, strict=True):
        for n, length, g in zip(
            aval.shape, block.lengths, block.axes or (), strict=False
        ):
            if g in axes and n != length * p.grid[g]:
                return None
    grid = tuple(n // _size(axes.get(g, ()), mesh) for g, n in enumerate(p.grid))
    found = _Division(p, axes)
    outs = tuple(
        a.update(shape=_part(a.shape, found.names(b), mesh))
        for a, b in zip(p.outs, p.out_blocks, strict=True)
    )
    return _Division(p.replace(grid=grid, outs=outs, reference=None), axes)
