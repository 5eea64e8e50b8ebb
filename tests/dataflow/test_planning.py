"""A plan is made without compiling, for where the arguments are."""

from __future__ import annotations

from typing import Any

import pytest

import fxflow
from fxflow import dataflow, lax, train
from fxflow import numpy as fnp
from fxflow.core.runtime import execute
from fxflow.dataflow import on, stages

DEVICES = fxflow.local_devices()


def f(x: Any) -> Any:
    with on("/device:cpu:1"):
        y = fnp.sin(x)
    with on("/device:cpu:2"):
        return fnp.cos(y)


def test_nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("compiled")

    g, x = dataflow.jit(f), fnp.ones(1234)
    monkeypatch.setattr(execute, "compile_text", refuse)
    assert len(g.plan(x).fragments) == 2
    with pytest.raises(AssertionError, match="compiled"):
        g(x)


def test_committed_arguments_say_where_the_rest_runs() -> None:
    g = dataflow.jit(fnp.sin)
    for device in DEVICES[1:3]:
        x = fxflow.device_put(1.0, device)
        struct = fxflow.ShapeDtypeStruct((), "float32", sharding=x.sharding)
        for argument in (x, struct):
            (place,) = g.plan(argument).places
            assert place.device is device


def test_loops_over_places_are_ordered_by_the_schedule() -> None:
    def body(c: Any, x: Any) -> Any:
        return f(c + x), None

    def loop(x: Any) -> Any:
        return fxflow.lax.scan(body, 0.0, x)[0]

    plan = dataflow.jit(loop, schedule="gpipe").plan(fnp.ones(4))
    assert plan.schedule == "gpipe"
    assert dataflow.jit(f).plan(1.0).schedule == ""
    starts = [ran.start for row in plan.simulate().rows.values() for ran in row]
    assert len(starts) == len(plan.fragments)


def piped(params: Any, x: Any) -> Any:
    for stage, w in zip(stages(len(params)), params, strict=True):
        with on(stage):
            x = fnp.tanh(x @ w)
    return fnp.mean(x**2)


def notes(stages: int, devices: Any, schedule: str = "1f1b") -> list[str]:
    step = dataflow.jit(
        train.accumulate_gradients(piped, 4), devices=devices, schedule=schedule
    )
    return step.plan([fnp.ones((8, 8))] * stages, fnp.ones((8, 8))).notes


def test_devices_that_stages_leave_without_work_are_noted() -> None:
    four = DEVICES[:4]
    assert notes(4, four, "zb-v")[1:] == [
        "4 stages use 2 of 4 devices: zb-v gives each device two; 8 stages use all"
    ]
    assert notes(2, four)[1:] == ["2 stages use 2 of 4 devices"]
    assert (
        len(notes(4, four)) == len(notes(8, four, "zb-v")) == len(notes(2, None)) == 1
    )


def test_loops_that_are_written_out_are_noted() -> None:
    (note,) = notes(2, DEVICES[:2])
    assert note.startswith("scan (") and "test_planning.py" in note
    assert note.endswith(
        ") is written out as 3 rounds: its body has scopes of 2 places"
    )


def test_a_note_is_there_once() -> None:
    def both(x: Any) -> Any:
        return f(f(x))

    def g(x: Any) -> Any:
        return fnp.sum(lax.cond(x[0] > 0, both, lambda x: x, x))

    plan = dataflow.jit(fxflow.grad(g)).plan(fnp.ones(3))
    assert sum(node.primitive.name == "cond" for node in plan.graph.nodes) == 2
    assert len(plan.notes) == 1
