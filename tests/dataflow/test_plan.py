"""The text of plans."""

from __future__ import annotations

from typing import Any

import numpy as np

import fxflow
from fxflow import dataflow, train
from fxflow import numpy as fnp
from fxflow.dataflow import on, stages
from fxflow.dataflow.placing import place_name


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


def test_arguments_that_are_where_they_are_used_are_not_sent() -> None:
    x = fnp.ones(4)
    plan = dataflow.jit(fnp.sin).plan(x)
    assert (plan.transfers, len(plan.edges)) == ([], 1)
    assert "1 fragment on 1 device, nothing is sent\n" in str(plan)
    assert "argument" not in str(plan).replace("arguments", "")
    there = fxflow.device_put(x, fxflow.local_devices()[1])
    assert len(dataflow.jit(f).plan(x).transfers) == 2
    assert len(dataflow.jit(f).plan(there).transfers) == 1
    captured = fnp.ones(5000)

    def g(x: Any) -> Any:
        with on("/device:cpu:1"):
            return captured * x

    assert [str(e.var.aval) for e in dataflow.jit(g).plan(1.0).transfers] == ["f32[]~"]


def test_rows_are_in_the_order_of_devices() -> None:
    def back(x: Any) -> Any:
        for device in (3, 1, 2):
            with on(f"/device:cpu:{device}"):
                x = fnp.sin(x)
        return x

    plan = dataflow.jit(back).plan(1.0)
    assert [place.device.id for place in plan.simulate().rows] == [1, 2, 3]
    svg = plan.to_svg()
    assert svg.index("cpu:1") < svg.index("cpu:2") < svg.index("cpu:3")
    lines = [line.split()[0] for line in str(plan).splitlines()[-4:-1]]
    assert lines == ["cpu:1", "cpu:2", "cpu:3"]
