"""The positions of a shard's copies, as its primary knows them.

The primary numbers entries, sends each to all *followers*, and applies it at once. It
acknowledges an entry to workers when all followers that *count* have it. A follower
that lacks entries gets them again if they are still kept, otherwise the whole state.
This module only records positions; `Replicas` sends the messages.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable

from fxflow.distributed.messages.codec import Message
from fxflow.distributed.parameter_server.server.ledger import Position

#: Maximum number of entries that a follower may lack when it begins to count.
_MAX_LAG = 16


@dataclasses.dataclass
class _Follower:
    """What the primary knows of one follower.

    Attributes:
      since: the epoch in which it began to follow. Earlier answers are about a copy
        that it has dropped.
      index: the number of this shard's entries that it has; −1: unknown.
      asked: since when it owes an answer: the time of the first unanswered message or
        of its last answer; 0: it owes none.
      loading: the index of a whole state that is under way to it; −1: none.
    """

    since: int
    index: int = -1
    asked: float = 0.0
    loading: int = -1


class Copies:
    """The copies of one shard.

    Args:
      position: the shard's position.
      epoch: the epoch in which this server began to serve the shard.
    """

    def __init__(self, position: Position, epoch: int) -> None:
        self.epoch = self._view_epoch = epoch
        self._before = position
        self._kept: collections.deque[tuple[Position, Message]] = collections.deque()
        self._followers: dict[int, _Follower] = {}
        self._counting: frozenset[int] = frozenset()
        #: Follower that counts but does not hold the shard in the view → the entries
        #: acknowledged before it counted.
        self._joining: dict[int, int] = {}
        #: Entries that may have been acknowledged, by earlier primaries too.
        self._acknowledged = position.entries

    @property
    def followers(self) -> list[int]:
        """The servers that get the shard's entries."""
        return list(self._followers)

    @property
    def position(self) -> Position:
        """The primary's position."""
        return self._kept[-1][0] if self._kept else self._before

    @property
    def committed(self) -> int:
        """The number of entries that all counting followers have."""
        counting = (self._followers[server].index for server in self._counting)
        return min(counting, default=self.position.entries)

    def begin(self, holders: Iterable[int], epoch: int) -> None:
        """Continues in a new view, in which the given holders count."""
        self._view_epoch = epoch
        self._counting, self._joining = frozenset(holders), {}
        self._follow(self._counting)

    def follow(self, servers: Iterable[int]) -> list[int]:
        """Sets the servers that follow in addition to those that count.

        Returns:
          The new followers, which must be probed for their positions.
        """
        self._follow([*self._counting, *servers])
        known = self._followers.items()
        return [s for s, follower in known if follower.index < 0 and not follower.asked]

    def _follow(self, servers: Iterable[int]) -> None:
        before = self._followers
        self._followers = {
            s: before.get(s) or _Follower(self._view_epoch) for s in servers
        }
        if not self._followers:
            self._before = self.position
            self._kept.clear()

    def add(self, position: Position, entry: Message) -> None:
        """Keeps an entry until all followers have it.

        Args:
          position: the shard's position after the entry.
          entry: the message that followers get.
        """
        if self._followers:
            self._kept.append((position, entry))
        else:
            self._before = position

    def note_sent(self, server: int, now: float) -> None:
        """Notes that a follower was sent a message that it must answer."""
        follower = self._followers[server]
        follower.asked = follower.asked or now

    def is_current(self, server: int, epoch: int) -> bool:
        """Returns whether an answer of an epoch is about a follower's present copy."""
        follower = self._followers.get(server)
        return follower is not None and epoch >= follower.since

    def note_state_sent(self, server: int) -> None:
        """Notes that a follower was sent the whole state."""
        self._followers[server].loading = self.position.entries

    def note_position(self, server: int, position: Position, now: float) -> bool:
        """Notes a follower's position.

        Returns:
          Whether the follower can catch up by entries; else it needs the whole state.
        """
        follower = self._followers[server]
        if not self._is_in_history(position):
            # An old answer, or the whole state is still under way. If the state is
            # lost, `silent` finds the follower.
            if position.entries < follower.index or follower.loading >= 0:
                return True
            follower.asked = 0.0
            return False
        if position.entries >= follower.loading:
            follower.loading = -1
        follower.index = max(follower.index, position.entries)
        # If it still lacks entries, its next answer may be lost: it owes another.
        follower.asked = now if follower.index < self.position.entries else 0.0
        minimum = min(f.index for f in self._followers.values())
        while self._kept and self._kept[0][0].entries <= minimum:
            self._before, _ = self._kept.popleft()
        return True

    def missing(self, server: int) -> list[Message]:
        """Returns the entries that a follower lacks, as far as known.

        Returns no entries while the whole state is under way, since the follower could
        not apply them before it arrives.
        """
        follower = self._followers[server]
        index = follower.index if follower.loading < 0 else self.position.entries
        return [entry for position, entry in self._kept if position.entries > index]

    def silent(self, now: float, seconds: float) -> list[int]:
        """Returns followers that owe an answer for `seconds`, and forgets the debt."""
        late = [s for s, f in self._followers.items() if 0 < f.asked < now - seconds]
        for server in late:
            self._followers[server].asked = 0.0
            self._followers[server].loading = -1
        return late

    def ready(self) -> list[int]:
        """Returns the followers that the view may add as holders of the shard.

        A follower that lacks few entries begins to count before a view with it can be
        decided: from then on, no entry that it lacks is acknowledged. It is ready once
        it also has the entries that were acknowledged without it.
        """
        minimum = self.position.entries - _MAX_LAG
        self._acknowledged = max(self._acknowledged, self.committed)
        for server, follower in self._followers.items():
            if server not in self._counting and 0 <= follower.index >= minimum:
                self._joining[server] = self._acknowledged
                self._counting |= {server}
        return [
            server
            for server, acknowledged in self._joining.items()
            if self._followers[server].index >= acknowledged
        ]

    def _is_in_history(self, position: Position) -> bool:
        if position == self._before:
            return True
        at = position.entries - self._before.entries - 1
        return 0 <= at < len(self._kept) and self._kept[at][0] == position
