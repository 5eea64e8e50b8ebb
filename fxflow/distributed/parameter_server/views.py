"""Views: which servers hold which shards, and how that changes.

A *shard* is a part of the parameters that always lies on one server as a whole. A
*view* has an epoch, and names the servers that hold each shard in full; the first of
them is its primary. It also names the planned servers of each shard: a planned server
that does not hold the shard yet receives it, and then replaces a server that is not
planned. This module has only functions of views; `paxos` agrees on the next one.

`placement` cuts tensors and divides them among shards once, before a run begins.
`assign` then moves only as many shards as balance requires. It needs no more than their
sizes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

#: The servers of each shard.
Places = tuple[tuple[int, ...], ...]


class View(NamedTuple):
    """Which servers hold which shard, and which processes vote on the next view.

    Attributes:
      epoch: increases with each view.
      addresses: addresses of all present and past servers, by number.
      copies: number of servers that are to hold each shard, if there are enough.
      holders: for each shard, the servers that have it in full; the first serves it.
      places: for each shard, its planned servers, in the same order.
      members: numbers of the servers among which shards are divided. Empty if the
        assignment is fixed: each shard stays on one server.
      servers: incarnation of each server; 0: it is absent. Empty in the first view,
        before the bootstrap.
      workers: numbers of the workers that vote.
      run: a number that is unique to the run; 0: it has not begun.
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
        """The voters: incarnations of servers, then numbers of workers."""
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
        """Returns the incarnation of a server in this view; 0: it is absent."""
        return self.servers[server] if server < len(self.servers) else 0

    @property
    def peers(self) -> tuple[int, ...]:
        """The servers that exchange heartbeats: all that may be part of the run."""
        present = (s for s, incarnation in enumerate(self.servers) if incarnation)
        holding = (server for held in self.holders for server in held)
        return tuple(sorted({*self.members, *present, *holding}))

    def to_json(self) -> dict[str, Any]:
        """Returns the view as a JSON object."""
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
          ValueError: the data is not a view.
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
    """Returns the view that a run begins with.

    Args:
      addresses: addresses of the servers, by number.
      copies: number of servers that hold each shard; at most all of them.
      shards: number of shards; 0: one for each server. With more, or with copies,
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
    """Returns the view from which a restarted server continues.

    Args:
      view: the view that the command line describes.
      kept: the server's last view, from its disk.

    Raises:
      ValueError: they are views of two runs.
    """
    given, known = len(view.addresses), len(kept.addresses)
    if len(view.holders) != len(kept.holders):
        raise ValueError(
            f"it belongs to a run with {len(kept.holders)} shards, not "
            f"{len(view.holders)}"
        )
    addresses = view.addresses
    if given < known and addresses == kept.addresses[:given]:
        addresses = kept.addresses
    if len(addresses) != known:
        raise ValueError(
            f"it belongs to a run with {known} servers, {', '.join(kept.addresses)}: "
            f"name all of them, or as many new addresses; got "
            f"{', '.join(view.addresses)}"
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

    A shard that only this server held stays with it until it returns.
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
    """Returns the view without holders that planned servers have replaced.

    Shards without a present holder do not change: a holder that returns serves them.
    """
    changed = {
        shard: _settled(held, places)
        for shard, (held, places) in enumerate(zip(view.holders, view.places))
        if any(map(view.incarnation, held))
    }
    return _with_holders(view, changed)


def _settled(held: tuple[int, ...], places: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the holders of a shard: the planned ones, once all of them hold it."""
    if set(places) <= set(held):
        return places
    # The planned primary serves as soon as it holds the shard. The other holders stay
    # until all planned servers hold it.
    return tuple(sorted(held, key=lambda server: server != places[0]))


def _with_holders(view: View, changed: Mapping[int, tuple[int, ...]]) -> View:
    holders = tuple(changed.get(s, held) for s, held in enumerate(view.holders))
    if holders == view.holders:
        return view
    return view._replace(epoch=view.epoch + 1, holders=holders)


