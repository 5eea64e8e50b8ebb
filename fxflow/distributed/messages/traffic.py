"""What one end of a connection has sent and received, and what waits to be sent."""

from __future__ import annotations

from collections import Counter, deque
from typing import Any


class Traffic:
    """Counts messages and bytes at one end; any thread may read it.

    Attributes:
      sent: messages by kind.
      sent_bytes: bytes by kind.
      received: messages by kind.
      received_bytes: bytes by kind.
      shared_bytes: bytes sent or received through shared memory, by kind.
      dropped: messages that were not sent or not accepted, by reason: ``"slow"`` (the
        peer does not read), ``"gone"`` (it is not connected), the reasons of
        `MessageError`; and connections: ``"stranger"`` (the handshake failed).
    """

    def __init__(self) -> None:
        self.sent: Counter[str] = Counter()
        self.sent_bytes: Counter[str] = Counter()
        self.received: Counter[str] = Counter()
        self.received_bytes: Counter[str] = Counter()
        self.shared_bytes: Counter[str] = Counter()
        self.dropped: Counter[str] = Counter()

    def count_sent(self, kind: str, size: int) -> None:
        """Counts a message of `size` bytes that was sent."""
        self.sent[kind] += 1
        self.sent_bytes[kind] += size

    def count_received(self, kind: str, size: int) -> None:
        """Counts a message of `size` bytes that was received."""
        self.received[kind] += 1
        self.received_bytes[kind] += size

    def to_dict(self) -> dict[str, dict[str, int]]:
        """Returns all counts by name, as JSON values."""
        return {name: dict(counts) for name, counts in vars(self).items()}


class Waiting:
    """Bytes of large frames that ZeroMQ still holds for one peer."""

    def __init__(self) -> None:
        self._sent: deque[tuple[Any, int]] = deque()
        self._size = 0

    def __bool__(self) -> bool:
        return bool(self._sent)

    def add(self, tracker: Any, size: int) -> None:
        """Adds `size` bytes, which count until ZeroMQ's tracker reports them sent."""
        self._sent.append((tracker, size))
        self._size += size

    def size(self) -> int:
        """Returns the number of bytes that are not yet sent."""
        while self._sent and self._sent[0][0].done:
            self._size -= self._sent.popleft()[1]
        return self._size
