"""Agreeing on the step at which all processes stop: decisions, without input or output.

The coordinator asks all processes to hold. Each reports the first step that it has not
begun, and begins no step until it hears the decision, `until`: the greatest of these.
A step cannot be taken back, so all processes run up to the one that is farthest. Like
the end of a `range`, `until` is the first step that is not run.
"""

from __future__ import annotations

from collections.abc import Set


class StopDecision:
    """The coordinator's half: collects reports and decides once."""

    def __init__(self) -> None:
        self._reports: dict[int, int] = {}
        self._is_asked = self._is_decided = False

    def ask(self) -> bool:
        """Returns whether the processes are to be asked to hold: the first time."""
        is_first, self._is_asked = not self._is_asked, True
        return is_first

    def report(self, rank: int, step: int) -> None:
        """Notes the first step that a process has not begun; its first report counts.

        Args:
          rank: of the process.
          step: that it has not begun.
        """
        if self._is_asked:
            self._reports.setdefault(rank, step)

    def decide(self, ranks: Set[int]) -> int | None:
        """Returns `until` once all have reported; None before, and after it was given.

        Args:
          ranks: of the processes that are alive.
        """
        if self._is_decided or not ranks or not ranks <= self._reports.keys():
            return None
        self._is_decided = True
        return max(self._reports.values())


class StopPoint:
    """The process's half: says which steps may begin.

    Args:
      step: the first step.

    Attributes:
      next: the first step that has not begun.
      is_held: whether the coordinator has asked for it.
      until: the decision: the first step that is not run; None before it is known.
    """

    def __init__(self, step: int = 0) -> None:
        self.next = step
        self.is_held = False
        self.until: int | None = None

    @property
    def is_open(self) -> bool:
        """Whether it is undecided which step may begin."""
        return self.is_held and self.until is None

    def begin(self, step: int) -> bool:
        """Returns whether a step is to run, and notes that it begins.

        Args:
          step: the next one; it must not be open which may begin.
        """
        if self.until is not None and step >= self.until:
            return False
        self.next = step + 1
        return True
