"""How busy a server has lately been with each of its shards.

Seconds count less the older they are, so that a load follows the run: it forgets what a
shard cost before the data, the workers or the shard's server changed.
"""

from __future__ import annotations

import math
from collections.abc import Container
from typing import NamedTuple

#: Seconds after which work counts half.
HALF_LIFE = 30.0


class _Work(NamedTuple):
    """The work for one shard.

    Attributes:
      began: when its first work began.
      seconds: the seconds of work, each weighted by its age at the time `at`.
      at: the time of the last addition.
    """

    began: float
    seconds: float
    at: float


class ShardLoads:
    """The share of its time that a server spends on each shard.

    Times are seconds of one clock, which the caller reads.

    Args:
      half_life: seconds after which work counts half.

    Example:
      >>> loads = ShardLoads(half_life=30.0)
      >>> loads.add(3, 0.5, now=1.0)
      >>> loads.add(3, 0.5, now=2.0)
      >>> round(loads.load(3, now=2.0), 2)
      0.67
      >>> loads.load(4, now=2.0)
      0.0
    """

    def __init__(self, half_life: float = HALF_LIFE) -> None:
        self._rate = math.log(2) / half_life
        self._work: dict[int, _Work] = {}

    def add(self, shard: int, seconds: float, now: float) -> None:
        """Counts work that has just ended.

        Args:
          shard: the number of the shard.
          seconds: the duration of the work.
          now: the current time.
        """
        began, before, at = self._work.get(shard, _Work(now - seconds, 0.0, now))
        total = before * math.exp(-self._rate * (now - at)) + seconds
        self._work[shard] = _Work(began, total, now)

    def load(self, shard: int, now: float) -> float:
        """Returns the weighted mean of the time spent on a shard, at most about 1.

        The mean is over the time since the first work for the shard, so a shard that
        arrived a moment ago has the load of that moment.

        Args:
          shard: the number of the shard.
          now: the current time.
        """
        if shard not in self._work:
            return 0.0
        began, seconds, at = self._work[shard]
        # The integral of the weights since the first work.
        weights = -math.expm1(-self._rate * (now - began)) / self._rate
        if weights <= 0.0:
            return 0.0
        return seconds * math.exp(-self._rate * (now - at)) / weights

    def keep(self, shards: Container[int]) -> None:
        """Forgets all other shards.

        Args:
          shards: the shards that the server holds.
        """
        self._work = {s: work for s, work in self._work.items() if s in shards}
