"""The virtual clock: when each fragment runs, on devices and links that queue."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from fxflow.dataflow.tables import SHOWN, counted, table, time_text
from fxflow.devices.trace_events import TraceEvents, TracePoint
from fxflow.errors import PlacementError


class Work(Protocol):
    """What is put in order; a `Fragment` is one.

    Attributes:
      index: unique, in an order that can be run.
      place: the device.
      level: changes of place or stage on the longest path to it.
      round: of a loop that is written out.
      kind: "F", "B", "W" or "O"; see `Fragment`.
      stage: of a pipeline, or None.
      microbatch: of a pipeline, or None.
      after: indices of what it waits for.
    """

    index: int
    place: Any
    level: int
    round: int
    kind: str
    stage: int | None
    microbatch: int | None
    after: tuple[int, ...]

    def describe(self) -> str:
        """Returns what it is, for messages."""
        ...

    def takes(self, other: Any) -> str:
        """Returns what it takes from another one, for messages."""
        ...


class Limits(Protocol):
    """Which works may start, besides that their inputs must be there."""

    def group(self, work: Work) -> Any:
        """Returns the group of a work: if one may not start, those after it may not."""
        ...

    def may(self, work: Work) -> bool:
        """Returns whether a work may start now."""
        ...

    def ran(self, work: Work) -> None:
        """Notes that a work has run."""
        ...

    def relax(self) -> bool:
        """Allows more, since nothing can run; returns whether it can."""
        ...


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

    def __str__(self) -> str:
        return self.to_table()

    def __repr__(self) -> str:
        count = sum(map(len, self.rows.values()))
        return (
            f"<Timeline of {counted(count, 'fragment')} on "
            f"{counted(len(self.rows), 'device')}: {time_text(self.seconds)}, "
            f"{self.bubble:.0%} idle>"
        )

    def in_order(self, order: Callable[[Any], Any]) -> Timeline:
        """Returns the timeline with its rows in another order.

        Args:
          order: from a place to a sort key.
        """
        return Timeline(
            {place: self.rows[place] for place in sorted(self.rows, key=order)}
        )

    @property
    def seconds(self) -> float:
        """When the last fragment ends."""
        return max((row[-1].end for row in self.rows.values() if row), default=0.0)

    def seconds_of(self, work: Any) -> float:
        """Returns how long a work took, the mean of its stage and kind if it has them.

        Args:
          work: that ran.

        Raises:
          KeyError: it did not run.
        """
        alike: list[float] = []
        for ran in (ran for row in self.rows.values() for ran in row):
            other, took = ran.work, ran.end - ran.start
            if other.index == work.index and work.microbatch is None:
                return took
            if work.microbatch is not None and other.microbatch is not None:
                same = (work.stage, work.kind) == (other.stage, other.kind)
                alike += [took] if same else []
        if not alike:
            raise KeyError(work.describe())
        return sum(alike) / len(alike)

    @property
    def works(self) -> list[Work]:
        """All works in an order that can be run, which keeps that of each place."""
        rows = [row for row in self.rows.values() if row]
        heads = [(row[0].start, n, 0) for n, row in enumerate(rows)]
        heapq.heapify(heads)
        found: list[Work] = []
        done: set[int] = set()
        late: list[tuple[float, int, int]] = []
        while heads:
            start, n, i = heapq.heappop(heads)
            work = rows[n][i].work
            if not done.issuperset(work.after):
                # It starts when something ends that took no time.
                late.append((start, n, i))
                continue
            found.append(work)
            done.add(work.index)
            if i + 1 < len(rows[n]):
                heapq.heappush(heads, (rows[n][i + 1].start, n, i + 1))
            for item in late:
                heapq.heappush(heads, item)
            late.clear()
        return found

    @property
    def bubble(self) -> float:
        """The fraction of the places' time in which they wait."""
        total = self.seconds * len(self.rows)
        busy = sum(ran.end - ran.start for row in self.rows.values() for ran in row)
        return max(1 - busy / total, 0.0) if total else 0.0

    @property
    def activations(self) -> dict[Any, int]:
        """For each place the most activations that it holds at once.

        An activation of a stage and a round is held from the start of its forward
        part to the end of its last backward part.
        """
        most: dict[Any, int] = {}
        for place, row in self.rows.items():
            last = {(r.work.stage, r.work.round): r for r in row if r.work.kind in "BW"}
            held: set[Any] = set()
            most[place] = 0
            for ran in row:
                unit = ran.work.stage, ran.work.round
                if ran.work.kind == "F" and unit in last:
                    held.add(unit)
                    most[place] = max(most[place], len(held))
                elif last.get(unit) is ran:
                    held.discard(unit)
        return most

    def to_table(
        self, name: Callable[[Any], str] = str, shown: int | None = SHOWN
    ) -> str:
        """Returns a table: when each fragment starts and ends, and where.

        Args:
          name: of a place.
          shown: rows at most; None: all.
        """
        every = [(ran, place) for place, row in self.rows.items() for ran in row]
        every.sort(key=lambda pair: pair[0].start)
        rows: list[Sequence[str]] = [("start", "end", "device", "fragment")]
        for ran, place in every[:shown]:
            begin, end = time_text(ran.start), time_text(ran.end)
            rows.append((begin, end, name(place), ran.work.describe()))
        idle = f"{time_text(self.seconds)}, {self.bubble:.0%} idle"
        left = len(every) - len(rows) + 1
        last = [f"… {left:,} more: to_table(shown=None)"] if left else []
        return "\n".join([idle, *table(rows, right=(0, 1)), *last])

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


