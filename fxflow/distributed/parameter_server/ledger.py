"""What was applied, so that nothing is applied twice and nothing is left out.

A worker numbers what it pushes 1, 2, 3, … A server takes number n after n - 1 only.
What comes again changes nothing; what comes too early is asked for later.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any


class Turn(enum.Enum):
    """What a number is to a server."""

    NEXT = "next"
    SEEN = "seen"
    EARLY = "early"


class Ledger:
    """The last number of each worker.

    A worker's numbers outlive its absence: one that was taken for dead and comes back
    goes on where it was.
    """

    def __init__(self, numbers: Iterable[tuple[int, int]] = ()) -> None:
        self._last: dict[int, int] = dict(numbers)

    def last(self, worker: int) -> int:
        """Returns the last number of a worker; 0 before the first."""
        return self._last.get(worker, 0)

    def turn(self, worker: int, number: int) -> Turn:
        """Returns what a number is: the next one, one that was seen, or too early."""
        last = self.last(worker)
        if number <= last:
            return Turn.SEEN
        return Turn.NEXT if number == last + 1 else Turn.EARLY

    def note(self, worker: int, number: int) -> None:
        """Writes down that the next number of a worker has been taken.

        Raises:
          ValueError: it is not the next.
        """
        if self.turn(worker, number) is not Turn.NEXT:
            raise ValueError(
                f"number {number} of worker {worker} after {self.last(worker)}"
            )
        self._last[worker] = number

    def items(self) -> list[tuple[int, int]]:
        """Returns the workers with their last numbers, to be kept."""
        return sorted(self._last.items())

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Ledger) and self._last == other._last

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Ledger({self._last})"
