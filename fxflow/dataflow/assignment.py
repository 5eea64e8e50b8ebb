"""Assignment: groups of operations to devices, so that the whole ends soonest.

The problem is abstract: groups with the seconds that each takes on each device, values
between them, devices with memory. It is solved in three steps: list scheduling with a
look at what comes after (HEFT, Topcuoglu et al., 2002, and PEFT's table of optimistic
costs, Arabnejad and Barbosa, 2014); local search along the critical path, with random
restarts; and a lower bound, which says how far from any assignment the result may be.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

INF = float("inf")
#: Groups that are scheduled while searching, all schedules together: about 30 ms.
EFFORT = 20_000
#: What a second of sending counts beside a second of the whole.
_SENDING = 0.002
#: Problems of at most `_FEW` groups get more trials: a group matters more there.
_FEW = 16
#: Local optima after which the search goes back to the best one.
_PATIENCE = 16


@dataclass
class Problem:
    """Groups to assign.

    Attributes:
      seconds: of each group on each device; infinite where it cannot run.
      values: between groups: from, to, bytes.
      latency: seconds that sending takes at least, from each device to each.
      per_byte: seconds that a byte adds.
      sizes: bytes of what each group computes for others.
      kept: whether that is a result of the whole, and stays to the end.
      arguments: bytes of each argument, and the groups that take it; a device keeps one
        copy.
      capacity: bytes of memory of each device.
      tied: sets of groups that must be on one device.
      ready: seconds at which the arguments of each group are on each device.
    """

    seconds: Sequence[Sequence[float]]
    values: Sequence[tuple[int, int, float]]
    latency: Sequence[Sequence[float]]
    per_byte: Sequence[Sequence[float]]
    sizes: Sequence[float] = ()
    kept: Sequence[bool] = ()
    arguments: Sequence[tuple[float, Sequence[int]]] = ()
    capacity: Sequence[float] = ()
    tied: Sequence[Sequence[int]] = ()
    ready: Sequence[Sequence[float]] = ()
    _preds: list[list[tuple[int, float]]] = field(init=False, repr=False)
    _succs: list[list[tuple[int, float]]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        between: dict[tuple[int, int], float] = {}
        for u, v, nbytes in self.values:
            between[u, v] = between.get((u, v), 0.0) + nbytes
        self._preds = [[] for _ in self.seconds]
        self._succs = [[] for _ in self.seconds]
        for (u, v), nbytes in between.items():
            self._preds[v].append((u, nbytes))
            self._succs[u].append((v, nbytes))
        if not self.ready:
            self.ready = [[0.0] * self.count for _ in self.seconds]
        self._mates = [{g} for g in range(len(self.seconds))]
        for groups in self.tied:
            for group in groups:
                self._mates[group] = set(groups)
        self._allowed = [
            [
                d
                for d in range(self.count)
                if all(self.seconds[g][d] < INF for g in mates)
            ]
            for mates in self._mates
        ]
        total = sum(self.sizes) + sum(nbytes for nbytes, _ in self.arguments)
        self._known_tails: list[list[float]] | None = None
        #: Whether memory can be short at all.
        self.bounded: bool = any(total > most for most in self.capacity)

    @property
    def tails(self) -> list[list[float]]:
        """The least seconds after the end of each group on each device."""
        if self._known_tails is None:
            self._known_tails = _tails(self)
        return self._known_tails

    @property
    def count(self) -> int:
        """Number of devices."""
        return len(self.latency)

    def allowed(self, group: int) -> list[int]:
        """Returns the devices on which a group, and what is tied to it, can run.

        Args:
          group: its number.
        """
        return self._allowed[group]

    def mates(self, group: int) -> set[int]:
        """Returns the groups that go where a group goes, itself included.

        Args:
          group: its number.
        """
        return self._mates[group]

    def order(self, ranks: Sequence[float] | None = None) -> list[int]:
        """Returns the groups in an order that can be run, the most urgent first.

        Args:
          ranks: the larger, the more urgent; None: `ranks`.
        """
        ranks = self.ranks() if ranks is None else ranks
        missing = [len(preds) for preds in self._preds]
        heap = [(-ranks[g], g) for g in range(len(missing)) if not missing[g]]
        heapq.heapify(heap)
        found = []
        while heap:
            _, g = heapq.heappop(heap)
            found.append(g)
            for v, _ in self._succs[g]:
                missing[v] -= 1
                if not missing[v]:
                    heapq.heappush(heap, (-ranks[v], v))
        return found

    def ranks(self) -> list[float]:
        """Returns the seconds from the start of each group to the end, on average."""
        count = self.count
        pairs = max(1, count * (count - 1))
        latency = sum(map(sum, self.latency)) / pairs
        per_byte = sum(map(sum, self.per_byte)) / pairs
        ranks = [0.0] * len(self.seconds)
        for g in reversed(topological(self._preds, self._succs)):
            finite = [s for s in self.seconds[g] if s < INF]
            after = max(
                (ranks[v] + latency + n * per_byte for v, n in self._succs[g]),
                default=0.0,
            )
            ranks[g] = sum(finite) / max(1, len(finite)) + after
        return ranks

    def need(self, where: Sequence[int], order: Sequence[int]) -> list[float]:
        """Returns the bytes of each device that are in use at most.

        Arguments are there all the time; what a group computes, until the last group
        that takes it has run.

        Args:
          where: device of each group.
          order: in which they run.
        """
        here = [0.0] * self.count
        for nbytes, users in self.arguments:
            for d in {where[g] for g in users}:
                here[d] += nbytes
        most = list(here)
        left = [len(succs) for succs in self._succs]
        for g in order:
            d = where[g]
            sent = sum(n for u, n in self._preds[g] if where[u] != d)
            here[d] += self.sizes[g]
            most[d] = max(most[d], here[d] + sent)
            for u, _ in self._preds[g]:
                left[u] -= 1
                if not left[u] and not self.kept[u]:
                    here[where[u]] -= self.sizes[u]
        return most

    def overflow(self, where: Sequence[int], order: Sequence[int]) -> float:
        """Returns the bytes above the devices' memory.

        Args:
          where: device of each group.
          order: in which they run.
        """
        if not self.bounded:
            return 0.0
        need = self.need(where, order)
        over = zip(need, self.capacity, strict=True)
        return sum(max(0.0, n - most) for n, most in over)


def topological(
    preds: Sequence[Sequence[tuple[int, float]]],
    succs: Sequence[Sequence[tuple[int, float]]],
) -> list[int]:
    """Returns groups in an order that can be run.

    Args:
      preds: of each group: what it waits for, and bytes.
      succs: of each group: what waits for it, and bytes.
    """
    missing = [len(p) for p in preds]
    ready = [g for g, m in enumerate(missing) if not m]
    for g in ready:
        for v, _ in succs[g]:
            missing[v] -= 1
            if not missing[v]:
                ready.append(v)
    return ready


@dataclass
class Assignment:
    """Where and when groups run.

    Attributes:
      where: device of each group.
      order: order of all groups, by their start.
      start: of each group, in seconds.
      seconds: of the whole.
      sent: seconds of all transfers together.
      overflow: bytes above the devices' memory.
    """

    where: list[int]
    order: list[int]
    start: list[float]
    seconds: float
    sent: float = 0.0
    overflow: float = 0.0

    @property
    def key(self) -> tuple[float, float]:
        """What is minimized; of placements that end at one time, what sends less."""
        return self.overflow, self.seconds + _SENDING * self.sent


def scheduled(
    problem: Problem, where: Sequence[int], order: Sequence[int]
) -> Assignment:
    """Returns when groups run if each device follows an order.

    Args:
      problem: of the groups.
      where: device of each group.
      order: order of all groups, that can be run.
    """
    found = scheduled_within(problem, where, order, INF)
    assert found is not None
    return found


def scheduled_within(
    problem: Problem, where: Sequence[int], order: Sequence[int], most: float
) -> Assignment | None:
    """Returns what `scheduled` does, or None if the whole takes longer than `most`.

    That is known early: by the least seconds after the end of each group.

    Args:
      problem: of the groups.
      where: device of each group.
      order: order of all groups, that can be run.
      most: seconds of the whole.
    """
    seconds, latency, per_byte = problem.seconds, problem.latency, problem.per_byte
    preds, ready, tails = problem._preds, problem.ready, problem.tails
    total = 0.0
    free = [0.0] * problem.count
    end = [0.0] * len(where)
    start = [0.0] * len(where)
    for v in order:
        d = where[v]
        at = max(free[d], ready[v][d])
        for u, nbytes in preds[v]:
            arrives, source = end[u], where[u]
            if source != d:
                sent = latency[source][d] + nbytes * per_byte[source][d]
                total += sent
                arrives += sent
            if arrives > at:
                at = arrives
        start[v] = at
        free[d] = end[v] = at = at + seconds[v][d]
        if at + tails[v][d] > most:
            return None
    whole = max(free)
    over = problem.overflow(where, order)
    return Assignment(list(where), list(order), start, whole, total, over)


def _tails(problem: Problem) -> list[list[float]]:
    """Returns the least seconds after the end of each group on each device."""
    seconds = np.asarray(problem.seconds, float)
    latency, per_byte = np.asarray(problem.latency), np.asarray(problem.per_byte)
    tails = np.zeros(seconds.shape)
    for g in reversed(topological(problem._preds, problem._succs)):
        for v, nbytes in problem._succs[g]:
            ends = latency + nbytes * per_byte + (seconds[v] + tails[v])[None, :]
            np.maximum(tails[g], ends.min(axis=1), out=tails[g])
    return [list(map(float, row)) for row in tails]


def _heads(problem: Problem) -> list[list[float]]:
    """Returns the least seconds before the start of each group on each device."""
    seconds = np.asarray(problem.seconds, float)
    latency, per_byte = np.asarray(problem.latency), np.asarray(problem.per_byte)
    heads = np.array(problem.ready, float).reshape(seconds.shape)
    for g in topological(problem._preds, problem._succs):
        for u, nbytes in problem._preds[g]:
            ends = latency + nbytes * per_byte + (seconds[u] + heads[u])[:, None]
            np.maximum(heads[g], ends.min(axis=0), out=heads[g])
    return [list(map(float, row)) for row in heads]


def list_scheduled(
    problem: Problem,
    order: Sequence[int],
    tails: Sequence[Sequence[float]] | None = None,
) -> Assignment:
    """Assigns groups in an order, each to the device on which it ends first.

    Args:
      problem: of the groups.
      order: in which they are assigned.
      tails: what is added to a group's end on each device: the least that comes after
        it there.
    """
    seconds, latency, per_byte = problem.seconds, problem.latency, problem.per_byte
    where = [-1] * len(order)
    end = [0.0] * len(order)
    start = [0.0] * len(order)
    busy: list[list[tuple[float, float]]] = [[] for _ in range(problem.count)]
    room = list(problem.capacity) if problem.bounded else []
    held: list[set[int]] = [set() for _ in range(problem.count)]
    takes: list[list[int]] = [[] for _ in order]
    for number, (_, users) in enumerate(problem.arguments):
        for g in users:
            takes[g].append(number)
    for g in order:
        mates = problem.mates(g)
        fixed = next((where[m] for m in mates if where[m] >= 0), None)
        choices = problem.allowed(g) if fixed is None else [fixed]
        best = (INF, INF, 0.0, -1)
        for d in choices:
            at = problem.ready[g][d]
            for u, nbytes in problem._preds[g]:
                arrives, source = end[u], where[u]
                if source != d:
                    arrives += latency[source][d] + nbytes * per_byte[source][d]
                at = max(at, arrives)
            at = _gap(busy[d], at, seconds[g][d])
            over = 0.0
            if room:
                need = problem.sizes[g] + sum(
                    problem.arguments[a][0] for a in takes[g] if a not in held[d]
                )
                over = max(0.0, need - room[d])
            ends = at + seconds[g][d] + (tails[g][d] if tails else 0.0)
            best = min(best, (over, ends, at, d))
        _, _, at, d = best
        where[g], start[g], end[g] = d, at, at + seconds[g][d]
        _insert(busy[d], at, end[g])
        if room:
            room[d] -= problem.sizes[g]
            for a in takes[g]:
                if a not in held[d]:
                    held[d].add(a)
                    room[d] -= problem.arguments[a][0]
    position = {g: i for i, g in enumerate(order)}
    by_start = sorted(order, key=lambda g: (start[g], position[g]))
    return scheduled(problem, where, by_start)


def _gap(busy: list[tuple[float, float]], at: float, seconds: float) -> float:
    """Returns the first time after `at` at which a device is free for `seconds`."""
    if not busy or at >= busy[-1][1]:
        return at
    for begin, end in busy:
        if begin - at >= seconds:
            return at
        at = max(at, end)
    return at


def _insert(busy: list[tuple[float, float]], begin: float, end: float) -> None:
    i = len(busy)
    while i and busy[i - 1][0] > begin:
        i -= 1
    busy.insert(i, (begin, end))


def _critical(problem: Problem, found: Assignment) -> list[int]:
    """Returns the groups that decide when the whole ends, the last one first."""
    where, start = found.where, found.start
    end = [s + problem.seconds[g][where[g]] for g, s in enumerate(start)]
    before: dict[int, int] = {}
    last: dict[int, int] = {}
    for g in found.order:
        if where[g] in last:
            before[g] = last[where[g]]
        last[where[g]] = g
    g = max(range(len(end)), key=end.__getitem__)
    path = [g]
    while True:
        choice, latest = -1, 0.0
        for u, nbytes in problem._preds[g]:
            arrives, a, b = end[u], where[u], where[g]
            if a != b:
                arrives += problem.latency[a][b] + nbytes * problem.per_byte[a][b]
            if arrives > latest:
                choice, latest = u, arrives
        if g in before and end[before[g]] >= latest:
            choice = before[g]
        if choice < 0:
            return path
        g = choice
        path.append(g)


def _moved(order: list[int], g: int, target: int, problem: Problem) -> list[int]:
    """Returns an order in which a group comes before another, if it can."""
    i, j = order.index(g), order.index(target)
    if i <= j:
        return order
    # What the group waits for, between the two, moves with it.
    block, needed = [g], {u for u, _ in problem._preds[g]}
    rest = []
    for v in reversed(order[j:i]):
        if v in needed:
            if v == target:
                return order
            block.append(v)
            needed.update(u for u, _ in problem._preds[v])
        else:
            rest.append(v)
    return [*order[:j], *reversed(block), *reversed(rest), *order[i + 1 :]]


def improved(
    problem: Problem, found: Assignment, effort: int, seed: int = 0
) -> Assignment:
    """Returns an assignment that is at least as good, by local search.

    Moves are groups of the critical path to other devices, in the place of another
    group, or before the group that ran before them on their device. Where none helps,
    a few random moves follow.

    Args:
      problem: of the groups.
      found: to start from.
      effort: groups to schedule, all trials together.
      seed: seed of the random moves.
    """
    rng = random.Random(seed)
    count = len(found.where)
    trials = max(1, effort // max(1, count))
    free = [g for g in range(count) if len(problem.allowed(g)) > 1]
    best = current = base = found
    idle = 0
    while trials > 0 and count > 1:
        moved = False
        path = _critical(problem, current)
        moves: list[tuple[int, int | None]] = []
        befores: list[int | None] = [*path[1:], None]
        for g, after in zip(path, befores, strict=True):
            own = current.where[g]
            moves += [(g, d) for d in problem.allowed(g) if d != own]
            other = rng.randrange(count)
            if current.where[other] != own:
                moves.append((g, -1 - other))
            if after is not None and current.where[after] == current.where[g]:
                moves.append((g, None))
        rng.shuffle(moves)
        for g, target in moves:
            if trials <= 0:
                break
            where, order = current.where, current.order
            if target is not None and target >= 0:
                where = list(where)
                for mate in problem.mates(g):
                    where[mate] = target
            elif target is not None:  # the two change places
                other, where = -1 - target, list(where)
                ours, theirs = where[g], where[other]
                if theirs not in problem.allowed(g) or ours not in problem.allowed(
                    other
                ):
                    continue
                for mate in problem.mates(g):
                    where[mate] = theirs
                for mate in problem.mates(other):
                    where[mate] = ours
            else:
                row = [v for v in order if where[v] == where[g]]
                previous = row[max(0, row.index(g) - 1)]
                order = _moved(order, g, previous, problem)
                if order is current.order:
                    continue
            # If memory is short, what takes longer may be better.
            most = INF if problem.bounded else current.key[1]
            trial = scheduled_within(problem, where, order, most)
            trials -= 1
            if trial is not None and trial.key < _less(current.key):
                current, moved = trial, True
                break
        if moved:
            if current.key < _less(best.key):
                best, idle = current, 0
            continue
        if trials <= 0 or not free:
            break
        # A few random moves, from here if it is not much worse than the best.
        idle += 1
        base = current if current.key < _near(base.key) else base
        if idle % _PATIENCE == 0:
            base = best
        where, order = list(base.where), list(base.order)
        for _ in range(rng.randint(1, 2 + min(idle // 8, 4))):
            g = rng.choice(free)
            d = rng.choice(problem.allowed(g))
            for mate in problem.mates(g):
                where[mate] = d
            a, b = rng.randrange(count), rng.randrange(count)
            if rng.random() < 0.5:
                order = _moved(order, order[max(a, b)], order[min(a, b)], problem)
        current = scheduled(problem, where, order)
        trials -= 1
        if current.key < _less(best.key):
            best, idle = current, 0
    return best


def _near(key: tuple[float, float]) -> tuple[float, float]:
    """Returns what a key must be below for the search to go on from there."""
    return key[0], key[1] * 1.03


def _less(key: tuple[float, float]) -> tuple[float, float]:
    """Returns what a key must be below to count as better."""
    return key[0], key[1] * (1 - 1e-9)


def assign(problem: Problem, effort: int = EFFORT, seed: int = 0) -> Assignment:
    """Assigns groups to devices.

    The result is never worse than the best single device, if there is one on which
    everything can run.

    Args:
      problem: of the groups.
      effort: groups to schedule while searching.
      seed: seed of the random moves.
    """
    order, tails = problem.order(), problem.tails
    starts = [list_scheduled(problem, order)]
    if problem.count > 1:
        starts.append(list_scheduled(problem, order, tails))
    every = [problem.allowed(g) for g in range(len(order))]
    for d in range(problem.count):
        if all(d in allowed for allowed in every):
            starts.append(scheduled(problem, [d] * len(order), order))
        else:  # what is pinned elsewhere stays there
            where = [d if d in allowed else allowed[0] for allowed in every]
            starts.append(scheduled(problem, where, order))
    starts.sort(key=lambda a: a.key)
    if problem.count == 1 or len(order) < 2:
        return starts[0]
    if len(order) <= _FEW:
        effort = effort * 5 // 2
    return improved(problem, starts[0], effort, seed)


def lower_bound(problem: Problem) -> float:
    """Returns seconds below which no assignment of the groups can end.

    It is the largest of: the critical path, with what sending must take; the work of
    any set of groups divided over the devices, between what comes before all of them
    and what comes after; and the work that can run on one device only.

    Args:
      problem: of the groups.
    """
    if not problem.seconds:
        return 0.0
    seconds = np.asarray(problem.seconds, float)
    heads, tails = np.asarray(_heads(problem)), np.asarray(problem.tails)
    bound = float((heads + seconds + tails).min(axis=1).max())
    ok = np.isfinite(seconds)
    head = np.where(ok, heads, INF).min(axis=1)
    tail = np.where(ok, tails, INF).min(axis=1)
    work = seconds.min(axis=1)
    # Work between a head and a tail that all of its groups have.
    order = np.argsort(tail, kind="stable")[::-1]
    for first in np.unique(head):
        row = order[head[order] >= first]
        sums = np.cumsum(work[row]) / problem.count
        bound = max(bound, float((sums + first + tail[row]).max()))
    pinned = ok.sum(axis=1) == 1
    for d in range(problem.count):
        only = pinned & ok[:, d]
        if only.any():
            least = head[only].min() + tail[only].min()
            bound = max(bound, float(seconds[only, d].sum() + least))
    return bound
