"""When a process that ended is started again: at once, and later each time."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Backoff:
    """Seconds to wait before the next start: none, then twice as long each time.

    Attributes:
      second: seconds after the second quick end; after the first there is no wait.
      most: seconds after many.
      steady: a process that served for so many seconds has failed for the first time.
      failures: quick ends, one after the other.

    Example:
      >>> backoff = Backoff()
      >>> for _ in range(4):
      ...     backoff = backoff.after(ran=0.5)
      ...     print(backoff.seconds)
      0.0
      0.1
      0.2
      0.4
      >>> backoff.after(ran=60).seconds
      0.0
    """

    second: float = 0.1
    most: float = 30.0
    steady: float = 10.0
    failures: int = 0

    @property
    def seconds(self) -> float:
        """How long to wait."""
        if self.failures < 2:
            return 0.0
        # 2**60 seconds are more than any limit, and a float still.
        seconds: float = min(self.most, self.second * 2.0 ** min(self.failures - 2, 60))
        return seconds

    def after(self, ran: float) -> Backoff:
        """Returns the state after a process ended that served for so many seconds."""
        failures = 0 if ran >= self.steady else self.failures
        return replace(self, failures=failures + 1)
