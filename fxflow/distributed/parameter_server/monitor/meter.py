"""A server's counts of time and bytes. They are always on: their cost is negligible."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

#: The name under which the bytes of table rows, which have no filter, are counted.
ROWS = "rows"


class Meter:
    """The counts of one server, for use by its thread.

    Attributes:
      busy: nanoseconds spent on messages, by kind.
      filters: bytes of arrays, by filter, of received gradients (``"push"``) and of
        sent parameters (``"pull"``).
    """

    def __init__(self) -> None:
        self.busy: Counter[str] = Counter()
        self.filters: dict[str, Counter[str]] = {"push": Counter(), "pull": Counter()}
        self._begun = time.monotonic()

    def handled(self, kind: str, begun: int) -> None:
        """Counts the time spent on a message.

        Args:
          kind: the message's kind.
          begun: the time at which its handling began, by `time.monotonic_ns`.
        """
        self.busy[kind] += time.monotonic_ns() - begun

    def moved(
        self,
        direction: str,
        filters: Mapping[str, int],
        arrays: Mapping[str, np.ndarray[Any, Any]],
        tables: bool = False,
    ) -> None:
        """Counts received gradients or sent parameters.

        Args:
          direction: ``"push"`` or ``"pull"``.
          filters: the bytes of each filter.
          arrays: the arrays; if there are none, nothing is counted.
          tables: whether the remaining bytes of `arrays` are rows of tables.
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
