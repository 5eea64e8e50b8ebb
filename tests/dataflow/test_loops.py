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


@pytest.mark.parametrize("name", ["1f1b", "zb-h1"])
def test_each_stage_scans_its_own_stack_of_layers(name: str) -> None:
    def layers(stacks: Any, x: Any) -> Any:
        for stage, stack in zip(stages(3), stacks, strict=True):
            with on(stage):
                x, _ = lax.scan(lambda x, w: (fnp.tanh(x @ w), None), x, stack)
        return (x**2).mean()

    stacks = [np.stack([w, 2 * w]) for w in PARAMS]
    step = train.accumulate_gradients(layers, 4)
    split = dataflow.jit(step, devices=DEVICES, schedule=name)
    fxflow.tree.map(
        np.testing.assert_array_equal, split(stacks, X), fxflow.jit(step)(stacks, X)
    )
    sent = [e.var.aval.shape for e in split.plan(stacks, X).edges if e.source]
    assert set(sent) == {(3, 8)}  # activations and their gradients alone


@pytest.mark.parametrize("name", ["1f1b", "gpipe", "zb-v", "search"])
@pytest.mark.parametrize("microbatches", [3, 4])
def test_a_loop_over_places_in_each_microbatch(name: str, microbatches: int) -> None:
    def recurrent(params: Any, x: Any) -> Any:
        def body(carry: Any, t: Any) -> Any:
            with on("cpu:0"):
                carry = fnp.tanh((carry + t) @ params[0])
            with on("cpu:1"):
                carry = fnp.tanh(carry @ params[1])
            return carry, None

        return (lax.scan(body, x, fnp.arange(2.0))[0] ** 2).mean()

    step = train.accumulate_gradients(recurrent, microbatches)
    split = dataflow.jit(step, schedule=name)
    for got, want in zip(
        fxflow.tree.leaves(split(PARAMS[:2], X)),
        fxflow.tree.leaves(fxflow.jit(step)(PARAMS[:2], X)),
        strict=True,
    ):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


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


def tied(params: Any, tokens: Any) -> Any:
    """An embedding that is also the last stage's weights."""
    first, *between, last = stages(3)
    with on(first):
        x = params["table"][tokens]
    for stage, w in zip(between, params["layers"], strict=True):
        with on(stage):
            x = fnp.tanh(x @ w)
    with on(last):
        return -fxflow.nn.log_softmax(x @ params["table"].T)[:, 0].mean()


@pytest.mark.parametrize("name", ["1f1b", "zb-h1"])
def test_tied_weights_have_the_gradient_of_both_stages(name: str) -> None:
    params = {"table": RNG.normal(size=(16, 8)).astype("f4"), "layers": PARAMS[:1]}
    tokens = RNG.integers(0, 16, 12)
    step = train.accumulate_gradients(tied, 4)
    split = dataflow.jit(step, devices=DEVICES, schedule=name)
    value, grads = split(params, tokens)
    want, expected = fxflow.jit(step)(params, tokens)
    fxflow.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6),
        (value, grads),
        (want, expected),
    )
    assert grads["layers"][0].devices() == {DEVICES[1]}
    assert grads["table"].devices() <= {DEVICES[0], DEVICES[2]}


def test_weights_and_optimizer_state_stay_in_their_stage() -> None:
    optimizer = fxflow.optim.adam(0.1)
    gradients = train.accumulate_gradients(loss, 4)

    def step(params: Any, state: Any, x: Any) -> Any:
        value, grads = gradients(params, x)
        updates, state = optimizer.update(grads, state, params)
        return fxflow.optim.apply_updates(params, updates), state, value

    params = [fxflow.device_put(w, d) for w, d in zip(PARAMS, DEVICES, strict=True)]
    state = optimizer.init(PARAMS)
    split = dataflow.jit(step, devices=DEVICES)
    whole = fxflow.jit(step)
    mine, theirs = (params, state), (PARAMS, state)
    for _ in range(3):
        mine, theirs = split(*mine, X)[:2], whole(*theirs, X)[:2]
    for leaves in zip(*map(fxflow.tree.leaves, (mine, theirs)), strict=True):
        np.testing.assert_allclose(*leaves, rtol=1e-5, atol=1e-6)
    for i, device in enumerate(DEVICES):
        assert mine[0][i].devices() == {device}
    moments = [a for a in fxflow.tree.leaves(mine[1]) if a.shape == (8, 8)]
    assert [a.devices() for a in moments] == 2 * [{d} for d in DEVICES]
    sent = [
        e
        for e in split.plan(*mine, X).edges
        if e.source is not None and e.var.aval.shape == (8, 8)
    ]
    assert not sent


def test_batches_that_do_not_divide_are_refused_at_planning() -> None:
    split = dataflow.jit(train.accumulate_gradients(loss, 5), devices=DEVICES)
    with pytest.raises(fxflow.errors.ShapeError, match="into 5 equal parts"):
        split.plan(PARAMS, X)


def test_a_loop_of_no_rounds_with_stacked_results() -> None:
    def f(x: Any) -> Any:
        def part(total: Any, row: Any) -> Any:
            with on("/device:cpu:1"):
                total = total + row
            with on("/device:cpu:2"):
                return total, fnp.sin(total)

        return lax.scan(part, fnp.ones(8), x)

    for strict in (False, True):
        last, rows = dataflow.jit(f, strict=strict)(X[:0])
        assert last.tolist() == [1.0] * 8 and rows.shape == (0, 8)
