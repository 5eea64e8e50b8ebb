"""Programs after reports of users about pipelines over several devices."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import dataflow, lax, nn, random, train
from fxflow.dataflow import on, stages

DEVICES = fxflow.local_devices()
RNG = np.random.default_rng(0)
X = RNG.normal(size=(8, 4)).astype("f")


def weights(count: int) -> list[Any]:
    return [RNG.normal(size=(4, 4)).astype("f") for _ in range(count)]


def chain(params: Any, x: Any) -> Any:
    """Returns the loss of a network with a stage for each weight."""
    for stage, w in zip(stages(len(params)), params, strict=True):
        with on(stage):
            x = fnp.tanh(x @ w)
    return fnp.mean(x**2)


def check_pipeline(
    loss: Any, params: Any, batch: Any, count: int, **options: Any
) -> Any:
    """Asserts that a pipeline gives the numbers of one program; returns its plan."""
    whole = train.accumulate_gradients(loss, count)
    piped = dataflow.jit(whole, **options)
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(piped(params, batch)))
    thread.daemon = True
    thread.start()
    thread.join(120)
    assert found, "the pipeline does not end"
    fxflow.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6),
        found[0],
        fxflow.jit(whole)(params, batch),
    )
    return piped.plan(params, batch)


def test_forward_and_backward_alternate() -> None:
    """A stage begins as many microbatches as there are stages from it to the last one;
    then it goes backward after each forward (jax#17216, maxtext#752,
    tensorflow#62736)."""
    plan = check_pipeline(chain, weights(4), X, 8, devices=DEVICES[:4], schedule="1f1b")
    for number in range(3):
        kinds = [
            f.kind
            for f in plan.fragments
            if f.place.device == DEVICES[number] and f.microbatch is not None
        ]
        held, most = 0, 0
        for kind in kinds:
            held += {"F": 1, "B": -1}.get(kind, 0)
            most = max(most, held)
        assert most == 4 - number and held == 0


@pytest.mark.parametrize("schedule", ["1f1b", "zb-h1"])
def test_a_connection_that_skips_stages(schedule: str) -> None:
    """A value of the first stage is used in the last one (PiPPy#1000, pytorch#127964,
    DeepSpeedExamples#932)."""

    def loss(params: Any, x: Any) -> Any:
        parts = stages(4)
        with on(parts[0]):
            first = x = fnp.tanh(x @ params[0])
        for stage, w in zip(parts[1:3], params[1:3], strict=True):
            with on(stage):
                x = fnp.tanh(x @ w)
        with on(parts[3]):
            return fnp.mean(((x + first) @ params[3]) ** 2)

    check_pipeline(loss, weights(4), X, 4, devices=DEVICES[:4], schedule=schedule)


@pytest.mark.parametrize("count", [2, 3])
def test_interleaved_stages_do_not_hang(count: int) -> None:
    """Each of two devices has two stages, and the number of microbatches need not be
    a multiple of two (pytorch#127332, PiPPy#1088, pytorch#137783)."""
    a, b = DEVICES[:2]
    x = RNG.normal(size=(6, 4)).astype("f")
    check_pipeline(chain, weights(4), x, count, devices=[a, b, a, b])


@pytest.mark.parametrize(("count", "schedule"), [(1, "zb-h1"), (4, "1f1b")])
def test_as_many_microbatches_as_stages_or_fewer(count: int, schedule: str) -> None:
    """One microbatch over four stages, and four, end as well (torchtitan#775,
    ColossalAI#2156)."""
    check_pipeline(chain, weights(4), X, count, devices=DEVICES[:4], schedule=schedule)


def test_sending_does_not_block_a_stage() -> None:
    """The first stage goes on to the next microbatch while the second one still
    computes: the second waits until the first has run twice (pytorch#172668)."""
    twice, ran = threading.Event(), []

    def count(v: Any) -> Any:
        ran.append(1)
        if len(ran) == 2:
            twice.set()
        return v

    def wait(v: Any) -> Any:
        assert twice.wait(60)
        return v

    def f(xs: Any) -> Any:
        def part(total: Any, x: Any) -> Any:
            with on("first"):
                x = fxflow.pure_callback(count, x, x)
            with on("second"):
                return total + fxflow.pure_callback(wait, x, x), None

        return lax.scan(part, fnp.zeros(4), xs)[0]

    split = dataflow.jit(f, devices={"first": DEVICES[1], "second": DEVICES[2]})
    np.testing.assert_allclose(split(X), X.sum(0), rtol=1e-5)


def test_two_devices_that_send_to_each_other() -> None:
    """Each of two devices sends its first result to the other and then uses the
    other's (ray#45594, pytorch#172668)."""

    def f(x: Any) -> Any:
        with on("a"):
            first = fnp.sin(x)
        with on("b"):
            second = fnp.cos(x)
        with on("a"):
            left = first + second * 2
        with on("b"):
            right = second - first
        return left, right

    x = np.linspace(0, 1, 100_000, dtype=np.float32)
    split = dataflow.jit(f, devices={"a": DEVICES[1], "b": DEVICES[2]})
    for _ in range(20):
        left, right = split(x)
    np.testing.assert_allclose(left, np.sin(x) + 2 * np.cos(x), rtol=1e-5)
    np.testing.assert_allclose(right, np.cos(x) - np.sin(x), rtol=1e-5, atol=1e-6)


def test_two_pipelines_at_once() -> None:
    """The result of one pipeline is the input of another, and two run at the same
    time in threads (pytorch#53413)."""
    params = weights(2)

    def model(params: Any, x: Any) -> Any:
        for stage, w in zip(stages(2), params, strict=True):
            with on(stage):
                x = fnp.tanh(x @ w)
        return x

    one = dataflow.jit(model, devices=DEVICES[:2])
    two = dataflow.jit(model, devices=[DEVICES[1], DEVICES[0]])
    expected = model(params, model(params, X))
    results: list[Any] = []

    def run() -> None:
        results.extend(two(params, one(params, X)) for _ in range(10))

    threads = [threading.Thread(target=run, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert len(results) == 20
    for out in results:
        np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6)


def test_layers_in_a_scan_within_a_stage() -> None:
    """Each stage runs its layers in a `scan` over stacked weights (jaxpp#7)."""
    params = RNG.normal(size=(2, 3, 4, 4)).astype("f")

    def loss(params: Any, x: Any) -> Any:
        for stage, layers in zip(stages(2), params, strict=True):
            with on(stage):
                x, _ = lax.scan(lambda x, w: (fnp.tanh(x @ w), None), x, layers)
        return fnp.mean(x**2)

    plan = check_pipeline(loss, params, X, 4, devices=DEVICES[:2])
    assert len(plan.places) == 2
    loops = [n for f in plan.fragments for n in f.graph.nodes if n.primitive == "scan"]
    assert all(n.params["length"] == 3 for n in loops)


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 1, 1, 0)], ids=["line", "v"])
def test_the_embedding_is_the_head_as_well(order: Any) -> None:
    """One table is used in the first and in the last stage; its gradient is the sum
    of both uses (piper#13, Megatron-LM#299)."""
    tokens = RNG.integers(0, 5, (8, 3))

    def loss(params: Any, tokens: Any) -> Any:
        parts = stages(4)
        with on(parts[0]):
            x = params["table"][tokens]
        for stage, w in zip(parts[1:3], params["layers"], strict=True):
            with on(stage):
                x = fnp.tanh(x @ w)
        with on(parts[3]):
            log_p = nn.log_softmax(x @ params["table"].T)
            return -fnp.mean(fnp.take_along_axis(log_p, tokens[..., None], -1))

    params = {"table": RNG.normal(size=(5, 4)).astype("f"), "layers": weights(2)}
    check_pipeline(loss, params, tokens, 4, devices=[DEVICES[i] for i in order])


