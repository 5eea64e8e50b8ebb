"""Caches: each has a name and a bound, and all are emptied together.

What a cache holds was made under the options in force and for the devices that there
are, so three things empty it:

- a change of an option (but where the options are part of the keys);
- `fxflow.devices.clear_backends`, after which there are other devices;
- `fxflow.clear_caches`, which empties all there are.

What several threads ask for at once, one makes (`Cache.once`), and the others wait.
They must not wait for ever: the one may itself wait for them, since what it runs is the
user's (a traced function may start threads and join them, or take a lock that a waiting
one holds). So they wait as long as it moves; one that has not moved for a while may be
stuck, and then the work is done again, which is never wrong.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from fxflow.devices import clients

K = TypeVar("K")
V = TypeVar("V")

#: Entries that a cache holds at most, if it does not say.
LIMIT = 8192


# Seconds after which a thread that stands where it stood is taken to be stuck.
PATIENCE = 1.0


class ComputeTurn:
    """A thread at work."""

    __slots__ = ("done", "thread")

    done: threading.Event
    thread: int

    def __init__(self) -> None:
        self.done = threading.Event()
        self.thread = threading.get_ident()

    def ended(self, patient: bool) -> bool:
        """Waits; returns whether the work has ended.

        Args:
          patient: whether to wait for a thread that does not move, too.
        """
        # The work has led back to itself: waiting would never end.
        if self.thread == threading.get_ident():
            return False
        before = None
        while not self.done.wait(PATIENCE):
            # No frame: the thread has ended. The same one as before: it is stuck.
            frame = sys._current_frames().get(self.thread)
            position = None if frame is None else (id(frame), frame.f_lasti)
            if frame is None or (position == before and not patient):
                return False
            before = position
        return True


class Room:
    """The memory that some caches share: when it is full, the older half goes.

    Args:
      nbytes: that the entries may take together.
      least: number of entries that stay in any case.
    """

    def __init__(self, nbytes: int, least: int = 0) -> None:
        self.nbytes: int = nbytes
        self.least: int = least
        self.taken: int = 0
        self._entries: deque[tuple[weakref.ref[Cache[Any, Any]], Any, int]] = deque()
        # An array that is freed meanwhile may lead back here, in the same thread.
        self._lock = threading.RLock()

    def enter(self, cache: Cache[Any, Any], key: Any, nbytes: int) -> None:
        """Counts an entry, and drops the oldest ones if there are too many."""
        with self._lock:
            self._entries.append((weakref.ref(cache), key, nbytes))
            self.taken += nbytes
            if self.taken <= self.nbytes:
                return
            # First what is counted and no longer there: caches are emptied, and freed.
            self._entries = deque(e for e in self._entries if _there(e[0](), e[1]))
            self.taken = sum(size for _, _, size in self._entries)
            if self.taken <= self.nbytes:
                return
            while self.taken > self.nbytes // 2 and len(self._entries) > self.least:
                of, old, size = self._entries.popleft()
                self.taken -= size
                found = of()
                if found is not None:
                    found.pop(old, None)


def _there(cache: Cache[Any, Any] | None, key: Any) -> bool:
    return cache is not None and key in cache


class Cache(dict[K, V]):
    """A dict that `clear_caches` empties, and whose older half goes when it is full.

    Looking up is that of a dict, at its speed; `keep` is how to add.

    Args:
      name: what it holds; several caches may have one name.
      limit: number of entries.
      by_options: whether the options in force are part of the keys, so that a change
        of them leaves the entries valid.
      room: the memory that it shares with others, for entries whose size is known.
    """

    __slots__ = ("__weakref__", "_turns", "by_options", "limit", "name", "room")

    by_options: bool
    limit: int
    name: str
    room: Room | None

    def __init__(
        self,
        name: str,
        limit: int = LIMIT,
        *,
        by_options: bool = False,
        room: Room | None = None,
    ) -> None:
        self.name, self.limit, self.by_options = name, limit, by_options
        self.room = room
        self._turns: dict[K, ComputeTurn] = {}
        # By id, since a dict has no hash; weak, since most caches belong to a function
        # of the user's and go with it.
        _every[id(self)] = self

    def keep(self, key: K, value: V, nbytes: int = 0) -> V:
        """Adds an entry; returns its value.

        Args:
          key: of the entry.
          value: of the entry.
          nbytes: that it takes, about, if the cache has a `room`.
        """
        if len(self) >= self.limit:
            # The first entered, not the least recently used: a look-up would have to
            # note its time, and looking up is what must cost nothing. Another thread
            # may be doing the same.
            for old in list(self)[: self.limit // 2]:
                self.pop(old, None)
        known = key in self
        self[key] = value
        if self.room is not None and not known:
            self.room.enter(self, key, nbytes)
        return value

    def once(self, key: K, make: Callable[[], V], *, patient: bool = False) -> V:
        """Returns an entry, which one thread makes for all.

        Args:
          key: of the entry.
          make: makes it, and keeps it if others may have it.
          patient: whether `make` runs nothing of the user's, and so cannot wait
            for another thread.
        """
        while True:
            found = self.get(key)
            if found is not None:
                return found
            mine = ComputeTurn()
            turn = self._turns.setdefault(key, mine)
            if turn is mine:
                break
            if not turn.ended(patient):
                return make()
        try:
            found = self.get(key)  # it may have been made since the first look
            return make() if found is None else found
        finally:
            # In this order: a thread that wakes up must not find a turn that has ended.
            del self._turns[key]
            mine.done.set()


_every: weakref.WeakValueDictionary[int, Cache[Any, Any]] = (
    weakref.WeakValueDictionary()
)
_on_clear: list[Callable[[], None]] = []


def alive(table: weakref.WeakValueDictionary[Any, V]) -> list[V]:
    """Returns what is in a table, while other threads may add and free some.

    A loop over the values themselves would run Python code in between, and fail then.
    """
    found = (ref() for ref in list(table.valuerefs()))
    return [value for value in found if value is not None]


def on_clear(callback: Callable[[], None]) -> None:
    """Calls `callback` when caches are emptied, to drop what hangs on their entries."""
    _on_clear.append(callback)


def clear_caches() -> None:
    """Drops everything that was traced and compiled in this process.

    Programs in the cache on disk stay; see `fxflow.devices.clear_cache`.

    Example:
      >>> f = fxflow.jit(lambda x: x + 1)
      >>> f(1)
      Array(2, dtype=int32, weak_type=True)
      >>> fxflow.clear_caches()  # the next call traces and compiles again
    """
    for cache in alive(_every):
        cache.clear()
    for callback in _on_clear:
        callback()


def options_changed() -> None:
    """Drops what was made under other options than those in force."""
    for cache in alive(_every):
        if not cache.by_options:
            cache.clear()
    for callback in _on_clear:
        callback()


def sizes() -> dict[str, int]:
    """Returns the number of entries of the caches of each name.

    Example:
      >>> sum(sizes().values()) >= 0
      True
    """
    found: dict[str, int] = {}
    for cache in alive(_every):
        found[cache.name] = found.get(cache.name, 0) + len(cache)
    return dict(sorted(found.items()))


clients.on_clear(clear_caches)
