"""Schedules: in which order each device starts its fragments.

A schedule is a rule for list scheduling: whenever a device is free, the rule chooses
among the fragments whose inputs are there. The order that this gives under a virtual
clock (`simulate`) is the order in which the device starts them in each step.

The rules differ in what they prefer, and in how many rounds of a loop a device may have
begun (their activations are in memory):

| schedule | prefers | rounds begun at once, by stage `s` of `p` |
| --- | --- | --- |
| `"gpipe"` | forward, then backward | all |
| `"1f1b"` | backward | `p - s` |
| `"zb-h1"` | backward, then forward; the gradients of weights fill gaps | `p - s` |
| `"breadth"` | earlier levels: as if each level were a barrier | all |

Sources: GPipe (Huang et al., 2019); PipeDream-Flush (Narayanan et al., 2021); Zero
Bubble Pipeline Parallelism (Qi et al., 2024).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from fxflow.errors import ArgumentError, PlacementError


class Work(Protocol):
    """What a schedule orders; a `Fragment` is one.

    Attributes:
      index: unique, in an order that can be run.
      place: the device.
      level: changes of place on the longest path to it.
      round: of a loop that is written out.
      kind: "F", "B" or "W".
      after: indices of what it waits for.
    """

    index: int
    place: Any
    level: int
    round: int
    kind: str
    after: tuple[int, ...]


class ScheduleRule(NamedTuple):
    """A rule for list scheduling.

    Attributes:
      name: of the rule.
      key: the smallest goes first among those that are ready.
      bounded: whether the rounds that a device may have begun are bounded.
    """

    name: str
    key: Callable[[Work], tuple[int, ...]]
    bounded: bool = False


_B_FIRST = {"B": 0, "F": 1, "W": 2}
_BW_FIRST = {"B": 0, "W": 0, "F": 1}

SCHEDULES = {
    s.name: s
    for s in (
        ScheduleRule("breadth", lambda w: (w.level, w.round, w.index)),
        ScheduleRule("gpipe", lambda w: (w.kind != "F", w.round, w.level, w.index)),
        ScheduleRule("1f1b", lambda w: (_BW_FIRST[w.kind], w.round, w.index), True),
        ScheduleRule("zb-h1", lambda w: (_B_FIRST[w.kind], w.round, -w.level), True),
    )
}


def schedule_named(name: Any) -> ScheduleRule:
    """Returns a schedule by its name.

    Raises:
      ArgumentError: there is none of that name.
    """
    found = SCHEDULES.get(name) if isinstance(name, str) else None
    if found is None:
        names = ", ".join(map(repr, SCHEDULES))
        raise ArgumentError(f"no schedule {name!r}: schedules are {names}")
    return found


class Ran(NamedTuple):
    """A fragment on the virtual clock.

    Attributes:
      work: the fragment.
      start: in seconds.
      end: in seconds.
    """

    work: Work
    start: float
    end: float


class Timeline(NamedTuple):
    """What `simulate` returns.

    Attributes:
      rows: for each place the fragments in the order in which they ran.
    """

    rows: dict[Any, list[Ran]]

    @property
    def seconds(self) -> float:
        """When the last fragment ends."""
        return max((row[-1].end for row in self.rows.values() if row), default=0.0)

    @property
    def bubble(self) -> float:
        """The fraction of the places' time in which they wait."""
        total = self.seconds * len(self.rows)
        busy = sum(ran.end - ran.start for row in self.rows.values() for ran in row)
        return 1 - busy / total if total else 0.0

    def to_text(self, width: int = 72, name: Callable[[Any], str] = str) -> str:
        """Returns a Gantt chart: a row of characters for each place.

        A letter is the kind of the fragment in lower case in even rounds; a point is
        time in which the place waits.

        Args:
          width: characters for the whole time.
          name: of a place.
        """
        scale = width / self.seconds if self.seconds else 0.0
        labels = {place: name(place) for place in self.rows}
        margin = max(map(len, labels.values()), default=0)
        lines = []
        for place, row in self.rows.items():
            cells = ["."] * width
            for ran in row:
                kind = ran.work.kind
                letter = kind if ran.work.round % 2 else kind.lower()
                first = min(int(ran.start * scale), width - 1)
                last = max(first + 1, round(ran.end * scale))
                cells[first:last] = [letter] * (min(last, width) - first)
            lines.append(f"{labels[place]:{margin}}  {''.join(cells)}")
        return "\n".join(lines)


