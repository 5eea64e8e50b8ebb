"""What a worker has sent and received, and what it would have been without encoding."""

from __future__ import annotations

from typing import NamedTuple


class TrafficReport(NamedTuple):
    """Network traffic of one worker.

    Attributes:
      sent: bytes by kind of message: ``"push"`` has gradients.
      received: bytes by kind of message: ``"params"`` has parameters.
      exchange: name of the filter of gradients.
      pull: name of the filter of parameters.
      exact_bytes: bytes of a gradient, and of the parameters, unencoded.
      push_bytes: bytes of an encoded gradient.
      pull_bytes: bytes of the encoded parameters.
    """

    sent: dict[str, int]
    received: dict[str, int]
    exchange: str
    pull: str
    exact_bytes: int
    push_bytes: int
    pull_bytes: int

    @property
    def push_ratio(self) -> float:
        """Compression ratio of gradients."""
        return self.exact_bytes / self.push_bytes if self.push_bytes else 1.0

    @property
    def pull_ratio(self) -> float:
        """Compression ratio of parameters."""
        return self.exact_bytes / self.pull_bytes if self.pull_bytes else 1.0
