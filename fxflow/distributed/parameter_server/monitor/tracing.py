"""What a process records of itself: counts, and spans while a run is traced.

The counts are always on: their cost is negligible. Spans take bounded memory.
"""

from __future__ import annotations

import collections
import contextlib
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np

from fxflow.distributed.parameter_server import messages
from fxflow.errors import DistributedError

#: Maximum number of spans that wait to be fetched; older ones are dropped. About 10 MB.
MAX_SPANS = 1 << 16
#: Maximum number of kinds of spans in one message.
_MAX_KINDS = 256
_NOTHING = contextlib.nullcontext()


class TraceSpan(NamedTuple):
    """An activity, with its beginning and end.

    Attributes:
      begun: when it began, by the process's `time.monotonic_ns`.
      ended: when it ended, by the same clock.
      kind: the activity.
      worker: the number of the worker that it was for; 0: none.
      sequence: the sequence number of the push; 0: none.
      shard: the shard's number; -1: none.
    """

    begun: int
    ended: int
    kind: str
    worker: int = 0
    sequence: int = 0
    shard: int = -1


class Recorder:
    """Records spans, of any thread, while it is on.

    Args:
      most: the maximum number of spans; older ones are dropped.

    Attributes:
      on: whether it records.
    """

    def __init__(self, most: int = MAX_SPANS) -> None:
        self.on = False
        self._spans: collections.deque[TraceSpan] = collections.deque(maxlen=most)

    def span(
        self, kind: str, worker: int = 0, sequence: int = 0, shard: int = -1
    ) -> AbstractContextManager[None]:
        """Returns a context manager that records its block as a span.

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
        """Records a span if the recorder is on."""
        if self.on:
            self._spans.append(span)

    def drain(self) -> list[TraceSpan]:
        """Returns the spans recorded since the last call, and drops them."""
        spans = self._spans
        return [spans.popleft() for _ in range(len(spans))]


def pack(spans: Iterable[TraceSpan]) -> tuple[list[str], np.ndarray[Any, Any]]:
    """Returns spans as the field and the array of a message.

    Args:
      spans: n spans.

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
    """Returns the spans of a message, which may be from an untrusted process.

    Args:
      kinds: the kinds that `pack` returned.
      rows: the array that `pack` returned.

    Raises:
      ValueError: these are not spans.
    """
    if (
        not isinstance(kinds, list)
        or not all(isinstance(kind, str) and len(kind) < 64 for kind in kinds)
        or len(kinds) > _MAX_KINDS
        or not isinstance(rows, np.ndarray)
        or rows.dtype != np.int64
        or rows.ndim != 2
        or rows.shape[1] != 6
        or len(rows) > MAX_SPANS
        or (len(rows) and not 0 <= rows[:, 2].min() <= rows[:, 2].max() < len(kinds))
        or bool((rows[:, 1] < rows[:, 0]).any())
    ):
        raise ValueError("these are not spans of a trace")
    return [TraceSpan(b, e, kinds[k], w, s, n) for b, e, k, w, s, n in rows.tolist()]


# -- between processes -----------------------------------------------------------------

#: Seconds after which a trace ends if no process fetches it.
LEASE = 5.0
#: Relative drift between the clocks of two machines: old readings become inaccurate.
_DRIFT = 50e-6

Arrays = dict[str, np.ndarray[Any, Any]]


class Offset:
    """An estimate of how far another process's clock is ahead of this one's.

    Attributes:
      heard: when the last reading arrived.
    """

    heard: int

    def __init__(self) -> None:
        self._best: tuple[int, int, int] | None = None
        self.heard = 0

    def note(self, asked: int, theirs: int, heard: int) -> None:
        """Uses a reading of the other clock if it is the most accurate so far.

        Args:
          asked: when the request was sent, by this clock.
          theirs: the other clock's time.
          heard: when the answer arrived, by this clock.
        """
        self.heard = heard
        if self._best is None or self._error(heard, *self._best) > heard - asked:
            self._best = asked, theirs, heard

    def _error(self, now: int, asked: int, _theirs: int, heard: int) -> float:
        return heard - asked + 2 * _DRIFT * (now - heard)

    @property
    def nanoseconds(self) -> int:
        """The estimate; 0 if the clocks may be the same, as on one machine."""
        if self._best is None:
            return 0
        asked, theirs, heard = self._best
        # Theirs lies within the reading: both clocks may be the same one.
        return 0 if asked <= theirs <= heard else theirs - (asked + heard) // 2


