"""The records of a shard: its position in the log, and the last push of each worker.

Replicas that have applied the same entries have equal records.
"""

from __future__ import annotations

import dataclasses
import enum
from typing import NamedTuple


class Position(NamedTuple):
    """The position of a copy of a shard in its log; equal positions mean equal copies.

    Attributes:
      epoch: the epoch of the last entry.
      entries: the number of entries applied.
    """

    epoch: int
    entries: int


class SnapshotProgress(NamedTuple):
    """The progress of a shard that lacks rows of the run's initial snapshot.

    Attributes:
      snapshot: the snapshot's name.
      parts: the number of parts of its rows.
      taken: the number of parts applied.
    """

    snapshot: str
    parts: int
    taken: int


@dataclasses.dataclass
class Counts:
    """Statistics of a shard.

    Attributes:
      pushes: gradients accepted.
      updates: updates made from them.
      dropped: gradients not used, by reason.
      repeated: pushes that had been accepted before.
      staleness: pushes applied, by staleness.
    """

    pushes: int = 0
    updates: int = 0
    dropped: dict[str, int] = dataclasses.field(default_factory=dict)
    repeated: int = 0
    staleness: dict[int, int] = dataclasses.field(default_factory=dict)


class Turn(enum.Enum):
    """How a number compares with the next one that a server expects."""

    NEXT = "next"
    SEEN = "seen"
    EARLY = "early"


@dataclasses.dataclass
class Ledger:
    """The number of each worker's last push: each push is applied exactly once.

    A worker numbers its pushes 1, 2, 3, … A server applies number n only after n - 1.
    It ignores repeated pushes, and refuses early ones, which the worker sends again.
    Absent workers keep their numbers: one that was considered lost and returns
    continues from its last number.
    """

    _last: dict[int, int] = dataclasses.field(default_factory=dict)

    def last(self, worker: int) -> int:
        """Returns the last number of a worker; 0 before the first."""
        return self._last.get(worker, 0)

    def turn(self, worker: int, number: int) -> Turn:
        """Returns whether a number is the next, was seen, or is too early."""
        last = self.last(worker)
        if number <= last:
            return Turn.SEEN
        return Turn.NEXT if number == last + 1 else Turn.EARLY

    def note(self, worker: int, number: int) -> None:
        """Records that the next number of a worker has been applied.

        Raises:
          ValueError: it is not the next number.
        """
        if self.turn(worker, number) is not Turn.NEXT:
            raise ValueError(
                f"number {number} of worker {worker} after {self.last(worker)}"
            )
        self._last[worker] = number

    def items(self) -> list[tuple[int, int]]:
        """Returns the workers with their last numbers, for a snapshot."""
        return sorted(self._last.items())
