"""Chooses which copy of a shard answers a reader."""

from __future__ import annotations

import itertools
import secrets

from fxflow.distributed.parameter_server.views import View


class CopyRotation:
    """Chooses the servers that hold a shard in turn, which spreads a reader's requests.

    Args:
      first: the first turn; None: a random one, so that readers differ.

    Example:
      >>> from fxflow.distributed.parameter_server.views import first_view
      >>> view = first_view(["a:1", "b:1"], copies=2)
      >>> rotation = CopyRotation(first=0)
      >>> [rotation.choose(view, [0, 1], now=0.0) for _ in range(2)]
      [{0: 0, 1: 0}, {0: 1, 1: 1}]
    """

    def __init__(self, first: int | None = None) -> None:
        start = secrets.randbelow(1 << 16) if first is None else first
        self._turns = itertools.count(start)  # `next` is atomic: threads may choose
        #: Server that did not answer → until when it is not chosen.
        self._avoided: dict[int, float] = {}

    def choose(self, view: View, shards: list[int], now: float) -> dict[int, int]:
        """Returns a server for each shard.

        Args:
          view: the current view.
          shards: numbers of the shards.
          now: the current time.
        """
        turn = next(self._turns)
        found = {}
        for shard in shards:
            primary, *copies = view.holders[shard]
            copies = [s for s in copies if self._avoided.get(s, now) <= now]
            holders = [primary, *copies]
            found[shard] = holders[(turn + shard) % len(holders)]
        return found

    def avoid(self, server: int, until: float) -> None:
        """Stops choosing a server as a copy for a while.

        Args:
          server: the number of the server.
          until: the time until which others are chosen.
        """
        self._avoided[server] = until
