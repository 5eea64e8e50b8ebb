"""The rows in memory: an array for each field, an index, and statistics for eviction.

Arrays have room for the maximum number of rows from the start: unwritten pages take no
memory, nothing is ever copied to make room, and the address of a row takes one
multiplication in a table of any size.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fxflow.distributed.parameter_server.tables.index import NONE, IdIndex, Ids, Slots
from fxflow.distributed.parameter_server.tables.spec import Field
from fxflow.errors import OutOfMemoryError

# Bytes per row in addition to its fields.
_COST = IdIndex.COST + 8 + 8 + 4 + 1 + 1
# The index has slots of 32 bits.
_MOST = 2**31 - 1
# Number of rows sampled per eviction, of which the coldest is evicted, as in Redis: 10
# are hardly worse than all.
_SAMPLED = 10


class Memory:
    """Rows by id, in slots.

    Args:
      fields: fields of a row.
      capacity: maximum number of rows; None: as many as fit into the machine's memory.

    Attributes:
      fields: arrays `[capacity, ...]`.
      ids: id of the row in each slot; −1: none.
      dirty: whether a row differs from its copy on disk.
      stored: whether a row is also on disk.
      capacity: maximum number of rows.
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
        """Returns the slot of each id; −1 for missing ids."""
        return self._index.find(ids)

    def tick(self) -> None:
        """Begins a use of rows: those touched until the next one are not evicted."""
        self._clock += 1

    def touch(self, slots: Slots) -> None:
        """Records a use of rows."""
        self._used[slots] = self._clock
        self._uses[slots] += 1

    def add(self, ids: Ids) -> Slots:
        """Returns slots for missing rows; the caller writes their fields."""
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
        """Removes rows."""
        self._index.remove(self.ids[slots])
        self.ids[slots] = NONE
        self._free = np.concatenate([self._free, slots])

    def coldest(self, count: int, frequency: bool) -> Slots:
        """Returns slots of rows to evict, none of them touched since `tick`.

        Args:
          count: number of slots.
          frequency: whether to compare the number of uses before the time of the last.
        """
        slots = np.arange(self.end)
        if count * _SAMPLED < self.end:
            slots = np.unique(self._random.integers(0, self.end, count * _SAMPLED))
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
