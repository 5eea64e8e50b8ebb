"""Which servers whole shards are to lie on, and how that changes with the servers.

`placement` cuts tensors and shares them out among shards, once, before a run begins.
Here shards are given to servers: again whenever servers come or go, with as few moves
as even shares take. No shard is looked at, only its size.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

#: A move that evens out less than this part of a fair share is not made.
_SLACK = 0.01

Places = tuple[tuple[int, ...], ...]


def assign(
    places: Sequence[Sequence[int]],
    members: Iterable[int],
    copies: int = 1,
    weights: Sequence[float] | None = None,
) -> Places:
    """Gives shards to servers: evenly, and as far as possible to those that have them.

    What lay on servers that are gone goes to whoever has least, the largest first. Then
    shards go from who has more to who has less, for as long as that evens out. At last,
    who is named first of a shard's servers (it serves it) is chosen in the same way.

    Args:
      places: for each shard the servers that it is to lie on so far, who serves it
        first.
      members: numbers of the servers that there are.
      copies: how many servers each shard is to lie on; all of them if there are fewer.
      weights: of each shard, such as its bytes; None: all weigh the same, and so do
        those of a weight that is not known (0).

    Returns:
      For each shard as many servers as it is to lie on, who is to serve it first. With
      the same members again, nothing changes.

    Example:
      >>> assign([(0,), (1,), (0,), (1,), (0,), (1,)], [0, 1, 2])
      ((2,), (2,), (0,), (1,), (0,), (1,))
    """
    loads = _Loads(places, sorted(members), copies, weights)
    loads.fill()
    loads.level()
    return loads.served()


class _Loads:
    """Shards as they are given to servers, and what each server has."""

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
        """Gives each shard as many servers as it is to have."""
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
        """Moves shards to servers that have less, for as long as it is worth it."""
        while (move := self._best_move()) is not None:
            shard, source, target = move
            held = self._held[shard]
            held[held.index(source)] = target
            self._load[source] -= self._weights[shard]
            self._load[target] += self._weights[shard]

    def _best_move(self) -> tuple[int, int, int] | None:
        """Returns shard, source and target of what evens out most between two servers.

        The two that are furthest apart and have a shard that may move.
        """
        by_load = sorted(self._members, key=lambda s: (self._load[s], s))
        pairs = [(a, b) for a in reversed(by_load) for b in by_load]
        pairs.sort(key=lambda pair: self._load[pair[1]] - self._load[pair[0]])
        for source, target in pairs:
            apart = self._load[source] - self._load[target]
            # Of w that moves, the difference is |apart − 2w| afterwards.
            found = [
                (abs(apart - 2 * self._weights[shard]), shard)
                for shard, held in enumerate(self._held)
                if source in held and target not in held
            ]
            if found and apart - min(found)[0] > 2 * self._worth:
                return min(found)[1], source, target
        return None

    def served(self) -> Places:
        """Returns the servers of each shard, after who serves it is chosen."""
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
