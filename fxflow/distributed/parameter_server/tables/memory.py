"""The rows in memory: an array for each field, an index, and statistics for eviction.

Arrays have room for the maximum number of rows from the start: unwritten pages take no
memory, nothing is ever copied to make room, and the address of a row takes one
multiplication in a table of any size.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fxflow.devices.buffers import aligned_empty
from fxflow.devices.memory import host_memory
from fxflow.distributed.parameter_server.tables.spec import Field
from fxflow.errors import OutOfMemoryError

Ids = npt.NDArray[np.int64]
Slots = npt.NDArray[np.int64]

NONE = -1
_SHIFT = 4
_WIDTH = 1 << _SHIFT
# Number of int32 in a bucket: ids of 64 bits, then slots of 32 bits.
_RECORD = 3 * _WIDTH
# Number of ids that are looked up together: copies of their buckets fit into the cache.
_LOOKED_UP = 1024
# Mean number of entries per bucket. Buckets not yet split have up to twice as many, and
# then 1 in 40 entries overflows.
_MEAN = 5
_FIRST = 64
# From the finalizer of MurmurHash3.
_MIX = (np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53))
_HALF = np.uint64(32)


class IdIndex:
    """A map from distinct ids ≥ 0 to slots ≥ 0, made of NumPy arrays.

    It uses linear hashing (Litwin 1980) with buckets of 16 entries: adding entries
    splits a few buckets, so no call pays for a whole rehash. Entries that do not fit
    into their bucket, well under 1 %, go to a dictionary. All operations take many ids
    at once, and an id costs 40 bytes, a third of what a Python dictionary needs.

    Args:
      capacity: maximum number of ids.
    """

    __slots__ = (
        "_copy",
        "_full",
        "_ids",
        "_level",
        "_overflow",
        "_records",
        "_slots",
        "_split",
        "count",
    )

    count: int

    # Bytes per id, from which `capacity` may be derived.
    COST = (8 + 4) * _WIDTH // _MEAN + 1

    def __init__(self, capacity: int) -> None:
        buckets = max(_FIRST, -(-capacity // _MEAN))
        # A bucket's ids and slots are neighbours: a lookup reads three cache lines.
        self._records = aligned_empty((buckets, _RECORD), np.int32)
        self._ids, self._slots = _parts(self._records)
        self._copy = np.empty((_LOOKED_UP, _RECORD), np.int32)
        # Whether the dictionary has, or had, an entry of the bucket.
        self._full = np.empty(buckets, bool)
        self.clear()

    def clear(self) -> None:
        """Removes all ids."""
        # There are `_level` + `_split` buckets: the first `_split` have been split.
        self._level, self._split, self.count = _FIRST, 0, 0
        self._ids[:_FIRST] = NONE
        self._full[:_FIRST] = False
        self._overflow: dict[int, int] = {}

    def find(self, ids: Ids) -> Slots:
        """Returns the slot of each id; −1 for missing ids."""
        found = np.full(len(ids), NONE, np.int64)
        for start in range(0, len(ids), _LOOKED_UP):
            some = slice(start, start + _LOOKED_UP)
            found[some] = self._find(ids[some])
        return found

    def _find(self, ids: Ids) -> Slots:
        """Returns the slots of at most `_LOOKED_UP` ids."""
        buckets = self._buckets(ids)
        found = np.full(len(ids), NONE, np.int64)
        own, slots = self._read(buckets, self._copy[: len(ids)])
        which, entries = _chosen(own == ids[:, None])
        found[which] = slots[which, entries]
        if self._overflow:
            missing = (found < 0).nonzero()[0]
            for i in missing[self._full[buckets[missing]]].tolist():
                found[i] = self._overflow.get(int(ids[i]), NONE)
        return found

    def insert(self, ids: Ids, slots: Slots) -> None:
        """Adds distinct ids that are missing."""
        self.count += len(ids)
        self._grow(-(-self.count // _MEAN))
        self._place(ids, slots)

    def remove(self, ids: Ids) -> None:
        """Removes distinct ids that exist."""
        self.count -= len(ids)
        buckets = self._buckets(ids)
        which, entries = _chosen(self._read(buckets)[0] == ids[:, None])
        self._ids[buckets[which], entries] = NONE
        for i in _others(which, len(ids)):
            del self._overflow[int(ids[i])]

    def _read(
        self, buckets: Slots, out: npt.NDArray[np.int32] | None = None
    ) -> tuple[Ids, npt.NDArray[np.int32]]:
        """Returns copies of the ids and of the slots of buckets, each `[n, _WIDTH]`."""
        # With mode="clip" `take` is several times as fast; no bucket is out of range.
        return _parts(self._records.take(buckets, axis=0, out=out, mode="clip"))

    def _place(self, ids: Ids, slots: Slots) -> None:
        if len(ids) == 0:
            return
        buckets = self._buckets(ids)
        order = np.argsort(buckets, kind="stable")
        ids, slots, buckets = ids[order], slots[order], buckets[order]
        first = np.empty(len(ids), bool)
        first[0] = True
        np.not_equal(buckets[1:], buckets[:-1], out=first[1:])
        starts = first.nonzero()[0]
        # The nth id of a bucket goes to its nth empty entry.
        nth = np.arange(len(ids)) - starts[np.cumsum(first) - 1]
        empty = self._read(buckets)[0] == NONE
        rank = np.cumsum(empty, axis=1, dtype=np.int8)
        chosen = empty & (rank == nth[:, None] + 1)
        which, entries = _chosen(chosen)
        self._ids[buckets[which], entries] = ids[which]
        self._slots[buckets[which], entries] = slots[which]
        for i in _others(which, len(ids)):
            self._full[buckets[i]] = True
            self._overflow[int(ids[i])] = int(slots[i])

    def _hashes(self, ids: Ids) -> Slots:
        mixed = ids.view(np.uint64) * _MIX[0]
        mixed ^= mixed >> _HALF
        mixed *= _MIX[1]
        mixed >>= _HALF
        return mixed.view(np.int64)

    def _buckets(self, ids: Ids) -> Slots:
        buckets = self._hashes(ids) & (2 * self._level - 1)
        return np.where(
            buckets >= self._level + self._split, buckets - self._level, buckets
        )

    def _grow(self, wanted: int) -> None:
        """Splits buckets until there are at least `wanted`."""
        while (more := wanted - self._level - self._split) > 0:
            more = min(more, self._level - self._split)
            old = slice(self._split, self._split + more)
            new = slice(old.start + self._level, old.stop + self._level)
            ids = self._ids[old]
            moved = (self._hashes(ids) & self._level) != 0
            self._ids[new] = np.where(moved, ids, NONE)
            self._ids[old] = np.where(moved, NONE, ids)
            self._slots[new] = self._slots[old]
            self._full[new] = self._full[old]
            self._split += more
            if self._split == self._level:
                self._level, self._split = 2 * self._level, 0
                self._place_again()

    def _place_again(self) -> None:
        """Places overflowed entries again, now that there are twice as many buckets."""
        self._full[: self._level] = False
        again, self._overflow = self._overflow, {}
        ids = np.fromiter(again.keys(), np.int64, len(again))
        self._place(ids, np.fromiter(again.values(), np.int64, len(again)))


def _parts(records: npt.NDArray[np.int32]) -> tuple[Ids, npt.NDArray[np.int32]]:
    """Returns views of the ids and of the slots of buckets, each `[n, _WIDTH]`."""
    return records[:, : 2 * _WIDTH].view(np.int64), records[:, 2 * _WIDTH :]


def _chosen(entries: npt.NDArray[np.bool_]) -> tuple[Slots, Slots]:
    """Returns rows and columns of the true entries of `[n, _WIDTH]`."""
    # At a quarter of the time of `nonzero` for a few rows.
    flat = entries.ravel().nonzero()[0]
    return flat >> _SHIFT, flat & (_WIDTH - 1)


def _others(which: Slots, count: int) -> list[int]:
    """Returns the numbers below `count` that are not in `which`."""
    if len(which) == count:
        return []
    others = np.ones(count, bool)
    others[which] = False
    return others.nonzero()[0].tolist()


# -- rows ------------------------------------------------------------------------------

# Bytes per row in addition to its fields.
_COST = IdIndex.COST + 8
# And if rows are evicted.
_EVICTION_COST = 8 + 4 + 1 + 1
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
      evicts: whether `coldest` is called. If not, uses of rows are not recorded: in a
        large table, a write for each row takes as long as reading the row.

    Attributes:
      fields: arrays `[capacity, ...]`.
      ids: id of the row in each slot; −1: none.
      dirty: whether a row differs from its copy on disk.
      stored: whether a row is also on disk.
      capacity: maximum number of rows.
    """

    end: int

    def __init__(
        self, fields: Sequence[Field], capacity: int | None, *, evicts: bool = True
    ) -> None:
        self._evicts = evicts
        cost = _COST + (_EVICTION_COST if evicts else 0)
        cost += sum(f.dtype.itemsize * math.prod(f.shape) for f in fields)
        known = capacity is not None
        if capacity is None:
            capacity = host_memory() // cost or _MOST
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
        self.fields: list[np.ndarray[Any, Any]] = [
            np.empty((capacity, *f.shape), f.dtype) for f in fields
        ]
        self.ids: np.ndarray[Any, Any] = np.empty(capacity, np.int64)
        self.dirty: np.ndarray[Any, Any] = np.zeros(capacity, bool)
        self.stored: np.ndarray[Any, Any] = np.zeros(capacity, bool)
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
        """Records a use of rows, if rows are evicted."""
        if not self._evicts:
            return
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
        if self._evicts:
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
