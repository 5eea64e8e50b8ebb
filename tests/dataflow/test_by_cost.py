"""Placement by cost: faster by its own model, within scopes and memory."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import dataflow, lax
from fxflow import numpy as fnp
from fxflow.dataflow import Costs, Plan, Rates, by_cost, colocate, on
from fxflow.dataflow.assignment import scheduled
from fxflow.dataflow.placing import Places
from fxflow.dataflow.rates import Link, kind_of
from fxflow.dataflow.tasks.devices import ClusterDevices
from fxflow.errors import ArgumentError, PlacementError
from fxflow.lax.remat import CALLS, inlined
from tests.dataflow import models

DEVICES = fxflow.local_devices()[:4]
KIND = kind_of(DEVICES[0])
#: As if each CPU device had a core of its own.
RATES = Rates({"dot": 1e9, "elementwise": 1e9}, {"elementwise": 1e10})
LINKS = {"cpu cpu": Link(1e-5, 1e10)}


def model(**more: Any) -> Costs:
    return Costs({KIND: RATES}, LINKS, **more)


def plan_of(f: Any, *args: Any, costs: Costs | None = None, **options: Any) -> Plan:
    given = {"devices": DEVICES, **options}
    return dataflow.jit(f, place=costs or model(), **given).plan(*args)


def branches(x: Any, ws: Any) -> Any:
    rows = []
    for w in ws:
        h = x
        for _ in range(3):
            h = fnp.tanh(h @ w)
        rows.append(h)
    return sum(rows[1:], rows[0])


X = np.random.default_rng(0).normal(size=(64, 64)).astype("f4")
WS = [X * 0.1 * i for i in range(1, 5)]


def near(a: Any, b: Any) -> None:
    fxflow.tree.map(
        lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-5), a, b
    )


def test_branches_run_on_devices_of_their_own() -> None:
    plan = plan_of(branches, X, WS)
    assert len(plan.places) == 4
    assert plan.estimate is not None
    assert plan.seconds < 0.3 * plan.estimate.alone
    assert plan.estimate.bound <= plan.seconds < 1.1 * plan.estimate.bound
    near(
        dataflow.jit(branches, devices=DEVICES, place=model())(X, WS),
        fxflow.jit(branches)(X, WS),
    )


def test_gradients_are_those_of_jit() -> None:
    f = fxflow.value_and_grad(lambda ws, x: (branches(x, ws) ** 2).mean())
    split = dataflow.jit(f, devices=DEVICES, place=model())
    assert len(split.plan(WS, X).places) > 1
    near(split(WS, X), fxflow.jit(f)(WS, X))


def test_a_chain_stays_on_one_device() -> None:
    def chain(x: Any) -> Any:
        for _ in range(5):
            x = fnp.tanh(x @ x)
        return x

    plan = plan_of(chain, X)
    assert len(plan.fragments) == 1 and not plan.edges[1:]


def test_a_gain_below_the_models_error_moves_nothing() -> None:
    # The second branch is short: at most a tenth is gained.
    def f(x: Any) -> Any:
        long = x
        for _ in range(9):
            long = long @ x
        return long + fnp.sin(x) @ x

    careful = Rates(RATES.flops, RATES.bandwidth, error=0.2)
    assert len(plan_of(f, X, costs=Costs({KIND: careful}, LINKS)).places) == 1
    exact = Rates(RATES.flops, RATES.bandwidth, error=0.01)
    assert len(plan_of(f, X, costs=Costs({KIND: exact}, LINKS)).places) == 2


def test_devices_that_share_cores_are_not_used_as_if_they_did_not() -> None:
    shared = Rates(RATES.flops, RATES.bandwidth, at_once=1.0)
    plan = plan_of(branches, X, WS, costs=Costs({KIND: shared}, LINKS))
    assert len(plan.places) == 1
    two = Rates(RATES.flops, RATES.bandwidth, at_once=2.0)
    assert len(plan_of(branches, X, WS, costs=Costs({KIND: two}, LINKS)).places) == 2


def test_scopes_pin_and_parts_of_names_leave_a_choice() -> None:
    def f(x: Any, ws: Any) -> Any:
        with on("/device:cpu:3"):
            a = x @ ws[0]
        with on("/device:cpu"):
            b = x @ ws[1] @ ws[1]
        with on("/device:cpu"):
            c = x @ ws[2] @ ws[2]
        return a, b, c

    plan = plan_of(f, X, WS)
    a, b, c = (plan.place_of(v) for v in plan.graph.outputs)  # type: ignore[arg-type]
    assert a is not None and a.device is DEVICES[3]
    assert len({a, b, c}) == 3
    near(dataflow.jit(f, place=model())(X, WS), fxflow.jit(f)(X, WS))


def test_an_unknown_device_is_an_error_with_the_users_line() -> None:
    def f(x: Any) -> Any:
        with on("/device:cpu:99"):
            return fnp.sin(x)

    with pytest.raises(PlacementError, match=r"cpu:99.*test_by_cost\.py"):
        plan_of(f, X)


def test_what_is_colocated_with_a_value_of_another_device_is_placed() -> None:
    def f(x: Any) -> Any:
        h = fnp.sin(x)
        with on("cpu:2"):
            y = fnp.tanh(h)
        with colocate(h):
            return fnp.sin(y)

    x = fnp.ones((8, 5))
    step = dataflow.jit(f, place="cost")
    np.testing.assert_array_equal(step(x), fxflow.jit(f)(x))
    assert any("cpu:2" in str(p.place) for p in step.plan(x).fragments)


def test_colocated_values_and_effects_are_in_one_place() -> None:
    def f(x: Any, ws: Any) -> Any:
        a, b = x @ ws[0] @ ws[0], x @ ws[1] @ ws[1]
        with colocate(a):
            c = x @ ws[2] @ ws[2]
        return a, b, c

    plan = plan_of(f, X, WS)
    a, b, c = (plan.place_of(v) for v in plan.graph.outputs)  # type: ignore[arg-type]
    assert a is c is not b

    def effects(x: Any, ws: Any) -> Any:
        for w in ws:
            y = x @ w @ w
            fxflow.io_callback(lambda v: None, None, y, ordered=True)

    plan = plan_of(effects, X, WS)
    where = {
        fragment.place
        for fragment in plan.fragments
        for node in fragment.graph.nodes
        if node.primitive.name == "python_callback"
    }
    assert len(where) == 1


def test_a_committed_argument_draws_its_use_to_it() -> None:
    costs = Costs({KIND: RATES}, {"cpu cpu": Link(1.0, 1e10)})
    x = fxflow.device_put(X, DEVICES[2])
    plan = plan_of(lambda x: x @ x, x, costs=costs)
    assert [p.device for p in plan.places] == [DEVICES[2]]


def test_arguments_are_spread_if_one_device_cannot_hold_them() -> None:
    def chain(x: Any, ws: Any) -> Any:
        for w in ws:
            x = x @ w
        return x

    whole = plan_of(chain, X, WS)
    assert len(whole.places) == 1
    spread = plan_of(chain, X, WS, costs=model(capacity=4 * X.nbytes))
    assert len(spread.places) > 1
    near(
        dataflow.jit(chain, devices=DEVICES, place=model(capacity=4 * X.nbytes))(X, WS),
        fxflow.jit(chain)(X, WS),
    )


def test_what_fits_nowhere_is_refused_with_the_value_and_the_line() -> None:
    def f(x: Any) -> Any:
        return fnp.sin(x) @ x

    with pytest.raises(PlacementError) as refused:
        plan_of(f, fnp.ones((64, 64)), costs=model(capacity=10_000))
    told = str(refused.value)
    assert "10,000 bytes of memory" in told and "f32[64,64]" in told
    assert "test_by_cost.py" in told


def test_tasks_get_work_but_no_callbacks() -> None:
    cluster = ClusterDevices({"worker": 2}, [["cpu"], ["cpu"]])

    def f(x: Any, ws: Any) -> Any:
        with on("/job:worker"):
            a = x @ ws[0] @ ws[0] @ ws[0]
        b = fxflow.pure_callback(lambda v: v, x, x @ ws[1] @ ws[1] @ ws[1])
        return a, b, x @ ws[2] @ ws[2] @ ws[2]

    plan = plan_of(f, X, WS, devices=cluster)
    assert {str(p) for p in plan.places} == {"task:0 cpu:0", "task:1 cpu:0", "cpu:0"}
    (calls,) = (
        fragment.place
        for fragment in plan.fragments
        if any(n.primitive.name == "python_callback" for n in fragment.graph.nodes)
    )
    assert calls.device is DEVICES[0]


def test_loops_and_branches_stay_whole() -> None:
    def f(x: Any, ws: Any) -> Any:
        a = lax.fori_loop(0, 3, lambda i, c: c @ ws[0], x)
        b = lax.cond(x[0, 0] > 0, lambda c: c @ ws[1], lambda c: c, x)
        return a + b @ ws[2]

    near(dataflow.jit(f, devices=DEVICES, place=model())(X, WS), fxflow.jit(f)(X, WS))


def test_the_plan_tells_the_bound_and_the_best_device() -> None:
    text = str(plan_of(branches, X, WS))
    assert "on one device" in text and "for any placement of 5 groups" in text
    assert "places: scopes, device_put inside, cost, uses" in text


def test_what_follows_its_uses_is_in_their_fragment() -> None:
    def loss(ws: Any, x: Any) -> Any:
        for w in ws:
            x = fnp.tanh(x @ w)
        return fnp.mean(x**2)

    # The first layers take less than a device of their own is worth.
    rates = Rates({"dot": 3e11, "elementwise": 1e10}, {"elementwise": 1e11})
    costs = Costs({KIND: rates}, LINKS)
    plan = plan_of(fxflow.value_and_grad(loss), WS, X, costs=costs)
    (fragment,) = plan.fragments
    # It is started once, alone and in the plan.
    start = costs.of(DEVICES[0]).start
    assert plan.seconds == pytest.approx(
        start + sum(costs.node_seconds(fragment.graph, DEVICES[0]))
    )
    assert plan.estimate is not None
    assert start < plan.estimate.bound <= plan.seconds
    predicted = str(plan).splitlines()[-3]
    one, other = predicted.removeprefix("step: ").split(" predicted, ")
    assert other == f"{one} on one device"


def test_the_text_of_a_plan_is_by_the_costs_it_was_made_with() -> None:
    costs = model()
    plan = plan_of(branches, X, WS, costs=costs)
    before = str(plan)
    for fragment in plan.fragments:
        costs.learn(fragment.graph, fragment.place, 1e-9)
    assert plan.seconds < plan.estimate.bound  # type: ignore[union-attr]
    assert str(plan) == before and "within -" not in before
    again = str(plan_of(branches, X, WS, costs=costs))
    assert "within -" not in again


def test_other_words_for_the_place_are_refused() -> None:
    with pytest.raises(ArgumentError, match="place is 'scopes', 'cost' or Costs"):
        dataflow.jit(branches, place="fast")


def test_no_operation_and_no_gain() -> None:
    near(dataflow.jit(lambda x: x, place="cost")(X), X)
    near(dataflow.jit(lambda x: x + 1, place="cost")(X), X + 1)


def beaten(name: str, count: int) -> tuple[float, float, float]:
    """Seconds of the plan found, of the best of random plans, and of one device."""
    loss, args = models.MODELS[name]
    jitted = dataflow.jit(fxflow.value_and_grad(loss), devices=DEVICES, place=model())
    traced = jitted.trace(*args).arrays
    graph = inlined(traced.graph, CALLS)
    found = by_cost.decided(graph, Places(DEVICES), traced.arg_types, model())
    own = by_cost._Model(graph, Places(DEVICES), traced.arg_types, model())
    problem = own.problem(len(DEVICES))
    order, rng = problem.order(), random.Random(0)
    best = float("inf")
    for _ in range(count):
        where = [rng.choice(problem.allowed(g)) for g in range(len(order))]
        best = min(best, scheduled(problem, where, order).seconds)
    return found.seconds, best + min(own.starts), found.alone


@pytest.mark.parametrize("name", ["transformer", "experts"])
def test_a_plan_is_as_good_as_the_best_of_random_ones(name: str) -> None:
    seconds, random_best, alone = beaten(name, 50)
    assert seconds <= random_best and seconds <= alone


@pytest.mark.slow
@pytest.mark.parametrize("name", models.MODELS)
def test_a_plan_is_as_good_as_the_best_of_a_thousand_random_ones(name: str) -> None:
    seconds, random_best, alone = beaten(name, 1000)
    assert seconds <= random_best and seconds <= alone
