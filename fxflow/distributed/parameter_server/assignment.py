"""Which servers whole shards are to lie on, and how that changes with the servers.

`placement` cuts tensors and divides them among shards, once, before a run begins. Here
shards are assigned to servers, again whenever servers join or leave, with as few moves
as balance takes. Only the sizes of shards are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

#: A move that balances less than this fraction of a fair share is not made.
_SLACK = 0.01

Places = tuple[tuple[int, ...], ...]


def assign(
    places: Sequence[Sequence[int]],
    members: Iterable[int],
    copies: int = 1,
    weights: Sequence[float] | None = None,
) -> Places:
    """Assigns shards to servers: evenly, and if possible to those that hold them.

    Shards of servers that left go to the server with the least load, the largest first.
    Then shards move from servers with more load to those with less, while that balances
    them. Finally, the first server of each shard (which serves it) is chosen likewise.

    Args:
      places: for each shard its servers so far, the one that serves it first.
      members: numbers of the present servers.
      copies: number of servers for each shard; all of them if there are fewer.
      weights: of each shard, such as its bytes; None: all equal. A weight of 0 is
        unknown, and counts as the mean.

    Returns:
      For each shard its servers, the one that serves it first. With the same members
      again, nothing changes.

    Example:
      >>> assign([(0,), (1,), (0,), (1,), (0,), (1,)], [0, 1, 2])
      ((2,), (2,), (0,), (1,), (0,), (1,))
    """
    loads = _Loads(places, sorted(members), copies, weights)
    loads.fill()
    loads.level()
    return loads.served()


class _Loads:
    """Shards as they are assigned to servers, and the load of each server."""

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
        self._worth = _SLACK * total

    def fill(self) -> None:
        """Gives each shard its number of servers."""
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

    def level(self) -> None:
        """Moves shards to servers with less load, while it is worth it."""
        while (move := self._best_move()) is not None:
            shard, source, target = move
            held = self._held[shard]
            held[held.index(source)] = target
            self._load[source] -= self._weights[shard]
            self._load[target] += self._weights[shard]

    def _best_move(self) -> tuple[int, int, int] | None:
        """Returns shard, source and target of the move that balances two servers best.

        These are the two furthest apart that have a shard that may move.
        """
        by_load = sorted(self._members, key=lambda s: (self._load[s], s))
        pairs = [(a, b) for a in reversed(by_load) for b in by_load]
        pairs.sort(key=lambda pair: self._load[pair[1]] - self._load[pair[0]])
        for source, target in pairs:
            apart = self._load[source] - self._load[target]
            # After w has moved, the difference is |apart − 2w|.
            found = [
                (abs(apart - 2 * self._weights[shard]), shard)
                for shard, held in enumerate(self._held)
                if source in held and target not in held
            ]
            if found and apart - min(found)[0] > 2 * self._worth:
                return min(found)[1], source, target
        return None

    def served(self) -> Places:
        """Returns the servers of each shard, the one that serves it first."""
        load = dict.fromkeys(self._members, 0.0)
        for held, weight in zip(self._held, self._weights, strict=True):
            load[held[0]] += weight
        changed = True
        while changed:
            changed = False
            for held, weight in zip(self._held, self._weights, strict=True):
                least = min(held, key=lambda s: (load[s], s))
                if load[held[0]] - load[least] - weight > self._worth:
                    load[held[0]] -= weight
                    load[least] += weight
                    held.remove(least)
                    held.insert(0, least)
                    changed = True
        return tuple(map(tuple, self._held))
