"""Which servers hold which shards: a view, and the views that follow from it.

A *shard* is a part of all parameters that always lies on one server as a whole. A view
names, under an epoch, the servers that hold each shard in full; the first of them is
its primary. It also has the planned servers of each shard: one that does not hold it
yet is sent it, and then replaces a server that is not planned. Only functions of views
are here; agreement on the next one is in `paxos`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from fxflow.distributed.parameter_server.assignment import assign


class View(NamedTuple):
    """Which servers hold which shard, and who decides on the next view.

    Attributes:
      epoch: grows with each view.
      addresses: of all servers that ever were, by number.
      copies: how many servers each shard is to lie on, if there are as many.
      holders: for each shard, the servers that have it in full; the first serves it.
      places: for each shard, the servers that it is to lie on, in the same order.
      members: the numbers of the servers among which shards are shared out. Empty where
        that is fixed: each shard lies on one server, and stays there.
      servers: the incarnation of each server; 0: it is not there. Empty in the first
        view, in which they have not met.
      workers: the numbers of those that vote.
      run: a number that no other run has; 0: it has not begun.
    """

    epoch: int
    addresses: tuple[str, ...]
    copies: int
    holders: tuple[tuple[int, ...], ...]
    places: tuple[tuple[int, ...], ...]
    members: tuple[int, ...] = ()
    servers: tuple[int, ...] = ()
    workers: tuple[int, ...] = ()
    run: int = 0

    @property
    def voters(self) -> tuple[int, ...]:
        """Who decides on the next view: incarnations and numbers, servers first."""
        return *filter(None, self.servers), *self.workers

    def primary(self, shard: int) -> int:
        """Returns the server that serves a shard."""
        return self.holders[shard][0]

    def process(self, shard: int) -> tuple[int, int]:
        """Returns the server that serves a shard, and its incarnation."""
        server = self.primary(shard)
        return server, self.incarnation(server)

    def served_by(self, server: int) -> list[int]:
        """Returns the shards that a server serves."""
        return [s for s, held in enumerate(self.holders) if held[0] == server]

    def held_by(self, server: int) -> list[int]:
        """Returns the shards that a server has in full."""
        return [s for s, held in enumerate(self.holders) if server in held]

    def incarnation(self, server: int) -> int:
        """Returns the process that is a server in this view; 0: none."""
        return self.servers[server] if server < len(self.servers) else 0

    @property
    def peers(self) -> tuple[int, ...]:
        """The servers that hear each other: who is or may be part of the run."""
        there = (server for server, which in enumerate(self.servers) if which)
        holding = (server for held in self.holders for server in held)
        return tuple(sorted({*self.members, *there, *holding}))

    def to_json(self) -> dict[str, Any]:
        """Returns it as a dictionary of JSON."""
        return {
            "epoch": self.epoch,
            "addresses": list(self.addresses),
            "copies": self.copies,
            "holders": [list(held) for held in self.holders],
            "places": [list(planned) for planned in self.places],
            "members": list(self.members),
            "servers": list(self.servers),
            "workers": list(self.workers),
            "run": self.run,
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
                tuple(tuple(map(int, planned)) for planned in data["places"]),
                tuple(map(int, data["members"])),
                tuple(map(int, data["servers"])),
                tuple(map(int, data["workers"])),
                int(data["run"]),
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"not a view: {error!r}") from error


def first_view(addresses: Sequence[str], copies: int = 1, shards: int = 0) -> View:
    """Returns the view that a run begins with: everybody is there, nothing is yet.

    Args:
      addresses: of the servers, by number.
      copies: how many servers each shard lies on; at most as many as there are.
      shards: how many there are: 0 is one for each server. With more, or with copies,
        servers may join and leave.
    """
    count = len(addresses)
    copies, shards = min(copies, count), shards or count
    places = tuple(
        tuple((shard + i) % count for i in range(copies)) for shard in range(shards)
    )
    fixed = copies == 1 and shards == count
    members = () if fixed else tuple(range(count))
    return View(1, tuple(addresses), copies, places, places, members)


def resumed(view: View, kept: View) -> View:
    """Returns the view that a server begins with that has kept one on its disk.

    Args:
      view: as the command line says.
      kept: the last one that the server was in.

    Raises:
      ValueError: they are views of two runs.
    """
    given, known = len(view.addresses), len(kept.addresses)
    if len(view.holders) != len(kept.holders):
        raise ValueError(
            f"it is of a run with {len(kept.holders)} shards, and not "
            f"{len(view.holders)}"
        )
    addresses = view.addresses
    if given < known and addresses == kept.addresses[:given]:
        addresses = kept.addresses
    if len(addresses) != known:
        raise ValueError(
            f"it is of a run with {known} servers, {', '.join(kept.addresses)}: name "
            f"all of them, or as many; got {', '.join(view.addresses)}"
        )
    members = kept.members or view.members
    places = kept.places
    if view.copies != kept.copies:
        places = assign(places, members, view.copies)
    return kept._replace(
        addresses=addresses, copies=view.copies, places=places, members=members
    )


def without(view: View, server: int) -> View:
    """Returns the view after the loss of a server.

    A shard that only it had stays its own: it waits for it to come back.
    """
    holders = tuple(
        tuple(s for s in held if s != server) or held for held in view.holders
    )
    return view._replace(epoch=view.epoch + 1, holders=holders)


def with_holder(view: View, shard: int, server: int) -> View:
    """Returns the view after a server has caught up with a shard that it is to hold."""
    held, places = view.holders[shard], view.places[shard]
    if server not in places:
        return view
    held = held if server in held else (*held, server)
    return _with_holders(view, {shard: _settled(held, places)})


def settled(view: View) -> View:
    """Returns the view after those have left shards in whose place others hold them.

    Shards without a present holder stay as they are: a holder that returns serves.
    """
    changed = {
        shard: _settled(held, places)
        for shard, (held, places) in enumerate(zip(view.holders, view.places))
        if any(map(view.incarnation, held))
    }
    return _with_holders(view, changed)


def _settled(held: tuple[int, ...], places: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the holders of a shard: as they are to be, once all of them have it."""
    if set(places) <= set(held):
        return places
    # The planned server serves as soon as it can; none leaves before the last arrived.
    return tuple(sorted(held, key=lambda server: server != places[0]))


