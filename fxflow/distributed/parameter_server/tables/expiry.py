"""Walks through the rows of a table, a few with each push, to find expired ones."""

from __future__ import annotations

import numpy as np

from fxflow.distributed.parameter_server.tables.disk import DiskRows, DiskView
from fxflow.distributed.parameter_server.tables.memory import NONE, Ids, Memory, Slots

#: Rows to examine with each push: in memory, those for each pushed row, and on disk.
_IN_MEMORY, _FOR_EACH, _ON_DISK = 1024, 2, 128


class Sweep:
    """Positions of a walk through the rows in memory and through those on disk."""

    def __init__(self) -> None:
        self._next = 0
        self._view: DiskView | None = None

    def slots(self, memory: Memory, pushed: int) -> Slots:
        """Returns the slots in use among the next ones; begins again after the last.

        Args:
          memory: the rows in memory.
          pushed: number of rows that were pushed.
        """
        start = self._next
        stop = min(start + _IN_MEMORY + _FOR_EACH * pushed, memory.end)
        self._next = 0 if stop == memory.end else stop
        used: Slots = np.flatnonzero(memory.ids[start:stop] != NONE) + start
        return used

    def stored(self, disk: DiskRows, pushed: int) -> tuple[Ids, Ids]:
        """Returns the next rows on disk: ids, in increasing order, and last fields.

        Args:
          disk: the rows on disk; some may have changed since the walk began.
          pushed: number of rows that were pushed.
        """
        if self._view is None:
            self._view = disk.view()
        found = self._view.read(_ON_DISK + _FOR_EACH * pushed)
        if found is None:
            self.close()
            return np.empty(0, np.int64), np.empty(0, np.int64)
        ids, fields = found
        return ids, fields[-1]

    def close(self) -> None:
        """Ends the walk on disk, before the file is closed."""
        if self._view is not None:
            self._view.close()
            self._view = None
