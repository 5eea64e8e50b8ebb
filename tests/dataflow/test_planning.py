"""A plan is made without compiling, for where the arguments are."""

from __future__ import annotations

from typing import Any

import pytest

import fxflow
from fxflow import dataflow
from fxflow import numpy as fnp
from fxflow.core.runtime import execute
from fxflow.dataflow import on

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
