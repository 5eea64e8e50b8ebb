"""Trace events follow Chrome's format."""

import gzip
import json
from pathlib import Path

from fxflow.devices.trace_events import TraceEvents, TracePoint


def test_spans_and_arrows_have_their_tracks(tmp_path: Path) -> None:
    events = TraceEvents("test")
    one, two = events.process("a", "first"), events.process("b", "second")
    assert events.process("a", "first") == one != two
    track, other = events.track(one, 0, "t"), events.track(two, 0, "u")
    assert events.track(one, 0, "t") == track != other
    start, end = TracePoint(one, track, 1.5), TracePoint(two, other, 4.0)
    events.span(start, 2.0, "work", {"bytes": 8})
    events.arrow("sent", start, end)
    found = events.to_json()["traceEvents"]
    named = [(e["name"], e["args"]["name"]) for e in found if e["ph"] == "M"]
    assert named == [
        ("process_name", "first"),
        ("process_name", "second"),
        ("thread_name", "t"),
        ("thread_name", "u"),
    ]
    (span,) = (e for e in found if e["ph"] == "X")
    assert (span["ts"], span["dur"], span["name"]) == (1.5, 2.0, "work")
    assert span["cat"] == "test" and span["args"] == {"bytes": 8}
    arrow = [(e["ph"], e["id"], e["pid"], e["ts"]) for e in found if e["ph"] in "sf"]
    assert arrow == [("s", 1, one, 1.5), ("f", 1, two, 4.0)]
    events.save(tmp_path / "t.json")
    events.save(tmp_path / "t.json.gz")
    text = (tmp_path / "t.json").read_text()
    assert json.loads(text)["traceEvents"] == found
    assert gzip.decompress((tmp_path / "t.json.gz").read_bytes()).decode() == text
