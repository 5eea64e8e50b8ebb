"""Schedules keep the laws of their papers; the virtual clock keeps its rules."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import pytest

from fxflow.dataflow.schedules import SCHEDULES, Timeline, schedule_named, simulate
from fxflow.errors import ArgumentError, PlacementError


@dataclass(eq=False)
class Work:
    index: int
    place: int
    level: int
    round: int
    kind: str
    after: tuple[int, ...] = ()


def pipeline(stages: int, rounds: int) -> list[Work]:
    """F, B and W of each stage in each round, by level."""
    names = [
        (level, r, kind, s)
        for r in range(rounds)
        for s in range(stages)
        for level, kind in (
            (s, "F"),
            (2 * stages - 1 - s, "B"),
            (2 * stages - 1 - s, "W"),
        )
    ]
    names.sort()
    at = {(kind, s, r): i for i, (_, r, kind, s) in enumerate(names)}
    works = []
    for i, (level, r, kind, s) in enumerate(names):
        before = (
            [("F", s - 1, r)] if kind == "F" else [("B" if kind == "W" else "F", s, r)]
        )
        if kind == "B":
            before.append(("B", s + 1, r))
        after = tuple(at[b] for b in before if b in at)
        works.append(Work(i, s, level, r, kind, after))
    return works


def check_rules(works: list[Work], timeline: Timeline) -> None:
    ended = {ran.work.index: ran.end for row in timeline.rows.values() for ran in row}
    assert len(ended) == len(works)
    for row in timeline.rows.values():
        for one, two in itertools.pairwise(row):
            assert two.start >= one.end
        for ran in row:
            assert all(ran.start >= ended[i] for i in ran.work.after)


@pytest.mark.parametrize("stages", [2, 4, 8])
@pytest.mark.parametrize("rounds", [8, 16, 32])
@pytest.mark.parametrize("name", sorted(SCHEDULES))
def test_bubbles_are_those_of_the_papers(name: str, stages: int, rounds: int) -> None:
    works = pipeline(stages, rounds)
    timeline = simulate(works, lambda w: 1.0, SCHEDULES[name])
    check_rules(works, timeline)
    gaps = (stages - 1) / 3 if name == "zb-h1" else stages - 1
    law = (rounds + gaps) / rounds
    # B before W does better than the law of B and W in one.
    assert timeline.seconds / (3 * rounds) <= law + 1e-9
    if name == "zb-h1":
        assert timeline.seconds / (3 * rounds) == pytest.approx(law)
    busy = 3 * rounds * stages
    assert timeline.bubble == pytest.approx(1 - busy / (stages * timeline.seconds))


@pytest.mark.parametrize("stages", [2, 4, 8])
@pytest.mark.parametrize("rounds", [8, 16, 32])
def test_two_chunks_on_each_device_halve_the_bubble(stages: int, rounds: int) -> None:
    works = pipeline(2 * stages, rounds)
    for work in works:
        work.place %= stages
    law = (rounds + (stages - 1) / 2) / rounds
    for name in ("1f1b", "zb-h1"):
        timeline = simulate(works, lambda w: 1.0, SCHEDULES[name])
        check_rules(works, timeline)
        assert timeline.seconds / (6 * rounds) <= 1.04 * law


@pytest.mark.parametrize("name", ["1f1b", "zb-h1"])
def test_few_rounds_are_in_memory_at_once(name: str) -> None:
    works = pipeline(4, 16)
    timeline = simulate(works, lambda w: 1.0, SCHEDULES[name])
    for stage, row in timeline.rows.items():
        begun: set[int] = set()
        most = 0
        for ran in row:
            (begun.add if ran.work.kind == "F" else begun.discard)(ran.work.round)
            most = max(most, len(begun))
        assert most == 4 - stage


def test_gpipe_runs_all_forwards_first() -> None:
    timeline = simulate(pipeline(3, 5), lambda w: 1.0, SCHEDULES["gpipe"])
    kinds = [ran.work.kind for ran in timeline.rows[0]]
    assert kinds[:5] == ["F"] * 5 and "F" not in kinds[5:]


def test_a_given_order_is_kept() -> None:
    works = [Work(0, 0, 0, 0, "F"), Work(1, 1, 1, 0, "F", (0,)), Work(2, 1, 0, 0, "F")]
    timeline = simulate(works, lambda w: 2.0)
    assert [ran.work.index for ran in timeline.rows[1]] == [1, 2]
    assert timeline.seconds == 6
    timeline = simulate(works, lambda w: 2.0, SCHEDULES["breadth"])
    assert [ran.work.index for ran in timeline.rows[1]] == [2, 1]
    assert timeline.seconds == 4


def test_links_send_one_value_at_a_time() -> None:
    works = [
        Work(0, 0, 0, 0, "F"),
        Work(1, 0, 0, 0, "F"),
        Work(2, 1, 1, 0, "F", (0,)),
        Work(3, 1, 1, 0, "F", (1,)),
        Work(4, 2, 1, 0, "F", (1,)),
    ]
    timeline = simulate(works, lambda w: 1.0, sent=lambda a, b: 10.0)
    starts = {r.work.index: r.start for row in timeline.rows.values() for r in row}
    assert starts == {0: 0, 1: 1, 2: 11, 3: 21, 4: 12}


def test_what_waits_for_itself_is_an_error() -> None:
    works = [Work(0, 0, 0, 0, "F", (1,)), Work(1, 1, 0, 0, "F", (0,))]
    for schedule in (None, SCHEDULES["gpipe"], SCHEDULES["1f1b"]):
        with pytest.raises(PlacementError, match="wait for each other"):
            simulate(works, lambda w: 1.0, schedule)


def test_limits_that_keep_everything_from_running_are_relaxed() -> None:
    # Each round needs the forward of the next: no number of rounds is right but all.
    works = [Work(i, 0, i, i, "F") for i in range(5)]
    works += [Work(5 + i, 0, 9, i, "B", (i, 4)) for i in range(5)]
    timeline = simulate(works, lambda w: 1.0, SCHEDULES["1f1b"])
    check_rules(works, timeline)


def test_an_unknown_schedule_names_those_that_there_are() -> None:
    with pytest.raises(ArgumentError, match="'1f1b'"):
        schedule_named("2f2b")
    with pytest.raises(ArgumentError, match="no schedule None"):
        schedule_named(None)


def test_a_picture_has_a_row_for_each_place() -> None:
    timeline = simulate(pipeline(2, 2), lambda w: 1.0, SCHEDULES["1f1b"])
    assert timeline.seconds == 8
    assert timeline.to_text(width=8).splitlines() == ["0  fF.bw.BW", "1  .fbwFBW."]
    assert Timeline({}).to_text() == "" and Timeline({}).bubble == 0


def test_a_hundred_thousand_fragments_take_seconds() -> None:
    works = pipeline(64, 520)
    timeline = simulate(works, lambda w: 1.0, SCHEDULES["zb-h1"])
    assert len(works) == 99_840
    assert timeline.seconds / (3 * 520) == pytest.approx((520 + 21) / 520)
