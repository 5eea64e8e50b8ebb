"""Plans are saved, edited, compared and given back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import dataflow, lax, train
from fxflow import numpy as fnp
from fxflow.dataflow import Plan, SavedPlan, on, stages
from fxflow.errors import ArgumentError, PlacementError

DEVICES = fxflow.local_devices()[:3]
RNG = np.random.default_rng(0)
PARAMS = [RNG.normal(size=(32, 32)).astype("f4") / 6 for _ in range(3)]
X = RNG.normal(size=(96, 32)).astype("f4")


def network(params: Any, x: Any) -> Any:
    for stage, w in zip(stages(3), params, strict=True):
        with on(stage):
            x = fnp.tanh(x @ w)
    return (x**2).mean()


def f(x: Any) -> Any:
    with on("/device:cpu:1"):
        y = fnp.sin(x)
    z = fnp.arange(3.0) + 1  # small: computed in both places
    with on("/device:cpu:2"):
        return fnp.cos(y) * z, y * z


def edited(plan: Any, change: Any) -> SavedPlan:
    data = json.loads(plan.saved().to_json())
    change(data)
    return SavedPlan.from_json(json.dumps(data))


@pytest.mark.parametrize("name", ["1f1b", "zb-v"])
def test_a_plan_that_was_saved_is_the_same_plan(name: str, tmp_path: Path) -> None:
    step = train.accumulate_gradients(network, 4)
    split = dataflow.jit(step, devices=DEVICES, schedule=name)
    plan = split.plan(PARAMS, X)
    path = tmp_path / "plan.json"
    plan.save(path)
    assert Plan.load(path) == plan.saved() == SavedPlan.from_json(plan.to_json())
    again = dataflow.jit(step, devices=DEVICES, plan=path)
    other = again.plan(PARAMS, X)
    assert str(other) == str(plan) and plan.diff(other) == ""
    fxflow.tree.map(
        np.testing.assert_array_equal, again(PARAMS, X), fxflow.jit(step)(PARAMS, X)
    )


def test_what_is_computed_in_several_places_stays_so() -> None:
    x = fnp.ones(3)
    plan = dataflow.jit(f).plan(x)
    again = dataflow.jit(f, plan=plan)
    assert str(again.plan(x)) == str(plan)
    fxflow.tree.map(np.testing.assert_array_equal, again(x), dataflow.jit(f)(x))


def test_an_operation_is_moved() -> None:
    x = fnp.ones(4)

    def g(x: Any) -> Any:
        with on("/device:cpu:1"):
            y = fnp.sin(x)
        with on("/device:cpu:2"):
            return fnp.cos(y)

    plan = dataflow.jit(g).plan(x)

    def move(data: Any) -> None:
        data["fragments"][1]["device"] = "cpu:3"

    moved = edited(plan, move)
    out = dataflow.jit(g, plan=moved)(x)
    assert [d.id for d in out.devices()] == [3]
    np.testing.assert_allclose(out, np.cos(np.sin(1)), rtol=1e-6)
    assert plan.diff(moved).splitlines() == [
        "operation 1 (c: f32[4] = cos b): cpu:2 → cpu:3",
        "cpu:2: 1 → 0 fragments, from number 0: operation 1 → the end",
        "cpu:3: 0 → 1 fragments, from number 0: the end → operation 1",
    ]


def test_the_order_of_a_device_is_changed() -> None:
    step = train.accumulate_gradients(network, 4)
    plan = dataflow.jit(step, devices=DEVICES).plan(PARAMS, X)
    gpipe = dataflow.jit(step, devices=DEVICES, schedule="gpipe").plan(PARAMS, X)
    lines = plan.diff(gpipe).splitlines()
    assert lines[0] == "schedule: 1f1b → gpipe"
    assert any(line.startswith("cpu:0: ") and "→" in line for line in lines[1:])
    again = dataflow.jit(step, devices=DEVICES, plan=gpipe)
    assert again.plan(PARAMS, X).actions() == gpipe.actions()


def test_an_order_that_cannot_be_run_is_refused() -> None:
    step = train.accumulate_gradients(network, 4)
    plan = dataflow.jit(step, devices=DEVICES).plan(PARAMS, X)

    def reverse(data: Any) -> None:
        data["fragments"].reverse()

    bad = dataflow.jit(step, devices=DEVICES, plan=edited(plan, reverse))
    with pytest.raises(PlacementError, match="these fragments wait for each other\n"):
        bad.plan(PARAMS, X)


def test_a_plan_of_another_program_says_what_differs() -> None:
    x = fnp.ones(3)
    plan = dataflow.jit(f).plan(x)
    with pytest.raises(PlacementError) as caught:
        dataflow.jit(f, plan=plan).plan(fnp.ones(3, "float16"))
    assert str(caught.value).splitlines()[1:] == [
        "  in the plan: a: f32[3]",
        "  in the program: a: f16[3]",
    ]

    def g(x: Any) -> Any:
        with on("/device:cpu:1"):
            y = fnp.tan(x)
        z = fnp.arange(3.0) + 1
        with on("/device:cpu:2"):
            return fnp.cos(y) * z, y * z

    with pytest.raises(
        PlacementError, match=r"operation 0 \(.*test_saved\.py"
    ) as caught:
        dataflow.jit(g, plan=plan).plan(x)
    assert "sin a" in str(caught.value) and "tan a" in str(caught.value)
    longer = lambda x: (*f(x), x + 1)
    with pytest.raises(PlacementError, match="in the plan: return f, g"):
        dataflow.jit(longer, plan=plan).plan(x)
    assert "the programs differ:" in plan.diff(dataflow.jit(longer).plan(x))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d["fragments"].pop(), r"operation \d+ \(.*\) is in no fragment"),
        (
            lambda d: d["fragments"].append({"device": "cpu:1", "operations": [0]}),
            r"operation 0 \(sin, .*\) is in two fragments on cpu:1",
        ),
        (
            lambda d: d["fragments"][0]["operations"].append(99),
            "no operation 99: the program has",
        ),
        (lambda d: d["fragments"][0].update(device="cpu:99"), "no device 'cpu:99'"),
        (lambda d: d["fragments"][0].update(device="left"), "no device for the label"),
    ],
)
def test_plans_that_cannot_be_followed_are_refused(change: Any, message: str) -> None:
    x = fnp.ones(3)
    plan = dataflow.jit(f).plan(x)
    with pytest.raises(PlacementError, match=f"plan: {message}"):
        dataflow.jit(f, plan=edited(plan, change)).plan(x)


def test_effects_stay_in_one_place_and_in_order() -> None:
    def g(x: Any) -> Any:
        with on("/device:cpu:1"):
            for i in range(2):
                x = fnp.sin(x)
                fxflow.io_callback(lambda v: None, None, x + i, ordered=True)
        with on("/device:cpu:2"):
            return fnp.cos(x)

    plan = dataflow.jit(g).plan(1.0)
    dataflow.jit(g, plan=plan)(1.0)
    names = [n.primitive.name for n in plan.graph.nodes]
    last = len(names) - 1 - names[::-1].index("python_callback")

    def split(data: Any) -> None:
        for fragment in data["fragments"]:
            if last in fragment["operations"]:
                fragment["operations"].remove(last)
        data["fragments"].append({"device": "cpu:2", "operations": [last]})

    with pytest.raises(PlacementError, match="effects run in order"):
        dataflow.jit(g, plan=edited(plan, split)).plan(1.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "a plan is JSON"),
        ("[]", "not a saved plan"),
        ('{"fxflow_plan": 99}', "version 99; this fxflow reads 1"),
        ('{"fxflow_plan": 1}', "a part that cannot be read: KeyError"),
    ],
)
def test_files_that_hold_no_plan(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(ArgumentError, match=rf"plan\.json: .*{message}"):
        dataflow.jit(f, plan=path)
    with pytest.raises(ArgumentError, match="plan is a Plan, a SavedPlan or the path"):
        dataflow.jit(f, plan=3)  # type: ignore[call-overload]
    with pytest.raises(FileNotFoundError):
        dataflow.jit(f, plan=tmp_path / "none.json")


def test_a_mesh_is_found_by_its_scope() -> None:
    mesh = fxflow.make_mesh((2,), ("d",), devices=DEVICES[:2])

    def g(x: Any) -> Any:
        with on(mesh):
            x = fnp.sin(x)
        with on("/device:cpu:2"):
            return fnp.cos(x)

    plan = dataflow.jit(g).plan(X)
    again = dataflow.jit(g, plan=plan.saved())
    assert str(again.plan(X)) == str(plan)
    np.testing.assert_allclose(again(X), np.cos(np.sin(X)), rtol=1e-5)
    assert "SavedPlan of g, 2 fragments" in repr(plan.saved())


def test_a_plan_needs_no_devices_for_labels() -> None:
    def f(x: Any) -> Any:
        def body(carry: Any, _: Any) -> Any:
            with on("a"):
                carry = fnp.sin(carry)
            with on("b"):
                return fnp.cos(carry), None

        return lax.scan(body, x, None, length=2)[0]

    x = fnp.ones(3)
    step = dataflow.jit(f, devices={"a": "cpu:1", "b": "cpu:2"})
    again = dataflow.jit(f, plan=step.plan(x).saved())
    np.testing.assert_array_equal(again(x), step(x))


def test_a_plan_over_tasks_asks_for_the_tasks() -> None:
    text = dataflow.jit(fnp.sin).plan(1.0).saved().to_json()
    plan = SavedPlan.from_json(text.replace("cpu:0", "task:0 cpu:0"))
    with pytest.raises(PlacementError, match=r"task:0 cpu:0.*devices=cluster"):
        dataflow.jit(fnp.sin, plan=plan).plan(1.0)


@pytest.mark.parametrize(("name", "value"), [("schedule", "zb-v"), ("place", "cost")])
def test_a_plan_or_what_would_decide_it(name: str, value: str) -> None:
    plan = dataflow.jit(fnp.sin).plan(1.0)
    with pytest.raises(ArgumentError, match=rf"plan= or {name}=, not both"):
        dataflow.jit(fnp.sin, plan=plan, **{name: value})
