"""Who serves what: a view, and the views that follow from it.

A *shard* is what one server of the plan serves. A view names, under an epoch, the
servers that hold each shard in full; the first of them is its primary. Only functions
of views are here; agreeing on the next one is `server.succession`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class View(NamedTuple):
    """Which servers hold which shard, and who decides on the next view.

    Attributes:
      epoch: grows with each view.
      addresses: of all servers, by number.
      copies: how many servers each shard is to lie on.
      holders: for each shard, the servers that have it in full; the first serves it.
      servers: the incarnation of each server; 0: it is not there. Empty in the first
        view, in which they have not met.
      workers: the numbers of those that vote.
    """

    epoch: int
    addresses: tuple[str, ...]
    copies: int
    holders: tuple[tuple[int, ...], ...]
    servers: tuple[int, ...] = ()
    workers: tuple[int, ...] = ()

    @property
    def voters(self) -> tuple[int, ...]:
        """Who decides on the next view: incarnations and numbers, servers first."""
        return *filter(None, self.servers), *self.workers

    def primary(self, shard: int) -> int:
        """Returns the server that serves a shard."""
        return self.holders[shard][0]

    def served_by(self, server: int) -> list[int]:
        """Returns the shards that a server serves."""
        return [s for s, held in enumerate(self.holders) if held[0] == server]

    def held_by(self, server: int) -> list[int]:
        """Returns the shards that a server has in full."""
        return [s for s, held in enumerate(self.holders) if server in held]

    def places(self, shard: int) -> list[int]:
        """Returns the servers that a shard is to lie on."""
        count = len(self.addresses)
        return [(shard + i) % count for i in range(self.copies)]

    def to_json(self) -> dict[str, Any]:
        """Returns it as a dictionary of JSON."""
        return {
            "epoch": self.epoch,
            "addresses": list(self.addresses),
            "copies": self.copies,
            "holders": [list(held) for held in self.holders],
            "servers": list(self.servers),
            "workers": list(self.workers),
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> View:
        """Returns what `to_json` was called on.

        Raises:
          ValueError: it is not that.
        """
        try:
            return View(
                int(data["epoch"]),
                tuple(map(str, data["addresses"])),
                int(data["copies"]),
                tuple(tuple(map(int, held)) for held in data["holders"]),
                tuple(map(int, data["servers"])),
                tuple(map(int, data["workers"])),
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"not a view: {error!r}") from error


def first_view(addresses: Sequence[str], copies: int = 1) -> View:
    """Returns the view that a run begins with: everybody is there, nothing is yet.

    Args:
      addresses: of the servers, by number.
      copies: how many servers each shard lies on; at most as many as there are.
    """
    count = len(addresses)
    view = View(1, tuple(addresses), min(copies, count), ((),) * count)
    holders = tuple(tuple(view.places(shard)) for shard in range(count))
    return view._replace(holders=holders)


def without(view: View, server: int) -> View:
    """Returns the view after the loss of a server.

    A shard that only it had stays its own: it waits for it to come back.
    """
    holders = tuple(
        tuple(s for s in held if s != server) or held for held in view.holders
    )
    return view._replace(epoch=view.epoch + 1, holders=holders)


def with_holder(view: View, shard: int, server: int) -> View:
    """Returns the view after a server has caught up with a shard.

    The shard is served from where it was at first, so that load is shared again.
    """
    held = {*view.holders[shard], server}
    holders = list(view.holders)
    holders[shard] = tuple(s for s in view.places(shard) if s in held)
    if holders[shard] == view.holders[shard]:
        return view
    return view._replace(epoch=view.epoch + 1, holders=tuple(holders))