def simulate(
    works: Sequence[Work],
    seconds: Callable[[Any], float],
    schedule: ScheduleRule | None = None,
    *,
    sent: Callable[[Work, Work], float] = lambda source, work: 0.0,
) -> Timeline:
    """Runs fragments under a virtual clock.

    A place runs one fragment at a time. Values are sent in the background; a link from
    a place to another sends one value at a time.

    Args:
      works: in an order that can be run; `after` refers to their indices.
      seconds: that one takes.
      schedule: chooses among those that are ready; None: each place runs its own in
        their order.
      sent: seconds to send the results of one to another at another place.

    Returns:
      The timeline.
    """
    number = {work.index: i for i, work in enumerate(works)}
    users: list[list[int]] = [[] for _ in works]
    for i, work in enumerate(works):
        for before in work.after:
            users[number[before]].append(i)
    missing = [len(work.after) for work in works]
    arrival = [0.0] * len(works)
    keys = [schedule.key(w) if schedule else (i,) for i, w in enumerate(works)]
    places = {work.place: None for work in works}
    if schedule is None:
        limits: _Limits = _InOrder(works)
    else:
        limits = _Rounds(works) if schedule.bounded else _Limits()
    state = {place: _Place() for place in places}
    order = {place: i for i, place in enumerate(places)}
    rows: dict[Any, list[Ran]] = {place: [] for place in places}
    links: dict[tuple[Any, Any], float] = {}
    events: list[tuple[float, int, Any]] = []

    def look(at: float, place: Any) -> None:
        heapq.heappush(events, (at, order[place], place))

    for i, work in enumerate(works):
        if not missing[i]:
            heapq.heappush(state[work.place].coming, (0.0, i))
    for place in places:
        look(0.0, place)
    left = len(works)
    while left:
        if not events:  # the limits keep everything from running
            limits.relax()
            for place, here in state.items():
                here.unblock()
                look(here.free, place)
        now, _, place = heapq.heappop(events)
        here = state[place]
        if now < here.free:
            continue  # looks again when it is free
        chosen = here.take(now, keys, lambda i: limits.may(works[i]))
        if chosen is None:
            if here.coming:
                look(here.coming[0][0], place)
            continue
        work = works[chosen]
        end = here.free = now + seconds(work)
        rows[place].append(Ran(work, now, end))
        left -= 1
        limits.ran(work)
        here.unblock()
        look(end, place)
        arrives = {place: end}
        for i in users[chosen]:
            other = works[i].place
            if other not in arrives:
                link = place, other
                at = max(end, links.get(link, 0.0)) + sent(work, works[i])
                links[link] = arrives[other] = at
            arrival[i] = max(arrival[i], arrives[other])
            missing[i] -= 1
            if not missing[i]:
                heapq.heappush(state[other].coming, (arrival[i], i))
                look(max(arrival[i], state[other].free), other)
    return Timeline(rows)


class _Place:
    """What waits at a place.

    Attributes:
      free: when it can start a fragment.
      coming: by the time at which all inputs are there; a heap.
      ready: those whose inputs are there, by the schedule's key; a heap.
    """

    __slots__ = ("_blocked", "coming", "free", "ready")

    def __init__(self) -> None:
        self.free = 0.0
        self.coming: list[tuple[float, int]] = []
        self.ready: list[tuple[tuple[int, ...], int]] = []
        self._blocked: list[tuple[tuple[int, ...], int]] = []

    def take(
        self, now: float, keys: Sequence[tuple[int, ...]], may: Callable[[int], bool]
    ) -> int | None:
        """Takes the fragment that starts now, or None."""
        while self.coming and self.coming[0][0] <= now:
            _, i = heapq.heappop(self.coming)
            heapq.heappush(self.ready, (keys[i], i))
        while self.ready:
            key, i = heapq.heappop(self.ready)
            if may(i):
                return i
            self._blocked.append((key, i))
        return None

    def unblock(self) -> None:
        """Looks again at what might not start before."""
        for item in self._blocked:
            heapq.heappush(self.ready, item)
        self._blocked.clear()


class _Limits:
    """Which fragments may start; all."""

    def may(self, work: Work) -> bool:
        """Returns whether a fragment may start."""
        return True

    def ran(self, work: Work) -> None:
        """Notes that a fragment has run."""

    def relax(self) -> None:
        """Allows more, since nothing can run.

        Raises:
          PlacementError: fragments wait for each other.
        """
        raise PlacementError("the fragments wait for each other: no order can be run")


class _InOrder(_Limits):
    """Each place runs its fragments in their order."""

    def __init__(self, works: Sequence[Work]) -> None:
        self._next: dict[Any, list[Work]] = {}
        for work in reversed(works):
            self._next.setdefault(work.place, []).append(work)

    def may(self, work: Work) -> bool:
        """Returns whether it is the place's next."""
        return self._next[work.place][-1] is work

    def ran(self, work: Work) -> None:
        """Goes on to the place's next."""
        self._next[work.place].pop()


class _Rounds(_Limits):
    """Bounds how many rounds each place has begun and not ended, as in 1F1B."""

    def __init__(self, works: Sequence[Work]) -> None:
        first: dict[Any, int] = {}
        self._left: dict[tuple[Any, int], int] = {}
        for work in works:
            first[work.place] = min(first.get(work.place, work.level), work.level)
            if work.kind != "W":
                key = work.place, work.round
                self._left[key] = self._left.get(key, 0) + 1
        order = sorted(first, key=lambda place: first[place])
        chunks = max(
            (
                len({w.level for w in works if w.place == place and w.kind == "F"})
                for place in order
            ),
            default=1,
        )
        self._most = {
            place: (len(order) - s) + max(chunks - 1, 0) * len(order)
            for s, place in enumerate(order)
        }
        self._begun: dict[Any, set[int]] = {place: set() for place in first}

    def may(self, work: Work) -> bool:
        """Returns whether a fragment may start: it begins no round too many."""
        begun = self._begun[work.place]
        return (
            work.kind != "F"
            or work.round in begun
            or len(begun) < self._most[work.place]
        )

    def ran(self, work: Work) -> None:
        """Notes that a fragment has run."""
        if work.kind == "W":
            return
        key = work.place, work.round
        self._left[key] -= 1
        if self._left[key]:
            self._begun[work.place].add(work.round)
        else:
            self._begun[work.place].discard(work.round)

    def relax(self) -> None:
        """Lets each place begin a round more."""
        if min(self._most.values()) > len(self._left):
            super().relax()
        self._most = {place: most + 1 for place, most in self._most.items()}
