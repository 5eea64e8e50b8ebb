"""How long a batch will take: a line through the last ones, newer ones counting more.

The sums of a weighted regression are all that is kept, so a batch costs a few
multiplications. It foretells the usual, not the worst; how far off that may be says
the `Lateness`. Who is refused depends on both.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Pace:
    """What the last batches say of the next: seconds = start + per_row · rows.

    Attributes:
      forget: share of its weight that a batch loses with each that comes after it.
      weight, rows, seconds, squares, products: the weighted sums.

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
        """Returns the pace when one more batch is known."""
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
        """Returns the seconds that so many rows will take; 0 when nothing is known."""
        start, slope = self._line
        return start + slope * rows

    @cached_property
    def _line(self) -> tuple[float, float]:
        """The start and the slope: asked for each request, computed for each batch."""
        if not self.weight:
            return 0.0, 0.0
        mean_rows, mean = self.rows / self.weight, self.seconds / self.weight
        spread = self.squares / self.weight - mean_rows**2
        slope = 0.0
        if spread > 1e-6 * mean_rows**2:
            slope = (self.products / self.weight - mean_rows * mean) / spread
        # More rows never take less, and none of this is free: noise says otherwise.
        slope = min(max(slope, 0.0), mean / mean_rows)
        return mean - slope * mean_rows, slope


#: Spreads, and seconds, beyond the mean from which on an error counts as no larger.
_FAR, _LITTLE = 4.0, 0.0005


@dataclass(frozen=True)
class Lateness:
    """How much later than foretold things come, nearly all of them.

    Without it a full queue is as long as the deadline allows, to the millisecond: then
    all that it has is computed, and each answer is a little too late.

    Attributes:
      mean: of the last errors, in seconds, newer ones counting more.
      spread: their mean distance from it.

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
        """Returns what is known when one more was so much later than foretold.

        One that was far later than those before counts as a little later only: a pause
        of the machine says nothing of the batches that follow it, and all that waited
        through it would be given up as too late. Where answers stay late, what is
        believed grows by three quarters with each.
        """
        if self.spread:
            most = self.mean + _FAR * self.spread + _LITTLE
            seconds = min(seconds, most)
        error = seconds - self.mean
        return Lateness(
            self.mean + error / 8, self.spread + (abs(error) - self.spread) / 4
        )

    @property
    def margin(self) -> float:
        """Seconds to be added to what is foretold; at least 0."""
        return max(0.0, self.mean + 2 * self.spread)