def replanned(
    view: View,
    *,
    live: Collection[int],
    leaving: Collection[int] = (),
    lost: Collection[int] = (),
    joining: Sequence[str] = (),
    weights: Mapping[int, float] | None = None,
) -> View:
    """Returns the view for changed members, with new planned servers for shards.

    Servers that join or return get shards; shards of servers that leave or are lost go
    to others. A server that may have the only copy of a shard remains a member, and so
    does the last server. A server that has left and holds no shard is removed from the
    view.

    Args:
      view: the current view, without dead servers.
      live: servers whose heartbeats arrive.
      leaving: those of them that are to leave.
      lost: servers whose heartbeats have been missing for too long.
      joining: addresses of servers that are to join.
      weights: bytes of each shard, where known.
    """
    if not view.members:
        return view
    known = {*view.addresses}
    new = [address for address in dict.fromkeys(joining) if address not in known]
    new = new[: max(0, room(view))]
    count = len(view.addresses)
    addresses = (*view.addresses, *new)
    joined = {*range(count, len(addresses)), *live} - {*leaving}
    awaited = {
        s for held in view.holders if not any(map(view.incarnation, held)) for s in held
    }
    members = {*view.members} | joined
    for out in ({*lost} - {*live} - awaited, {*leaving}):
        # One of the other members must be alive to take over.
        if (members - out) & {*live}:
            members -= out
    planned, places = tuple(sorted(members)), view.places
    if planned != view.members:
        sizes = [(weights or {}).get(shard, 0.0) for shard in range(len(view.holders))]
        places = assign(places, planned, view.copies, sizes)
    holding = {server for held in view.holders for server in held}
    removed = {*leaving} - members - holding
    servers = tuple(
        0 if s in removed else view.incarnation(s) for s in range(len(addresses))
    )
    return view._replace(
        addresses=addresses, members=planned, places=places, servers=servers
    )


def moved(view: View, shard: int, server: int) -> Places:
    """Returns the planned servers of all shards after one of them moves to a server.

    The server takes the place of the one that is to serve the shard. If it is to hold a
    copy already, the two change places.

    Args:
      view: the current view.
      shard: the number of the shard.
      server: the number of the server.

    Raises:
      ValueError: there is no such shard, or the server holds no shards.
    """
    _require_members(view)
    if not 0 <= shard < len(view.places):
        raise ValueError(
            f"there is no shard {shard}: the run has {len(view.places)}, numbered from "
            "0"
        )
    if server not in view.members:
        raise ValueError(
            f"server {server} is not one of the servers that hold shards, "
            f"{list(view.members)}"
        )
    first, *others = view.places[shard]
    planned = (server, *(first if s == server else s for s in others))
    return tuple(planned if n == shard else p for n, p in enumerate(view.places))


def balanced(view: View, loads: Mapping[int, float]) -> Places:
    """Returns the planned servers of all shards for measured loads.

    Args:
      view: the current view.
      loads: the load of each shard, in any unit; without one: 0.

    Raises:
      ValueError: shards cannot move, or none has a load.
    """
    _require_members(view)
    total = sum(loads.values())
    if not total > 0:
        raise ValueError("the servers have not measured any load yet")
    # To `assign`, 0 is an unknown weight.
    weights = [max(loads.get(n, 0.0), 1e-6 * total) for n in range(len(view.places))]
    return assign(view.places, view.members, view.copies, weights)


def with_places(view: View, places: Places) -> View:
    """Returns the view with other planned servers; its members do not change.

    Args:
      view: the current view.
      places: the planned servers of each shard, first the one that is to serve it.

    Raises:
      ValueError: the places are not those of as many copies on distinct members, or
        shards cannot move.
    """
    _require_members(view)
    copies = min(view.copies, len(view.members))
    fits = len(places) == len(view.places) and all(
        len(planned) == len({*planned} & {*view.members}) == copies
        for planned in places
    )
    if not fits:
        raise ValueError(
            f"{len(view.places)} shards with {copies} copies on servers "
            f"{list(view.members)} cannot have the places {places}"
        )
    return view._replace(places=places)


def _require_members(view: View) -> None:
    if not view.members:
        raise ValueError(
            f"each of the run's {len(view.places)} shards is fixed to its server: "
            "shards can move only in a run that begins with more shards than servers "
            "(--shards, or --ps-shards of fxflow launch) or with copies"
        )


def room(view: View) -> int:
    """Returns how many more servers could hold a shard."""
    return len(view.holders) * view.copies - len(view.members)


# -- assignment ------------------------------------------------------------------------

#: Skip moves that improve the balance by less than this fraction of a fair share.
_SLACK = 0.01


