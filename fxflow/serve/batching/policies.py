"""Limits the rows of a batch, based on how long previous batches took.

A policy is an immutable value: `limit` is the most rows of the next batch, and `after`
returns the policy updated with one more batch. Policies know nothing about requests,
queues or clocks.

A model is compiled for a few batch sizes, at ratios of at most 1.5 (except 1 and 2).
Padding then wastes at most a third of the work, and up to 512 rows there are only 18
programs to compile.

Source: Crankshaw et al., Clipper: A Low-Latency Online Prediction Serving System, 2017,
section 4.3: additive increase, a back-off of 10 % because the best size hardly moves,
and quantile regression, which does about as well.
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
