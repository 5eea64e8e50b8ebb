"""Gantt charts show each fragment at its time."""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ET
from typing import Any

import pytest

from fxflow.dataflow.gantt import gantt
from fxflow.dataflow.schedules import SCHEDULES
from fxflow.dataflow.timelines import Timeline
from tests.dataflow.works import pipeline

SVG = "{http://www.w3.org/2000/svg}"


def bars(picture: str) -> list[tuple[str, float, float, float]]:
    """Label, left end, top and width of each bar."""
    found = []
    for rect in ET.fromstring(picture).iter(f"{SVG}rect"):
        title = rect.find(f"{SVG}title")
        if title is not None and title.text:
            x, y, width = (float(rect.attrib[k]) for k in ("x", "y", "width"))
            found.append((title.text.split(":")[0], x, y, width))
    return found


def chart(seconds: float = 1.0) -> Timeline:
    return SCHEDULES["1f1b"].order(pipeline(2, 3), lambda work: seconds)


def drawn(*charts: tuple[str, Timeline]) -> str:
    return gantt(charts, lambda place: f"device {place}", lambda work: work.describe())


def test_bars_are_as_long_as_the_time_and_do_not_overlap() -> None:
    timeline = chart()
    found = bars(drawn(("simulated", timeline)))
    assert len(found) == 18 == len({label for label, *_ in found})
    widths = [width for *_, width in found]
    assert max(widths) == pytest.approx(min(widths), abs=0.02)
    rows: dict[float, list[Any]] = {}
    for _, x, y, width in found:
        rows.setdefault(y, []).append((x, x + width))
    assert len(rows) == 2
    for row in rows.values():
        row.sort()
        assert all(b[0] >= a[1] - 0.02 for a, b in itertools.pairwise(row))
    at = {label: x for label, x, *_ in found}
    starts = {r.work.describe(): r.start for row in timeline.rows.values() for r in row}
    assert sorted(at, key=at.__getitem__) == sorted(
        at, key=lambda a: (starts[a], at[a])
    )


def test_charts_share_their_scale() -> None:
    picture = drawn(("simulated", chart(1e-3)), ("measured <one>", chart(2e-3)))
    found = bars(picture)
    first, second = found[0], found[18]
    assert second[3] == pytest.approx(2 * first[3], rel=0.01) and second[2] > first[2]
    texts = [e.text for e in ET.fromstring(picture).iter(f"{SVG}text")]
    assert "simulated: 11 ms, 18% idle" in texts
    assert "measured <one>: 22 ms, 18% idle" in texts
    assert {"forward", "backward", "gradients of weights"} <= set(texts)
    assert "device 0" in texts and "other" not in texts


def test_labels_need_room() -> None:
    many = SCHEDULES["1f1b"].order(pipeline(2, 200), lambda work: 1.0)
    texts = [e.text for e in ET.fromstring(drawn(("a", many))).iter(f"{SVG}text")]
    assert "0F0" not in texts
    texts = [e.text for e in ET.fromstring(drawn(("a", chart()))).iter(f"{SVG}text")]
    assert "0F0" in texts


def test_nothing_to_show() -> None:
    assert not bars(drawn()) and not bars(drawn(("empty", Timeline({}))))
