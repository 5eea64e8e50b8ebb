"""The number of each worker's last push: each push is applied exactly once.

A worker numbers its pushes 1, 2, 3, … A server applies number n only after n - 1. It
ignores repeated pushes, and refuses early ones, which the worker sends again.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any


class Turn(enum.Enum):
    """How a number compares with the next one that a server expects."""

    NEXT = "next"
    SEEN = "seen"
    EARLY = "early"


class Ledger:
    """The last number of each worker.

    Absent workers keep their numbers: one that was considered lost and returns
    continues from its last number.
    """

    def __init__(self, numbers: Iterable[tuple[int, int]] = ()) -> None:
        self._last: dict[int, int] = dict(numbers)

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

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Ledger) and self._last == other._last

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Ledger({self._last})"
