"""The text of plans."""

from __future__ import annotations

from typing import Any

import fxflow
from fxflow import dataflow
from fxflow import numpy as fnp
from fxflow.dataflow import on
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