class ServerTracing:
    """A server's recorder, and the spans that workers sent it.

    Only the server's thread may use it.

    Attributes:
      recorder: records the server's own spans.
    """

    recorder: Recorder

    def __init__(self) -> None:
        self.recorder = Recorder()
        self._of_workers: collections.deque[TraceSpan] = collections.deque(
            maxlen=MAX_SPANS
        )
        #: Worker → nanoseconds by which this clock is ahead of the worker's.
        self._ahead: dict[int, int] = {}
        self._peer, self._until = b"", 0.0

    @property
    def _leased(self) -> bool:
        return time.monotonic() < self._until

    def collect(
        self, peer: bytes, request: messages.Trace
    ) -> tuple[messages.Traces, Arrays]:
        """Returns the answer to `trace`: the spans recorded since the last answer.

        Args:
          peer: the requester's address.
          request: whether to continue, and whether this is the last request.

        Raises:
          DistributedError: another process traces this server.
        """
        if peer != self._peer:
            if self._leased:
                raise DistributedError(
                    "another process traces this server; try again when it has ended, "
                    f"or {LEASE:g} s after it has exited"
                )
            self._clear()
        self._peer, self._until = peer, time.monotonic() + LEASE
        self.recorder.on = request.on
        own, spans = pack(self.recorder.drain())
        told, told_spans = pack(self._of_workers)
        ahead = {str(worker): ns for worker, ns in self._ahead.items()}
        traces = messages.Traces(own, told, ahead, time.monotonic_ns())
        if request.last:
            self._until = 0.0
            self._clear()
        self._of_workers.clear()
        return traces, {"own": spans, "told": told_spans}

    def _clear(self) -> None:
        self.recorder.on = False
        self.recorder.drain()
        self._of_workers.clear()
        self._ahead.clear()

    def heartbeat(
        self, worker: int, beat: messages.Heartbeat, arrays: Arrays
    ) -> tuple[bool | None, list[int] | None]:
        """Takes the spans of a worker's heartbeat.

        Returns:
          The fields `trace` and `clock` of the answer.

        Raises:
          ValueError: the heartbeat's spans are invalid.
        """
        if not self._leased:
            self.recorder.on = False
            return None, None
        if "spans" in arrays:
            spans = unpack(beat.kinds, arrays["spans"])
            self._of_workers.extend(span._replace(worker=worker) for span in spans)
            self._ahead[worker] = beat.ahead
        return self.recorder.on, [beat.sent, time.monotonic_ns()]


class WorkerTracing:
    """A worker's recorder, whose spans its heartbeats send to a server.

    Attributes:
      recorder: records the worker's spans, of any thread.
    """

    recorder: Recorder

    def __init__(self) -> None:
        self.recorder = Recorder()
        #: Server that traces → the offset of its clock.
        self._ahead: dict[int, Offset] = {}

    def heartbeat(self, server: int, name: str) -> tuple[messages.Heartbeat, Arrays]:
        """Returns the next heartbeat for a server, and its arrays."""
        now = time.monotonic_ns()
        for silent in [
            s for s, o in self._ahead.items() if now - o.heard > LEASE * 1e9
        ]:
            del self._ahead[silent]
        if server != min(self._ahead, default=None):
            return messages.Heartbeat(name, now), {}
        kinds, spans = pack(self.recorder.drain())
        ahead, now = self._ahead[server].nanoseconds, time.monotonic_ns()
        return messages.Heartbeat(name, now, kinds, ahead), {"spans": spans}

    def answered(self, server: int, pong: messages.Pong) -> None:
        """Notes a server's answer to a heartbeat, which says whether it traces."""
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


# -- counts ----------------------------------------------------------------------------

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
