"""The virtual clock: one work at a time on a place, links that queue, no cycles."""

from __future__ import annotations

import pytest

from fxflow.dataflow.schedules import SCHEDULES
from fxflow.dataflow.timelines import Timeline, simulate, trace_events
from fxflow.errors import PlacementError
from tests.dataflow.works import FakeWork, check_rules, pipeline


def test_a_given_order_is_kept() -> None:
    works = [
        FakeWork(0, 0, 0, 0, "F"),
        FakeWork(1, 1, 1, 0, "F", (0,)),
        FakeWork(2, 1, 0, 0, "F"),
    ]
    timeline = simulate(works, lambda w: 2.0)
    assert [ran.work.index for ran in timeline.rows[1]] == [1, 2]
    assert timeline.seconds == 6
    timeline = simulate(works, lambda w: 2.0, key=lambda w: w.level)
    assert [ran.work.index for ran in timeline.rows[1]] == [2, 1]
    assert timeline.seconds == 4
    timeline = simulate(works, lambda w: 2.0, rows={1: [works[2], works[1]]})
    assert [ran.work.index for ran in timeline.rows[1]] == [2, 1]


def test_what_is_in_no_row_runs_as_soon_as_it_can() -> None:
    works = [
        FakeWork(0, 0, 0, 0, "F"),
        FakeWork(1, 0, 0, 0, "F"),
        FakeWork(2, 0, 0, 0, "O", (1,)),
        FakeWork(3, 0, 0, 0, "F"),
    ]
    timeline = simulate(works, lambda w: 1.0, rows={0: [works[1], works[0], works[3]]})
    assert [ran.work.index for ran in timeline.rows[0]] == [1, 2, 0, 3]


def test_links_send_one_value_at_a_time() -> None:
    works = [
        FakeWork(0, 0, 0, 0, "F"),
        FakeWork(1, 0, 0, 0, "F"),
        FakeWork(2, 1, 1, 0, "F", (0,)),
        FakeWork(3, 1, 1, 0, "F", (1,)),
        FakeWork(4, 2, 1, 0, "F", (1,)),
    ]
    timeline = simulate(works, lambda w: 1.0, sent=lambda a, b: 10.0)
    starts = {r.work.index: r.start for row in timeline.rows.values() for r in row}
    assert starts == {0: 0, 1: 1, 2: 11, 3: 21, 4: 12}


def test_what_waits_for_itself_is_an_error() -> None:
    works = [FakeWork(0, 0, 0, 0, "F", (1,)), FakeWork(1, 1, 0, 0, "F", (0,))]
    for key in (None, lambda w: w.index):
        with pytest.raises(PlacementError) as caught:
            simulate(works, lambda w: 1.0, key=key)
        assert str(caught.value).splitlines()[1:] == [
            "  F0 waits for x1 of F1",
            "  F1 waits for x0 of F0",
        ]


def test_an_order_that_cannot_be_run_is_an_error_with_the_cycle() -> None:
    works = pipeline(2, 2)
    named = {w.describe(): w for w in works}
    rows = {
        0: [named[a] for a in ("0F0", "0B0", "0F1", "0B1", "0W0", "0W1")],
        1: [named[a] for a in ("1F0", "1F1", "1B0", "1B1", "1W0", "1W1")],
    }
    with pytest.raises(PlacementError) as caught:
        simulate(works, lambda w: 1.0, rows=rows)
    lines = str(caught.value).splitlines()
    assert lines[0] == "the order cannot be run: these fragments wait for each other"
    assert sorted(lines[1:]) == [
        "  0B0 waits for x4 of 1B0",
        "  0F1 comes after 0B0 in the order of its device",
        "  1B0 comes after 1F1 in the order of its device",
        "  1F1 waits for x1 of 0F1",
    ]


def test_works_that_take_no_time_stay_in_order() -> None:
    works = [
        FakeWork(0, 0, 0, 0, "F", (2,)),
        FakeWork(1, 0, 0, 0, "F", (0,)),
        FakeWork(2, 1, 0, 0, "O", (3,)),
        FakeWork(3, 1, 0, 0, "O"),
    ]
    timeline = simulate(works, lambda w: 0.0, key=lambda w: w.index)
    assert [work.index for work in timeline.works] == [3, 2, 0, 1]
    assert timeline.seconds == 0


