"""What a process records of itself: counts, and spans while a run is traced.

The counts are always on: their cost is negligible. Spans take bounded memory.

`trace` writes a timeline of a run's servers and workers, for Perfetto. It repeatedly
fetches the spans of all servers, and those that workers have sent to servers. It writes
them with the times of one clock, as Chrome's trace events, which
https://ui.perfetto.dev and chrome://tracing open.
"""

from __future__ import annotations

import collections
import contextlib
import os
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np

from fxflow.devices.trace_events import TraceEvents, TracePoint
from fxflow.distributed.messages.keys import Keys
from fxflow.distributed.parameter_server import messages
from fxflow.distributed.parameter_server.monitor.loads import ShardLoads
from fxflow.distributed.parameter_server.monitor.polling import ServerAnswer, ServerPoll
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
      loads: the share of the recent time spent on each shard.
    """

    def __init__(self) -> None:
        self.busy: Counter[str] = Counter()
        self.filters: dict[str, Counter[str]] = {"push": Counter(), "pull": Counter()}
        self.loads = ShardLoads()
        self._begun = time.monotonic()

    def handled(self, kind: str, begun: int, shard: int | None) -> None:
        """Counts the time spent on a message.

        Args:
          kind: the message's kind.
          begun: the time at which its handling began, by `time.monotonic_ns`.
          shard: the shard that the message concerns; None: no shard of the server.
        """
        now = time.monotonic_ns()
        self.busy[kind] += now - begun
        if shard is not None:
            self.loads.add(shard, (now - begun) / 1e9, now / 1e9)

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


# -- timeline --------------------------------------------------------------------------

#: Maximum number of spans of a trace; older ones are dropped. About 300 MB.
_MAX_TRACED = 1 << 20
#: Seconds between two fetches, and from the end to the last one, for workers' spans.
_EVERY, _LAST = 1.0, 1.5


class ProcessSpan(NamedTuple):
    """A span of a server or worker process.

    Attributes:
      process: the process's name: ``"server 0"``, ``"worker 1"``.
      number: the worker's number, since a restarted worker has the same name; 0 for a
        server.
      span: the span, with times of this process's clock.
      worker: the name of the span's worker; empty if it has none.
    """

    process: str
    number: int
    span: TraceSpan
    worker: str


@contextlib.contextmanager
def trace(
    path: str | os.PathLike[str],
    addresses: Sequence[str] | Mapping[int, str],
    keys: Keys | None = None,
) -> Iterator[None]:
    """Traces a run for the duration of a `with` block.

    Servers begin at once, workers with their next heartbeat, half a second later. At
    its end, the block waits 1.5 s for the workers' last spans. Memory is bounded in all
    processes: a long trace keeps only the last spans.

    Args:
      path: the file's path, compressed if it ends in ``.gz``. The file is written
        atomically.
      addresses: the servers' addresses, by number; a sequence begins with 0.
      keys: the run's keys; None on this machine.

    Returns:
      A context manager.

    Raises:
      DistributedError: an address is malformed, or needs keys; no server can be
        traced.
      OSError: the file cannot be written.
    """
    collector = _Collector()
    with ServerPoll(addresses, keys) as servers:
        collector.ask(servers, on=True)
        ends = threading.Event()

        def collect() -> None:
            while not ends.wait(_EVERY):
                collector.ask(servers, on=True)
            collector.ask(servers, on=False)
            threading.Event().wait(_LAST)
            collector.ask(servers, on=False, last=True)

        thread = threading.Thread(target=collect, name="fxflow-trace", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ends.set()
            thread.join()
    trace_events(collector.traced()).save(path)


class _Collector:
    """Collects the spans of all processes."""

    def __init__(self) -> None:
        #: (server that sent the span, whether it is a worker's, the span)
        self._spans: collections.deque[tuple[int, bool, TraceSpan]] = collections.deque(
            maxlen=_MAX_TRACED
        )
        self._offsets: dict[int, Offset] = {}
        #: (server, worker) → by how much the server's clock is ahead.
        self._ahead: dict[tuple[int, int], int] = {}
        self._names: dict[int, str] = {}

    def ask(self, servers: ServerPoll, on: bool, last: bool = False) -> None:
        """Fetches the spans recorded since the last call."""
        answers = servers.ask(messages.Trace(on, last))
        for answer in answers:
            if answer.message is not None:
                self._take(answer)
        if not any(answer.message for answer in answers) and not self._offsets:
            problems = "; ".join(f"server {a.server}: {a.problem}" for a in answers)
            raise DistributedError(f"no server can be traced: {problems}")

    def _take(self, answer: ServerAnswer) -> None:
        assert answer.message is not None
        traces: messages.Traces = answer.message.fields
        arrays = answer.message.arrays
        offset = self._offsets.setdefault(answer.server, Offset())
        offset.note(answer.asked, traces.clock, answer.heard)
        for kinds, source in ((traces.own, "own"), (traces.told, "told")):
            for span in unpack(kinds, arrays[source]):
                self._spans.append((answer.server, source == "told", span))
        for worker, ns in traces.ahead.items():
            self._ahead[answer.server, int(worker)] = ns
        for worker, name in (traces.names or {}).items():
            self._names[int(worker)] = name

    def traced(self) -> Iterator[ProcessSpan]:
        """Yields all spans, with times of this process's clock."""
        for server, of_worker, span in self._spans:
            shift = -self._offsets[server].nanoseconds
            worker = ""
            if span.worker:
                worker = self._names.get(span.worker) or f"worker {span.worker}"
            process, number = f"server {server}", 0
            if of_worker:
                process, number = worker, span.worker
                shift += self._ahead.get((server, span.worker), 0)
            begun, ended = span.begun + shift, span.ended + shift
            span = span._replace(begun=begun, ended=ended)
            yield ProcessSpan(process, number, span, worker)


# -- Chrome's trace events -------------------------------------------------------------


def trace_events(traced: Iterable[ProcessSpan]) -> TraceEvents:
    """Returns spans as Chrome's trace events, with arrows from pushes to servers.

    Args:
      traced: the spans, in any order.
    """
    found = sorted(traced, key=lambda t: (t.span.begun, -t.span.ended))
    start = found[0].span.begun if found else 0
    events = TraceEvents("parameter_server")
    for key in sorted({t[:2] for t in found}):
        events.process(key, key[0])
    sends: dict[tuple[int, int], TracePoint] = {}
    for process, number, span, worker in found:
        pid = events.process((process, number), process)
        track = _track(process, span, worker)
        waits = span.worker if span.kind == "wait" else 0
        tid = events.track(pid, (track, waits), track)
        place = TracePoint(pid, tid, (span.begun - start) / 1000)
        args: dict[str, Any] = {"worker": worker} if worker else {}
        if span.sequence:
            args["sequence"] = span.sequence
        if span.shard >= 0:
            args["shard"] = span.shard
        events.span(place, (span.ended - span.begun) / 1000, span.kind, args)
        push = span.worker, span.sequence
        if span.kind == "send":
            sends[push] = place
        elif span.kind == "push" and push in sends and process.startswith("server "):
            events.arrow("push", sends[push], place)
    return events


def _track(process: str, span: TraceSpan, worker: str) -> str:
    """Returns the name of the track of a span; spans of one track nest."""
    if span.kind == "wait":
        return f"{worker} waits for shard {span.shard}"
    if process.startswith("server "):
        return "answers"
    return "connection" if span.kind == "send" else "steps"
