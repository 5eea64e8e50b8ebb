"""A loop over microbatches becomes a pipeline of balanced stages, without scopes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import dataflow, lax, train
from fxflow import numpy as fnp
from fxflow.dataflow import Costs, Plan, Rates
from fxflow.dataflow.rates import Link, kind_of
from fxflow.dataflow.schedules import SCHEDULES

DEVICES = fxflow.local_devices()[:4]
RATES = Rates(
    {"dot": 1e9, "elementwise": 1e9}, {"elementwise": 1e10}, operation=1e-7, error=0.05
)
RNG = np.random.default_rng(0)


def model(**more: Any) -> Costs:
    return Costs({kind_of(DEVICES[0]): RATES}, {"cpu cpu": Link(1e-6, 1e11)}, **more)


def layers(params: Any, x: Any) -> Any:
    for w, b in params:
        x = fnp.tanh(x @ w + b)
    return fnp.mean(x**2)


def parameters(*widths: int) -> Any:
    return [
        (RNG.normal(size=pair).astype("f4") * 0.1, np.zeros(pair[1], "f4"))
        for pair in itertools.pairwise(widths)
    ]


X = RNG.normal(size=(128, 64)).astype("f4")


def near(a: Any, b: Any) -> None:
    fxflow.tree.map(
        lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-6), a, b
    )


def stage_of(plan: Plan, result: int) -> int:
    place = plan.place_of(plan.graph.outputs[result])  # type: ignore[arg-type]
    assert place is not None
    return DEVICES.index(place.device)


def test_layers_are_spread_evenly_and_keep_their_gradients() -> None:
    f = train.accumulate_gradients(layers, 8)
    params = parameters(*[64] * 9)
    step = dataflow.jit(f, devices=DEVICES, place=model())
    plan = step.plan(params, X)
    # Results are the loss, and a weight's and a bias's gradient for each layer.
    assert [stage_of(plan, 1 + 2 * i) for i in range(8)] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert [stage_of(plan, 2 + 2 * i) for i in range(8)] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert plan.schedule == "1f1b" and plan.estimate is not None
    # By the law of 1F1B, (m + p - 1) / m of the ideal.
    assert plan.seconds < 1.1 * (8 + 3) / 8 * plan.estimate.bound
    assert plan.seconds < 0.5 * plan.estimate.alone
    near(step(params, X), fxflow.jit(f)(params, X))


def test_stages_of_unequal_layers_are_balanced_by_time() -> None:
    # One wide layer takes as long as all others together.
    params = parameters(64, 64, 64, 64, 64, 256, 64)
    plan = dataflow.jit(
        train.accumulate_gradients(layers, 8), devices=DEVICES[:2], place=model()
    ).plan(params, X)
    stages = [stage_of(plan, 1 + 2 * i) for i in range(6)]
    assert stages == sorted(stages)
    assert stages[:4] == [0, 0, 0, 0] and stages[5] == 1


def test_a_loop_without_derivatives_is_a_pipeline_too() -> None:
    ws = [w for w, _ in parameters(*[64] * 5)]

    def infer(ws: Any, xs: Any) -> Any:
        def one(total: Any, x: Any) -> Any:
            for w in ws:
                x = fnp.tanh(x @ w)
            return total + 1, x

        return lax.scan(one, 0, xs)

    xs = X.reshape(8, 16, 64)
    step = dataflow.jit(infer, devices=DEVICES, place=model())
    assert len(step.plan(ws, xs).places) == 4
    near(step(ws, xs), fxflow.jit(infer)(ws, xs))


def test_rounds_that_wait_for_each_other_stay_a_loop() -> None:
    def recur(w: Any, x: Any) -> Any:
        def one(c: Any, _: Any) -> Any:
            for _ in range(4):
                c = fnp.tanh(c @ w)
            return c, None

        return lax.scan(one, x, None, length=8)[0]

    w = parameters(64, 64)[0][0]
    plan = dataflow.jit(recur, devices=DEVICES, place=model()).plan(w, X)
    assert len(plan.fragments) == 1


def test_parameters_that_one_device_cannot_hold_are_spread() -> None:
    f = train.accumulate_gradients(layers, 4)
    params = parameters(*[64] * 9)
    # Each weight has 16 KB, and its gradient: four layers and their values fit.
    capacity = 250_000
    plan = dataflow.jit(f, devices=DEVICES[:1], place=model()).plan(params, X)
    assert max(plan.peak_bytes().values()) > capacity
    costs = model(capacity=capacity)
    plan = dataflow.jit(f, devices=DEVICES, place=costs).plan(params, X)
    assert len(plan.places) > 1
    assert max(plan.peak_bytes().values()) <= capacity


def test_the_order_counts_on_links_that_take_time() -> None:
    f = train.accumulate_gradients(layers, 4)
    slow = Costs({kind_of(DEVICES[0]): RATES}, {"cpu cpu": Link(3e-4, 1e11)})
    params = parameters(*[64] * 5)
    plan = dataflow.jit(f, devices=DEVICES[:2], place=slow).plan(params, X)
    fast = dataflow.jit(f, devices=DEVICES[:2], place=model()).plan(params, X)
    assert plan.seconds > fast.seconds
    # What the schedule expected is what the plan's own simulation finds.
    expected = SCHEDULES["1f1b"].order(
        plan.fragments, slow.fragment_seconds, slow.sent(plan.edges)
    )
    assert plan.seconds == pytest.approx(expected.seconds, rel=0.05)


def test_tied_weights_get_one_gradient() -> None:
    def tied(params: Any, x: Any) -> Any:
        table, w = params
        h = fnp.tanh(x @ table)
        for _ in range(2):
            h = fnp.tanh(h @ w)
        return fnp.mean((h @ table.T) ** 2)

    params = (parameters(64, 64)[0][0], parameters(64, 64)[0][0])
    f = train.accumulate_gradients(tied, 4)
    step = dataflow.jit(f, devices=DEVICES[:2], place=model())
    near(step(params, X), fxflow.jit(f)(params, X))


@pytest.mark.parametrize("schedule", ["gpipe", "zb-h1", "interleaved", "zb-v"])
def test_stages_found_by_cost_follow_any_schedule(schedule: str) -> None:
    f = train.accumulate_gradients(layers, 4)
    params = parameters(*[64] * 5)
    step = dataflow.jit(f, devices=DEVICES[:2], place=model(), schedule=schedule)
    plan = step.plan(params, X)
    assert len(plan.places) == 2 and plan.schedule == schedule
