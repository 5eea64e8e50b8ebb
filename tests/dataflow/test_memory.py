"""The memory of a plan's devices, and the bytes of its links."""

from __future__ import annotations

from typing import Any

import numpy as np

import fxflow
from fxflow import dataflow, train
from fxflow import numpy as fnp
from fxflow.dataflow import on, stages
from fxflow.dataflow.memory import link_bytes


def test_values_count_until_their_last_use() -> None:
    def f(x: Any) -> Any:
        with on("/device:cpu:1"):
            a = fnp.sin(x)  # 400 bytes, sent to cpu:2
        with on("/device:cpu:2"):
            b = fnp.cos(a)[:10]  # 40 bytes, sent to cpu:1
        with on("/device:cpu:1"):
            return fnp.sum(b)

    plan = dataflow.jit(f).plan(fnp.ones(100))
    names = {place.device.id: peak for place, peak in plan.peak_bytes().items()}
    # The argument and a; the copy of a and b.
    assert names == {1: 800, 2: 440}
    links = {
        (a.device.id, b.device.id): sent
        for (a, b), sent in link_bytes(plan.fragments, plan.edges).items()
    }
    assert links == {(1, 2): (1, 400), (2, 1): (1, 40)}


def network(params: Any, x: Any) -> Any:
    for stage, w in zip(stages(2), params, strict=True):
        with on(stage):
            x = fnp.tanh(x @ w)
    return (x**2).mean()


def test_schedules_differ_in_the_activations_that_they_hold() -> None:
    params, x = [np.ones((32, 32), "f4")] * 2, np.ones((512, 32), "f4")
    step = train.accumulate_gradients(network, 8)
    devices = fxflow.local_devices()[:2]
    peaks, held = {}, {}
    for name in ("1f1b", "gpipe"):
        plan = dataflow.jit(step, devices=devices, schedule=name).plan(params, x)
        peaks[name] = next(iter(plan.peak_bytes().values()))
        held[name] = next(iter(plan.simulate().activations.values()))
        assert "device  busy  peak bytes  activations" in str(plan)
    assert held == {"1f1b": 2, "gpipe": 8}
    # Six more activations of 64 x 32 numbers, twice: inputs and results of tanh.
    assert peaks["gpipe"] - peaks["1f1b"] >= 6 * 64 * 32 * 4
