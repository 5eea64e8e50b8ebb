"""Meshes in plans of `dataflow.jit`: what is placed on one is divided over it by cost.

A mesh's fragments are divided together, as one graph, so that a value is divided in one
way for all of them. What the mesh takes from other places is sent to it divided.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from fxflow.core.ir.graph import Graph, Var
from fxflow.dataflow.costs import Costs
from fxflow.dataflow.cutting import Fragment
from fxflow.dataflow.placing import Place
from fxflow.dataflow.sharding.collectives import totals
from fxflow.dataflow.sharding.constraints import constrain
from fxflow.dataflow.sharding.sharded import Sharded, shard
from fxflow.devices import buffers
from fxflow.devices.meshes import Mesh
from fxflow.devices.shardings import NamedSharding


class DividedMesh:
    """How the values of the fragments of a mesh are divided over it.

    Args:
      fragments: that run on the mesh, in order.
      mesh: their place.
      costs: by which the division is chosen.

    Attributes:
      sharded: all fragments as one graph, with its choices.
    """

    def __init__(self, fragments: Sequence[Fragment], mesh: Mesh, costs: Costs) -> None:
        nodes = [node for fragment in fragments for node in fragment.graph.nodes]
        made = {var for node in nodes for var in node.outputs}
        inputs = dict.fromkeys(
            var for f in fragments for var in f.graph.inputs if var not in made
        )
        outputs = dict.fromkeys(var for f in fragments for var in f.results)
        limit = costs.memory(mesh.flat[0])
        self.sharded: Sharded = shard(
            Graph(list(inputs), nodes, list(outputs)),
            mesh,
            costs,
            limit=math.inf if limit is None else limit,
        )
        # The number of each fragment's first operation.
        self._first: dict[int, int] = {}
        count = 0
        for fragment in fragments:
            self._first[fragment.index] = count
            count += len(fragment.graph.nodes)

    def place(self, var: Var) -> Place:
        """Returns the devices that have a value, with the part that each has."""
        found: Place = buffers.placement_for(self.sharded.sharding_of(var))
        return found

    def constrained(self, fragment: Fragment) -> Graph:
        """Returns a fragment's graph with its sharding constraints."""
        first = self._first[fragment.index]
        last = first + len(fragment.graph.nodes)
        own = [
            c._replace(path=(c.path[0] - first, *c.path[1:]))
            for c in self.sharded.constraints
            if first <= c.path[0] < last
        ]
        return constrain(fragment.graph, own)

    def describe(self) -> str:
        """Returns in words what is divided, and what the devices send each other."""
        inputs = self.sharded.inputs
        divided = sum(not sharding.is_fully_replicated for sharding in inputs)
        found = totals(self.sharded.collectives)
        sent = ", ".join(
            f"{count:,.0f} {kind} of {nbytes:,.0f} bytes"
            for (kind, _), (count, nbytes) in found.items()
        )
        return f"{divided} of {len(inputs)} values divided, {sent or 'no collectives'}"


def divided_meshes(
    fragments: Sequence[Fragment], costs: Costs
) -> dict[Place, DividedMesh]:
    """Returns for each mesh of a plan how its values are divided.

    Args:
      fragments: of the plan.
      costs: by which the division is chosen.
    """
    found: dict[Place, DividedMesh] = {}
    for place in dict.fromkeys(fragment.place for fragment in fragments):
        sharding: Any = getattr(place, "sharding", None)
        if not isinstance(sharding, NamedSharding) or not sharding.mesh.auto_axes:
            continue
        mesh = sharding.mesh
        if isinstance(mesh, Mesh) and not mesh.explicit_axes and mesh.size > 1:
            own = [f for f in fragments if f.place is place]
            found[place] = DividedMesh(own, mesh, costs)
    return found
