"""Loops over stages are written out; their rounds overlap, and give the same bits."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import dataflow, lax, train
from fxflow import numpy as fnp
from fxflow.dataflow import on, stages
from fxflow.dataflow.schedules import SCHEDULES

RNG = np.random.default_rng(0)
PARAMS = [RNG.normal(size=(8, 8)).astype("f4") for _ in range(3)]
X = RNG.normal(size=(12, 8)).astype("f4")
DEVICES = fxflow.local_devices()[:3]


def loss(params: Any, x: Any) -> Any:
    for stage, w in zip(stages(3), params, strict=True):
        with on(stage):
            x = fnp.tanh(x @ w)
    return (x**2).mean()


@pytest.mark.parametrize("name", sorted(SCHEDULES))
def test_microbatches_of_a_pipeline_give_the_bits_of_jit(name: str) -> None:
    step = train.accumulate_gradients(loss, 4)
    split = dataflow.jit(step, devices=DEVICES, schedule=name)
    fxflow.tree.map(
        np.testing.assert_array_equal, split(PARAMS, X), fxflow.jit(step)(PARAMS, X)
    )
    plan = split.plan(PARAMS, X)
    assert f"schedule: {name}" in str(plan)
    assert {f.round for f in plan.fragments} >= {0, 1, 2, 3}


@pytest.mark.parametrize("order", [(0, 1, 0, 1), (0, 1, 1, 0)])
def test_stages_that_share_a_device(order: tuple[int, ...]) -> None:
    def deep(params: Any, x: Any) -> Any:
        for stage, w in zip(stages(4), params, strict=True):
            with on(stage):
                x = fnp.tanh(x @ w)
        return (x**2).mean()

    params = [*PARAMS, PARAMS[0]]
    step = train.accumulate_gradients(deep, 4)
    devices = [DEVICES[i] for i in order]
    for name in ("1f1b", "zb-h1"):
        split = dataflow.jit(step, devices=devices, schedule=name)
        fxflow.tree.map(
            np.testing.assert_array_equal, split(params, X), fxflow.jit(step)(params, X)
        )


def test_rounds_share_their_programs() -> None:
    few, many = (
        dataflow.jit(train.accumulate_gradients(loss, n), devices=DEVICES)
        for n in (4, 12)
    )
    few(PARAMS, X), many(PARAMS, X)
    (one,), (two,) = few._caches.compiled.values(), many._caches.compiled.values()
    assert len(two.plan.fragments) > 2 * len(one.plan.fragments)
    assert len(two._programs) <= len(one._programs)


@pytest.mark.parametrize("reverse", [False, True])
def test_stacked_outputs_and_slices(reverse: bool) -> None:
    def body(c: Any, x: Any) -> Any:
        with on("/device:cpu:1"):
            c = fnp.sin(c + x[0])
        with on("/device:cpu:2"):
            return c, (c * x[1], x[0])

    def f(c: Any, a: Any, b: Any) -> Any:
        return lax.scan(body, c, (a, b), reverse=reverse)

    args = 0.5, X[0], X[1]
    fxflow.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6),
        dataflow.jit(f)(*args),
        fxflow.jit(f)(*args),
    )
    assert {f.round for f in dataflow.jit(f).plan(*args).fragments} >= {1, 8}


def test_an_empty_loop_and_one_without_slices() -> None:
    def body(c: Any, _: Any) -> Any:
        with on("/device:cpu:1"):
            c = fnp.sin(c)
        with on("/device:cpu:2"):
            return fnp.cos(c), None

    for length in (0, 1, 3):
        f = lambda x, n=length: lax.scan(body, x, length=n)[0]
        np.testing.assert_allclose(dataflow.jit(f)(0.5), fxflow.jit(f)(0.5), rtol=1e-6)


def test_rounds_of_stages_overlap() -> None:
    running: set[str] = set()
    most = [0]
    lock = threading.Lock()

    def work(x: Any) -> Any:
        name = threading.current_thread().name
        with lock:
            running.add(name)
            most[0] = max(most[0], len(running))
        time.sleep(0.05)
        with lock:
            running.discard(name)
        return x

    def body(total: Any, x: Any) -> Any:
        for stage in stages(3):
            with on(stage):
                x = fxflow.pure_callback(work, x, x)
        return total + x, None

    def f(x: Any) -> Any:
        return lax.scan(body, 0.0, x)[0]

    assert dataflow.jit(f, devices=DEVICES)(fnp.arange(4.0)) == 6
    assert most[0] > 1


def test_a_loop_in_one_place_stays_a_loop() -> None:
    @on("/device:cpu:1")
    def body(c: Any, x: Any) -> Any:
        return fnp.sin(c + x), None

    plan = dataflow.jit(lambda x: lax.scan(body, 0.0, x)[0]).plan(X[0])
    (fragment,) = plan.fragments
    assert fragment.graph.nodes[-1].primitive.name == "scan"


def test_rounds_that_nothing_needs_are_left_out() -> None:
    def body(c: Any, x: Any) -> Any:
        with on("/device:cpu:1"):
            a = fnp.sin(x)
        with on("/device:cpu:2"):
            return a + 1, None  # the carry of the round before is not used

    plan = dataflow.jit(lambda x: lax.scan(body, 0.0, x)[0]).plan(X[0])
    names = [[n.primitive.name for n in f.graph.nodes] for f in plan.fragments]
    assert names == [["slice", "reshape"], ["sin"], ["add"]]


@pytest.mark.parametrize("name", ["1f1b", "zb-h1"])
def test_a_checkpoint_over_several_stages_is_written_out(name: str) -> None:
    step = fxflow.value_and_grad(fxflow.checkpoint(loss))
    split = dataflow.jit(step, devices=DEVICES)
    assert len(split.plan(PARAMS, X).places) == 3
    fxflow.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6),
        split(PARAMS, X),
        fxflow.jit(step)(PARAMS, X),
    )
    step = train.accumulate_gradients(fxflow.checkpoint(loss), 4)
    split = dataflow.jit(step, devices=DEVICES, schedule=name)
    assert len(split.plan(PARAMS, X).places) == 3
    fxflow.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6),
        split(PARAMS, X),
        fxflow.jit(step)(PARAMS, X),
    )
