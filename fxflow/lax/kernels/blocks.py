"""Blocks: how the programs of a kernel divide an array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow._frozen import Frozen
from fxflow.core.arrays import Aval
from fxflow.core.ir.graph import Graph, Var, used_inputs
from fxflow.core.ir.higher_order import run_host

Shape = tuple[int, ...]
#: Programs are independent of each other, and write to distinct blocks.
PARALLEL = "parallel"
#: Programs run in order; an output, and scratch, keeps what the one before wrote.
ARBITRARY = "arbitrary"
#: An output whose block does not depend on this axis is the sum over it.
SUM = "sum"
KINDS = (PARALLEL, ARBITRARY, SUM)
#: The type of a program's id along an axis of the grid.
ID = Aval((), np.dtype(np.int32))


class Block(Frozen):
    """The block of an operand or a result that a program gets.

    Attributes:
      shape: lengths; None for an axis of length 1 that the program does not see.
      index: which block, in units of blocks: for each axis the axis of the grid that
        counts its blocks, or None for the first block; or a graph from the program's
        ids (`s32[]`) to integers, one for each axis.
    """

    shape: tuple[int | None, ...]
    index: tuple[int | None, ...] | Graph

    @property
    def lengths(self) -> Shape:
        """The lengths of the block along all axes of the array."""
        return tuple(1 if n is None else n for n in self.shape)

    @property
    def seen(self) -> Shape:
        """The shape that the program sees."""
        return tuple(n for n in self.shape if n is not None)

    @property
    def squeezed(self) -> Shape:
        """The axes that the program does not see."""
        return tuple(i for i, n in enumerate(self.shape) if n is None)

    @property
    def axes(self) -> tuple[int | None, ...] | None:
        """The axes of the grid that count the blocks, or None if a graph does."""
        return None if isinstance(self.index, Graph) else self.index

    def uses(self, grid_axis: int) -> bool:
        """Returns whether the block depends on an axis of the grid."""
        if isinstance(self.index, Graph):
            return used_inputs(self.index)[grid_axis]
        return grid_axis in self.index

    def starts(self, ids: Sequence[int]) -> Shape:
        """Returns the first element of the block of a program.

        Args:
          ids: of the program.
        """
        if isinstance(self.index, Graph):
            values = run_host(self.index, [np.int32(i) for i in ids])
            at = [int(v) for v in values]
        else:
            at = [0 if axis is None else ids[axis] for axis in self.index]
        return tuple(i * n for i, n in zip(at, self.lengths, strict=True))

    def with_axis_in_front(self, *, uses: bool) -> Block:
        """Returns the block in a grid with one more axis in front.

        Args:
          uses: whether the array has one more axis, too, which that axis counts.
        """
        index: Any = self.index
        if isinstance(index, Graph):
            index = _with_id_in_front(index, uses)
        else:
            index = tuple(None if axis is None else axis + 1 for axis in index)
            index = (0, *index) if uses else index
        return Block((None, *self.shape) if uses else self.shape, index)


def _with_id_in_front(graph: Graph, returned: bool) -> Graph:
    def derive() -> Graph:
        first = Var(ID)
        outputs = [first, *graph.outputs] if returned else graph.outputs
        return graph.replace(inputs=[first, *graph.inputs], outputs=outputs)

    return graph.remembered(("id in front", returned), derive)
