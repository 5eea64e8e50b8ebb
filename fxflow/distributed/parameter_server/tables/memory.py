"""The rows in memory: an array for each field, an index, and what eviction looks at.

Arrays have room for all rows there may be from the start: pages without a write take no
memory, nothing is ever copied to make room, and a row is one offset away in a table of
any size.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fxflow.distributed.parameter_server.tables.index import NONE, IdIndex, Ids, Slots
from fxflow.distributed.parameter_server.tables.row_programs import Field
from fxflow.errors import OutOfMemoryError

# Bytes for each row of what is beside its fields.
_COST = IdIndex.COST + 8 + 8 + 4 + 1 + 1
# Slots are 32 bits in the index.
_MOST = 2**31 - 1
# Rows drawn for each eviction, of which the coldest is evicted, as in Redis: 10 are
# hardly worse than all.
_DRAWN = 10


class Memory:
    """Rows by id, in slots.

    Args:
      fields: of a row.
      capacity: the most rows there may be; None: what the machine's memory holds.

    Attributes:
      fields: arrays `[capacity, ...]`.
      ids: of the row in each slot; −1: none.
      dirty: whether a row differs from what is on disk.
      stored: whether a row is on disk too.
      capacity: the most rows there may be.
    """

    dirty: np.ndarray[Any, Any]
    end: int
    fields: list[np.ndarray[Any, Any]]
    ids: np.ndarray[Any, Any]
    stored: np.ndarray[Any, Any]

    def __init__(self, fields: Sequence[Field], capacity: int | None) -> None:
        cost = _COST + sum(f.dtype.itemsize * math.prod(f.shape) for f in fields)
        known = capacity is not None
        if capacity is None:
            pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
            capacity = pages * size // cost
        capacity = min(capacity, _MOST)
        while True:
            try:
                self._reserve(fields, capacity)
                break
            except MemoryError:
                # The process may have less address space than there is memory.
                if known or capacity < 1024:
                    raise OutOfMemoryError(
                        f"{capacity} rows of {cost} bytes need {capacity * cost} bytes"
                    ) from None
                capacity //= 2
        self.capacity = capacity
        self._random = np.random.default_rng(0)
        self.clear()

    def _reserve(self, fields: Sequence[Field], capacity: int) -> None:
        self.fields = [np.empty((capacity, *f.shape), f.dtype) for f in fields]
        self.ids = np.empty(capacity, np.int64)
        self.dirty = np.zeros(capacity, bool)
        self.stored = np.zeros(capacity, bool)
        self._used = np.empty(capacity, np.int64)
        self._uses = np.empty(capacity, np.int32)
        self._index = IdIndex(capacity)

    def clear(self) -> None:
        """Removes all rows."""
        self._index.clear()
        # Slots below `end` are in use or in `_free`.
        self.end = 0
        self._free = np.empty(0, np.int64)
        self._clock = 0

    def __len__(self) -> int:
        return self._index.count

    def find(self, ids: Ids) -> Slots:
        """Returns the slot of each id; −1 for those that are not here."""
        return self._index.find(ids)

    def tick(self) -> None:
        """Begins a use of rows: those touched from here on are not evicted in it."""
        self._clock += 1

    def touch(self, slots: Slots) -> None:
        """Notes a use of rows."""
        self._used[slots] = self._clock
        self._uses[slots] += 1

    def add(self, ids: Ids) -> Slots:
        """Gives slots to rows that are not here; their fields are to be written."""
        reused = min(len(ids), len(self._free))
        slots = np.empty(len(ids), np.int64)
        slots[:reused] = self._free[len(self._free) - reused :]
        self._free = self._free[: len(self._free) - reused]
        end = self.end + len(ids) - reused
        slots[reused:] = np.arange(self.end, end)
        self.end = end
        self._index.insert(ids, slots)
        self.ids[slots] = ids
        self.dirty[slots] = self.stored[slots] = False
        self._used[slots] = self._clock
        self._uses[slots] = 0
        return slots

    def remove(self, slots: Slots) -> None:
        """Takes rows out."""
        self._index.remove(self.ids[slots])
        self.ids[slots] = NONE
        self._free = np.concatenate([self._free, slots])

    def coldest(self, count: int, frequency: bool) -> Slots:
        """Returns slots of rows to evict; none of those touched since `tick`.

        Args:
          count: how many.
          frequency: whether uses count before how long ago the last one was.
        """
        slots = np.arange(self.end)
        if count * _DRAWN < self.end:
            slots = np.unique(self._random.integers(0, self.end, count * _DRAWN))
        slots = self._cold(slots)
        if len(slots) < count:
            slots = self._cold(np.arange(self.end))
        if len(slots) <= count:
            return slots
        score = self._used[slots]
        if frequency:
            score = (self._uses[slots].astype(np.int64) << 32) + (score & 0xFFFFFFFF)
        coldest: Slots = slots[np.argpartition(score, count)[:count]]
        return coldest

    def _cold(self, slots: Slots) -> Slots:
        cold: Slots = slots[
            (self._used[slots] < self._clock) & (self.ids[slots] != NONE)
        ]
        return cold

    def gather(self, slots: Slots) -> list[npt.NDArray[Any]]:
        """Returns the fields of rows."""
        # With mode="clip" `take` is several times as fast; no slot is out of range.
        return [f.take(slots, axis=0, mode="clip") for f in self.fields]

    def write(self, slots: Slots, fields: Sequence[npt.ArrayLike]) -> None:
        """Writes the fields of rows."""
        for own, new in zip(self.fields, fields):
            own[slots] = new
