"""Places follow the measured times of steps, and values stay the same."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np

import fxflow
from fxflow import dataflow
from fxflow import numpy as fnp
from fxflow.dataflow import Costs, Rates, replanning
from fxflow.dataflow.rates import Link, kind_of
from fxflow.dataflow.replanning import Replanned

DEVICES = fxflow.local_devices()[:3]


def model() -> Costs:
    rates = Rates({"elementwise": 1e9}, {"elementwise": 1e10})
    return Costs({kind_of(DEVICES[0]): rates}, {"cpu cpu": Link(1e-5, 1e10)})


def slow(x: Any) -> Any:
    """What takes 20 ms, which no type tells."""

    def wait(v: Any) -> Any:
        time.sleep(0.02)
        return np.asarray(v) + 1

    return fxflow.pure_callback(wait, x, x)


def branches(x: Any) -> Any:
    return slow(x) + slow(x * 2) + slow(x * 3)


def running(f: Any) -> Replanned:
    (found,) = f._caches.compiled.values()
    assert isinstance(found, Replanned)
    return found


def test_slow_fragments_go_to_devices_of_their_own_once_they_are_known() -> None:
    step = dataflow.jit(branches, devices=DEVICES, place=model())
    x = fnp.ones(4)
    assert len(step.plan(x).places) == 1  # by types there is nothing to do
    expected = [9.0] * 4
    for _ in range(replanning.FIRST[-1]):
        assert step(x).tolist() == expected
    running(step).wait()
    assert len(step.plan(x).places) == 3
    for _ in range(replanning.FIRST[-1]):
        assert step(x).tolist() == expected
    running(step).wait()
    plan = step.plan(x)
    assert len(plan.places) == 3
    assert "measured" in str(plan) and plan.measured is not None
    assert plan.estimate is not None
    assert 0.02 <= plan.seconds < plan.estimate.alone
    assert not any(t.name == "fxflow planning" for t in threading.enumerate())


def test_a_plan_that_is_right_is_kept() -> None:
    step = dataflow.jit(lambda x: fnp.sin(x) * 2, devices=DEVICES, place=model())
    x = fnp.ones(8)
    first = step(x)
    before = running(step).current
    for _ in range(replanning.FIRST[-1]):
        np.testing.assert_array_equal(step(x), first)
    running(step).wait()
    assert running(step).current is before


def test_steps_that_take_as_long_as_before_are_not_planned_again(
    monkeypatch: Any,
) -> None:
    monkeypatch.setattr(replanning, "EVERY", 1)
    step = dataflow.jit(branches, devices=DEVICES[:1], place=model())
    x = fnp.ones(4)
    for _ in range(replanning.FIRST[-1]):
        step(x)
    now, calls = running(step), []
    now.wait()
    monkeypatch.setattr(now, "_replan", lambda effort: calls.append(1) or now.plan)
    plan, cpu = now.plan, DEVICES[0]
    monkeypatch.setattr(now._costs, "error", lambda device: 10.0)
    step(x)
    now.wait()
    assert not calls
    monkeypatch.setattr(now._costs, "error", lambda device: -1.0)
    step(x)
    now.wait()
    assert calls and plan.places[0].device is cpu


def test_planning_that_fails_leaves_the_plan_and_says_so(monkeypatch: Any) -> None:
    step = dataflow.jit(branches, devices=DEVICES, place=model())
    x = fnp.ones(4)
    step(x)
    now = running(step)

    def fail(effort: int) -> Any:
        raise RuntimeError("out of ideas")

    monkeypatch.setattr(now, "_replan", fail)
    for _ in range(replanning.FIRST[-1]):
        assert step(x).tolist() == [9.0] * 4
    now.wait()
    assert "failed: out of ideas" in str(step.plan(x))


def test_a_fragment_that_fails_in_a_measured_step_raises_as_in_any() -> None:
    fails = []

    def f(x: Any) -> Any:
        def call(v: Any) -> Any:
            if fails:
                raise ValueError("not today")
            return np.asarray(v)

        return fxflow.pure_callback(call, x, x) + slow(x)

    step = dataflow.jit(f, devices=DEVICES, place=model())
    x = fnp.ones(4)
    step(x)
    fails.append(1)
    for _ in range(3):
        try:
            step(x)
        except ValueError as error:
            assert "not today" in str(error)
        else:
            raise AssertionError("no error")
    fails.clear()
    assert step(x).tolist() == [3.0] * 4
    running(step).wait()


def test_donated_arguments_and_the_short_path() -> None:
    step = dataflow.jit(
        lambda x: fnp.sin(x) + 1, devices=DEVICES, place=model(), donate_argnums=0
    )
    for _ in range(6):
        x = fnp.zeros(3)
        assert step(x).tolist() == [1.0] * 3
        assert x.is_deleted()
    running(step).wait()
