"""What a server accepts: sizes of requests, time for them, and requests of a client.

A client's requests are limited by a token bucket, which holds `burst` tokens and gains
`rate` of them a second; a request takes one. Clients whose bucket is full are
forgotten, so that memory is bounded by the clients of the last `burst / rate` seconds,
and by `most` at any time.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field


@dataclass
class ClientLimits:
    """Token buckets by client.

    Attributes:
      rate: requests a second, in the long run; 0: unlimited.
      burst: requests at once.
      most: clients that are remembered; the least recently active one goes first.

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
        """Takes a token.

        Args:
          client: that sent the request.
          now: the time, in seconds.

        Returns:
          0 if there was one, else the seconds until there will be.
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
    """What a server accepts.

    Attributes:
      max_body: bytes of one request.
      max_bodies: bytes of all requests in flight.
      body_timeout: seconds within which a body must arrive, and within which the client
        must read each result of a stream.
      clients: the rate of each client's requests.
    """

    max_body: int = 64 << 20
    max_bodies: int = 512 << 20
    body_timeout: float = 10.0
    clients: ClientLimits = field(default_factory=ClientLimits)
