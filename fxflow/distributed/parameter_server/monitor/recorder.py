"""Spans of time of one process, kept in bounded memory; nothing while it is off."""

from __future__ import annotations

import collections
import contextlib
import time
from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np

#: Spans that wait to be fetched; older ones are forgotten. About 10 MB.
MOST = 1 << 16
#: Kinds of spans in one message.
_MOST_KINDS = 256
_NOTHING = contextlib.nullcontext()


class TraceSpan(NamedTuple):
    """What was done from when to when.

    Attributes:
      begun: of the process's `time.monotonic_ns`.
      ended: the same.
      kind: what was done.
      worker: number of the worker whom it was done for; 0: of none.
      sequence: the worker's number of the push; 0: of none.
      shard: of the servers; -1: of none.
    """

    begun: int
    ended: int
    kind: str
    worker: int = 0
    sequence: int = 0
    shard: int = -1


class Recorder:
    """Records spans while it is on. Any thread may add to it.

    Attributes:
      on: whether it does.
    """

    def __init__(self, most: int = MOST) -> None:
        self.on = False
        self._spans: collections.deque[TraceSpan] = collections.deque(maxlen=most)

    def span(
        self, kind: str, worker: int = 0, sequence: int = 0, shard: int = -1
    ) -> AbstractContextManager[None]:
        """Returns a context manager that records what is done in it.

        Args:
          kind: see `TraceSpan`.
          worker: see `TraceSpan`.
          sequence: see `TraceSpan`.
          shard: see `TraceSpan`.
        """
        if not self.on:
            return _NOTHING
        return self._recorded(kind, worker, sequence, shard)

    @contextlib.contextmanager
    def _recorded(self, kind: str, worker: int, sequence: int, shard: int) -> Any:
        begun = time.monotonic_ns()
        try:
            yield
        finally:
            self.add(
                TraceSpan(begun, time.monotonic_ns(), kind, worker, sequence, shard)
            )

    def add(self, span: TraceSpan) -> None:
        """Keeps a span, if it is on."""
        if self.on:
            self._spans.append(span)

    def drain(self) -> list[TraceSpan]:
        """Returns what was recorded since the last call, and forgets it."""
        spans = self._spans
        return [spans.popleft() for _ in range(len(spans))]


def pack(spans: Iterable[TraceSpan]) -> tuple[list[str], np.ndarray[Any, Any]]:
    """Returns spans as a message takes them.

    Args:
      spans: any number.

    Returns:
      The kinds there are, and int64[n, 6]: the attributes of each span, the number of
      its kind in place of the kind.
    """
    kinds: dict[str, int] = {}
    rows = [
        (begun, ended, kinds.setdefault(kind, len(kinds)), worker, sequence, shard)
        for begun, ended, kind, worker, sequence, shard in spans
    ]
    return list(kinds), np.array(rows, np.int64).reshape(-1, 6)


def unpack(kinds: Any, rows: Any) -> list[TraceSpan]:
    """Returns the spans of a message, which may be anybody's.

    Args:
      kinds: of `pack`.
      rows: of `pack`.

    Raises:
      ValueError: they are no spans.
    """
    if (
        not isinstance(kinds, list)
        or not all(isinstance(kind, str) and len(kind) < 64 for kind in kinds)
        or len(kinds) > _MOST_KINDS
        or not isinstance(rows, np.ndarray)
        or rows.dtype != np.int64
        or rows.ndim != 2
        or rows.shape[1] != 6
        or len(rows) > MOST
        or (len(rows) and not 0 <= rows[:, 2].min() <= rows[:, 2].max() < len(kinds))
        or bool((rows[:, 1] < rows[:, 0]).any())
    ):
        raise ValueError("these are no spans of a trace")
    return [TraceSpan(b, e, kinds[k], w, s, n) for b, e, k, w, s, n in rows.tolist()]