def assign(
    places: Sequence[Sequence[int]],
    members: Iterable[int],
    copies: int = 1,
    weights: Sequence[float] | None = None,
) -> Places:
    """Assigns shards to servers evenly, preferably to servers that hold them already.

    Shards of servers that left go, largest first, to the server with the least load.
    Then shards move from more to less loaded servers while that improves the balance.
    Finally, the first server of each shard, which serves it, is chosen so that the load
    of serving is balanced, too.

    Args:
      places: the present servers of each shard, first the one that serves it.
      members: numbers of the servers to assign shards to.
      copies: number of servers that hold each shard; at most all of them.
      weights: weight of each shard, such as its bytes; None: all equal. A weight of 0
        is unknown, and counts as the mean of the others.

    Returns:
      The servers of each shard, first the one that serves it. Assigning the result
      again to the same members does not change it.

    Example:
      >>> assign([(0,), (1,), (0,), (1,), (0,), (1,)], [0, 1, 2])
      ((2,), (2,), (0,), (1,), (0,), (1,))
    """
    loads = _Loads(places, sorted(members), copies, weights)
    loads.fill()
    loads.balance()
    return loads.with_primaries()


class _Loads:
    """An assignment under construction, and the load of each server."""

    def __init__(
        self,
        places: Sequence[Sequence[int]],
        members: Sequence[int],
        copies: int,
        weights: Sequence[float] | None,
    ) -> None:
        self._members, self._copies = members, min(copies, len(members))
        given = [float(weight) for weight in weights or [0.0] * len(places)]
        unknown = sum(given) / max(1, sum(map(bool, given))) or 1.0
        self._weights = [weight or unknown for weight in given]
        self._held = [
            [s for s in planned if s in members][: self._copies] for planned in places
        ]
        self._load = dict.fromkeys(members, 0.0)
        for shard, held in enumerate(self._held):
            for server in held:
                self._load[server] += self._weights[shard]
        total = sum(self._weights) / max(1, len(members))
        self._least_gain = _SLACK * total

    def fill(self) -> None:
        """Adds servers to the shards that have too few."""
        order = sorted(
            range(len(self._held)), key=lambda shard: (-self._weights[shard], shard)
        )
        for shard in order:
            held = self._held[shard]
            while len(held) < self._copies:
                free = [s for s in self._members if s not in held]
                least = min(free, key=lambda s: (self._load[s], s))
                held.append(least)
                self._load[least] += self._weights[shard]

    def balance(self) -> None:
        """Moves shards to less loaded servers while that improves the balance."""
        while (move := self._best_move()) is not None:
            shard, source, target = move
            held = self._held[shard]
            held[held.index(source)] = target
            self._load[source] -= self._weights[shard]
            self._load[target] += self._weights[shard]

    def _best_move(self) -> tuple[int, int, int] | None:
        """Returns shard, source and target of the next move; None: no move pays off.

        The move is the best one between the two servers whose loads differ most among
        those between which a move pays off.
        """
        by_load = sorted(self._members, key=lambda s: (self._load[s], s))
        pairs = [(a, b) for a in reversed(by_load) for b in by_load]
        pairs.sort(key=lambda pair: self._load[pair[1]] - self._load[pair[0]])
        for source, target in pairs:
            apart = self._load[source] - self._load[target]
            # After a shard of weight w has moved, the loads differ by |apart − 2w|.
            found = [
                (abs(apart - 2 * self._weights[shard]), shard)
                for shard, held in enumerate(self._held)
                if source in held and target not in held
            ]
            if found and apart - min(found)[0] > 2 * self._least_gain:
                return min(found)[1], source, target
        return None

    def with_primaries(self) -> Places:
        """Balances the load of serving; returns each shard's servers, primary first."""
        load = dict.fromkeys(self._members, 0.0)
        for held, weight in zip(self._held, self._weights, strict=True):
            load[held[0]] += weight
        changed = True
        while changed:
            changed = False
            for held, weight in zip(self._held, self._weights, strict=True):
                least = min(held, key=lambda s: (load[s], s))
                if load[held[0]] - load[least] - weight > self._least_gain:
                    load[held[0]] -= weight
                    load[least] += weight
                    held.remove(least)
                    held.insert(0, least)
                    changed = True
        return tuple(map(tuple, self._held))
