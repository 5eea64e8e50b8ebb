"""The queue of a model: orders requests, forms batches, and refuses late requests.

A queue has no clock: its owner passes the time, calls `offer` when a request arrives
and `take` when a replica is free, and answers each request that was refused or shed. A
request leaves the queue in a batch, by being shed, or by `withdraw`. `Pace` and
`Lateness` estimate when an answer will be ready.
"""

from __future__ import annotations

import bisect
import heapq
import math
import operator
from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple


@dataclass(eq=False, slots=True)
class QueueEntry:
    """A request in the queue.

    Attributes:
      item: the owner's data; the queue does not read it.
      rows: number of its rows.
      arrived: when it arrived.
      deadline: when it fails.
      priority: smaller goes first.
      group: only requests of the same group share a batch.
      order: its sort key: priority, deadline, arrival. The queue sets it when it
        accepts the request.
      due: when the queue predicted an answer as it accepted the request; 0: no replica
        was ready, so the prediction does not measure batches.
      removed: whether it left the queue.
    """

    item: Any
    rows: int
    arrived: float
    deadline: float
    priority: int = 0
    group: Hashable = None
    order: tuple[int, float, int] = (0, 0.0, 0)
    due: float = 0.0
    removed: bool = False


_order = operator.attrgetter("order")


class Refusal(NamedTuple):
    """The reason for a refusal, and the seconds after which to retry."""

    reason: str
    retry_after: float


class NextBatch(NamedTuple):
    """The next work of a free replica.

    Attributes:
      batch: the requests to run; empty: none yet.
      shed: requests that cannot be answered in time, each with the reason.
      wake: when to call `take` again if nothing else happens; infinity: never.
    """

    batch: list[QueueEntry]
    shed: list[tuple[QueueEntry, Refusal]]
    wake: float = math.inf


