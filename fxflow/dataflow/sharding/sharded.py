"""A graph divided over a mesh: the choices for its values, made by cost."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fxflow.core.ir.graph import Graph, Var
from fxflow.dataflow.costs import Costs
from fxflow.dataflow.sharding.collectives import Collective, axis_names
from fxflow.dataflow.sharding.constraints import Constraint
from fxflow.dataflow.sharding.dimensions import NONE, Dimensions, dimensions_of
from fxflow.dataflow.sharding.model import Choices, MeshCosts, Model
from fxflow.dataflow.sharding.program import LITERAL, program_of
from fxflow.dataflow.sharding.solving import Solution, solve
from fxflow.dataflow.sharding.tying import tied
from fxflow.devices.meshes import Mesh, PartitionSpec
from fxflow.devices.shardings import NamedSharding


@dataclass
class Sharded:
    """A graph divided over a mesh.

    Attributes:
      graph: the whole.
      mesh: the devices.
      model: of what its choices cost.
      solution: the choices.
    """

    graph: Graph
    mesh: Mesh
    model: Model
    solution: Solution

    def masks_of(self, value: int) -> Choices:
        """Returns the mesh axes that divide each axis of a value, as bits."""
        found = self.model.stored_masks(self.model.row(value), self.solution.masks)
        assert found is not None
        return found

    def sharding(self, masks: Choices) -> NamedSharding:
        """Returns masks as a sharding."""
        entries = [axis_names(self.mesh, mask) or None for mask in masks]
        while entries and entries[-1] is None:
            entries.pop()
        return NamedSharding(self.mesh, PartitionSpec(*entries))

    def sharding_of(self, var: Any) -> NamedSharding:
        """Returns where a variable of the graph is; a constant is on all devices."""
        value = self.model.dims.program.vars.get(var) if isinstance(var, Var) else None
        return self.sharding(() if value is None else self.masks_of(value))

    @property
    def inputs(self) -> list[NamedSharding]:
        """Where each input is."""
        return [self.sharding(self.masks_of(v)) for v in self.model.dims.program.inputs]

    @property
    def outputs(self) -> list[NamedSharding]:
        """Where each output is."""
        return [
            self.sharding(() if v == LITERAL else self.masks_of(v))
            for v in self.model.dims.program.outputs
        ]

    @functools.cached_property
    def collectives(self) -> list[tuple[Collective, float]]:
        """The collectives that the model expects, and how often each runs."""
        masks = self.solution.masks
        return [
            (collective, count)
            for sign, count in self.model.signatures.items()
            for collective in self.model.collectives(sign, masks)
        ]

    @functools.cached_property
    def constraints(self) -> list[Constraint]:
        """What the partitioner does not find by itself."""
        masks, model = self.solution.masks, self.model
        found = []
        for number, op in enumerate(model.dims.program.ops):
            if op.node is None:
                continue
            sign = model.signature(number)
            for move in model.moves(sign, masks):
                if not move.masks:
                    continue
                row = sign.operands[move.position] if move.position >= 0 else None
                gathered = row is not None and row.store != NONE
                gathered = gathered and bool(masks[row.store])  # type: ignore[union-attr]
                found.append(
                    Constraint(
                        op.path,
                        move.position,
                        tuple(map(self.sharding, move.masks)),
                        gathered,
                    )
                )
        return found


def shard(
    graph: Graph,
    mesh: Mesh,
    costs: Costs,
    *,
    limit: float = math.inf,
    pinned: Mapping[int, Sequence[int]] | None = None,
    donated: Iterable[int] = (),
) -> Sharded:
    """Divides a graph over a mesh.

    Sharding constraints in the graph are followed where they divide an axis.

    Args:
      graph: of a function, or a part of one.
      mesh: devices of one kind.
      costs: what computing and sending takes.
      limit: of bytes on a device.
      pinned: the masks of inputs that are divided already, by number.
      donated: numbers of inputs whose memory results may take.

    Returns:
      The graph with its choices; `solution.least` is set if none keeps the limit.
    """
    program = program_of(graph)
    dims = dimensions_of(program)
    fixed: dict[int, int] = {}
    for number, masks in (pinned or {}).items():
        row = dims.axes[program.inputs[number]]
        fixed |= {d: m for d, m in zip(row, masks, strict=True) if d != NONE}
    given = [program.inputs[i] for i in donated]
    decisions, over = tied(dims), MeshCosts(mesh, costs)
    inside = _stated(dims, mesh)
    if inside.keys() - fixed.keys():
        model = Model(dims, decisions, over, {**inside, **fixed}, given)
        solution = solve(model, limit)
        # Constraints of one dimension may differ: then the compiler follows them.
        if math.isfinite(solution.seconds) and solution.least is None:
            return Sharded(graph, mesh, model, solution)
    model = Model(dims, decisions, over, fixed, given)
    return Sharded(graph, mesh, model, solve(model, limit))


def _stated(dims: Dimensions, mesh: Mesh) -> dict[int, int]:
    """Returns what sharding constraints inside a program say about its dimensions."""
    found: dict[int, int] = {}
    names = list(mesh.axis_names)
    for op in dims.program.ops:
        to = op.node.params.get("to") if op.node is not None else None
        if not isinstance(to, NamedSharding) or not to.mesh.same_grid(mesh):
            continue
        (value,) = op.outputs
        ndim = dims.program.avals[value].ndim
        for dimension, row in zip(dims.axes[value], to.padded(ndim), strict=True):
            mask = sum(1 << names.index(name) for name in row)
            if mask and dimension != NONE:
                found.setdefault(dimension, mask)
    return found
