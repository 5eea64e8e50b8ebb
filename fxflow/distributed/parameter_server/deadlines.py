"""Deadlines of waits for other processes."""

from __future__ import annotations

import time

from fxflow.errors import DistributedError


class Deadline:
    """The time at which a wait fails, and the process that it waits for.

    Args:
      seconds: from now.
      what: the awaited event: ``"an answer to pull"``.
      peer: the awaited process; may be set later.

    Example:
      >>> Deadline(60, "an answer to pull", "server 1").passed
      False
    """

    seconds: float
    what: str
    peer: str

    __slots__ = ("_end", "peer", "seconds", "what")

    def __init__(self, seconds: float, what: str, peer: str = "") -> None:
        self.seconds = seconds
        self.what = what
        self.peer = peer
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds until the deadline, at least 0."""
        return max(0.0, self._end - time.monotonic())

    @property
    def passed(self) -> bool:
        """Whether the deadline has passed."""
        return time.monotonic() >= self._end

    def renew(self) -> None:
        """Restarts the wait, because the peer is making progress."""
        self._end = time.monotonic() + self.seconds

    def error(
        self, late: str = "", processes: tuple[int, ...] = ()
    ) -> DistributedError:
        """Returns the error that names the late servers.

        Args:
          late: the late processes; empty: `peer`.
          processes: their numbers.
        """
        return DistributedError(
            f"{self.what} from {late or self.peer or 'a peer'} did not arrive within "
            f"{self.seconds:g} s",
            processes,
            self.seconds,
        )

    def check(self, late: str = "", processes: tuple[int, ...] = ()) -> None:
        """Raises the error if the deadline has passed.

        Raises:
          DistributedError: it has passed.
        """
        if self.passed:
            raise self.error(late, processes)
