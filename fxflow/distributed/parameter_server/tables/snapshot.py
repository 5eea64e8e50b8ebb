"""The rows of a table at one moment, read while the table goes on."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fxflow.distributed.parameter_server.tables.disk import DiskRows
from fxflow.distributed.parameter_server.tables.index import NONE, Ids, Slots
from fxflow.distributed.parameter_server.tables.memory import Memory

BLOCK = 8192


class RowBlock(NamedTuple):
    """Some rows of a table.

    Attributes:
      ids: int64[n], distinct.
      rows: `[n, *shape]`.
      state: the arrays of the optimizer's state, `[n, ...]` each.
    """

    ids: Ids
    rows: npt.NDArray[Any]
    state: tuple[npt.NDArray[Any], ...]


class Cut:
    """The rows of a table as they are now.

    Rows in memory are copied when their block is read, or before they change, whichever
    comes first; for rows on disk LMDB keeps the pages of that moment.

    Args:
      memory: rows.
      disk: rows that are not in memory, and former states of some that are.
    """

    def __init__(self, memory: Memory, disk: DiskRows | None) -> None:
        self._memory, self._end = memory, memory.end
        self._waiting = memory.ids[: self._end] != NONE
        self._copied: list[RowBlock] = []
        self._view = None if disk is None else disk.view()
        self._newer = np.sort(memory.ids[: self._end][memory.stored[: self._end]])
        self._blocks = self._read()

    def changing(self, slots: Slots) -> None:
        """Copies those of the rows that are about to change and were not yet read."""
        old = slots[slots < self._end]
        old = old[self._waiting[old]]
        if len(old):
            self._copied.append(self._take(np.unique(old)))

    def next(self) -> RowBlock | None:
        """Returns the next rows; None: all were read.

        The table may change between two calls, not within one.
        """
        return next(self._blocks, None)

    def close(self) -> None:
        """Lets go of what is not yet read."""
        self._blocks.close()
        if self._view is not None:
            self._view.close()

    def _read(self) -> Generator[RowBlock, None, None]:
        for start in range(0, self._end, BLOCK):
            here = np.flatnonzero(self._waiting[start : start + BLOCK]) + start
            if len(here):
                yield self._take(here)
            while self._copied:
                yield self._copied.pop()
        while self._copied:
            yield self._copied.pop()
        while self._view is not None and (found := self._view.read()) is not None:
            ids, fields = found
            alone = ~_among(ids, self._newer)
            if alone.any():
                yield _block(ids[alone], [f[alone] for f in fields])

    def _take(self, slots: Slots) -> RowBlock:
        self._waiting[slots] = False
        return _block(self._memory.ids[slots], self._memory.gather(slots))


def _block(ids: Ids, fields: list[npt.NDArray[Any]]) -> RowBlock:
    return RowBlock(ids, fields[0], tuple(fields[1:]))


def _among(ids: Ids, others: Ids) -> npt.NDArray[np.bool_]:
    """Returns which ids are among others that are in order."""
    if len(others) == 0:
        return np.zeros(len(ids), bool)
    at = np.minimum(np.searchsorted(others, ids), len(others) - 1)
    among: npt.NDArray[np.bool_] = others[at] == ids
    return among
