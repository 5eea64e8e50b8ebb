"""Groups requests into batches: pure decisions, without a clock or I/O.

A policy limits the rows of a batch, based on how long previous batches took. It is an
immutable value: `limit` is the most rows of the next batch, and `after` returns the
policy updated with one more batch.

A model is compiled for a few batch sizes, at ratios of at most 1.5 (except 1 and 2).
Padding then wastes at most a third of the work, and up to 512 rows there are only 18
programs to compile.

A queue orders requests, forms batches, and refuses late requests. Its owner passes the
time, calls `offer` when a request arrives and `take` when a replica is free, and
answers each request that was refused or shed. A request leaves the queue in a batch, by
being shed, or by `withdraw`. `Pace` and `Lateness` estimate when an answer will be
ready.

These functions run for each request and only `fxflow.serve` calls them, so they have no
API boundary (`core.boundary`), which would cost as much as they do.

Source: Crankshaw et al., Clipper: A Low-Latency Online Prediction Serving System, 2017,
section 4.3: additive increase, a back-off of 10 % because the best size hardly moves,
and quantile regression, which does about as well.
"""

from __future__ import annotations

import bisect
import heapq
import math
import operator
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol, Self

import numpy as np


class BatchPolicy(Protocol):
    """Decides how many rows the next batch may have."""

    @property
    def limit(self) -> int:
        """The most rows of the next batch, at least 1."""
        ...

    def after(self, rows: int, seconds: float) -> Self:
        """Returns the policy after one more batch."""
        ...


@dataclass(frozen=True)
class Fixed:
    """A constant limit; 1 disables batching.

    Attributes:
      size: the limit.

    Example:
      >>> Fixed(8).after(8, 0.5).limit
      8
    """

    size: int

    @property
    def limit(self) -> int:
        """The size."""
        return self.size

    def after(self, rows: int, seconds: float) -> Fixed:
        """Returns itself."""
        return self


@dataclass(frozen=True)
class AIMD:
    """Grows the limit while full batches meet the budget; shrinks it by 10 % otherwise.

    Attributes:
      budget: seconds that a batch may take.
      maximum: upper bound of the limit.
      step: rows by which the limit grows.
      factor: factor by which it shrinks.
      level: the limit before it is rounded down.

    Example:
      >>> policy = AIMD(budget=0.010, maximum=64, level=20.0)
      >>> policy.after(20, 0.008).limit, policy.after(20, 0.012).limit
      (21, 18)
      >>> policy.after(3, 0.002).limit  # says nothing about 20 rows
      20
    """

    budget: float
    maximum: int
    step: float = 1.0
    factor: float = 0.9
    level: float = 1.0

    @property
    def limit(self) -> int:
        """The level, rounded down."""
        return max(1, int(self.level))

    def after(self, rows: int, seconds: float) -> AIMD:
        """Returns the policy after one more batch."""
        if seconds > self.budget:
            # Shrink from the rows that ran: the limit may be far above them.
            level = max(1.0, min(self.level, rows) * self.factor)
        elif rows >= self.limit:
            level = min(float(self.maximum), self.level + self.step)
        else:
            return self
        return replace(self, level=level)


@dataclass(frozen=True)
class QuantileRegression:
    """Limits rows to where a line fitted to the 99th percentile meets the budget.

    The line is refitted every 16 batches to the last 256, without those that were late
    for other reasons than their size. The limit is at most twice the largest batch
    seen, because the line does not extrapolate well.

    Attributes:
      budget: seconds that a batch may take.
      maximum: upper bound of the limit.
      quantile: the quantile of latency.
      seen: the last batches, as (rows, seconds).
      fresh: batches since the line was fitted.
      limit: the most rows of the next batch.

    Example:
      >>> policy = QuantileRegression(budget=0.010, maximum=512)
      >>> for _ in range(400):
      ...     policy = policy.after(policy.limit, 0.002 + 0.0001 * policy.limit)
      >>> 70 <= policy.limit <= 85
      True
    """

    budget: float
    maximum: int
    quantile: float = 0.99
    seen: tuple[tuple[int, float], ...] = ()
    fresh: int = 0
    limit: int = 1

    def after(self, rows: int, seconds: float) -> QuantileRegression:
        """Returns the policy after one more batch."""
        seen = (*self.seen[-255:], (rows, seconds))
        if self.fresh < 15:
            return replace(self, seen=seen, fresh=self.fresh + 1)
        kept = _without_outliers(seen, self.budget)
        start, slope = quantile_line(kept, self.quantile)
        most = 2 * max(rows for rows, _ in seen)
        # A flat line only says whether the batches seen meet the budget.
        if slope > 1e-9:
            found = (self.budget - start) / slope
        else:
            in_time = start <= self.budget
            found = math.ceil(self.limit * 1.1) if in_time else self.limit * 0.9
        limit = int(max(1, min(found, most, self.maximum)))
        return replace(self, seen=seen, fresh=0, limit=limit)


