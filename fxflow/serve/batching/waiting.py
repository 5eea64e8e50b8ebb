"""The requests that wait for a model: their order, the next batch, who is refused.

A queue is told the time and never asks for it. Whoever holds it calls `offer` when a
request comes and `take` when a replica is free, and tells each request that was refused
or shed; a request leaves in exactly one of these ways, or by `withdraw`.
"""

from __future__ import annotations

import bisect
import heapq
import math
import operator
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fxflow.serve.batching.pace import Pace


@dataclass(eq=False, slots=True)
class Waiting:
    """A request in the queue.

    Attributes:
      item: what it is; the queue does not look at it.
      rows: how many it has.
      arrived: when it came.
      deadline: when an answer is of no use any more.
      priority: smaller goes first.
      group: requests of one batch agree in it.
      order: its place: urgent ones first, then those whose deadline is near, then the
        first. The queue gives it when it takes the request in.
      due: when it should be answered, as the queue foretold when it took it in; 0: no
        replica was ready, and what a start takes says nothing of how long answers take.
      gone: whether it left the queue.
    """

    item: Any
    rows: int
    arrived: float
    deadline: float
    priority: int = 0
    group: Hashable = None
    order: tuple[int, float, int] = (0, 0.0, 0)
    due: float = 0.0
    gone: bool = False


_order = operator.attrgetter("order")


class Refused(NamedTuple):
    """Why a request is not taken, and after how many seconds it may be."""

    reason: str
    retry_after: float


class Decision(NamedTuple):
    """What a free replica is to do.

    Attributes:
      batch: the requests to run; empty: none yet.
      shed: requests that could not be answered in time, with when they could.
      wake: when to ask again if nothing comes meanwhile; infinity: not at all.
    """

    batch: list[Waiting]
    shed: list[tuple[Waiting, Refused]]
    wake: float = math.inf


