"""Groups: operations that are placed together.

A placement of thousands of operations one by one would take long to find and would not
be better: an operation that takes less than starting a program and sending a value is
not worth a device of its own. So operations become groups: chains, in which nothing can
run side by side, and cheap operations with their neighbours.

Each group has a rank, and values only pass from a lower rank to a higher one. So the
groups form an acyclic graph whatever is merged, without a search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

#: Groups above this number are merged further.
MOST = 192


@dataclass
class Items:
    """Operations, or groups of them, in an order that can be run.

    Attributes:
      seconds: of each.
      preds: of each: what it waits for, as indices.
      masks: of each: the devices on which it can run, as bits.
      kinds: of each: the kind of device on which it is fastest.
      ties: of each: the number of the set that must be on one device, or -1.
      nbytes: of each: of arguments that it takes and results that it keeps.
    """

    seconds: list[float]
    preds: list[list[int]]
    masks: list[int]
    kinds: list[int]
    ties: list[int]
    nbytes: list[float]


def grouped(
    items: Items, least: float, *, most: int = MOST, room: float = float("inf")
) -> list[int]:
    """Returns the number of each item's group; groups are numbered as they can be run.

    Args:
      items: to group.
      least: seconds below which an item is not worth a device of its own.
      most: number of groups.
      room: bytes that a group may hold.
    """
    number, items = _merged(items, least, room)
    count = len(items.seconds)
    while count > most:
        step, items = _merged(items, least, room)
        number = [step[n] for n in number]
        if len(items.seconds) > 0.9 * count:
            least = max(2 * least, sum(items.seconds) / (64 * most))
        if len(items.seconds) == count:
            if least > sum(items.seconds):
                break
            step, items = _side_by_side(items, most)
            number = [step[n] for n in number]
        count = len(items.seconds)
    return number


def _heavy_users(items: Items, least: float) -> list[tuple[int, ...]]:
    """Returns up to two heavy items that each item leads to through cheap ones."""
    found: list[tuple[int, ...]] = [()] * len(items.seconds)
    for v in reversed(range(len(items.seconds))):
        led = (v,) if items.seconds[v] >= least else found[v]
        if not led:
            continue
        for u in items.preds[v]:
            known = found[u]
            if not known:
                found[u] = led
            elif len(known) < 2 and known != led:
                found[u] = tuple(dict.fromkeys((*known, *led)))[:2]
    return found


def _merged(items: Items, least: float, room: float) -> tuple[list[int], Items]:
    """Merges chains, and cheap items with what comes before them."""
    seconds, masks, kinds, ties = items.seconds, items.masks, items.kinds, items.ties
    users = _heavy_users(items, least)
    count = [0] * len(seconds)  # of the items that take each
    for preds in items.preds:
        for u in preds:
            count[u] += 1
    group_of: list[int] = []
    rank: list[int] = []
    weight: list[float] = []
    mask: list[int] = []
    kind: list[int] = []
    tie: list[int] = []
    nbytes: list[float] = []
    last: list[int] = []  # the heavy item that ends a group's chain, -1: none
    for v, preds in enumerate(items.preds):
        cheap = seconds[v] < least
        best, highest, unique = -1, -1, True
        for u in preds:
            g = group_of[u]
            if rank[g] > highest:
                best, highest, unique = g, rank[g], True
            elif rank[g] == highest and g != best:
                unique = False
        joins = (
            best >= 0
            and unique
            and nbytes[best] + items.nbytes[v] <= room
            and (tie[best] == ties[v] or tie[best] < 0 or ties[v] < 0)
            # What is tied to others stays free to be where they may be.
            and (ties[v] < 0 or mask[best] & masks[v] == masks[v])
            and (tie[best] < 0 or mask[best] & masks[v] == mask[best])
        )
        if joins:
            if cheap and weight[best] + seconds[v] <= 2 * least:
                # A cheap item goes along, if it may be there.
                joins = mask[best] & masks[v] == mask[best]
            elif cheap:  # not more of them, but for a chain
                joins = mask[best] == masks[v] and all(
                    users[u] == users[v] and count[u] == 1
                    for u in preds
                    if group_of[u] == best
                )
            elif last[best] >= 0:
                joins = (
                    mask[best] == masks[v]
                    and kind[best] == kinds[v]
                    and users[last[best]] == (v,)
                    and all(users[u] == (v,) for u in preds if group_of[u] == best)
                )
            else:  # all so far is cheap
                joins = mask[best] & masks[v] == masks[v] and all(
                    users[u] == (v,) for u in preds if group_of[u] == best
                )
        if joins:
            group_of.append(best)
            weight[best] += seconds[v]
            nbytes[best] += items.nbytes[v]
            tie[best] = max(tie[best], ties[v])
            mask[best] &= masks[v]
            if not cheap:
                last[best], kind[best] = v, kinds[v]
        else:
            group_of.append(len(rank))
            rank.append(highest + 1)
            weight.append(seconds[v])
            mask.append(masks[v])
            kind.append(kinds[v])
            tie.append(ties[v])
            nbytes.append(items.nbytes[v])
            last.append(-1 if cheap else v)
    groups = Items(weight, [], mask, kind, tie, nbytes)
    return _renumbered(items, group_of, rank, groups)


def _side_by_side(items: Items, most: int) -> tuple[list[int], Items]:
    """Merges items of one rank, which do not depend on each other, to `most` groups."""
    rank = [0] * len(items.seconds)
    for v, preds in enumerate(items.preds):
        rank[v] = 1 + max((rank[u] for u in preds), default=-1)
    rows: dict[tuple[int, int, int, int], list[int]] = {}
    for v, r in enumerate(rank):
        key = r, items.masks[v], items.kinds[v], items.ties[v]
        rows.setdefault(key, []).append(v)
    share = most / len(rank)
    group_of = [-1] * len(rank)
    ranks: list[int] = []
    merged = Items([], [], [], [], [], [])
    for (r, mask, kind, tie), members in rows.items():
        wanted = max(1, int(len(members) * share))
        each = -(-len(members) // wanted)
        for i in range(0, len(members), each):
            part = members[i : i + each]
            for v in part:
                group_of[v] = len(ranks)
            ranks.append(r)
            merged.seconds.append(sum(items.seconds[v] for v in part))
            merged.masks.append(mask)
            merged.kinds.append(kind)
            merged.ties.append(tie)
            merged.nbytes.append(sum(items.nbytes[v] for v in part))
    return _renumbered(items, group_of, ranks, merged)


def _renumbered(
    items: Items, group_of: Sequence[int], rank: Sequence[int], groups: Items
) -> tuple[list[int], Items]:
    """Returns the group of each item, numbered by rank, and the groups in that order.

    Args:
      items: that were merged.
      group_of: the group of each.
      rank: of each group.
      groups: what is known about each, but for what it waits for.
    """
    order = sorted(range(len(rank)), key=rank.__getitem__)
    new = [0] * len(order)
    for place, g in enumerate(order):
        new[g] = place
    number = [new[g] for g in group_of]
    preds: list[dict[int, None]] = [{} for _ in order]
    for v, before in enumerate(items.preds):
        own = number[v]
        for u in before:
            if number[u] != own:
                preds[own][number[u]] = None
    ordered = Items(
        [groups.seconds[g] for g in order],
        [list(p) for p in preds],
        [groups.masks[g] for g in order],
        [groups.kinds[g] for g in order],
        [groups.ties[g] for g in order],
        [groups.nbytes[g] for g in order],
    )
    return number, ordered
