"""Timelines in files: Chrome's trace events, which https://ui.perfetto.dev opens."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from fxflow.devices import files


class TracePoint(NamedTuple):
    """A point in time on a track.

    Attributes:
      pid: number of the process.
      tid: number of the track.
      ts: microseconds.
    """

    pid: int
    tid: int
    ts: float


class TraceEvents:
    """Spans on the tracks of processes, and arrows between them.

    Args:
      category: of all events.

    Source: Chromium's "Trace Event Format".
    """

    def __init__(self, category: str) -> None:
        self._category = category
        self._names: list[dict[str, Any]] = []
        self._events: list[dict[str, Any]] = []
        self._processes: dict[Any, int] = {}
        self._tracks: dict[Any, int] = {}
        self._arrows = 0

    def process(self, key: Any, name: str) -> int:
        """Returns the number of a process; names it the first time.

        Args:
          key: of the process.
          name: that is shown.
        """
        if key not in self._processes:
            self._processes[key] = len(self._processes) + 1
            self._named("process_name", self._processes[key], 0, name)
        return self._processes[key]

    def track(self, pid: int, key: Any, name: str) -> int:
        """Returns the number of a track of a process; names it the first time.

        Args:
          pid: number of the process.
          key: of the track. Spans of a track nest.
          name: that is shown.
        """
        if (pid, key) not in self._tracks:
            self._tracks[pid, key] = len(self._tracks) + 1
            self._named("thread_name", pid, self._tracks[pid, key], name)
        return self._tracks[pid, key]

    def _named(self, kind: str, pid: int, tid: int, name: str) -> None:
        place = {"ph": "M", "ts": 0, "pid": pid, "tid": tid}
        self._names.append({**place, "name": kind, "args": {"name": name}})

    def span(
        self, at: TracePoint, microseconds: float, name: str, args: Mapping[str, Any]
    ) -> None:
        """Adds a span.

        Args:
          at: its start.
          microseconds: its length.
          name: that is shown.
          args: shown with it.
        """
        event = {"ph": "X", "cat": self._category, "name": name, **at._asdict()}
        self._events.append({**event, "dur": microseconds, "args": dict(args)})

    def arrow(self, name: str, source: TracePoint, target: TracePoint) -> None:
        """Adds an arrow from a span to another.

        Args:
          name: that is shown.
          source: in the first span.
          target: in the other one, not earlier.
        """
        self._arrows += 1
        arrow = {"cat": self._category, "name": name, "id": self._arrows}
        self._events.append({"ph": "s", **arrow, **source._asdict()})
        self._events.append({"ph": "f", "bp": "e", **arrow, **target._asdict()})

    def to_json(self) -> dict[str, Any]:
        """Returns the content of the file."""
        return {"traceEvents": [*self._names, *self._events], "displayTimeUnit": "ms"}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the file atomically.

        Args:
          path: of the file, which is compressed if the path ends in ``.gz``.

        Raises:
          OSError: the file cannot be written.
        """
        text = json.dumps(self.to_json()).encode()
        if os.fspath(path).endswith(".gz"):
            text = gzip.compress(text, 6)
        files.write(path, text)