def test_dropout_does_not_depend_on_the_number_of_devices() -> None:
    """The masks are those of the key, on however many devices the stages run, and
    those of the forward pass when a checkpoint computes them again (pytorch#55036,
    OLMo-core#828)."""

    def loss(params: Any, batch: Any) -> Any:
        x, keys = batch
        for i, (stage, w) in enumerate(zip(stages(4), params, strict=True)):

            @fxflow.checkpoint
            def layer(w: Any, x: Any, i: int = i) -> Any:
                key = random.fold_in(keys[0], i)
                return nn.dropout(key, fnp.tanh(x @ w), 0.5)

            with on(stage):
                x = layer(w, x)
        return fnp.mean(x**2)

    params, batch = weights(4), (X, random.split(random.key(0), 8))
    for count in (1, 3):
        check_pipeline(loss, params, batch, 2, devices=DEVICES[:count])


def test_masks_and_integers_pass_between_stages() -> None:
    """Stages pass on a structure of arrays: floats, integers and a mask of bools,
    which have no gradient (DeepSpeed#969, pytorch#183582, pytorch#53437)."""

    def loss(params: Any, batch: Any) -> Any:
        first, second = stages(2)
        with on(first):
            state = {
                "h": batch["x"] @ params[0],
                "mask": batch["x"] > 0,
                "length": fnp.sum(batch["x"] > 0, 1),
                "none": None,
            }
        with on(second):
            h = fnp.where(state["mask"], fnp.tanh(state["h"] @ params[1]), 0)
            return fnp.mean(h.sum(1) / (1 + state["length"]))

    plan = check_pipeline(loss, weights(2), {"x": X}, 4, devices=DEVICES[:2])
    sent = {str(e.var.aval.dtype) for e in plan.edges if e.source is not None}
    assert sent >= {"float32", "bool", "int32"}


def test_evaluation_before_training() -> None:
    """The forward pass alone, before the first training step and after it, is a call
    like any other (pytorch#162822, fairscale#173)."""
    params = weights(4)
    evaluate = dataflow.jit(chain, devices=DEVICES[:4])
    before = float(evaluate(params, X))
    check_pipeline(chain, params, X, 4, devices=DEVICES[:4])
    assert (
        before
        == float(evaluate(params, X))
        == pytest.approx(float(chain(params, X)), rel=1e-5)
    )
    assert len(evaluate.plan(params, X).fragments) == 4
