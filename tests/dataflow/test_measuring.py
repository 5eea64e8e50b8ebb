"""Steps are measured fragment by fragment."""

from __future__ import annotations

import json
import time
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

import fxflow
from fxflow import dataflow
from fxflow import numpy as fnp
from fxflow.dataflow import on
from fxflow.errors import ArgumentError


def slow(x: Any) -> Any:
    return fxflow.pure_callback(lambda v: (time.sleep(0.02), v)[1], x, x)


def f(x: Any) -> Any:
    with on("/device:cpu:1"):
        x = slow(fnp.sin(x))
    with on("/device:cpu:2"):
        x = slow(x)
    with on("/device:cpu:1"):
        return slow(x) + 1


def test_a_measured_step_is_a_timeline(tmp_path: Path) -> None:
    x = fnp.ones(3)
    step = dataflow.jit(f)
    timeline = step.measure(x)
    plan = step.plan(x)
    ran = {r.work.index: r for row in timeline.rows.values() for r in row}
    assert list(timeline.rows) == plan.places and len(ran) == 3
    assert min(r.start for r in ran.values()) == 0
    for fragment in plan.fragments:
        here = ran[fragment.index]
        assert here.work.place is fragment.place
        assert here.end - here.start >= 0.02
        assert all(here.start >= ran[i].end for i in fragment.after)
    picture = ET.fromstring(plan.to_svg(timeline))
    titles = [e.text or "" for e in picture.iter() if e.get("class") == "title"]
    assert [title.split(":")[0] for title in titles] == ["simulated", "measured"]
    plan.save_trace(tmp_path / "step.json", timeline)
    events = json.loads((tmp_path / "step.json").read_text())["traceEvents"]
    names = [e["args"]["name"] for e in events if e["name"] == "process_name"]
    assert names == ["simulated", "measured"]
    assert sum(e["ph"] == "X" for e in events) == 6


def test_large_fragments_are_measured_on_their_threads() -> None:
    def g(x: Any) -> Any:
        for i in (1, 2, 3):
            with on(f"/device:cpu:{i}"):
                x = fnp.sin(x) @ x
        return x

    step = dataflow.jit(g)
    timeline = step.measure(fnp.ones((64, 64)))
    assert [len(row) for row in timeline.rows.values()] == [1, 1, 1]
    assert 0 < timeline.seconds < 60


def test_references_are_not_measured() -> None:
    def g(ref: Any, x: Any) -> Any:
        with on("/device:cpu:1"):
            ref[...] += x

    with pytest.raises(ArgumentError, match="measure: g takes references"):
        dataflow.jit(g).measure(fxflow.new_ref(fnp.ones(3)), 1.0)
