"""Counts how often ids were pushed, in memory of a fixed size: a count-min sketch.

A table may train a row only once its id has been pushed several times (`admit_after=`),
since most ids of a log occur once. The sketch has a few rows of small counters; the
count of an id is the least of its counters. Other ids can only increase it, so an id is
never admitted too late; it is admitted too early only if it shares all of its counters.
Counts are halved from time to time, so that old ids are forgotten.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fxflow.distributed.parameter_server.tables.memory import Ids

#: Counters for each hash, and the number of hashes: 4 MiB together.
CELLS, HASHES = 1 << 20, 4
#: The largest count.
MOST = 255
# Odd multipliers, from the finalizers of MurmurHash3 and SplitMix64.
_MULTIPLIERS = (
    0xFF51AFD7ED558CCD,
    0xC4CEB9FE1A85EC53,
    0xBF58476D1CE4E5B9,
    0x94D049BB133111EB,
)


class FrequencySketch:
    """Approximate counts of ids, never too low until they are halved.

    Args:
      cells: number of counters for each hash, a power of two. Counts are halved after
        as many additions.

    Source: Cormode, Muthukrishnan 2005, "An improved data stream summary: the count-min
    sketch and its applications", with the conservative update of Estan, Varghese 2002
    and the aging of Einziger, Friedman, Manes 2017 ("TinyLFU").

    Example:
      >>> sketch = FrequencySketch()
      >>> sketch.add(np.array([7, 10**12])).tolist()
      [1, 1]
      >>> sketch.add(np.array([7])).tolist()
      [2]
    """

    #: uint8[hashes, cells]: the counters.
    counts: npt.NDArray[np.uint8]
    #: Number of additions since the counts were last halved.
    added: int

    def __init__(self, cells: int = CELLS) -> None:
        self.counts = np.zeros((HASHES, cells), np.uint8)
        self.added = 0

    def add(self, ids: Ids) -> npt.NDArray[np.int64]:
        """Counts ids once more, and returns their counts.

        Args:
          ids: int64[n], distinct.
        """
        places = self._places(ids)
        rows = np.arange(len(self.counts))[:, None]
        found = self.counts[rows, places].min(axis=0)
        new = np.where(found < MOST, found + np.uint8(1), found)
        # Counters that other ids have increased further stay as they are.
        np.maximum.at(self.counts, (rows, places), new)
        self.added += len(ids)
        if self.added >= self.counts.shape[1]:
            self.counts >>= 1
            self.added = 0
        wide: npt.NDArray[np.int64] = new.astype(np.int64)
        return wide

    def state(self) -> list[npt.NDArray[Any]]:
        """Returns the state as arrays, which are copies."""
        return [self.counts.copy(), np.array(self.added, np.int64)]

    def load(self, state: list[npt.NDArray[Any]]) -> None:
        """Replaces the state.

        Args:
          state: what `state` returned.

        Raises:
          ValueError: it is not the state of a sketch of this size.
        """
        counts, added = state
        if counts.shape != self.counts.shape or counts.dtype != np.uint8:
            raise ValueError(
                f"counts of ids must be uint8{list(self.counts.shape)}, got "
                f"{counts.dtype}{list(counts.shape)}"
            )
        self.counts, self.added = counts.copy(), int(added)

    def _places(self, ids: Ids) -> npt.NDArray[np.int64]:
        """Returns the counter of each id, for each hash."""
        shift = np.uint64(64 - (self.counts.shape[1].bit_length() - 1))
        mixed = ids.view(np.uint64)
        mixed = mixed ^ (mixed >> np.uint64(33))
        found: list[npt.NDArray[np.uint64]] = []
        for multiplier in _MULTIPLIERS[: len(self.counts)]:
            mixed = mixed * np.uint64(multiplier)
            mixed = mixed ^ (mixed >> np.uint64(29))
            found.append((mixed * np.uint64(_MULTIPLIERS[0])) >> shift)
        places: npt.NDArray[np.int64] = np.stack(found).astype(np.int64)
        return places
