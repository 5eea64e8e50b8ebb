"""Decides on the step at which all processes stop. Does no I/O.

The coordinator asks all processes to hold. Each reports the first step that it has not
begun, and begins no step until it receives the decision, `until`: the maximum of these.
A step cannot be undone, so the other processes catch up with the farthest one. Like the
end of a `range`, `until` is the first step that does not run.
"""

from __future__ import annotations

from collections.abc import Set


class StopDecision:
    """The coordinator's part: collects reports and decides once."""

    def __init__(self) -> None:
        self._reports: dict[int, int] = {}
        self._is_asked = self._is_decided = False

    def ask(self) -> bool:
        """Returns whether to ask the processes to hold: True for the first call."""
        is_first, self._is_asked = not self._is_asked, True
        return is_first

    def report(self, rank: int, step: int) -> None:
        """Records a process's report; only its first one counts.

        Args:
          rank: the process.
          step: the first step that it has not begun.
        """
        if self._is_asked:
            self._reports.setdefault(rank, step)

    def decide(self, ranks: Set[int]) -> int | None:
        """Returns `until` once, when all processes have reported; otherwise None.

        Args:
          ranks: the live processes.
        """
        if self._is_decided or not ranks or not ranks <= self._reports.keys():
            return None
        self._is_decided = True
        return max(self._reports.values())


class StopPoint:
    """The process's part: determines which steps may begin.

    Args:
      step: the first step.

    Attributes:
      next: the first step that has not begun.
      is_held: whether the coordinator has asked this process to hold.
      until: the decision, the first step that does not run; None before it is known.
    """

    def __init__(self, step: int = 0) -> None:
        self.next = step
        self.is_held = False
        self.until: int | None = None

    @property
    def is_open(self) -> bool:
        """Whether the process must wait for the decision."""
        return self.is_held and self.until is None

    def begin(self, step: int) -> bool:
        """Returns whether a step runs, and records that it has begun.

        Args:
          step: the next step. `is_open` must be False.
        """
        if self.until is not None and step >= self.until:
            return False
        self.next = step + 1
        return True
