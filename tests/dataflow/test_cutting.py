"""Fragments: acyclic, one transfer for a value and a place, the awaited part first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import dataflow
from fxflow import numpy as fnp
from fxflow.core.ir.graph import Var
from fxflow.dataflow import Fragment, on, stages
from fxflow.errors import PlacementError


def chain(*devices: int) -> Any:
    def f(x: Any) -> Any:
        for device in devices:
            with on(f"/device:cpu:{device}"):
                x = fnp.sin(x)
        return x

    return f


@pytest.mark.parametrize(
    ("devices", "count"), [((1,), 1), ((1, 1), 1), ((1, 2, 1), 3), ((1, 2, 2, 1, 2), 4)]
)
def test_a_return_to_a_place_makes_a_fragment(
    devices: tuple[int, ...], count: int
) -> None:
    plan = dataflow.jit(chain(*devices)).plan(1.0)
    assert len(plan.fragments) == count
    assert [f.after for f in plan.fragments[1:]] == [(i,) for i in range(count - 1)]


def test_fragments_come_in_an_order_that_can_be_run() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        picks = [tuple(rng.integers(0, 4, 3)) for _ in range(12)]

        def f(x: Any, picks: Any = picks) -> Any:
            values = [x]
            for a, b, device in picks:
                with on(f"/device:cpu:{device}"):
                    values.append(
                        values[a % len(values)] * values[-1 - b % len(values)]
                    )
            return sum(values)

        plan = dataflow.jit(f).plan(1.0)
        plan.check()
        made = set(plan.graph.inputs)
        for node in (n for fragment in plan.fragments for n in fragment.graph.nodes):
            assert made.issuperset(a for a in node.inputs if isinstance(a, Var))
            made.update(node.outputs)


def test_a_value_is_sent_once_to_each_place() -> None:
    def f(x: Any) -> Any:
        with on("/device:cpu:1"):
            y = fnp.sin(x)
        for _ in range(3):
            with on("/device:cpu:2"):
                x = x + y
            with on("/device:cpu:3"):
                x = x * y
        return x

    plan = dataflow.jit(f).plan(fnp.ones(5))
    sent = [(e.var, e.place) for e in plan.edges]
    assert len(sent) == len(set(sent))
    (source,) = (f.index for f in plan.fragments if f.place.device.id == 1)
    assert sorted(e.place.device.id for e in plan.edges if e.source == source) == [2, 3]


def test_the_gradient_of_the_input_comes_before_that_of_the_weights() -> None:
    def f(params: Any, x: Any) -> Any:
        for stage, w in zip(stages(2), params, strict=True):
            with on(stage):
                x = fnp.tanh(x @ w)
        return x.sum()

    shapes = [fnp.ones((64, 64))] * 2, fnp.ones((32, 64))
    plan = dataflow.jit(fxflow.grad(f)).plan(*shapes)
    first, forward, weights, backward = plan.fragments
    assert backward.after == (first.index, forward.index)
    assert first.place is backward.place and forward.place is weights.place

    def products(fragment: Fragment) -> int:
        names = [n.primitive.name for n in fragment.graph.nodes]
        return names.count("dot_general")

    # The product for the last stage's weights is not in what the first waits for.
    assert [products(f) for f in plan.fragments] == [1, 2, 1, 1]


def test_cheap_operations_wait_for_their_use() -> None:
    def f(x: Any) -> Any:
        with on("/device:cpu:1"):
            y = fnp.sin(x)
            late = fnp.cos(x)
        with on("/device:cpu:2"):
            y = fnp.exp(y)
        with on("/device:cpu:1"):
            return y * late

    first, _, last = dataflow.jit(f).plan(fnp.ones(3)).fragments
    assert [n.primitive.name for n in first.graph.nodes] == ["sin"]
    assert [n.primitive.name for n in last.graph.nodes] == ["cos", "mul"]
    # What takes longer runs while the second device works.
    assert len(dataflow.jit(f).plan(fnp.ones(60_000)).fragments) == 4


def test_small_rests_are_not_split_off() -> None:
    def f(x: Any) -> Any:
        with on("/device:cpu:1"):
            y = fnp.sin(x)
            z = fnp.cos(x)
        with on("/device:cpu:2"):
            return fnp.exp(y), z

    assert len(dataflow.jit(f).plan(fnp.ones(3)).fragments) == 2
    assert len(dataflow.jit(f).plan(fnp.ones(60_000)).fragments) == 3


def test_an_order_that_cannot_be_run_is_refused() -> None:
    plan = dataflow.jit(chain(1, 2)).plan(1.0)
    plan.fragments[0].after = (1,)
    with pytest.raises(PlacementError, match="wait for each other\n  fragment 0 on "):
        plan.check()


def test_strict_shows_the_path_that_comes_back() -> None:
    def f(x: Any) -> Any:
        with on("/device:cpu:1"):
            a = fnp.exp(fnp.sin(x))
        with on("/device:cpu:2"):
            b = fnp.cos(fnp.tan(a))
        with on("/device:cpu:3"):
            c = fnp.tanh(b) + fnp.sin(x)
        with on("/device:cpu:1"):
            return fnp.sqrt(x + 1) + c

    with pytest.raises(PlacementError) as caught:
        dataflow.jit(f, strict=True)(0.5)
    names = [part.split(" (")[0] for part in str(caught.value).split(" → ")]
    assert names == [
        "strict: a path leaves cpu:1 and comes back: exp on cpu:1",
        "cos on cpu:2",
        "add on cpu:3",
        "add on cpu:1",
    ]
    assert str(caught.value).count("test_cutting.py:") == 4


def test_strict_allows_what_only_shares_a_place() -> None:
    def f(x: Any) -> Any:
        with on("/device:cpu:1"):
            a = fnp.sin(x)
        with on("/device:cpu:2"):
            b = fnp.cos(x)
        with on("/device:cpu:1"):
            return a, fnp.tan(b)

    # No path leaves the first device.
    dataflow.jit(f, strict=True)(0.5)


def kinds(f: Any, *args: Any) -> set[str]:
    return {fragment.kind for fragment in dataflow.jit(f).plan(*args).fragments}


def test_nothing_is_backward_without_a_pipeline_or_a_derivative() -> None:
    assert kinds(chain(1, 2, 1, 2), 1.0) == {"O"}

    def step(h: Any, x: Any) -> Any:
        for device in (1, 2):
            with on(f"/device:cpu:{device}"):
                h = fnp.tanh(h * x)
        return h, None

    def rnn(h: Any, xs: Any) -> Any:
        return fxflow.lax.scan(step, h, xs)[0]

    assert kinds(rnn, 1.0, fnp.ones(5)) == {"F", "O"}

    def summed(h: Any, xs: Any) -> Any:
        return fxflow.lax.scan(lambda s, x: (s + fxflow.grad(rnn)(h, x), None), h, xs)[
            0
        ]

    assert "B" in kinds(summed, 1.0, fnp.ones((3, 2)))