def trace_events(
    timelines: Mapping[str, Timeline],
    name: Callable[[Any], str] = str,
    label: Callable[[Any], str] = lambda work: str(work.describe()),
) -> TraceEvents:
    """Returns timelines as trace events, for https://ui.perfetto.dev.

    Args:
      timelines: by their names, each shown as a process with a track for each place.
      name: of a place.
      label: of what ran.

    Returns:
      Events, with an arrow for each value that one place waits for from another.
    """
    events = TraceEvents("dataflow")
    for title, timeline in timelines.items():
        pid = events.process(title, title)
        points: dict[int, tuple[TracePoint, TracePoint]] = {}
        for place, row in timeline.rows.items():
            tid = events.track(pid, place, name(place))
            for ran in row:
                begin, end = 1e6 * ran.start, 1e6 * ran.end
                work = ran.work
                at = TracePoint(pid, tid, begin)
                points[work.index] = at, at._replace(ts=end)
                args = {"fragment": work.index, "kind": work.kind, "round": work.round}
                events.span(at, end - begin, label(work), args)
        for row in timeline.rows.values():
            for target in (ran.work for ran in row):
                for before in target.after:
                    source = points[before][1]
                    if source.tid != points[target.index][0].tid:
                        events.arrow("sent", source, points[target.index][0])
    return events


Sent = Callable[[Any, Any], float]
"""From a work and another one at another place, which takes its results, to the seconds
in which these are sent."""


def at_once(source: Any, work: Any) -> float:
    """Returns the seconds of sending where it takes no time: a `Sent`.

    Args:
      source: what was run.
      work: what takes its results.
    """
    return 0.0


def simulate(
    works: Sequence[Work],
    seconds: Callable[[Any], float],
    *,
    key: Callable[[Work], Any] | None = None,
    limits: Limits | None = None,
    rows: Mapping[Any, Sequence[Work]] | None = None,
    sent: Sent = at_once,
) -> Timeline:
    """Runs works under a virtual clock.

    A place runs one at a time. Values are sent in the background; a link from a place
    to another sends one value at a time.

    Args:
      works: in an order that can be run; `after` refers to their indices.
      seconds: that one takes.
      key: the smallest goes first among those that are ready. None: each place runs
        its works in the order of `rows`.
      limits: which works may start; None: all.
      rows: the order of each place; works that are in none run as soon as they can.
        None: the order of `works`.
      sent: seconds to send the results of one to another at another place.

    Returns:
      The timeline.

    Raises:
      PlacementError: works wait for each other; the message shows the cycle.
    """
    number = {work.index: i for i, work in enumerate(works)}
    users: list[list[int]] = [[] for _ in works]
    for i, work in enumerate(works):
        for before in work.after:
            users[number[before]].append(i)
    missing = [len(work.after) for work in works]
    arrival = [0.0] * len(works)
    order: _InOrder | None = None
    if key is None:
        limits = order = _InOrder(works, rows)
        keys: Sequence[Any] = [order.key(w, i) for i, w in enumerate(works)]
    else:
        keys = [key(work) for work in works]
    groups = [limits.group(work) if limits else None for work in works]
    places = {work.place: None for work in works}
    state = {place: _Place() for place in places}
    turn = {place: i for i, place in enumerate(places)}
    found: dict[Any, list[Ran]] = {place: [] for place in places}
    links: dict[tuple[Any, Any], float] = {}
    events: list[tuple[float, int, Any]] = []

    def look(at: float, place: Any) -> None:
        heapq.heappush(events, (at, turn[place], place))

    times = [seconds(work) for work in works]
    # A value that arrives within this time is there: sums of times are rounded.
    soon = 1e-6 * sum(times) / max(len(times), 1)
    for i, work in enumerate(works):
        if not missing[i]:
            heapq.heappush(state[work.place].coming, (0.0, i))
    for place in places:
        look(0.0, place)
    left, now = len(works), 0.0
    while left:
        if not events:  # the limits keep everything from running
            if limits is None or not limits.relax():
                ran = {r.work.index for row in found.values() for r in row}
                raise PlacementError(_cycle(works, ran, order))
            for place, here in state.items():
                look(max(here.free, now), place)
        now, _, place = heapq.heappop(events)
        here = state[place]
        if now < here.free:
            continue  # looks again when it is free
        chosen = here.take(now + soon, keys, groups, works, limits)
        if chosen is None:
            if here.coming:
                look(here.coming[0][0], place)
            continue
        work = works[chosen]
        start = max(now, arrival[chosen])
        end = here.free = start + times[chosen]
        found[place].append(Ran(work, start, end))
        left -= 1
        if limits is not None:
            limits.ran(work)
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
    return Timeline(found)


