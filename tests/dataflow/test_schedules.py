"""Schedules keep the laws of their papers, and the bounds on activations."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import dataflow, train
from fxflow import numpy as fnp
from fxflow.dataflow import on, stages
from fxflow.dataflow.schedules import SCHEDULES, Search, loops, schedule_of, vee
from fxflow.errors import ArgumentError
from tests.dataflow.works import FakeWork, check_rules, pipeline

SIZES = [(p, m) for p in (2, 4, 8) for m in (8, 16, 32)]


def unit(work: Any) -> float:
    return 1.0


@pytest.mark.parametrize(("devices", "rounds"), SIZES)
@pytest.mark.parametrize("name", ["breadth", "gpipe", "1f1b", "zb-h1"])
def test_bubbles_are_those_of_the_papers(name: str, devices: int, rounds: int) -> None:
    works = pipeline(devices, rounds)
    timeline = SCHEDULES[name].order(works, unit)
    check_rules(works, timeline)
    gaps = (devices - 1) / 3 if name == "zb-h1" else devices - 1
    law = (rounds + gaps) / rounds
    # B before W does better than the law of B and W in one.
    assert timeline.seconds / (3 * rounds) <= law + 1e-9
    if name == "zb-h1":
        assert timeline.seconds / (3 * rounds) == pytest.approx(law)
    busy = 3 * rounds * devices
    assert timeline.bubble == pytest.approx(1 - busy / (devices * timeline.seconds))


@pytest.mark.parametrize(("devices", "rounds"), SIZES)
def test_two_stages_on_each_device_halve_the_bubble(devices: int, rounds: int) -> None:
    works = pipeline(2 * devices, rounds, loops, devices)
    timeline = SCHEDULES["interleaved"].order(works, unit)
    check_rules(works, timeline)
    law = (rounds + (devices - 1) / 2) / rounds
    assert timeline.seconds / (6 * rounds) <= law
    for place, most in timeline.activations.items():
        assert most <= 2 * (devices - place - 1) + devices + 1


@pytest.mark.parametrize("part", [1.0, 0.1])  # sums of 0.1 are rounded
@pytest.mark.parametrize(("devices", "rounds"), SIZES)
def test_the_shape_of_a_v_has_no_bubble(devices: int, rounds: int, part: float) -> None:
    works = pipeline(2 * devices, rounds, vee, devices)
    timeline = SCHEDULES["zb-v"].order(works, lambda work: part)
    check_rules(works, timeline)
    # The last device has its first input after `devices - 1` forward parts, and is
    # busy from then on: no schedule is shorter.
    assert timeline.seconds / part == pytest.approx(6 * rounds + devices - 1)
    assert max(timeline.activations.values()) <= 2 * devices


@pytest.mark.parametrize("rounds", [4, 16])
def test_few_activations_are_held_at_once(rounds: int) -> None:
    works = pipeline(4, rounds)
    most = {n: SCHEDULES[n].order(works, unit).activations for n in SCHEDULES}
    assert most["1f1b"] == {0: 4, 1: 3, 2: 2, 3: 1}
    assert max(most["zb-h1"].values()) <= 4
    assert most["gpipe"] == dict.fromkeys(range(4), rounds)


@pytest.mark.parametrize("seed", range(30))
def test_bounds_hold_for_unequal_stages(seed: int) -> None:
    draw = random.Random(seed)
    devices, rounds = draw.choice([2, 3, 4, 5]), draw.choice([3, 8, 13])
    for name, chunks in (("1f1b", 1), ("zb-h1", 1), ("interleaved", 3), ("zb-v", 2)):
        rule = SCHEDULES[name]
        works = pipeline(chunks * devices, rounds, rule.device, devices)
        times = {
            (stage, kind): draw.choice([0.1, 0.5, 1.0, 1.0, 2.0, 4.0])
            for stage in range(chunks * devices)
            for kind in "FBW"
        }
        timeline = rule.order(works, lambda w, t=times: t[w.stage, w.kind])  # type: ignore[misc]
        check_rules(works, timeline)
        assert rule.held is not None
        for place, most in timeline.activations.items():
            assert most <= rule.held(place, devices, chunks), name


def test_the_devices_of_stages() -> None:
    def places(name: str, stages: int, devices: int) -> list[int]:
        device = SCHEDULES[name].device
        return [device(s, stages, devices) for s in range(stages)]

    assert places("1f1b", 4, 2) == [0, 0, 1, 1]
    assert places("interleaved", 4, 2) == [0, 1, 0, 1]
    assert places("zb-v", 4, 2) == [0, 1, 1, 0]
    assert places("zb-v", 8, 2) == [0, 1, 1, 0, 0, 1, 1, 0]
    # More devices than a V needs.
    assert places("zb-v", 4, 8) == [0, 1, 1, 0]
    assert places("interleaved", 4, 8) == [0, 1, 2, 3]


def test_gpipe_runs_all_forwards_first() -> None:
    timeline = SCHEDULES["gpipe"].order(pipeline(3, 5), unit)
    kinds = [ran.work.kind for ran in timeline.rows[0]]
    assert kinds[:5] == ["F"] * 5 and "F" not in kinds[5:]


def test_bounds_that_keep_everything_from_running_are_relaxed() -> None:
    # Each round needs the forward of the next: no number of rounds is right but all.
    works = [FakeWork(i, 0, i, i, "F") for i in range(5)]
    works += [FakeWork(5 + i, 0, 9, i, "B", (i, 4)) for i in range(5)]
    timeline = SCHEDULES["1f1b"].order(works, unit)
    check_rules(works, timeline)


# -- search ----------------------------------------------------------------------------


def drawn(seed: int) -> tuple[list[FakeWork], Any]:
    """A pipeline of random stage times."""
    draw = random.Random(seed)
    devices, rounds = draw.choice([2, 3, 4]), draw.choice([4, 8])
    chunks = draw.choice([1, 2])
    device = draw.choice([loops, vee]) if chunks > 1 else None
    works = pipeline(chunks * devices, rounds, device, devices)
    times = {
        (stage, kind): draw.choice([0.5, 1.0, 1.0, 2.0, 4.0])
        for stage in range(chunks * devices)
        for kind in "FBW"
    }
    return works, lambda work: times[work.stage, work.kind]


@pytest.mark.parametrize("seed", range(12))
def test_a_search_is_never_worse_than_a_named_schedule(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fxflow.dataflow.schedules.SEARCHED", 5_000)
    works, seconds = drawn(seed)
    timeline = Search().order(works, seconds)
    check_rules(works, timeline)
    named = [rule.order(works, seconds).seconds for rule in SCHEDULES.values()]
    assert timeline.seconds <= min(named) + 1e-9
    busy = [sum(r.end - r.start for r in row) for row in timeline.rows.values()]
    assert timeline.seconds >= max(busy)


def test_a_search_balances_unequal_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fxflow.dataflow.schedules.SEARCHED", 20_000)
    works = pipeline(4, 8)
    seconds = lambda work: (1.0, 1.0, 1.0, 2.0)[work.stage]
    timeline = Search().order(works, seconds)
    # The last stage is busy for 48 s; its first input comes after 3 s.
    assert timeline.seconds <= 1.02 * (48 + 3)
    assert Search().order(works, seconds).rows == timeline.rows


# -- the argument ----------------------------------------------------------------------


def test_an_unknown_schedule_names_those_that_there_are() -> None:
    with pytest.raises(ArgumentError, match=r"'1f1b'.*'search', a dataflow\.Schedule"):
        schedule_of("2f2b")
    with pytest.raises(ArgumentError, match="no schedule None"):
        schedule_of(None)
    for name in (*SCHEDULES, "search"):
        assert schedule_of(name).name == name


PARAMS = [np.full((32, 32), 0.1 * (i + 1), "f4") for i in range(4)]
X = np.ones((128, 32), "f4")


def network(params: Any, x: Any) -> Any:
    for stage, w in zip(stages(len(params)), params, strict=True):
        with on(stage):
            x = fnp.tanh(x @ w)
    return (x**2).mean()


def test_a_sort_key_is_a_schedule() -> None:
    def late_first(fragment: Any) -> Any:
        return (fragment.kind != "F", -fragment.round)

    step = train.accumulate_gradients(network, 4)
    devices = fxflow.local_devices()[:4]
    split = dataflow.jit(step, devices=devices, schedule=late_first)
    plan = split.plan(PARAMS, X)
    assert "schedule: sort key" in str(plan) and "late_first" in str(plan)
    first = [f for f in plan.fragments if f.stage == 0 and f.kind == "F"]
    assert [f.microbatch for f in first[1:]] == [3, 2, 1]
    fxflow.tree.map(
        np.testing.assert_array_equal, split(PARAMS, X), fxflow.jit(step)(PARAMS, X)
    )
    mixed = dataflow.jit(
        step, devices=devices, schedule=lambda f: (1,) if f.kind == "F" else 1
    )
    with pytest.raises(ArgumentError, match="keys are compared by <"):
        mixed.plan(PARAMS, X)


@pytest.mark.parametrize("name", ["interleaved", "zb-v", "search"])
def test_named_schedules_give_the_bits_of_jit(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fxflow.dataflow.schedules.SEARCHED", 2_000)
    step = train.accumulate_gradients(network, 4)
    devices = fxflow.local_devices()[:2]
    split = dataflow.jit(step, devices=devices, schedule=name)
    fxflow.tree.map(
        np.testing.assert_array_equal, split(PARAMS, X), fxflow.jit(step)(PARAMS, X)
    )
    plan = split.plan(PARAMS, X)
    places = {f.stage: devices.index(f.place.device) for f in plan.fragments}
    want = {"interleaved": [0, 1, 0, 1], "zb-v": [0, 1, 1, 0], "search": [0, 0, 1, 1]}
    assert [places[s] for s in range(4)] == want[name]
    kinds = {f.kind for f in plan.fragments}
    assert {"F", "B", "W"} <= kinds
