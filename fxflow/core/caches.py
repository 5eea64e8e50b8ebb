"""Caches: each has a name and a bound, and all are emptied together.

What a cache holds was made under the options in force and for the devices that there
are, so three things empty it:

- a change of an option (but where the options are part of the keys);
- `fxflow.devices.clear_backends`, after which there are other devices;
- `fxflow.clear_caches`, which empties all there are.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, TypeVar

from fxflow.devices import clients

K = TypeVar("K")
V = TypeVar("V")

#: Entries that a cache holds at most, if it does not say.
LIMIT = 8192


class Cache(dict[K, V]):
    """A dict that `clear_caches` empties, and whose older half goes when it is full.

    Looking up is that of a dict, at its speed; `keep` is how to add.

    Args:
      name: what it holds; several caches may have one name.
      limit: number of entries.
      by_options: whether the options in force are part of the keys, so that a change
        of them leaves the entries valid.
    """

    __slots__ = ("__weakref__", "by_options", "limit", "name")

    by_options: bool
    limit: int
    name: str

    def __init__(
        self, name: str, limit: int = LIMIT, *, by_options: bool = False
    ) -> None:
        self.name, self.limit, self.by_options = name, limit, by_options
        # By id, since a dict has no hash; weak, since most caches belong to a function
        # of the user's and go with it.
        _every[id(self)] = self

    def keep(self, key: K, value: V) -> V:
        """Adds an entry; returns its value."""
        if len(self) >= self.limit:
            # The first entered, not the least recently used: a look-up would have to
            # note its time, and looking up is what must cost nothing. Another thread
            # may be doing the same.
            for old in list(self)[: self.limit // 2]:
                self.pop(old, None)
        self[key] = value
        return value


_every: weakref.WeakValueDictionary[int, Cache[Any, Any]] = (
    weakref.WeakValueDictionary()
)
_on_clear: list[Callable[[], None]] = []


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
    # A list, since a cache may be made or freed meanwhile.
    for cache in list(_every.values()):
        cache.clear()
    for callback in _on_clear:
        callback()


def options_changed() -> None:
    """Drops what was made under other options than those in force."""
    for cache in list(_every.values()):
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
    for cache in list(_every.values()):
        found[cache.name] = found.get(cache.name, 0) + len(cache)
    return dict(sorted(found.items()))


clients.on_clear(clear_caches)
