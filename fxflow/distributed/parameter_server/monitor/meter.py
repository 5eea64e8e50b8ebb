"""What a server's time and bytes go into; always counted, for it costs nothing."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

#: By what name rows of tables are counted, which no filter codes.
ROWS = "rows"


class Meter:
    """Counts of one server; belongs to its thread.

    Attributes:
      busy: nanoseconds by kind of the message that was answered.
      filters: bytes of arrays by filter: of gradients that came (``"push"``) and of
        parameters that went (``"pull"``).
    """

    def __init__(self) -> None:
        self.busy: Counter[str] = Counter()
        self.filters: dict[str, Counter[str]] = {"push": Counter(), "pull": Counter()}
        self._begun = time.monotonic()

    def handled(self, kind: str, begun: int) -> None:
        """Notes that a message was answered.

        Args:
          kind: of the message.
          begun: of `time.monotonic_ns`.
        """
        self.busy[kind] += time.monotonic_ns() - begun

    def moved(
        self,
        direction: str,
        filters: Mapping[str, int],
        arrays: Mapping[str, np.ndarray[Any, Any]],
        tables: bool = False,
    ) -> None:
        """Notes that gradients came or parameters went.

        Args:
          direction: ``"push"`` or ``"pull"``.
          filters: how many bytes travel by which filter.
          arrays: what travelled; nothing is noted if there is none.
          tables: whether there may be rows among them, which are what is left.
        """
        if not arrays:
            return
        counts = self.filters[direction]
        for name, size in filters.items():
            counts[name] += size
        if tables:
            whole = sum(array.nbytes for array in arrays.values())
            counts[ROWS] += whole - sum(filters.values())

    def to_dict(self) -> dict[str, Any]:
        """Returns the counts as JSON, times in seconds."""
        return {
            "seconds": time.monotonic() - self._begun,
            "cpu": time.process_time(),
            "busy": {kind: ns / 1e9 for kind, ns in self.busy.items()},
            "filters": {way: dict(counts) for way, counts in self.filters.items()},
        }