@dataclass
class Queue:
    """The requests that wait for one model.

    Attributes:
      capacity: the most rows that may wait.
      delay: seconds for which a batch that is not full waits for more.

    Example:
      >>> queue = Queue(capacity=100)
      >>> for name in "abc":
      ...     entry = Waiting(name, 1, arrived=0.0, deadline=1.0)
      ...     queue.offer(entry, 0.0, 2, Pace(), free=1, replicas=1)
      >>> [w.item for w in queue.take(0.0, 2, Pace()).batch]
      ['a', 'b']
    """

    capacity: int
    delay: float = 0.0
    rows: int = 0
    _entries: list[Waiting] = field(default_factory=list)
    _deadlines: list[tuple[float, int, Waiting]] = field(default_factory=list)
    _count: int = 0

    def __len__(self) -> int:
        return len(self._entries)

    def offer(
        self,
        entry: Waiting,
        now: float,
        limit: int,
        pace: Pace,
        *,
        free: int,
        replicas: int,
        margin: float = 0.0,
        until: float = 0.0,
    ) -> Refused | None:
        """Takes a request in, or says why not.

        Args:
          entry: the request.
          now: the time.
          limit: the policy's, of rows in a batch.
          pace: of batches.
          free: replicas that do nothing now.
          replicas: those that run, or are being started.
          margin: seconds by which answers may be later than foretold.
          until: seconds until the first of them is ready.

        Returns:
          None if it waits now.
        """
        wait = self.foretell(
            *(entry, now, limit, pace),
            free=free,
            replicas=replicas,
            margin=margin,
            until=until,
        )
        if isinstance(wait, Refused):
            return wait
        entry.due = 0.0 if until else now + wait
        self._count += 1
        if not self._entries or self._entries[-1].order < entry.order:
            self._entries.append(entry)  # as nearly all: none is urgent
        else:
            bisect.insort(self._entries, entry, key=_order)
        heapq.heappush(self._deadlines, (entry.deadline, self._count, entry))
        self.rows += entry.rows
        return None

    def foretell(
        self,
        entry: Waiting,
        now: float,
        limit: int,
        pace: Pace,
        *,
        free: int,
        replicas: int,
        margin: float = 0.0,
        until: float = 0.0,
    ) -> float | Refused:
        """Returns in how many seconds a request would be answered, or why it is not.

        Args:
          entry: the request, which does not wait yet.
          now, limit, pace, free, replicas, margin, until: as of `offer`.

        Returns:
          Seconds, or why it would be refused: then one with more rows would be, too.
        """
        entry.order = (entry.priority, entry.deadline, self._count + 1)
        if not replicas:
            return Refused("no replica of the model is ready", 1.0)
        if self.rows + entry.rows > self.capacity and self._entries:
            return Refused(
                f"{self.rows} rows wait already, and {self.capacity} may",
                max(0.001, self._seconds(self.rows, limit, pace, replicas)),
            )
        wait = pace.predict(entry.rows)
        # With a free replica and nobody before it, only trying can tell.
        if not (free and not self._entries):
            ahead = self._before(entry)
            wait = self._seconds(ahead + entry.rows, limit, pace, replicas)
            why = f"{ahead} rows are before it"
            if until:
                wait += until
                why = "no replica of the model is ready until one has started again"
            elif not free:  # on average half of what runs is still to be done
                wait += pace.predict(limit) / 2 / replicas
            late = now + wait + margin - entry.deadline
            if late > 0:
                left = max(0.0, entry.deadline - now)
                return Refused(
                    f"{why}, and it might take {wait + margin:.3f} s of the "
                    f"{left:.3f} s that it has",
                    max(0.001, late),
                )
        return wait

    def take(self, now: float, limit: int, pace: Pace, margin: float = 0.0) -> Decision:
        """Returns what a free replica is to do.

        Args:
          now: the time.
          limit: the policy's, of rows in a batch.
          pace: of batches.
          margin: seconds by which a batch may be later than foretold.

        Returns:
          A batch of one group, most urgent first, with at most `limit` rows (more only
          if a single request has more); and what had to be shed.
        """
        shed: list[tuple[Waiting, Refused]] = []
        spared: Waiting | None = None
        # Those that would be late in a batch of the size that the next one will have.
        horizon = now + pace.predict(max(1, min(limit, self.rows))) + margin
        while self._deadlines and (
            self._deadlines[0][2].gone or self._deadlines[0][0] < horizon
        ):
            entry = heapq.heappop(self._deadlines)[2]
            if entry.gone:
                continue
            if entry.deadline > now and len(self._entries) == 1:
                # The last one, and not late yet: the estimate may be wrong.
                spared = entry
                heapq.heappush(self._deadlines, (entry.deadline, entry.order[2], entry))
                break
            self._remove(entry)
            over = max(0.001, horizon - entry.deadline)
            why = f"it waited {now - entry.arrived:.3f} s, and would have been late"
            shed.append((entry, Refused(why, over)))
        if not self._entries:
            return Decision([], shed)
        head = self._entries[0]
        batch: list[Waiting] = []
        rows = 0
        for entry in self._entries:
            if entry.group != head.group:
                continue
            if batch and rows + entry.rows > limit:
                break
            batch.append(entry)
            rows += entry.rows
        if rows < limit and self.delay and spared is None:
            first = min(entry.arrived for entry in batch)
            soonest = min(entry.deadline for entry in batch)
            until = min(first + self.delay, soonest - 2 * pace.predict(limit))
            if until > now and len(batch) == len(self._entries):
                return Decision([], shed, until)
        if batch[-1] is self._entries[len(batch) - 1]:  # no other group between them
            del self._entries[: len(batch)]
            self.rows -= rows
            for entry in batch:
                entry.gone = True
        else:
            for entry in batch:
                self._remove(entry)
        return Decision(batch, shed)

    def withdraw(self, entry: Waiting) -> bool:
        """Takes a request out whose client has gone, or whose time is over.

        Args:
          entry: the request.

        Returns:
          Whether it was still waiting.
        """
        if entry.gone:
            return False
        self._remove(entry)
        return True

    def drain(self) -> list[Waiting]:
        """Returns all that wait, and holds them no longer."""
        entries, self._entries, self._deadlines = self._entries, [], []
        for entry in entries:
            entry.gone = True
        self.rows = 0
        return entries

    def _before(self, entry: Waiting) -> int:
        if not self._entries or self._entries[-1].order < entry.order:
            return self.rows
        place = bisect.bisect_right(self._entries, entry.order, key=_order)
        return sum(e.rows for e in self._entries[:place])

    @staticmethod
    def _seconds(rows: int, limit: int, pace: Pace, replicas: int) -> float:
        batches = math.ceil(rows / limit)
        if batches <= 1:
            return pace.predict(rows)
        # The last batch takes its time whole, those before it are shared.
        return (batches - 1) * pace.predict(limit) / replicas + pace.predict(limit)

    def _remove(self, entry: Waiting) -> None:
        place = bisect.bisect_left(self._entries, entry.order, key=_order)
        del self._entries[place]
        entry.gone = True
        self.rows -= entry.rows
