"""A map from the ids of rows to their slots, made of NumPy arrays.

It uses linear hashing (Litwin 1980) with buckets of 16 entries: adding entries splits a
few buckets, so no call pays for a whole rehash. Entries that do not fit into their
bucket, well under 1 %, go to a dictionary. All operations take many ids at once, and an
id costs 40 bytes, a third of what a Python dictionary needs.

The arrays have room for `capacity` ids from the start: unwritten pages take no memory,
and arrays that never grow are never copied.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]
Slots = npt.NDArray[np.int64]

NONE = -1
_SHIFT = 4
_WIDTH = 1 << _SHIFT
# Mean number of entries per bucket. Buckets not yet split have up to twice as many, and
# then 1 in 40 entries overflows.
_MEAN = 5
_FIRST = 64
# From the finalizer of MurmurHash3.
_MIX = (np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53))
_HALF = np.uint64(32)


class IdIndex:
    """A map from distinct ids ≥ 0 to slots ≥ 0.

    Args:
      capacity: maximum number of ids.
    """

    count: int

    __slots__ = ("_full", "_ids", "_level", "_overflow", "_slots", "_split", "count")

    # Bytes per id, from which `capacity` may be derived.
    COST = (8 + 4) * _WIDTH // _MEAN + 1

    def __init__(self, capacity: int) -> None:
        buckets = max(_FIRST, -(-capacity // _MEAN))
        self._ids = np.empty((buckets, _WIDTH), np.int64)
        self._slots = np.empty(buckets * _WIDTH, np.int32)
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
        buckets = self._buckets(ids)
        found = np.full(len(ids), NONE, np.int64)
        which, entries = self._entries(ids, buckets)
        found[which] = self._slots[entries]
        if self._overflow:
            missing = (found < 0) & self._full[buckets]
            for i in np.flatnonzero(missing).tolist():
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
        which, entries = self._entries(ids, self._buckets(ids))
        self._ids.reshape(-1)[entries] = NONE
        for i in _others(which, len(ids)):
            del self._overflow[int(ids[i])]

    def _entries(self, ids: Ids, buckets: Slots) -> tuple[Slots, Slots]:
        """Returns which ids are in their buckets, and at which entries."""
        # With mode="clip" `take` is several times as fast; no bucket is out of range.
        equal = self._ids.take(buckets, axis=0, mode="clip") == ids[:, None]
        return self._picked(equal, buckets)

    def _picked(
        self, chosen: npt.NDArray[np.bool_], buckets: Slots
    ) -> tuple[Slots, Slots]:
        flat = np.flatnonzero(chosen)
        which = flat >> _SHIFT
        return which, (buckets[which] << _SHIFT) | (flat & (_WIDTH - 1))

    def _place(self, ids: Ids, slots: Slots) -> None:
        if len(ids) == 0:
            return
        buckets = self._buckets(ids)
        order = np.argsort(buckets, kind="stable")
        ids, slots, buckets = ids[order], slots[order], buckets[order]
        starts = np.flatnonzero(np.r_[True, buckets[1:] != buckets[:-1]])
        counts = np.diff(np.r_[starts, len(buckets)])
        # The nth id of a bucket goes to its nth empty entry.
        nth = np.arange(len(ids)) - np.repeat(starts, counts)
        empty = self._ids.take(buckets, axis=0, mode="clip") == NONE
        rank = np.cumsum(empty, axis=1, dtype=np.int8)
        chosen = empty & (rank == nth[:, None] + 1)
        which, entries = self._picked(chosen, buckets)
        self._ids.reshape(-1)[entries] = ids[which]
        self._slots[entries] = slots[which]
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
            entries = self._slots.reshape(-1, _WIDTH)
            entries[new] = entries[old]
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


def _others(which: Slots, count: int) -> list[int]:
    """Returns the numbers below `count` that are not in `which`."""
    if len(which) == count:
        return []
    others = np.ones(count, bool)
    others[which] = False
    return np.flatnonzero(others).tolist()