@dataclass
class Queue:
    """The requests that wait for one model.

    Attributes:
      capacity: most rows in the queue.
      delay: seconds that a batch that is not full waits for more requests.
      rows: rows in the queue.

    Example:
      >>> queue = Queue(capacity=100)
      >>> for name in "abc":
      ...     entry = QueueEntry(name, 1, arrived=0.0, deadline=1.0)
      ...     queue.offer(entry, 0.0, 2, Pace(), free=1, replicas=1)
      >>> [w.item for w in queue.take(0.0, 2, Pace()).batch]
      ['a', 'b']
    """

    capacity: int
    delay: float = 0.0
    rows: int = 0
    _entries: list[QueueEntry] = field(default_factory=list)
    _deadlines: list[tuple[float, int, QueueEntry]] = field(default_factory=list)
    _count: int = 0

    def __len__(self) -> int:
        return len(self._entries)

    def offer(
        self,
        entry: QueueEntry,
        now: float,
        limit: int,
        pace: Pace,
        *,
        free: int,
        replicas: int,
        margin: float = 0.0,
        until: float = 0.0,
    ) -> Refusal | None:
        """Accepts a request, or returns why not.

        Args:
          entry: the request.
          now: the time.
          limit: the policy's limit of rows in a batch.
          pace: predicts the time of batches.
          free: number of idle replicas.
          replicas: number of replicas that are running or starting.
          margin: seconds by which answers may be later than predicted.
          until: seconds until the first replica is ready.

        Returns:
          None if it is accepted.
        """
        wait = self.predict_wait(
            *(entry, now, limit, pace),
            free=free,
            replicas=replicas,
            margin=margin,
            until=until,
        )
        if isinstance(wait, Refusal):
            return wait
        entry.due = 0.0 if until else now + wait
        self._count += 1
        if not self._entries or self._entries[-1].order < entry.order:
            self._entries.append(entry)  # the common case: no urgent request
        else:
            bisect.insort(self._entries, entry, key=_order)
        heapq.heappush(self._deadlines, (entry.deadline, self._count, entry))
        self.rows += entry.rows
        return None

    def predict_wait(
        self,
        entry: QueueEntry,
        now: float,
        limit: int,
        pace: Pace,
        *,
        free: int,
        replicas: int,
        margin: float = 0.0,
        until: float = 0.0,
    ) -> float | Refusal:
        """Returns the seconds until a request would be answered, or its refusal.

        Args:
          entry: the request, which is not in the queue yet.
          now, limit, pace, free, replicas, margin, until: as for `offer`.

        Returns:
          Seconds, or a refusal that also holds for requests with more rows.
        """
        entry.order = (entry.priority, entry.deadline, self._count + 1)
        if not replicas:
            return Refusal("no replica of the model is ready", 1.0)
        if self.rows + entry.rows > self.capacity and self._entries:
            return Refusal(
                f"the queue has {self.rows} rows, of at most {self.capacity}",
                max(0.001, self._seconds(self.rows, limit, pace, replicas)),
            )
        wait = pace.predict(entry.rows)
        # With a free replica and an empty queue, try it whatever the estimate says.
        if not (free and not self._entries):
            ahead = self._before(entry)
            wait = self._seconds(ahead + entry.rows, limit, pace, replicas)
            why = f"{ahead} rows are ahead of it"
            if until:
                wait += until
                why = "no replica of the model is ready until one has restarted"
            elif not free:  # on average half of the running batch is left
                wait += pace.predict(limit) / 2 / replicas
            late = now + wait + margin - entry.deadline
            if late > 0:
                left = max(0.0, entry.deadline - now)
                return Refusal(
                    f"{why}, and it might take {wait + margin:.3f} s, but has only "
                    f"{left:.3f} s left",
                    max(0.001, late),
                )
        return wait

    def take(
        self, now: float, limit: int, pace: Pace, margin: float = 0.0
    ) -> NextBatch:
        """Returns the next work of a free replica.

        Args:
          now: the time.
          limit: the policy's limit of rows in a batch.
          pace: predicts the time of batches.
          margin: seconds by which a batch may be later than predicted.

        Returns:
          A batch of one group, most urgent first, with at most `limit` rows (unless a
          single request has more), and the requests that were shed.
        """
        shed: list[tuple[QueueEntry, Refusal]] = []
        spared: QueueEntry | None = None
        # Requests with an earlier deadline would be late in the next batch.
        horizon = now + pace.predict(max(1, min(limit, self.rows))) + margin
        while self._deadlines and (
            self._deadlines[0][2].removed or self._deadlines[0][0] < horizon
        ):
            entry = heapq.heappop(self._deadlines)[2]
            if entry.removed:
                continue
            if entry.deadline > now and len(self._entries) == 1:
                # The only request, and not late yet: the estimate may be wrong.
                spared = entry
                heapq.heappush(self._deadlines, (entry.deadline, entry.order[2], entry))
                break
            self._remove(entry)
            over = max(0.001, horizon - entry.deadline)
            why = f"it waited {now - entry.arrived:.3f} s and would be late"
            shed.append((entry, Refusal(why, over)))
        if not self._entries:
            return NextBatch([], shed)
        head = self._entries[0]
        batch: list[QueueEntry] = []
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
                return NextBatch([], shed, until)
        if batch[-1] is self._entries[len(batch) - 1]:  # no other group between them
            del self._entries[: len(batch)]
            self.rows -= rows
            for entry in batch:
                entry.removed = True
        else:
            for entry in batch:
                self._remove(entry)
        return NextBatch(batch, shed)

    def withdraw(self, entry: QueueEntry) -> bool:
        """Removes a request whose client disconnected, or whose deadline passed.

        Args:
          entry: the request.

        Returns:
          Whether it was still in the queue.
        """
        if entry.removed:
            return False
        self._remove(entry)
        return True

    def drain(self) -> list[QueueEntry]:
        """Removes all requests, and returns them."""
        entries, self._entries, self._deadlines = self._entries, [], []
        for entry in entries:
            entry.removed = True
        self.rows = 0
        return entries

    def _before(self, entry: QueueEntry) -> int:
        if not self._entries or self._entries[-1].order < entry.order:
            return self.rows
        place = bisect.bisect_right(self._entries, entry.order, key=_order)
        return sum(e.rows for e in self._entries[:place])

    @staticmethod
    def _seconds(rows: int, limit: int, pace: Pace, replicas: int) -> float:
        batches = math.ceil(rows / limit)
        if batches <= 1:
            return pace.predict(rows)
        # The replicas share all batches but the last, whose time counts in full.
        return (batches - 1) * pace.predict(limit) / replicas + pace.predict(limit)

    def _remove(self, entry: QueueEntry) -> None:
        place = bisect.bisect_left(self._entries, entry.order, key=_order)
        del self._entries[place]
        entry.removed = True
        self.rows -= entry.rows


