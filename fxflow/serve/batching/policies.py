"""How many rows a batch may have, from the seconds that batches took.

A policy is a value: `limit` is the most rows of the next batch, `after` the policy that
has seen one more. Policies know nothing of requests, queues or clocks.

A model is compiled for few sizes of a batch, in steps of at most a half: padding then
costs at most a third of the work, and up to 512 rows there are 17 programs to compile.

Source: Crankshaw et al., Clipper: A Low-Latency Online Prediction Serving System, 2017,
section 4.3: additive increase, a back-off of 10 % because the best size hardly moves,
and regression of a quantile, which does about as well.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np


class BatchPolicy(Protocol):
    """Decides how many rows the next batch may have."""

    @property
    def limit(self) -> int:
        """The most rows of the next batch, at least 1."""
        ...

    def after(self, rows: int, seconds: float) -> Self:
        """Returns the policy that has seen the time of one more batch."""
        ...


@dataclass(frozen=True)
class Fixed:
    """Always the same limit; 1 turns batching off.

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
    """Grows by a step while full batches are in time; backs off by 10 % if one is not.

    Attributes:
      budget: seconds that a batch may take.
      maximum: the limit never exceeds it.
      step: rows by which it grows.
      factor: by which it shrinks.
      level: the limit before it is rounded down.

    Example:
      >>> policy = AIMD(budget=0.010, maximum=64, level=20.0)
      >>> policy.after(20, 0.008).limit, policy.after(20, 0.012).limit
      (21, 18)
      >>> policy.after(3, 0.002).limit  # says nothing of 20 rows
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
        """Returns the policy that has seen the time of one more batch."""
        if seconds > self.budget:
            # Reduce the rows that ran: a limit that was never reached must not hide it.
            level = max(1.0, min(self.level, rows) * self.factor)
        elif rows >= self.limit:
            level = min(float(self.maximum), self.level + self.step)
        else:
            return self
        return replace(self, level=level)


@dataclass(frozen=True)
class QuantileRegression:
    """The rows at which a line through the 99th percentile of latency meets the budget.

    The line is fitted again after each 16 batches, to those of the last 256 that are
    not late for another reason than their rows. A limit is at most twice what was seen,
    as the line is not to be trusted far beyond it.

    Attributes:
      budget: seconds that a batch may take.
      maximum: the limit never exceeds it.
      quantile: which one.
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
        """Returns the policy that has seen the time of one more batch."""
        seen = (*self.seen[-255:], (rows, seconds))
        if self.fresh < 15:
            return replace(self, seen=seen, fresh=self.fresh + 1)
        told = _told_by_rows(seen, self.budget)
        start, slope = quantile_line(told, self.quantile)
        most = 2 * max(rows for rows, _ in seen)
        # A line that does not rise says only whether what was run is in time.
        if slope > 1e-9:
            found = (self.budget - start) / slope
        else:
            in_time = start <= self.budget
            found = math.ceil(self.limit * 1.1) if in_time else self.limit * 0.9
        limit = int(max(1, min(found, most, self.maximum)))
        return replace(self, seen=seen, fresh=0, limit=limit)


def _told_by_rows(
    points: tuple[tuple[int, float], ...], budget: float
) -> tuple[tuple[int, float], ...]:
    """Leaves out batches that would have been late with a single row as well.

    They waited for something else, such as a core that was in use: no limit keeps them
    in time, and a quantile that followed them would allow single rows only. If they are
    the majority, the model itself is slow, and none is left out.
    """
    _, slope = quantile_line(points, 0.5)
    kept = tuple(p for p in points if p[1] - slope * (p[0] - 1) <= budget)
    return kept if 2 * len(kept) > len(points) else points


def quantile_line(
    points: tuple[tuple[int, float], ...], quantile: float
) -> tuple[float, float]:
    """Fits seconds = start + slope · rows so that a share of the points lies below.

    By weighted least squares, repeated: each point's weight is the pinball loss's slope
    over its distance, which makes the squares into that loss.

    Args:
      points: (rows, seconds).
      quantile: the share, in (0, 1).

    Returns:
      Start and slope, the slope at least 0.

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
    """Returns a policy by the name that configurations have for it.

    Args:
      name: ``aimd``, ``quantile``, ``fixed`` (always the maximum) or ``none``.
      budget: seconds that a batch may take.
      maximum: the most rows of a batch.

    Returns:
      The policy, before its first batch.

    Raises:
      ValueError: there is no policy of that name.

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
      largest: the largest batch, at least 1; it is among them.

    Returns:
      The sizes, ascending.

    Raises:
      ValueError: the largest is below 1.

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
      rows: how many there are.
      sizes: ascending; empty: any size is as good as another.

    Returns:
      The size, or `rows` if there is none so large.

    Example:
      >>> padded(5, (1, 2, 4, 8)), padded(5, ())
      (8, 5)
    """
    place = bisect.bisect_left(sizes, rows)
    return sizes[place] if place < len(sizes) else rows
