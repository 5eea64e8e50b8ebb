"""Running a kernel program by program with NumPy: the oracle of all other ways."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from fxflow.core.arrays import Aval
from fxflow.core.ir.higher_order import run_host
from fxflow.lax.kernels.blocks import ARBITRARY, Block
from fxflow.lax.kernels.params import KernelParams

Ids = tuple[int, ...]
Values = list[Any]


def run_programs(params: KernelParams, operands: Sequence[Any]) -> Values:
    """Runs the programs of a kernel in order.

    Args:
      params: of the kernel.
      operands: NumPy arrays.

    Returns:
      The results: NumPy arrays.
    """
    if checking.kernel is not None:
        return checking.kernel(params, operands)
    return Run(params, operands).all(np.ndindex(params.grid))


class _Checking(threading.local):
    """What runs kernels in place of `run_programs` in this thread.

    Attributes:
      kernel: gets the parameters and the operands; None: nothing else does.
    """

    kernel: Callable[[KernelParams, Sequence[Any]], Values] | None = None


checking: _Checking = _Checking()


class Run:
    """One run of a kernel.

    Args:
      params: of the kernel.
      operands: NumPy arrays.
      filled: returns the contents of results, blocks and scratch that no program has
        written.

    Attributes:
      results: NumPy arrays.
    """

    params: KernelParams

    def __init__(
        self,
        params: KernelParams,
        operands: Sequence[Any],
        filled: Callable[[Aval, tuple[int, ...]], Any] | None = None,
    ) -> None:
        self.params, self._operands = params, [np.asarray(x) for x in operands]
        self._filled = filled or (lambda aval, shape: np.zeros(shape, aval.dtype))
        given = {out: np.array(self._operands[i]) for i, out in params.aliases}
        sums = params.sums()
        self.results: Values = [
            given[i]
            if i in given
            else np.zeros(a.shape, a.dtype)
            if sums[i]
            else self._filled(a, a.shape)
            for i, a in enumerate(params.outs)
        ]
        self._sums = sums
        self._scratch: tuple[Ids, Values] | None = None

    def all(self, programs: Iterable[Ids]) -> Values:
        """Runs programs; returns the results."""
        for ids in programs:
            self.program(ids)
        return self.results

    def program(self, ids: Ids) -> None:
        """Runs one program."""
        self.store(ids, self.compute(ids, self.blocks(ids)))

    def blocks(self, ids: Ids) -> Values:
        """Returns the blocks of the results before a program."""
        outs = zip(self.results, self.params.out_blocks, self._sums, strict=True)
        return [
            np.zeros(block.seen, x.dtype) if summed else cut(x, block, ids)
            for x, block, summed in outs
        ]

    def compute(self, ids: Ids, before: Values) -> Values:
        """Returns the blocks of the results after a program."""
        params = self.params
        blocks = [
            cut(x, block, ids)
            for x, block in zip(self._operands, params.in_blocks, strict=True)
        ]
        numbers = [np.int32(i) for i in ids]
        after = run_host(
            params.pure, [*numbers, *blocks, *before, *self._scratch_of(ids)]
        )
        count = len(params.outs)
        if self._scratch is not None:
            self._scratch = self._scratch[0], after[count:]
        return after[:count]

    def store(self, ids: Ids, after: Values) -> None:
        """Writes the blocks of a program to the results."""
        for x, part, block, summed in zip(
            self.results, after, self.params.out_blocks, self._sums, strict=True
        ):
            paste(x, part, block, ids, added=summed)

    def _scratch_of(self, ids: Ids) -> Values:
        """Returns the scratch of a program: that of the one before it in order."""
        params = self.params
        if not params.scratch:
            return []
        kinds = params.kinds
        row = tuple(i for i, k in zip(ids, kinds, strict=True) if k != ARBITRARY)
        if self._scratch is None or self._scratch[0] != row:
            self._scratch = row, [self._filled(a, a.shape) for a in params.scratch]
        return self._scratch[1]


def cut(x: Any, block: Block, ids: Ids) -> Any:
    """Returns the block of a program, with zeros past the end of the array."""
    part = np.zeros(block.lengths, x.dtype)
    there, here = overlap(x.shape, block, ids)
    part[here] = x[there]
    return part.reshape(block.seen)


def paste(x: Any, part: Any, block: Block, ids: Ids, *, added: bool) -> None:
    """Writes the block of a program to an array, or adds it; drops what is behind."""
    there, here = overlap(x.shape, block, ids)
    part = np.asarray(part, x.dtype).reshape(block.lengths)[here]
    x[there] = x[there] + part if added else part


def overlap(
    shape: Sequence[int], block: Block, ids: Ids
) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """Returns the part of an array that a program's block covers, and where it is.

    Args:
      shape: shape of the array.
      block: of the program.
      ids: of the program.

    Returns:
      Slices of the array, and those of the block.
    """
    there, here = [], []
    for start, length, n in zip(block.starts(ids), block.lengths, shape, strict=True):
        first = min(max(start, 0), n)
        last = max(min(start + length, n), first)
        there.append(slice(first, last))
        here.append(slice(first - start, last - start))
    return tuple(there), tuple(here)