def _with_holders(view: View, changed: Mapping[int, tuple[int, ...]]) -> View:
    holders = tuple(changed.get(s, held) for s, held in enumerate(view.holders))
    if holders == view.holders:
        return view
    return view._replace(epoch=view.epoch + 1, holders=holders)


def replanned(
    view: View,
    *,
    there: Collection[int],
    leaving: Collection[int] = (),
    lost: Collection[int] = (),
    joining: Sequence[str] = (),
    weights: Mapping[int, float] | None = None,
) -> View:
    """Returns the view for other members, with new planned servers of shards.

    Servers that join or return get shards; those of servers that leave or are lost go
    to others. A server that may have the only copy of a shard is never given up, and
    the last server never leaves. A server that has left and holds no shard is no longer
    in the view.

    Args:
      view: as it is, without those who died.
      there: the servers that are heard.
      leaving: those of them that want to leave.
      lost: servers that were not heard for too long.
      joining: addresses of servers that want to join.
      weights: bytes of each shard, as far as they are known.
    """
    if not view.members:
        return view
    known = {*view.addresses}
    new = [address for address in dict.fromkeys(joining) if address not in known]
    new = new[: max(0, room(view))]
    count = len(view.addresses)
    addresses = (*view.addresses, *new)
    came = {*range(count, len(addresses)), *there} - {*leaving}
    waits = {
        s for held in view.holders if not any(map(view.incarnation, held)) for s in held
    }
    members = {*view.members} | came
    for out in ({*lost} - {*there} - waits, {*leaving}):
        # A server must be present that takes over.
        if (members - out) & {*there}:
            members -= out
    planned, places = tuple(sorted(members)), view.places
    if planned != view.members:
        sizes = [(weights or {}).get(shard, 0.0) for shard in range(len(view.holders))]
        places = assign(places, planned, view.copies, sizes)
    holding = {server for held in view.holders for server in held}
    gone = {*leaving} - members - holding
    which = tuple(
        0 if s in gone else view.incarnation(s) for s in range(len(addresses))
    )
    return view._replace(
        addresses=addresses,
        members=planned,
        places=places,
        servers=which,
    )


def room(view: View) -> int:
    """Returns how many more servers there is something for to hold."""
    return len(view.holders) * view.copies - len(view.members)
