"""Arrays whose last axes are rows, and how devices divide the rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from fxflow.core.arrays import Shape
from fxflow.devices.meshes import Mesh, PartitionSpec
from fxflow.lax.collectives import psum
from fxflow.transforms.passes.divisions import Names, joint, part_of
from fxflow.transforms.shard_map import shard_map

#: What an array is to the rows: all of their elements, one for each row, one for each
#: column, or one number.
FULL, ROW, COLUMN, NUMBER = "full", "row", "column", "number"


class Space(NamedTuple):
    """Arrays whose last axes are rows.

    Attributes:
      lead: lengths of the axes that count rows.
      tail: lengths of the axes of a row; none of them: arrays without rows, whose
        elements are computed one by one.
    """

    lead: Shape
    tail: Shape

    @property
    def rows(self) -> int:
        """The number of rows."""
        return math.prod(self.lead)

    @property
    def columns(self) -> int:
        """The length of a row."""
        return math.prod(self.tail)

    def kind(self, shape: Shape) -> str:
        """Returns what an array of a shape is to the rows; empty: none of it."""
        if shape == (*self.lead, *self.tail):
            return FULL
        if shape in (self.lead, (*self.lead, *(1 for _ in self.tail))):
            return ROW
        return NUMBER if not shape else ""

    def canonical(self, kind: str, rows: int) -> Shape:
        """Returns the shape of an array in a kernel, for a number of rows."""
        shapes = {
            FULL: (rows, self.columns) if self.tail else (rows,),
            ROW: (rows,),
            COLUMN: (self.columns,),
            NUMBER: (),
        }
        return shapes[kind]

    def counted(self, kind: str) -> tuple[int | None, ...]:
        """Returns which axes of such an array programs count blocks along."""
        full = (0, None) if self.tail else (0,)
        return {FULL: full, ROW: (0,), COLUMN: (None,), NUMBER: ()}[kind]


class Lead(NamedTuple):
    """How the axes that count rows are divided.

    Attributes:
      names: the mesh axes that divide each of them.
      part: their lengths on one device.
    """

    names: Names
    part: Shape


class Rows(NamedTuple):
    """Rows of arrays that devices divide.

    Attributes:
      mesh: the devices.
      known: how arrays are divided, those of which it is known.
    """

    mesh: Mesh
    known: Mapping[Any, Names]

    def lead(self, space: Space, given: Sequence[tuple[Any, str]]) -> Lead | None:
        """Returns how devices divide the rows of some operands.

        None if it is not known, if they disagree, or if a row is divided.
        """
        count = len(space.lead)
        found = []
        for atom, kind in given:
            if kind in (FULL, ROW):
                names = self.known.get(atom)
                if names is None or any(names[count:]):
                    return None
                found.append(names[:count])
        names = joint(found, count)
        used = {name for entry in names or () for name in entry}
        for atom, kind in given:
            # The partitioner would divide the result as this column is.
            column = self.known.get(atom) if kind == COLUMN else ()
            if column is None or any(used.isdisjoint(e) for e in column if e):
                return None
        part = None if names is None else part_of(space.lead, names, self.mesh)
        return None if names is None or part is None else Lead(names, part)

    def mapped(
        self, call: Any, lead: Lead, given: Sequence[str], outs: Sequence[str]
    ) -> Callable[..., list[Any]]:
        """Returns a function of whole arrays that runs one of each device's rows."""
        over = tuple(name for entry in lead.names for name in entry)
        rows = PartitionSpec(*(entry or None for entry in lead.names))

        def run(*operands: Any) -> list[Any]:
            return [
                psum(x, over) if kind == COLUMN and over else x
                for x, kind in zip(call(*operands), outs, strict=True)
            ]

        def specs(kinds: Sequence[str]) -> list[PartitionSpec]:
            return [rows if k in (FULL, ROW) else PartitionSpec() for k in kinds]

        mapped: Callable[..., list[Any]] = shard_map(
            run,
            mesh=self.mesh,
            in_specs=tuple(specs(given)),
            out_specs=specs(outs),
            check=False,
        )
        return mapped
