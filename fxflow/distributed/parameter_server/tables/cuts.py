"""The rows of a table at one moment, read in blocks while the table changes."""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fxflow.distributed.parameter_server.tables.disk import DiskRows
from fxflow.distributed.parameter_server.tables.memory import NONE, Ids, Memory, Slots

#: Maximum number of rows in a block, and of their bytes.
BLOCK, BLOCK_BYTES = 8192, 4 << 20


class RowBlock(NamedTuple):
    """Some rows of a table.

    Attributes:
      ids: int64[n], distinct.
      rows: `[n, *shape]`.
      state: arrays of the optimizer's state, each `[n, ...]`.
    """

    ids: Ids
    rows: npt.NDArray[Any]
    state: tuple[npt.NDArray[Any], ...]


class TableCut:
    """The rows of a table at the moment when the cut is made.

    Rows in memory are copied when their block is read, or before they change, whichever
    comes first; for rows on disk, LMDB keeps the pages of that moment.

    Args:
      memory: the rows in memory.
      disk: rows that are not in memory, and earlier values of some that are.
      only: ids of the rows to read, distinct, in increasing order; None: all. Their
        cost does not depend on the size of the table.

    Attributes:
      closed: whether reading has ended.
    """

    closed: bool

    def __init__(
        self, memory: Memory, disk: DiskRows | None, only: Ids | None = None
    ) -> None:
        self.closed = False
        self._memory, self._end = memory, memory.end
        row = sum(math.prod(f.shape[1:]) * f.dtype.itemsize for f in memory.fields)
        self._most = max(1, min(BLOCK, BLOCK_BYTES // max(row, 1)))
        self._copied: list[RowBlock] = []
        self._view = None if disk is None else disk.view()
        self._slots: Slots | None = None
        #: On disk: ids to read, or, for `only=None`, ids to skip, as memory has them.
        self._stored: Ids
        if only is None:
            self._waiting = memory.ids[: self._end] != NONE
            self._stored = np.sort(memory.ids[: self._end][memory.stored[: self._end]])
        else:
            slots = memory.find(only)
            self._slots = np.sort(slots[slots >= 0])
            self._stored = only[slots < 0]
            # Untouched pages of zeros take no memory.
            self._waiting = np.zeros(self._end, bool)
            self._waiting[self._slots] = True
        self._blocks = self._read()

    def changing(self, slots: Slots) -> None:
        """Copies rows that are about to change and were not read yet."""
        old = slots[slots < self._end]
        old = old[self._waiting[old]]
        old = np.unique(old)
        for start in range(0, len(old), self._most):
            self._copied.append(self._take(old[start : start + self._most]))

    def next(self) -> RowBlock | None:
        """Returns the next rows; None: there are no more.

        The table may change between calls, but not during one.
        """
        return next(self._blocks, None)

    def close(self) -> None:
        """Ends reading; any thread may call it at any time."""
        if self.closed:
            return
        self.closed = True
        self._blocks.close()
        if self._view is not None:
            self._view.close()

    def _read(self) -> Generator[RowBlock, None, None]:
        count = self._end if self._slots is None else len(self._slots)
        most = self._most
        for start in range(0, count, most):
            if self._slots is None:
                here = np.flatnonzero(self._waiting[start : start + most]) + start
            else:
                slots = self._slots[start : start + most]
                here = slots[self._waiting[slots]]
            if len(here):
                yield self._take(here)
            while self._copied:
                yield self._copied.pop()
        while self._copied:
            yield self._copied.pop()
        if self._view is not None and self._slots is not None:
            for start in range(0, len(self._stored), most):
                ids, fields = self._view.get(self._stored[start : start + most])
                yield _block(ids, fields)
        elif self._view is not None:
            while (found := self._view.read(most)) is not None:
                ids, fields = found
                alone = ~_among(ids, self._stored)
                if alone.any():
                    yield _block(ids[alone], [f[alone] for f in fields])

    def _take(self, slots: Slots) -> RowBlock:
        self._waiting[slots] = False
        return _block(self._memory.ids[slots], self._memory.gather(slots))


def _block(ids: Ids, fields: list[npt.NDArray[Any]]) -> RowBlock:
    return RowBlock(ids, fields[0], tuple(fields[1:]))


def _among(ids: Ids, others: Ids) -> npt.NDArray[np.bool_]:
    """Returns which ids are among others, which are sorted."""
    if len(others) == 0:
        return np.zeros(len(ids), bool)
    at = np.minimum(np.searchsorted(others, ids), len(others) - 1)
    among: npt.NDArray[np.bool_] = others[at] == ids
    return among
