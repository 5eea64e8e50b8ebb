"""Limits of requests: size, time, and rate per client.

A token bucket limits each client's requests: it holds up to `burst` tokens and gains
`rate` tokens per second; a request takes one. Full buckets are dropped, so at most the
clients of the last `burst / rate` seconds are in memory, and never more than `most`.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field


@dataclass
class ClientLimits:
    """Token buckets by client.

    Attributes:
      rate: sustained requests per second; 0: unlimited.
      burst: requests at once.
      most: most clients in memory; the least recently active one is dropped first.

    Example:
      >>> limits = ClientLimits(rate=2.0, burst=1)
      >>> limits.take("a", now=0.0), limits.take("a", now=0.0), limits.take("b", 0.0)
      (0.0, 0.5, 0.0)
      >>> limits.take("a", now=0.5)
      0.0
    """

    rate: float = 0.0
    burst: int = 1
    most: int = 10_000
    _buckets: OrderedDict[str, tuple[float, float]] = field(default_factory=OrderedDict)

    def take(self, client: str, now: float) -> float:
        """Takes a token from a client's bucket.

        Args:
          client: the client that sent the request.
          now: the time, in seconds.

        Returns:
          0 if there was a token, else the seconds until the next one.
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


@dataclass
class RequestLimits:
    """Limits of the requests that a server accepts.

    Attributes:
      max_body: most bytes of one request.
      max_bodies: most bytes of all requests in flight.
      body_timeout: seconds within which a body must arrive, and within which the client
        must read each result of a stream.
      clients: rate limits per client.
    """

    max_body: int = 64 << 20
    max_bodies: int = 512 << 20
    body_timeout: float = 10.0
    clients: ClientLimits = field(default_factory=ClientLimits)
