"""How often a client may ask: a token bucket for each.

A bucket holds `burst` tokens and gains `rate` of them a second; a request takes one.
Clients that have a full bucket are forgotten, so that memory is bounded by the clients
of the last `burst / rate` seconds, and by `most` at any time.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field


@dataclass
class ClientLimits:
    """Token buckets by client.

    Attributes:
      rate: requests a second, in the long run; 0 is no limit.
      burst: how many at once.
      most: clients that are remembered; the one that asked longest ago goes first.

    Example:
      >>> limits = ClientLimits(rate=2.0, burst=1)
      >>> limits.ask("a", now=0.0), limits.ask("a", now=0.0), limits.ask("b", now=0.0)
      (0.0, 0.5, 0.0)
      >>> limits.ask("a", now=0.5)
      0.0
    """

    rate: float = 0.0
    burst: int = 1
    most: int = 10_000
    _buckets: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)

    def ask(self, client: str, now: float) -> float:
        """Takes a token.

        Args:
          client: who asks.
          now: the time, in seconds.

        Returns:
          0 if there was one, else in how many seconds there will be.
        """
        if not self.rate:
            return 0.0
        tokens, then = self._buckets.pop(client, (float(self.burst), now))
        tokens = min(float(self.burst), tokens + (now - then) * self.rate)
        wait = 0.0 if tokens >= 1 else (1 - tokens) / self.rate
        self._buckets[client] = (tokens if wait else tokens - 1, now)
        while self._buckets:
            oldest, (left, at) = next(iter(self._buckets.items()))
            full = left + (now - at) * self.rate >= self.burst
            if not full and len(self._buckets) <= self.most:
                break
            del self._buckets[oldest]
        return wait