# -- estimates -------------------------------------------------------------------------


@dataclass(frozen=True)
class Pace:
    """Predicts the time of a batch by regression: seconds = start + slope · rows.

    Attributes:
      forget: share of its weight that a batch loses with each later batch.
      weight, rows, seconds, squares, products: weighted sums over the batches.

    Example:
      >>> pace = Pace()
      >>> for rows in (1, 2, 4, 8):
      ...     pace = pace.after(rows, 0.010 + 0.001 * rows)
      >>> round(pace.predict(6), 6)
      0.016
    """

    forget: float = 0.05
    weight: float = 0.0
    rows: float = 0.0
    seconds: float = 0.0
    squares: float = 0.0
    products: float = 0.0

    def after(self, rows: int, seconds: float) -> Pace:
        """Returns the pace after one more batch."""
        keep = 1 - self.forget
        return Pace(
            self.forget,
            weight=self.weight * keep + 1,
            rows=self.rows * keep + rows,
            seconds=self.seconds * keep + seconds,
            squares=self.squares * keep + rows * rows,
            products=self.products * keep + rows * seconds,
        )

    def predict(self, rows: int) -> float:
        """Returns the seconds of a batch of `rows`; 0 before the first batch."""
        start, slope = self._line
        return start + slope * rows

    @cached_property
    def _line(self) -> tuple[float, float]:
        """The start and the slope, read for each request, computed for each batch."""
        if not self.weight:
            return 0.0, 0.0
        mean_rows, mean = self.rows / self.weight, self.seconds / self.weight
        spread = self.squares / self.weight - mean_rows**2
        slope = 0.0
        if spread > 1e-6 * mean_rows**2:
            slope = (self.products / self.weight - mean_rows * mean) / spread
        # Clip noise: more rows never take less time, and the start is never negative.
        slope = min(max(slope, 0.0), mean / mean_rows)
        return mean - slope * mean_rows, slope


#: Errors are clipped at the mean plus this many spreads plus this many seconds.
_SPREADS, _SECONDS = 4.0, 0.0005


@dataclass(frozen=True)
class Lateness:
    """Estimates how much later than predicted nearly all answers arrive.

    Without this margin a full queue would be exactly as long as the deadline allows:
    every request would be computed, and every answer would be slightly late.

    Attributes:
      mean: exponentially weighted mean of the errors, in seconds.
      spread: weighted mean distance of the errors from their mean.

    Example:
      >>> late = Lateness()
      >>> for seconds in (0.001, 0.003) * 50:
      ...     late = late.after(seconds)
      >>> 0.003 < late.margin < 0.006
      True

    Source: Jacobson, Congestion Avoidance and Control, 1988 (the timer of TCP).
    """

    mean: float = 0.0
    spread: float = 0.0

    def after(self, seconds: float) -> Lateness:
        """Returns the estimate after an answer that was `seconds` later than predicted.

        Outliers are clipped: a pause of the machine says nothing about later batches,
        and a large margin would shed all requests that waited during the pause. If
        answers stay late, the estimate grows by up to three quarters with each.
        """
        if self.spread:
            most = self.mean + _SPREADS * self.spread + _SECONDS
            seconds = min(seconds, most)
        error = seconds - self.mean
        return Lateness(
            self.mean + error / 8, self.spread + (abs(error) - self.spread) / 4
        )

    @property
    def margin(self) -> float:
        """Seconds to add to predictions; at least 0."""
        return max(0.0, self.mean + 2 * self.spread)
