"""A lock whose holders call others only once they have released it."""

from __future__ import annotations

import threading
from collections.abc import Callable


class DeferringLock:
    """A reentrant lock that runs what is put off when its thread releases it.

    An object that calls another one's methods while it holds a lock of its own may wait
    for the other's lock, whose holder waits for the first. Such calls are put off.
    """

    __slots__ = ("_depth", "_later", "_lock")

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._depth = 0
        self._later: list[Callable[[], object]] = []

    def __enter__(self) -> None:
        """Takes the lock."""
        self._lock.acquire()
        self._depth += 1

    def __exit__(self, *error: object) -> None:
        """Releases the lock; then, if it is free, runs what was put off."""
        self._depth -= 1
        later: list[Callable[[], object]] = []
        if not self._depth:
            later, self._later = self._later, later
        self._lock.release()
        for call in later:
            call()

    def afterwards(self, call: Callable[[], object]) -> None:
        """Runs a call once this thread does not hold the lock: at once, or later."""
        with self:
            self._later.append(call)
