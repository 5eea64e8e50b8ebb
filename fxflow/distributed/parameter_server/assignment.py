"""Assigns whole shards to servers, again whenever servers join or leave.

`placement` cuts tensors and divides them among shards once, before a run begins.
`assign` then moves only as many shards as balance requires. It needs no more than their
sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

#: Skip moves that improve the balance by less than this fraction of a fair share.
_SLACK = 0.01

Places = tuple[tuple[int, ...], ...]


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
