"""How arrays of a program are divided over devices, as far as its inputs say.

The partitioner decides it when XLA compiles the program; a pass before has to know it
from the shardings of the inputs. This is the part of the partitioner's rules that data
parallelism and products divided by rows or columns need, forwards only. What it does
not find is unknown. A pass that divides an array otherwise than the partitioner does
costs a copy, not a wrong number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fxflow.core.ir.graph import Graph, Node, Var
from fxflow.devices.meshes import Mesh, PartitionSpec, names_of
from fxflow.devices.shardings import NamedSharding, Sharding
from fxflow.lax.families import Elementwise

#: The mesh axes that divide each axis of an array.
Names = tuple[tuple[Any, ...], ...]


def mesh_of(shardings: Sequence[Sharding | None]) -> Mesh | None:
    """Returns the mesh over which all arrays are divided; None if there is none."""
    known = [s for s in shardings if isinstance(s, NamedSharding)]
    if not known:
        return None
    mesh = known[0].mesh
    if mesh.explicit_axes or any(s.mesh != mesh for s in known):
        return None
    return mesh


def names_in(spec: PartitionSpec, ndim: int) -> Names:
    """Returns the mesh axes that divide each axis of an array."""
    entries = [names_of(entry) for entry in spec]
    return (*entries, *(() for _ in range(ndim - len(entries))))


def part_of(shape: Sequence[int], names: Names, mesh: Mesh) -> tuple[int, ...] | None:
    """Returns the shape of one device's part; None: parts differ in length."""
    sizes = [math.prod(mesh.shape[name] for name in entry) for entry in names]
    if any(n % size for n, size in zip(shape, sizes, strict=True)):
        return None
    return tuple(n // size for n, size in zip(shape, sizes, strict=True))


def divisions(
    graph: Graph, shardings: Sequence[Sharding | None], mesh: Mesh
) -> dict[Any, Names]:
    """Returns how the arrays of a graph are divided, those of which it is known.

    Args:
      graph: without calls.
      shardings: of its inputs; None: each device has the whole array.
      mesh: over which they are divided.
    """
    known: dict[Any, Names] = {}
    for var, sharding in zip(graph.inputs, shardings, strict=True):
        if isinstance(sharding, NamedSharding):
            known[var] = names_in(sharding.spec, var.aval.ndim)
        elif sharding is None:
            known[var] = ((),) * var.aval.ndim
    for node in graph.nodes:
        if node.primitive.name == "shard_map":
            for var, spec in zip(node.outputs, node.params["out_specs"], strict=True):
                if node.params["mesh"] == mesh:
                    known[var] = names_in(spec, var.aval.ndim)
            continue
        given = [
            known.get(a) if type(a) is Var else ((),) * a.aval.ndim for a in node.inputs
        ]
        if len(node.outputs) != 1:
            continue
        found = _followed(node, given, mesh)
        if found is not None and _is_right(found):
            known[node.outputs[0]] = found
    return known


def joint(entries: Sequence[Names], ndim: int) -> Names | None:
    """Returns how an array is divided whose operands are; None if they disagree."""
    out: list[tuple[Any, ...]] = [()] * ndim
    for names in entries:
        for d, entry in enumerate(names):
            if entry and out[d] and entry != out[d]:
                return None
            out[d] = out[d] or entry
    return tuple(out) if _is_right(out) else None


def _is_right(names: Sequence[tuple[Any, ...]]) -> bool:
    """Returns whether no mesh axis divides two axes."""
    used = [name for entry in names for name in entry]
    return len(set(used)) == len(used)


def _followed(node: Node, given: Sequence[Names | None], mesh: Mesh) -> Names | None:
    name, out = node.primitive.name, node.outputs[0].aval
    if name == "device_put":
        to = node.params["to"]
        if isinstance(to, NamedSharding) and to.mesh == mesh:
            return names_in(to.spec, out.ndim)
        return given[0]
    rule = _RULES.get(name)
    if rule is None and name.startswith("reduce_") and "axes" in node.params:
        rule = _reduced
    if rule is None and isinstance(node.primitive, Elementwise):
        rule = _elementwise
    if rule is None or any(names is None for names in given):
        return None
    return rule(node, given)


def _elementwise(node: Node, given: Sequence[Any]) -> Names | None:
    ndim = node.outputs[0].aval.ndim
    return joint([names for names in given if len(names) == ndim], ndim)


def _broadcast(node: Node, given: Sequence[Any]) -> Names | None:
    shape = node.outputs[0].aval.shape
    out: list[tuple[Any, ...]] = [()] * len(shape)
    axes = node.params["broadcast_dimensions"]
    for d, n, entry in zip(axes, node.inputs[0].aval.shape, given[0], strict=True):
        out[d] = entry if n == shape[d] else ()
    return tuple(out)


def _reduced(node: Node, given: Sequence[Any]) -> Names | None:
    axes = node.params["axes"]
    return tuple(entry for d, entry in enumerate(given[0]) if d not in axes)


def _transposed(node: Node, given: Sequence[Any]) -> Names | None:
    return tuple(given[0][d] for d in node.params["permutation"])


def _reshaped(node: Node, given: Sequence[Any]) -> Names | None:
    """Where axes are joined or split, the first one of each group may be divided."""
    old = list(zip(node.inputs[0].aval.shape, given[0], strict=True))
    new = node.outputs[0].aval.shape
    out: list[tuple[Any, ...]] = [()] * len(new)
    i = d = 0
    while i < len(old) and d < len(new):
        first, start, ends = i, d, d + 1
        size, length = old[i][0], new[d]
        i += 1
        while size != length:
            if size < length:
                size *= old[i][0]
                i += 1
            else:
                length *= new[ends]
                ends += 1
        d = ends
        inner = [pair for pair in old[first:i] if pair[0] != 1]
        if any(entry for _, entry in inner[1:]):
            return None
        place = next((k for k in range(start, ends) if new[k] != 1), None)
        if inner and inner[0][1] and place is not None:
            out[place] = inner[0][1]
    return tuple(out)


def _sliced(node: Node, given: Sequence[Any]) -> Names | None:
    shapes = zip(node.inputs[0].aval.shape, node.outputs[0].aval.shape, strict=True)
    whole = [n == m for n, m in shapes]
    names: Names = given[0]
    return names if all(w for w, e in zip(whole, names, strict=True) if e) else None


def _gathered(node: Node, given: Sequence[Any]) -> Names | None:
    """Slices are divided as their indices are, and as slices of whole axes are."""
    numbers, sizes = node.params["dimension_numbers"], node.params["slice_sizes"]
    if numbers.operand_batching_dims:
        return None
    operand, indices = given
    shape = node.inputs[0].aval.shape
    inside = iter(
        operand[d] if sizes[d] == shape[d] else ()
        for d in range(len(shape))
        if d not in numbers.collapsed_slice_dims
    )
    outside = iter(indices[:-1])
    return tuple(
        next(inside if d in numbers.offset_dims else outside)
        for d in range(node.outputs[0].aval.ndim)
    )


def _product(node: Node, given: Sequence[Any]) -> Names | None:
    (lc, rc), (lb, rb) = node.params["dimension_numbers"]
    left, right = given
    batch = joint([[left[d] for d in lb], [right[d] for d in rb]], len(lb))  # type: ignore[list-item]
    if batch is None:
        return None
    free = [e for d, e in enumerate(left) if d not in (*lc, *lb)]
    free += [e for d, e in enumerate(right) if d not in (*rc, *rb)]
    return (*batch, *free)


_RULES: Mapping[str, Callable[[Node, Sequence[Any]], Names | None]] = {
    "broadcast_in_dim": _broadcast,
    "transpose": _transposed,
    "reshape": _reshaped,
    "gather": _gathered,
    "select_n": _elementwise,
    "slice": _sliced,
    "dot_general": _product,
    "iota": lambda node, _: ((),) * node.outputs[0].aval.ndim,
    "broadcasted_iota": lambda node, _: ((),) * node.outputs[0].aval.ndim,
    "argmax": lambda node, given: _without(given[0], node.params["axis"]),
    "argmin": lambda node, given: _without(given[0], node.params["axis"]),
}


def _without(names: Any, axis: int) -> Names:
    return (*names[:axis], *names[axis + 1 :])
