"""Waits for other processes: deadlines, and pulls in flight."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

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

    __slots__ = ("_end", "peer", "seconds", "what")

    peer: str
    seconds: float
    what: str

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


HostArray = np.ndarray[Any, Any]


class Pulled(NamedTuple):
    """A shard's answer to a pull.

    Attributes:
      version: version of the parameters.
      params: the shard's pieces.
    """

    version: int
    params: list[HostArray]


class Ticket:
    """A pull in flight."""

    def __init__(self, shards: Sequence[int], deadline: Deadline) -> None:
        self.deadline = deadline
        self._missing = set(shards)
        self._found: dict[int, Pulled] = {}
        # Released when there is a result: a `threading.Event` takes ten times as long.
        self._lock = threading.Lock()
        self._lock.acquire()
        self._is_done = False
        self._error: Exception | None = None

    def give(self, shard: int, pulled: Pulled) -> None:
        """Sets a shard's answer."""
        self._found[shard] = pulled
        self._missing.discard(shard)
        if not self._missing:
            self._finish()

    def fail(self, error: Exception) -> None:
        """Ends the wait with an error, unless there was one already."""
        self._error = self._error or error
        self._finish()

    def _finish(self) -> None:
        if not self._is_done:
            self._is_done = True
            self._lock.release()

    def wait(self, seconds: float) -> bool:
        """Waits for at most `seconds`; returns whether there is a result."""
        if not self._is_done and self._lock.acquire(timeout=seconds):
            self._lock.release()  # for other threads, and the next call
        return self._is_done

    @property
    def is_done(self) -> bool:
        """Whether there is a result, or an error."""
        return self._is_done

    @property
    def missing(self) -> list[int]:
        """The shards that have not answered yet."""
        return sorted(self._missing)

    def result(self, describe: Any) -> list[Pulled]:
        """Waits for all shards.

        Args:
          describe: returns the names of the late servers, given the missing shards.

        Raises:
          DistributedError: a shard did not answer in time, or the run has failed.
        """
        while not self.wait(self.deadline.left):
            if self.deadline.passed:  # False if it was renewed meanwhile.
                raise self.deadline.error(describe(self.missing))
        if self._error is not None:
            raise self._error
        return [self._found[shard] for shard in sorted(self._found)]