class _Place:
    """What waits at a place.

    Attributes:
      free: when it can start a work.
      coming: by the time at which all inputs are there; a heap.
      ready: those whose inputs are there, by their keys; a heap for each group.
    """

    __slots__ = ("coming", "free", "ready")

    def __init__(self) -> None:
        self.free = 0.0
        self.coming: list[tuple[float, int]] = []
        self.ready: dict[Any, list[tuple[Any, int]]] = {}

    def take(
        self,
        now: float,
        keys: Sequence[Any],
        groups: Sequence[Any],
        works: Sequence[Work],
        limits: Limits | None,
    ) -> int | None:
        """Takes the work that starts now, or None."""
        while self.coming and self.coming[0][0] <= now:
            _, i = heapq.heappop(self.coming)
            heapq.heappush(self.ready.setdefault(groups[i], []), (keys[i], i))
        best: list[tuple[Any, int]] | None = None
        for heap in self.ready.values():
            if not heap or (best is not None and best[0] <= heap[0]):
                continue
            if limits is None or limits.may(works[heap[0][1]]):
                best = heap
        return heapq.heappop(best)[1] if best is not None else None


class _InOrder:
    """Each place runs its works in the order of its row."""

    def __init__(
        self, works: Sequence[Work], rows: Mapping[Any, Sequence[Work]] | None
    ) -> None:
        if rows is None:
            own: dict[Any, list[Work]] = {}
            for work in works:
                own.setdefault(work.place, []).append(work)
            rows = own
        self._rows = {place: [*reversed(row)] for place, row in rows.items()}
        self._listed = {
            work.index: n for row in rows.values() for n, work in enumerate(row)
        }

    def group(self, work: Work) -> Any:
        """Returns None: a row is one group."""
        return None

    def key(self, work: Work, number: int) -> tuple[int, int]:
        """Returns its place in the row; what is in no row comes first."""
        at = self._listed.get(work.index)
        return (0, number) if at is None else (1, at)

    def next(self, place: Any) -> Work | None:
        """Returns what comes next in a row."""
        row = self._rows.get(place)
        return row[-1] if row else None

    def may(self, work: Work) -> bool:
        """Returns whether it is the place's next."""
        return work.index not in self._listed or self.next(work.place) is work

    def ran(self, work: Work) -> None:
        """Goes on to the place's next."""
        if work.index in self._listed:
            self._rows[work.place].pop()

    def relax(self) -> bool:
        """Returns False: an order is an order."""
        return False


def _cycle(works: Sequence[Work], ran: set[int], order: _InOrder | None) -> str:
    """Returns a message with works that wait for each other.

    Args:
      works: all.
      ran: indices of those that could run.
      order: that the places follow.
    """
    by_index = {work.index: work for work in works}
    path: list[tuple[Work, Work, bool]] = []
    seen: dict[int, int] = {}
    here = next(work for work in works if work.index not in ran)
    while here.index not in seen:
        seen[here.index] = len(path)
        ahead = order.next(here.place) if order else None
        if order and ahead is not None and not order.may(here):
            path.append((here, ahead, True))
        else:
            ahead = next(by_index[i] for i in here.after if i not in ran)
            path.append((here, ahead, False))
        here = ahead
    lines = ["the order cannot be run: these fragments wait for each other"]
    for work, other, by_order in path[seen[here.index] :]:
        why = (
            f"comes after {other.describe()} in the order of its device"
            if by_order
            else f"waits for {work.takes(other)} of {other.describe()}"
        )
        lines.append(f"  {work.describe()} {why}")
    return "\n".join(lines)