def _without_outliers(
    points: tuple[tuple[int, float], ...], budget: float
) -> tuple[tuple[int, float], ...]:
    """Removes batches that would have been late even with a single row.

    They waited for something else, such as a busy core: no limit could have kept them
    within the budget, and a quantile that included them would allow only single rows.
    If they are the majority, the model itself is slow, and all batches are kept.
    """
    _, slope = quantile_line(points, 0.5)
    kept = tuple(p for p in points if p[1] - slope * (p[0] - 1) <= budget)
    return kept if 2 * len(kept) > len(points) else points


def quantile_line(
    points: tuple[tuple[int, float], ...], quantile: float
) -> tuple[float, float]:
    """Fits seconds = start + slope · rows so that a share of the points lies below.

    Uses iteratively reweighted least squares: each point's weight is the slope of the
    pinball loss divided by its distance, so that the squares sum to that loss.

    Args:
      points: pairs of rows and seconds.
      quantile: the share, in (0, 1).

    Returns:
      Start and slope; the slope is at least 0.

    Example:
      >>> start, slope = quantile_line(((1, 2.0), (2, 3.0), (3, 4.0)), 0.5)
      >>> round(start, 3), round(slope, 3)
      (1.0, 1.0)
    """
    rows, seconds = np.asarray(points, np.float64).T
    weights = np.ones(rows.size)
    scale = max(float(seconds.mean()), 1e-12)
    start = slope = 0.0
    for _ in range(30):
        total = weights.sum()
        mean_rows = weights @ rows / total
        mean = weights @ seconds / total
        centred = rows - mean_rows
        spread = weights @ centred**2
        if spread > 1e-12 * total:
            slope = max(0.0, float(weights @ (centred * seconds) / spread))
        else:
            slope = 0.0
        start = float(mean - slope * mean_rows)
        distance = seconds - start - slope * rows
        share = np.where(distance > 0, quantile, 1 - quantile)
        weights = share / np.maximum(np.abs(distance), 1e-6 * scale)
    return start, slope


def batch_policy(name: str, budget: float, maximum: int) -> BatchPolicy:
    """Returns a policy by its name in configurations.

    Args:
      name: ``aimd``, ``quantile``, ``fixed`` (always the maximum) or ``none``.
      budget: seconds that a batch may take.
      maximum: the most rows of a batch.

    Returns:
      The policy before its first batch.

    Raises:
      ValueError: `name` is unknown.

    Example:
      >>> batch_policy("none", 0.01, 64).limit
      1
    """
    match name:
        case "aimd":
            return AIMD(budget, maximum)
        case "quantile":
            return QuantileRegression(budget, maximum)
        case "fixed":
            return Fixed(maximum)
        case "none":
            return Fixed(1)
    raise ValueError(
        f"batching must be 'aimd', 'quantile', 'fixed' or 'none', got {name!r}"
    )


# -- sizes -----------------------------------------------------------------------------


