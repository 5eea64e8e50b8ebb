"""Two measurements side by side: is one faster, and how sure is that?"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from fxflow.core.boundary import guard_methods
from fxflow.errors import ArgumentError
from fxflow.profiler.report import Report, Row

_SAMPLES = 2000  # of the bootstrap
_SEED = 20260


@guard_methods
@dataclasses.dataclass(frozen=True, repr=False)
class Comparison:
    """How the times of two runs compare; `compare` makes it.

    Attributes:
      before: seconds, the median.
      after: likewise.
      ratio: of the medians, after by before.
      low: the lower end of the ratio's interval of confidence.
      high: the upper end.
      confidence: of the interval.
      scopes: for each `named_scope` in either report, its seconds before and after.
    """

    before: float
    after: float
    ratio: float
    low: float
    high: float
    confidence: float
    scopes: tuple[tuple[str, float, float], ...]

    @property
    def verdict(self) -> str:
        """`"faster"`, `"slower"`, or `"no difference seen"`."""
        if self.high < 1:
            return "faster"
        return "slower" if self.low > 1 else "no difference seen"

    def __str__(self) -> str:
        lines = [
            f"{self.before * 1e3:.4g} ms before, {self.after * 1e3:.4g} ms after: "
            f"{self.ratio:.3f} times ({self.low:.3f} to {self.high:.3f} with "
            f"{self.confidence:.0%} confidence): {self.verdict}"
        ]
        if self.scopes:
            lines.append(f"{'ms before':>10} {'ms after':>9}  by scope")
        lines += [
            f"{old * 1e3:10.3f} {new * 1e3:9.3f}  {name}"
            for name, old, new in self.scopes
        ]
        return "\n".join(lines)

    __repr__ = __str__


def compare(
    before: Report | Sequence[float],
    after: Report | Sequence[float],
    *,
    confidence: float = 0.95,
) -> Comparison:
    """Compares two reports, or the times of two programs.

    The ratio of the medians has an interval of confidence from a bootstrap: runs are
    drawn again from each, with replacement. It covers what differs from run to run, not
    what differs between days: measure both in turn, on a quiet machine.

    Args:
      before: of `report`, or float[n], the seconds of each run.
      after: likewise.
      confidence: of the interval, between 0 and 1.

    Returns:
      A comparison, to be printed.

    Raises:
      ArgumentError: there are fewer than three runs, or `confidence` is not between 0
        and 1.

    Example:
      >>> found = fxflow.profiler.compare([2.0, 2.1, 2.0, 2.2], [1.0, 1.1, 1.0, 1.05])
      >>> found.verdict, found.ratio < 0.6
      ('faster', True)

    Source: Efron, Bootstrap methods: another look at the jackknife, 1979.
    """
    if not 0 < confidence < 1:
        raise ArgumentError(
            f"compare: confidence is between 0 and 1, got {confidence!r}"
        )
    first, second = _runs("before", before), _runs("after", after)
    draw = np.random.default_rng(_SEED)

    def medians(times: Any) -> Any:
        drawn = draw.integers(len(times), size=(_SAMPLES, len(times)))
        return np.median(times[drawn], axis=1)

    ratios = medians(second) / medians(first)
    tail = (1 - confidence) / 2
    low, high = np.quantile(ratios, [tail, 1 - tail])
    middle = float(np.median(first)), float(np.median(second))
    return Comparison(
        *middle, middle[1] / middle[0], float(low), float(high), confidence,
        _scopes(before, after),
    )  # fmt: skip


def _runs(name: str, given: Any) -> Any:
    times = np.asarray(given.samples if isinstance(given, Report) else given, float)
    if times.ndim == 1 and len(times) >= 3:
        if np.all(times > 0):
            return times
        found = f"{times[~(times > 0)][0]} s"
    else:
        found = f"{len(times)} runs" if times.ndim == 1 else f"shape {times.shape}"
    raise ArgumentError(
        f"compare: {name} is a report of at least 3 runs, or positive seconds "
        f"float[n] of as many, got {found}"
    )


def _scopes(before: Any, after: Any) -> tuple[tuple[str, float, float], ...]:
    if not (isinstance(before, Report) and isinstance(after, Report)):
        return ()
    old: dict[str, Row] = {row.name: row for row in before.rows("scope")}
    new: dict[str, Row] = {row.name: row for row in after.rows("scope")}
    found = []
    for name in dict.fromkeys([*old, *new]):
        times = [rows[name].seconds if name in rows else 0.0 for rows in (old, new)]
        found.append((name, times[0], times[1]))
    return tuple(sorted(found, key=lambda item: -max(item[1:])))
