"""Spans of time of one process, kept in bounded memory; nothing while it is off."""

from __future__ import annotations

import collections
import contextlib
import time
from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np

from fxflow.distributed.parameter_server import messages
from fxflow.errors import DistributedError

#: Spans that wait to be fetched; older ones are forgotten. About 10 MB.
MOST = 1 << 16
#: Kinds of spans in one message.
_MOST_KINDS = 256
_NOTHING = contextlib.nullcontext()


class TraceSpan(NamedTuple):
    """An activity and when it began and ended.

    Attributes:
      begun: in the process's `time.monotonic_ns`.
      ended: likewise.
      kind: the activity.
      worker: number of the worker that it was done for; 0: none.
      sequence: the worker's number of the push; 0: none.
      shard: its number; -1: none.
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
      on: whether it records.
    """

    def __init__(self, most: int = MOST) -> None:
        self.on = False
        self._spans: collections.deque[TraceSpan] = collections.deque(maxlen=most)

    def span(
        self, kind: str, worker: int = 0, sequence: int = 0, shard: int = -1
    ) -> AbstractContextManager[None]:
        """Returns a context manager that records the block.

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
        """Returns the spans recorded since the last call, and drops them."""
        spans = self._spans
        return [spans.popleft() for _ in range(len(spans))]


def pack(spans: Iterable[TraceSpan]) -> tuple[list[str], np.ndarray[Any, Any]]:
    """Returns spans in the form of a message.

    Args:
      spans: any number.

    Returns:
      The kinds, and int64[n, 6]: the attributes of each span, with the index of its
      kind in place of the kind.
    """
    kinds: dict[str, int] = {}
    rows = [
        (begun, ended, kinds.setdefault(kind, len(kinds)), worker, sequence, shard)
        for begun, ended, kind, worker, sequence, shard in spans
    ]
    return list(kinds), np.array(rows, np.int64).reshape(-1, 6)


def unpack(kinds: Any, rows: Any) -> list[TraceSpan]:
    """Returns the spans of a message from an untrusted process.

    Args:
      kinds: of `pack`.
      rows: of `pack`.

    Raises:
      ValueError: they are not spans.
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
        raise ValueError("these are not spans of a trace")
    return [TraceSpan(b, e, kinds[k], w, s, n) for b, e, k, w, s, n in rows.tolist()]


# -- between processes -----------------------------------------------------------------

#: Seconds after which a trace ends that no process fetches.
LEASE = 5.0
#: The relative drift of the clocks of two machines, which makes old readings worse.
_DRIFT = 50e-6

Arrays = dict[str, np.ndarray[Any, Any]]


class Offset:
    """By how much another process's clock is ahead of this one's.

    Attributes:
      nanoseconds: 0 where the clocks may be the same, as on one machine.
      heard: when the last reading arrived.
    """

    heard: int

    def __init__(self) -> None:
        self._best: tuple[int, int, int] | None = None
        self.heard = 0

    def note(self, asked: int, theirs: int, heard: int) -> None:
        """Takes a reading.

        Args:
          asked: when it was asked for, by this clock.
          theirs: what the other clock was in between.
          heard: when it came.
        """
        self.heard = heard
        if self._best is None or self._error(heard, *self._best) > heard - asked:
            self._best = asked, theirs, heard

    def _error(self, now: int, asked: int, _theirs: int, heard: int) -> float:
        return heard - asked + 2 * _DRIFT * (now - heard)

    @property
    def nanoseconds(self) -> int:
        """See the class."""
        if self._best is None:
            return 0
        asked, theirs, heard = self._best
        # Within the reading itself: the clocks may as well be the same one.
        return 0 if asked <= theirs <= heard else theirs - (asked + heard) // 2


class ServerTracing:
    """A server's end; belongs to its thread.

    Attributes:
      recorder: of the server's own spans.
    """

    recorder: Recorder

    def __init__(self) -> None:
        self.recorder = Recorder()
        self._told: collections.deque[TraceSpan] = collections.deque(maxlen=MOST)
        #: Worker → by how much this process's clock is ahead of its.
        self._ahead: dict[int, int] = {}
        self._peer, self._until = b"", 0.0

    @property
    def _leased(self) -> bool:
        return time.monotonic() < self._until

    def asked(
        self, peer: bytes, asked: messages.Trace
    ) -> tuple[messages.Traces, Arrays]:
        """Returns the answer to `trace`: what was recorded since the last one.

        Args:
          peer: who asks.
          asked: whether to go on, and whether it is the last time.

        Raises:
          DistributedError: another process traces this server.
        """
        if peer != self._peer:
            if self._leased:
                raise DistributedError(
                    "another process traces this server; try again when it has ended, "
                    f"or {LEASE:g} s after it has exited"
                )
            self._forget()
        self._peer, self._until = peer, time.monotonic() + LEASE
        self.recorder.on = asked.on
        own, spans = pack(self.recorder.drain())
        told, of_workers = pack(self._told)
        ahead = {str(worker): ns for worker, ns in self._ahead.items()}
        traces = messages.Traces(own, told, ahead, time.monotonic_ns())
        if asked.last:
            self._until = 0.0
            self._forget()
        self._told.clear()
        return traces, {"own": spans, "told": of_workers}

    def _forget(self) -> None:
        self.recorder.on = False
        self.recorder.drain()
        self._told.clear()
        self._ahead.clear()

    def heartbeat(
        self, worker: int, beat: messages.Heartbeat, arrays: Arrays
    ) -> tuple[bool | None, list[int] | None]:
        """Takes a worker's spans.

        Returns:
          `trace` and `clock` of the answer.

        Raises:
          ValueError: they are not spans.
        """
        if not self._leased:
            self.recorder.on = False
            return None, None
        if "spans" in arrays:
            spans = unpack(beat.kinds, arrays["spans"])
            self._told.extend(span._replace(worker=worker) for span in spans)
            self._ahead[worker] = beat.ahead
        return self.recorder.on, [beat.sent, time.monotonic_ns()]


class WorkerTracing:
    """A worker's end.

    Attributes:
      recorder: of the worker's spans, from any thread.
    """

    recorder: Recorder

    def __init__(self) -> None:
        self.recorder = Recorder()
        #: Server → by how much its clock is ahead, of those that trace.
        self._ahead: dict[int, Offset] = {}

    def heartbeat(self, server: int, name: str) -> tuple[messages.Heartbeat, Arrays]:
        """Returns the next heartbeat for a server, and its arrays."""
        now = time.monotonic_ns()
        for gone in [s for s, o in self._ahead.items() if now - o.heard > LEASE * 1e9]:
            del self._ahead[gone]
        if server != min(self._ahead, default=None):
            return messages.Heartbeat(name, now), {}
        kinds, spans = pack(self.recorder.drain())
        ahead, now = self._ahead[server].nanoseconds, time.monotonic_ns()
        return messages.Heartbeat(name, now, kinds, ahead), {"spans": spans}

    def answered(self, server: int, pong: messages.Pong) -> None:
        """Notes how a server answered a heartbeat: whether it traces."""
        if pong.clock is None:
            self._ahead.pop(server, None)
        else:
            sent, clock = pong.clock
            offset = self._ahead.setdefault(server, Offset())
            offset.note(sent, clock, time.monotonic_ns())
        first = min(self._ahead, default=None)
        if first == server:
            self.recorder.on = bool(pong.trace)
        elif first is None:
            self.recorder.on = False
            self.recorder.drain()
