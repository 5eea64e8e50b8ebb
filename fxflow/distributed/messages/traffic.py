"""Traffic of one end of a connection: counts, and bytes that are not sent yet."""

from __future__ import annotations

from collections import Counter, deque
from typing import Any


class Traffic:
    """Counts of what passed an end; may be read from any thread.

    Attributes:
      sent: messages by kind.
      sent_bytes: bytes by kind.
      received: messages by kind.
      received_bytes: bytes by kind.
      shared_bytes: those of both whose arrays went by memory, by kind.
      dropped: messages that were not sent or not taken, by reason: ``"slow"`` (the
        peer does not read), ``"gone"`` (it is not connected), the reasons of
        `MessageError`; and connections: ``"stranger"`` (no handshake succeeded).
    """

    def __init__(self) -> None:
        self.sent: Counter[str] = Counter()
        self.sent_bytes: Counter[str] = Counter()
        self.received: Counter[str] = Counter()
        self.received_bytes: Counter[str] = Counter()
        self.shared_bytes: Counter[str] = Counter()
        self.dropped: Counter[str] = Counter()

    def to_dict(self) -> dict[str, dict[str, int]]:
        """Returns all counts by name, as JSON can say them."""
        return {name: dict(counts) for name, counts in vars(self).items()}


class Waiting:
    """Bytes of large frames that ZeroMQ still holds for one peer."""

    def __init__(self) -> None:
        self._sent: deque[tuple[Any, int]] = deque()
        self._size = 0

    def __bool__(self) -> bool:
        return bool(self._sent)

    def add(self, tracker: Any, size: int) -> None:
        """Notes `size` bytes, which are sent when ZeroMQ's tracker says so."""
        self._sent.append((tracker, size))
        self._size += size

    def size(self) -> int:
        """Returns how many are not sent yet."""
        while self._sent and self._sent[0][0].done:
            self._size -= self._sent.popleft()[1]
        return self._size
