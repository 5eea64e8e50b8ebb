"""How far the copies of a shard are, as the server knows that serves it.

The server numbers entries, sends each to all that follow it, and applies it at once; it
tells workers of it when all that *count* have it. A follower that lacks entries is sent
them again if they are still kept, else the whole state. Nothing here sends anything.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable

from fxflow.distributed.messages.codec import Message
from fxflow.distributed.parameter_server.server.shard import Position

#: So many entries a follower may be behind when it begins to count.
_NEARLY = 16


@dataclasses.dataclass
class _Follower:
    """What is known of one copy.

    Attributes:
      since: the epoch in which it began to follow: what it said before is of a copy
        that it no longer has.
      index: how many entries it has, as this server made them; −1: not known.
      asked: since when it owes an answer: when it was sent something first, or when it
        answered last; 0: it has all there is.
      loading: the index of a state that is on its way to it; −1: none is.
    """

    since: int
    index: int = -1
    asked: float = 0.0
    loading: int = -1


class Copies:
    """The copies of one shard.

    Args:
      position: of the shard.
      epoch: in which this server began to serve it.
    """

    def __init__(self, position: Position, epoch: int) -> None:
        self.epoch = self._now = epoch
        self._before = position
        self._kept: collections.deque[tuple[Position, Message]] = collections.deque()
        self._followers: dict[int, _Follower] = {}
        self._counting: frozenset[int] = frozenset()
        #: Who counts and is not in the view yet → how many entries were acknowledged
        #: before it counted.
        self._joining: dict[int, int] = {}
        #: How many may have been acknowledged, by earlier primaries too.
        self._told = position.entries

    @property
    def followers(self) -> list[int]:
        """The servers that entries are sent to."""
        return list(self._followers)

    @property
    def position(self) -> Position:
        """That of the shard here."""
        return self._kept[-1][0] if self._kept else self._before

    @property
    def committed(self) -> int:
        """How many entries no death of a server can undo."""
        counting = (self._followers[server].index for server in self._counting)
        return min(counting, default=self.position.entries)

    def begin(self, holders: Iterable[int], epoch: int) -> None:
        """Goes on in a view: its holders count, others are met anew."""
        self._now = epoch
        self._counting, self._joining = frozenset(holders), {}
        self._follow(self._counting)

    def follow(self, servers: Iterable[int]) -> list[int]:
        """Sets the servers that follow besides those that count.

        Returns:
          The new ones, which must be asked where they are.
        """
        self._follow([*self._counting, *servers])
        known = self._followers.items()
        return [s for s, follower in known if follower.index < 0 and not follower.asked]

    def _follow(self, servers: Iterable[int]) -> None:
        before = self._followers
        self._followers = {s: before.get(s) or _Follower(self._now) for s in servers}
        if not self._followers:
            self._before = self.position
            self._kept.clear()

    def add(self, position: Position, entry: Message) -> None:
        """Keeps an entry until all followers have it.

        Args:
          position: of the shard after it.
          entry: as it is sent.
        """
        if self._followers:
            self._kept.append((position, entry))
        else:
            self._before = position

    def said(self, server: int, now: float) -> None:
        """Notes that something was sent that a follower is to answer."""
        follower = self._followers[server]
        follower.asked = follower.asked or now

    def awaits(self, server: int, epoch: int) -> bool:
        """Returns whether a server follows, and what it said in an epoch is of now."""
        follower = self._followers.get(server)
        return follower is not None and epoch >= follower.since

    def loading(self, server: int) -> None:
        """Notes that the whole state was sent."""
        self._followers[server].loading = self.position.entries

    def note(self, server: int, position: Position, now: float) -> bool:
        """Notes where a follower is.

        Returns:
          Whether it is somewhere on the way of this shard, and not elsewhere.
        """
        follower = self._followers[server]
        if not self._knows(position):
            # What left it before the state came, or the state is on its way still:
            # which is missed if nothing else is heard.
            if position.entries < follower.index or follower.loading >= 0:
                return True
            follower.asked = 0.0
            return False
        if position.entries >= follower.loading:
            follower.loading = -1
        follower.index = max(follower.index, position.entries)
        # An answer to less than was sent may be the last one that is not lost.
        follower.asked = now if follower.index < self.position.entries else 0.0
        least = min(f.index for f in self._followers.values())
        while self._kept and self._kept[0][0].entries <= least:
            self._before, _ = self._kept.popleft()
        return True

    def lacking(self, server: int) -> list[Message]:
        """Returns the entries that a follower lacks, as far as is known.

        None while the state is on its way: it could not take them before that.
        """
        follower = self._followers[server]
        index = follower.index if follower.loading < 0 else self.position.entries
        return [entry for position, entry in self._kept if position.entries > index]

    def silent(self, now: float, seconds: float) -> list[int]:
        """Returns followers silent for `seconds`, and expects nothing of them."""
        late = [s for s, f in self._followers.items() if 0 < f.asked < now - seconds]
        for server in late:
            self._followers[server].asked = 0.0
            self._followers[server].loading = -1
        return late

    def ready(self) -> list[int]:
        """Returns the followers that may be taken into the view.

        One that has almost everything counts from here on, before a view with it can be
        decided: nothing more is acknowledged that it lacks. It is ready when it also
        has what was acknowledged without it.
        """
        least = self.position.entries - _NEARLY
        self._told = max(self._told, self.committed)
        for server, follower in self._followers.items():
            if server not in self._counting and 0 <= follower.index >= least:
                self._joining[server] = self._told
                self._counting |= {server}
        return [
            server
            for server, acknowledged in self._joining.items()
            if self._followers[server].index >= acknowledged
        ]

    def _knows(self, position: Position) -> bool:
        if position == self._before:
            return True
        at = position.entries - self._before.entries - 1
        return 0 <= at < len(self._kept) and self._kept[at][0] == position
