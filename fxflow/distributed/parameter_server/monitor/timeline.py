"""A timeline of a run's servers and workers, for Perfetto.

`trace` repeatedly fetches the spans of all servers, and those that workers have sent to
servers (`tracing`). It writes them with the times of one clock, as Chrome's trace
events, which https://ui.perfetto.dev and chrome://tracing open.
"""

from __future__ import annotations

import collections
import contextlib
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from fxflow.devices.trace_events import TraceEvents, TracePoint
from fxflow.distributed.messages.keys import Keys
from fxflow.distributed.parameter_server import messages
from fxflow.distributed.parameter_server.monitor.polling import ServerAnswer, ServerPoll
from fxflow.distributed.parameter_server.monitor.tracing import (
    Offset,
    TraceSpan,
    unpack,
)
from fxflow.errors import DistributedError

#: Maximum number of spans of a trace; older ones are dropped. About 300 MB.
MAX_SPANS = 1 << 20
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
            maxlen=MAX_SPANS
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