def sizes_up_to(largest: int) -> tuple[int, ...]:
    """Returns the sizes 1, 2, 3, 4, 6, 8, 12, … up to the largest.

    Args:
      largest: the largest size, at least 1; always included.

    Returns:
      The sizes, ascending.

    Raises:
      ValueError: `largest` is below 1.

    Example:
      >>> sizes_up_to(20)
      (1, 2, 3, 4, 6, 8, 12, 16, 20)
    """
    if largest < 1:
        raise ValueError(f"sizes_up_to: largest must be at least 1, got {largest}")
    found = {largest}
    power = 1
    while power < largest:
        found |= {power, min(power * 3 // 2, largest)}
        power *= 2
    return tuple(sorted(found))


def padded(rows: int, sizes: Sequence[int]) -> int:
    """Returns the smallest size that holds the rows.

    Args:
      rows: number of rows.
      sizes: the sizes, ascending; empty: any size.

    Returns:
      The size, or `rows` if no size is large enough.

    Example:
      >>> padded(5, (1, 2, 4, 8)), padded(5, ())
      (8, 5)
    """
    place = bisect.bisect_left(sizes, rows)
    return sizes[place] if place < len(sizes) else rows


def with_rows(array: np.ndarray[Any, Any], size: int) -> np.ndarray[Any, Any]:
    """Pads an array with copies of its last row: zeros might not be valid inputs.

    Args:
      array: at least one row.
      size: number of rows of the result.

    Example:
      >>> with_rows(np.array([[1, 2], [3, 4]]), 3).tolist()
      [[1, 2], [3, 4], [3, 4]]
    """
    more = np.repeat(array[-1:], size - len(array), axis=0)
    return np.concatenate([array, more])


# -- queue -----------------------------------------------------------------------------


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


class Processing(NamedTuple):
    """The state of a model's replicas, from which a queue predicts waits.

    Attributes:
      limit: the policy's limit of rows in a batch.
      pace: predicts the time of batches.
      free: number of idle replicas.
      replicas: number of replicas that are running or starting.
      margin: seconds by which answers may be later than predicted.
      until: seconds until the first replica is ready.
    """

    limit: int
    pace: Pace
    free: int
    replicas: int
    margin: float = 0.0
    until: float = 0.0

    def seconds(self, rows: int) -> float:
        """Returns the seconds until the replicas have processed some rows."""
        batches = math.ceil(rows / self.limit)
        if batches <= 1:
            return self.pace.predict(rows)
        # The replicas share all batches but the last, whose time counts in full.
        whole = self.pace.predict(self.limit)
        return (batches - 1) * whole / self.replicas + whole


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
      ...     queue.offer(entry, 0.0, Processing(2, Pace(), free=1, replicas=1))
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

    def offer(self, entry: QueueEntry, now: float, state: Processing) -> Refusal | None:
        """Accepts a request, or returns why not.

        Args:
          entry: the request.
          now: the time.
          state: the state of the replicas.

        Returns:
          None if it is accepted.
        """
        wait = self.predict_wait(entry, now, state)
        if isinstance(wait, Refusal):
            return wait
        entry.due = 0.0 if state.until else now + wait
        self._count += 1
        if not self._entries or self._entries[-1].order < entry.order:
            self._entries.append(entry)  # the common case: no urgent request
        else:
            bisect.insort(self._entries, entry, key=_order)
        heapq.heappush(self._deadlines, (entry.deadline, self._count, entry))
        self.rows += entry.rows
        return None

    def predict_wait(
        self, entry: QueueEntry, now: float, state: Processing
    ) -> float | Refusal:
        """Returns the seconds until a request would be answered, or its refusal.

        Args:
          entry: the request, which is not in the queue yet.
          now, state: as for `offer`.

        Returns:
          Seconds, or a refusal that also holds for requests with more rows.
        """
        entry.order = (entry.priority, entry.deadline, self._count + 1)
        if not state.replicas:
            return Refusal("no replica of the model is ready", 1.0)
        if self.rows + entry.rows > self.capacity and self._entries:
            return Refusal(
                f"the queue has {self.rows} rows, of at most {self.capacity}",
                max(0.001, state.seconds(self.rows)),
            )
        wait = state.pace.predict(entry.rows)
        # With a free replica and an empty queue, try it whatever the estimate says.
        if not (state.free and not self._entries):
            ahead = self._before(entry)
            wait = state.seconds(ahead + entry.rows)
            why = f"{ahead} rows are ahead of it"
            if state.until:
                wait += state.until
                why = "no replica of the model is ready until one has restarted"
            elif not state.free:  # on average half of the running batch is left
                wait += state.pace.predict(state.limit) / 2 / state.replicas
            latest = wait + state.margin
            late = now + latest - entry.deadline
            if late > 0:
                left = max(0.0, entry.deadline - now)
                return Refusal(
                    f"{why}, and it might take {latest:.3f} s, but has only "
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