def test_measured_times_are_those_of_a_stage_and_kind() -> None:
    works = pipeline(2, 3)
    timeline = SCHEDULES["1f1b"].order(works, lambda w: 1.0 + w.microbatch)
    for work in works:
        assert timeline.seconds_of(work) == pytest.approx(2.0)
    alone = FakeWork(0, 0, 0, 0, "O")
    timeline = simulate([alone], lambda w: 4.0)
    assert timeline.seconds_of(alone) == 4
    with pytest.raises(KeyError):
        timeline.seconds_of(works[1])


def test_a_picture_has_a_row_for_each_place() -> None:
    timeline = SCHEDULES["1f1b"].order(pipeline(2, 2), lambda w: 1.0)
    assert timeline.seconds == 8
    assert timeline.to_text(width=8).splitlines() == ["0  fF.bw.BW", "1  .fbwFBW."]
    assert Timeline({}).to_text() == "" and Timeline({}).bubble == 0


def test_activations_are_held_from_forward_to_the_last_backward() -> None:
    works = pipeline(2, 4)
    timeline = SCHEDULES["gpipe"].order(works, lambda w: 1.0)
    check_rules(works, timeline)
    assert timeline.activations == {0: 4, 1: 4}
    forward = [w for w in works if w.kind == "F"]
    assert simulate(forward, lambda w: 1.0).activations == {0: 0, 1: 0}


def test_trace_events_have_a_track_for_each_place_and_an_arrow_for_each_value() -> None:
    works = pipeline(2, 2)
    timeline = SCHEDULES["1f1b"].order(works, lambda w: 1e-3)
    events = trace_events({"simulated": timeline}).to_json()["traceEvents"]
    spans = {e["args"]["fragment"]: e for e in events if e["ph"] == "X"}
    assert len(spans) == len(works)
    for row in timeline.rows.values():
        for ran in row:
            span = spans[ran.work.index]
            assert span["ts"] == pytest.approx(1e6 * ran.start)
            assert span["dur"] == pytest.approx(1e3)
            assert span["name"] == ran.work.describe()
    assert len({span["tid"] for span in spans.values()}) == 2
    sent = [w for w in works for i in w.after if works[i].place != w.place]
    assert sum(e["ph"] == "s" for e in events) == len(sent) == 4
    ends = {e["id"]: e["ts"] for e in events if e["ph"] == "f"}
    assert all(ends[e["id"]] >= e["ts"] - 1e-6 for e in events if e["ph"] == "s")


@pytest.mark.slow
def test_a_hundred_thousand_fragments_take_seconds() -> None:
    works = pipeline(64, 520)
    timeline = SCHEDULES["zb-h1"].order(works, lambda w: 1.0)
    assert len(works) == 99_840
    assert timeline.seconds / (3 * 520) == pytest.approx((520 + 21) / 520)


def test_a_timeline_is_shown_as_a_table() -> None:
    works = [FakeWork(i, i % 2, 0, i, "F") for i in range(30)]
    timeline = simulate(works, lambda w: 1e-3)
    assert repr(timeline) == "<Timeline of 30 fragments on 2 devices: 15 ms, 0% idle>"
    lines = str(timeline).splitlines()
    assert lines[0] == "15 ms, 0% idle"
    assert lines[1].split() == ["start", "end", "device", "fragment"]
    assert lines[4].split()[:4] == ["1", "ms", "2", "ms"]
    assert lines[-1] == "… 10 more: to_table(shown=None)"
    assert len(timeline.to_table(shown=None).splitlines()) == 32


def test_rows_are_put_in_order() -> None:
    works = [FakeWork(0, 1, 0, 0, "F"), FakeWork(1, 0, 0, 0, "F")]
    timeline = simulate(works, lambda w: 1.0)
    assert list(timeline.rows) == [1, 0]
    assert list(timeline.in_order(lambda place: place).rows) == [0, 1]
