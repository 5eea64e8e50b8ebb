"""Along which axes of a mesh a value differs between devices.

Inside `shard_map(check=True)` types tell: `Aval.vma` ("varying manual axes") has the
names of the mesh axes along which devices may hold different values. It is what a
derivative taken inside needs to know. A value that all devices along an axis share is
one value of the whole program: when each device uses it together with what is its own,
its cotangent is the sum of all devices' cotangents.

So two things happen where axes are *tracked*, and nothing anywhere else:

- a tangent has the type of its value (`cast`, in the derivative interpreters);
- a cotangent has the type of what it belongs to (`matched`, in
  `core/interpreters/transpose`): along an axis along which only the cotangent differs,
  it is summed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fxflow.core.arrays import Aval, Axes, typeof
from fxflow.core.ir.graph import Graph, Node, Var
from fxflow.core.ir.primitive import table
from fxflow.core.ir.trace import state
from fxflow.devices.meshes import Layout
from fxflow.devices.shardings import NamedSharding


# A set's order differs from process to process (hashes of strings are salted), and the
# processes of a program must write the same one.
def _in_order(names: Axes) -> tuple[Any, ...]:
    return tuple(name for name, *_ in state.axes if name in names)


def cast(value: Any, vma: Axes) -> Any:
    """Returns a value typed as one that differs along (at least) the given axes."""
    missing = _in_order(vma - typeof(value).vma)
    return table["pcast"].bind(value, axes=missing) if missing else value


def matched(cotangent: Any, vma: Axes) -> Any:
    """Returns the cotangent of a value that differs along exactly the given axes."""
    summed = _in_order(typeof(cotangent).vma - vma)
    if summed:
        cotangent = table["psum"].bind(cotangent, axes=summed, groups=None)
    return cast(cotangent, vma)


def divided_as(value: Any, aval: Aval) -> Any:
    """Returns a value that is divided as a type says; see `core/spmd/layouts`."""
    own, wanted = typeof(value).layout, aval.layout
    if own == wanted:
        return value
    layout = wanted or Layout(own.mesh, ((),) * aval.ndim)  # type: ignore[union-attr]
    to = NamedSharding(layout.mesh, layout.spec)
    return table["device_put"].bind(value, to=to, memory=None)


def with_outputs_varying(graph: Graph, vmas: Sequence[Axes]) -> Graph:
    """Returns a graph whose outputs are typed as differing along the given axes.

    Args:
      graph: of a loop's body or a branch.
      vmas: for each output, axes that its type shall have; further ones stay.
    """
    if not state.tracked:
        return graph
    missing = [
        _in_order(vma - atom.aval.vma)
        for atom, vma in zip(graph.outputs, vmas, strict=True)
    ]
    if not any(missing):
        return graph
    nodes, outputs = list(graph.nodes), []
    for atom, axes in zip(graph.outputs, missing, strict=True):
        if axes:
            var = Var(atom.aval.update(vma=atom.aval.vma.union(axes)))
            nodes.append(Node(table["pcast"], (atom,), (var,), {"axes": axes}))
            atom = var
        outputs.append(atom)
    return graph.replace(nodes=nodes, outputs=outputs)
