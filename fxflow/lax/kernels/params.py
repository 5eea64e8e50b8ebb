"""The parameters of a kernel, and what follows from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeVar

from fxflow._frozen import Frozen
from fxflow.core.arrays import AbstractRef, Aval
from fxflow.core.ir.arith import zeros
from fxflow.core.ir.discharge import discharge
from fxflow.core.ir.graph import Graph
from fxflow.core.ir.higher_order import split_at
from fxflow.core.ir.staging import trace_flat
from fxflow.lax.kernels.blocks import ARBITRARY, SUM, Block
from fxflow.lax.kernels.errors import UnsupportedError

T = TypeVar("T")
#: Platforms for which there is a compiler of kernels.
PLATFORMS = ("cpu", "gpu")


class KernelParams(Frozen):
    """The parameters of `KernelCall`.

    Attributes:
      graph: of the body: inputs the program's ids (`s32[]`, one for each axis of the
        grid), the blocks of the operands (references, or arrays that it only reads),
        references to the blocks of the results, and scratch. It has no outputs.
      grid: the number of programs along each axis.
      kinds: of the axes: `PARALLEL`, `ARBITRARY` or `SUM`.
      blocks: of the operands, then of the results.
      outs: types of the results.
      aliases: pairs of an operand and the result that starts with its contents.
      reference: from the operands to the results, or None: what runs where no compiler
        knows the kernel, and what is differentiated where its programs cannot be.
      platforms: whose compilers it is for, of `PLATFORMS`.
    """

    graph: Graph
    grid: tuple[int, ...]
    kinds: tuple[str, ...]
    blocks: tuple[Block, ...]
    outs: tuple[Aval, ...]
    aliases: tuple[tuple[int, int], ...] = ()
    reference: Graph | None = None
    platforms: tuple[str, ...] = PLATFORMS

    @property
    def num_programs(self) -> int:
        """The number of points of the grid."""
        return math.prod(self.grid)

    @property
    def num_inputs(self) -> int:
        """The number of operands."""
        return len(self.blocks) - len(self.outs)

    @property
    def in_blocks(self) -> tuple[Block, ...]:
        """The blocks of the operands."""
        return self.blocks[: self.num_inputs]

    @property
    def out_blocks(self) -> tuple[Block, ...]:
        """The blocks of the results."""
        return self.blocks[self.num_inputs :]

    @property
    def scratch(self) -> list[Aval]:
        """The types of the scratch."""
        refs: Any = self.graph.in_avals[len(self.grid) + len(self.blocks) :]
        return [ref.inner_aval for ref in refs]

    def split(self, inputs: Sequence[T]) -> list[list[T]]:
        """Splits the body's inputs: ids, operands, results, scratch."""
        return split_at(inputs, len(self.grid), self.num_inputs, len(self.outs))

    @property
    def pure(self) -> Graph:
        """The body on values: what results and scratch hold after it, given before.

        Operands that it writes to keep their contents outside.
        """
        graph = self.graph
        first = len(graph.inputs) - len(self.outs) - len(self.scratch)
        wanted = frozenset(range(first, len(graph.inputs)))

        def derive() -> Graph:
            found = discharge(graph, wanted)
            outputs = dict(zip(found.written, found.graph.outputs, strict=True))
            return found.graph.replace(outputs=[outputs[i] for i in sorted(wanted)])

        return graph.remembered(("kernel body", first), derive)

    def mapped_axes(self) -> list[int]:
        """Returns the axes of the grid along which programs have blocks of their own.

        Those are parallel or summed, count blocks of each array along one axis at the
        most, and do not occur in a graph.
        """

        def separate(block: Block, g: int) -> bool:
            if block.axes is None:
                return not block.uses(g)
            return block.axes.count(g) <= 1

        return [
            g
            for g, kind in enumerate(self.kinds)
            if kind != ARBITRARY and all(separate(block, g) for block in self.blocks)
        ]

    def sums(self) -> list[bool]:
        """Returns which results are sums along an axis of the grid."""
        return [
            any(kind == SUM and not block.uses(g) for g, kind in enumerate(self.kinds))
            for block in self.out_blocks
        ]

    def keeps_contents(self) -> list[bool]:
        """Returns which results start with the contents of an operand."""
        aliased = {out for _, out in self.aliases}
        return [i in aliased for i in range(len(self.outs))]

    def initial(self, operands: Sequence[Any]) -> list[Any]:
        """Returns what results hold before the first program."""
        given = {out: operands[i] for i, out in self.aliases}
        return [
            given[i] if i in given else zeros(aval) for i, aval in enumerate(self.outs)
        ]

    def why_whole(self, nonzero: Sequence[bool] | None = None) -> str:
        """Returns why derivatives are not kernels; empty if they are.

        Args:
          nonzero: which operands have a tangent; None: all.
        """
        if self.is_in_order():
            return "a program may see what another wrote"
        blocks = zip(self.in_blocks, nonzero or [True] * self.num_inputs, strict=True)
        if any(block.axes is None for block, moves in blocks if moves):
            return "an index map computes which blocks an operand has"
        return ""

    def is_in_order(self) -> bool:
        """Returns whether a program may see what another wrote."""
        return ARBITRARY in self.kinds or bool(self.aliases)


def as_references(pure: Graph, params: KernelParams) -> Graph:
    """Returns a body that reads its blocks, computes, and writes its results.

    Args:
      pure: a graph of ids, operands, contents of results and scratch before, to those
        after.
      params: whose numbers of those hold, apart from `graph`.
    """
    num_ids, num_inputs = len(params.grid), params.num_inputs

    def body(*values: Any) -> list[Any]:
        refs = values[num_ids + num_inputs :]
        read = [ref[...] for ref in values[num_ids:]]
        after = pure.evaluate(*values[:num_ids], *read)
        for ref, value in zip(refs, after, strict=True):
            ref[...] = value
        return []

    avals = [
        *pure.in_avals[:num_ids],
        *(AbstractRef(a) for a in pure.in_avals[num_ids:]),
    ]
    graph, consts = trace_flat(body, avals, name=pure.name)
    assert not consts
    return graph


def require_covered(params: KernelParams) -> None:
    """Checks that each element of the results is in a block of some program.

    A compiled kernel gets results whose memory holds anything.

    Args:
      params: of the kernel.

    Raises:
      UnsupportedError: some may not be.
    """
    for aval, block in zip(params.outs, params.out_blocks, strict=True):
        if isinstance(block.index, Graph):
            raise UnsupportedError("blocks of results that an index map chooses")
        axes = [g for g in block.index if g is not None]
        if len(set(axes)) != len(axes):
            raise UnsupportedError("results whose blocks lie on a diagonal")
        for n, length, g in zip(aval.shape, block.lengths, block.index, strict=True):
            if length * (1 if g is None else params.grid[g]) < n:
                raise UnsupportedError("elements of results in no program's block")
