"""Times by which something must have happened."""

from __future__ import annotations

import time

from fxflow.errors import DistributedError


class Deadline:
    """A time by which something must have happened, and whose fault it is if not.

    Args:
      seconds: from now.
      what: what is waited for: ``"an answer to pull"``.
      who: who is to do it; may be given later.

    Example:
      >>> Deadline(60, "an answer to pull", "server 1").passed
      False
    """

    seconds: float
    what: str
    who: str

    __slots__ = ("_end", "seconds", "what", "who")

    def __init__(self, seconds: float, what: str, who: str = "") -> None:
        self.seconds = seconds
        self.what = what
        self.who = who
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds until then, at least 0."""
        return max(0.0, self._end - time.monotonic())

    @property
    def passed(self) -> bool:
        """Whether it is too late."""
        return time.monotonic() >= self._end

    def renew(self) -> None:
        """Begins anew: what is waited for goes on."""
        self._end = time.monotonic() + self.seconds

    def error(
        self, late: str = "", processes: tuple[int, ...] = ()
    ) -> DistributedError:
        """Returns the error that names who is late.

        Args:
          late: who it is; empty: `who`.
          processes: their numbers.
        """
        return DistributedError(
            f"{self.what} from {late or self.who or 'a peer'} did not come within "
            f"{self.seconds:g} s",
            processes,
            self.seconds,
        )

    def check(self, late: str = "", processes: tuple[int, ...] = ()) -> None:
        """Raises the error if the time has passed.

        Raises:
          DistributedError: it has.
        """
        if self.passed:
            raise self.error(late, processes)
