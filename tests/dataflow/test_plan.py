"""The text of plans."""

from __future__ import annotations

from typing import Any

import numpy as np

import fxflow
from fxflow import dataflow, train
from fxflow import numpy as fnp
from fxflow.dataflow import on, stages
from fxflow.dataflow.placing import place_name
from fxflow.dataflow.plan import table


def f(x: Any) -> Any:
    with on("/device:cpu:1"):
        y = fnp.sin(x)
    with on("/device:cpu:2"):
        return fnp.cos(y)


def test_a_plan_names_fragments_transfers_and_lines() -> None:
    plan = dataflow.jit(f).plan(fnp.ones(4))
    text = plan.to_text(lines=True)
    assert text.startswith("f: 2 fragments on 2 devices, 2 transfers of 32 bytes\n")
    assert "test_plan.py:" in text and "test_plan.py:" not in str(plan)
    assert "1         cpu:2" not in text and "0         cpu:2     16  f32[4]  1" in text
    assert repr(plan) == (
        "<Plan of f: 2 fragments on 2 devices, 2 transfers of 32 bytes>"
    )


def test_a_plan_is_made_for_shapes_alone() -> None:
    plan = dataflow.jit(f).plan(fxflow.ShapeDtypeStruct((1 << 20, 1 << 10), "float32"))
    assert plan.edges[0].nbytes == 4 << 30


def test_one_fragment_has_no_transfer_between() -> None:
    plan = dataflow.jit(fnp.sin).plan(1.0)
    assert "1 fragment on 1 device" in str(plan)
    out = plan.fragments[0].results[0]
    assert plan.place_of(out) is plan.places[0]
    assert plan.place_of(plan.graph.inputs[0]) is None


def test_names_of_places() -> None:
    mesh = fxflow.make_mesh((2,), ("d",))
    plan = dataflow.jit(on(mesh)(fnp.sin)).plan(fnp.ones(2))
    assert place_name(plan.places[0]) == "mesh of cpu:0 cpu:1"


def test_columns_are_aligned() -> None:
    rows = [("a", "bb"), ("ccc", "1")]
    assert table(rows, right=(1,)) == ["a    bb", "ccc   1"]


def chain(count: int) -> Any:
    def g(x: Any) -> Any:
        for i in range(count):
            with on(f"/device:cpu:{1 + i % 2}"):
                x = fnp.sin(x)
        return x

    return g


def test_long_tables_are_cut() -> None:
    plan = dataflow.jit(chain(100)).plan(fnp.ones(4))
    text = str(plan)
    assert len(text.splitlines()) < 60
    assert "… 80 more fragments: to_text(shown=None)" in text
    assert "… 80 more transfers: to_text(shown=None)" in text
    assert "cpu:1 → cpu:2         50    800" in text
    assert len(plan.to_text(shown=None).splitlines()) > 200
    assert "… 95 more fragments" in plan.to_text(shown=5)


def test_a_plan_is_put_in_the_order_of_another_schedule() -> None:
    def loss(params: Any, x: Any) -> Any:
        for stage, w in zip(stages(2), params, strict=True):
            with on(stage):
                x = fnp.tanh(x @ w)
        return (x**2).mean()

    args = [fnp.ones((32, 32))] * 2, fnp.ones((128, 32))
    step = train.accumulate_gradients(loss, 4)
    devices = fxflow.local_devices()[:2]
    plan = dataflow.jit(step, devices=devices).plan(*args)
    gpipe = plan.scheduled("gpipe")
    assert gpipe.actions() == (
        dataflow.jit(step, devices=devices, schedule="gpipe").plan(*args).actions()
    )
    assert gpipe.schedule == "gpipe" and plan.schedule == "1f1b"
    gpipe.check()
    # The last stage takes long: by these times its forward parts come first.
    slow = {1: 10.0, 0: 1.0}
    found = plan.scheduled("search", lambda f: slow[f.stage or 0])
    assert found.simulate(lambda f: slow[f.stage or 0]).seconds <= (
        plan.simulate(lambda f: slow[f.stage or 0]).seconds
    )
    timeline = dataflow.jit(step, devices=devices).measure(*args)
    again = dataflow.jit(step, plan=plan.scheduled("zb-h1", timeline.seconds_of))
    fxflow.tree.map(
        np.testing.assert_array_equal, again(*args), fxflow.jit(step)(*args)
    )
    assert "schedule: zb-h1" in str(again.plan(*args))
