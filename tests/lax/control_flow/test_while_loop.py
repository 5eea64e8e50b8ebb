"""`while_loop`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import config, jit, lax, make_graph, vmap
from fxflow.errors import (
    ArgumentError,
    NotDifferentiableError,
    ShapeError,
    TreeError,
)

X = np.float32(0.5)


def doubled(x: Any) -> Any:
    return lax.while_loop(lambda c: lax.lt(c, 100.0), lambda c: lax.mul(c, 2.0), x)


def test_while_values() -> None:
    assert float(doubled(3.0)) == 192.0
    assert float(jit(doubled)(3.0)) == 192.0
    assert float(doubled(300.0)) == 300.0


def test_while_batched_condition_stops_each_slice_by_itself() -> None:
    xs = np.array([3.0, 50.0, 300.0], np.float32)
    assert vmap(doubled)(xs).tolist() == [192.0, 100.0, 300.0]


def test_while_batched_body_with_one_condition() -> None:
    def run(x: Any) -> Any:
        return lax.while_loop(
            lambda c: lax.lt(c[0], 3),
            lambda c: (lax.add(c[0], 1), lax.mul(c[1], x)),
            (0, 1.0),
        )[1]

    graph = make_graph(vmap(run))(np.arange(3.0))
    (node,) = [n for n in graph.nodes if n.primitive.name == "while"]
    assert node.params["condition"].out_avals[0].shape == ()
    assert len(node.params["condition"].nodes) == 1, "no reduction of the condition"
    assert vmap(run)(np.arange(3.0)).tolist() == [0.0, 1.0, 8.0]


def test_while_forward_derivative() -> None:
    def run(x: Any) -> Any:
        step = lambda c: (lax.add(c[0], 1), lax.mul(lax.sin(c[1]), x))
        return lax.while_loop(lambda c: lax.lt(c[0], 4), step, (0, x))[1]

    _, t = fxflow.jvp(run, (np.float64(0.7),), (1.0,))
    near = [float(run(np.float32(0.7 + h))) for h in (1e-3, -1e-3)]
    np.testing.assert_allclose(float(t), (near[0] - near[1]) / 2e-3, rtol=1e-3)
    _, linear = fxflow.linearize(run, np.float32(0.7))
    np.testing.assert_allclose(float(linear(1.0)), float(t), rtol=1e-6)
    np.testing.assert_allclose(float(jit(fxflow.jacfwd(run))(0.7)), float(t), rtol=1e-6)


def test_while_reverse_derivative_is_a_clear_error() -> None:
    with pytest.raises(
        NotDifferentiableError, match=r"while_loop.*use scan.*custom_vjp"
    ):
        fxflow.grad(doubled)(3.0)


def test_while_that_is_not_differentiated_inside_grad() -> None:
    def run(x: Any) -> Any:
        n = lax.while_loop(lambda n: lax.lt(n, 10), lambda n: lax.mul(n, 2), 3)
        return lax.mul(x, lax.convert_element_type(n, np.float32))

    assert float(fxflow.grad(run)(2.0)) == 12.0


def test_while_without_carry_and_with_unwanted_carry() -> None:
    assert lax.while_loop(lambda _: False, lambda _: (), ()) == ()

    def run(x: Any) -> Any:
        carry = (0, x, x)
        step = lambda c: (lax.add(c[0], 1), lax.mul(c[1], 2.0), lax.sin(c[2]))
        return lax.while_loop(lambda c: lax.lt(c[0], 3), step, carry)[1]

    (node,) = make_graph(run)(1.0).nodes
    assert len(node.outputs) == 2
    assert all(n.primitive.name != "sin" for n in node.params["body"].nodes)
    assert float(jit(run)(1.0)) == 8.0


def test_while_weak_carry() -> None:
    out = lax.while_loop(
        lambda c: lax.lt(c, 4.0),
        lambda c: lax.add(lax.convert_element_type(c, np.float32), np.float32(1.5)),
        0,
    )
    assert out.dtype == np.float32
    assert float(out) == 4.5


def test_without_jit_the_callers_array_stays() -> None:
    def change(x):
        x += 1
        return x

    given = np.zeros(2)
    with config.override(disable_jit=True):
        for run in (
            lambda: lax.while_loop(lambda x: x[0] < 3, change, given),
            lambda: lax.fori_loop(0, 3, lambda _, x: change(x), given),
            lambda: lax.scan(lambda x, _: (change(x), None), given, length=3)[0],
            lambda: lax.cond(True, change, change, given + 2),
            lambda: jit(change)(given) + 2,
        ):
            assert run().tolist() == [3.0, 3.0]
            assert given.tolist() == [0.0, 0.0]


def test_disable_jit() -> None:
    seen: list[float] = []

    def body(c: Any) -> Any:
        seen.append(float(c))
        return lax.mul(c, 2.0)

    with config.override(disable_jit=True):
        out = lax.while_loop(lambda c: lax.lt(c, 10.0), body, 3.0)
        total = lax.fori_loop(0, 3, lambda i, c: c + [i], [])  # any Python value
    assert float(out) == 12.0
    assert seen == [3.0, 6.0]
    assert total == [0, 1, 2]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: lax.while_loop(lambda c: c, lambda c: c, 3.0),
            ArgumentError,
            r"cond_fun must return one bool \(bool\[\]\), got f32\[\]",
        ),
        (
            lambda: lax.while_loop(lambda c: lax.lt(c, 3.0), lambda c: c, np.ones(2)),
            ArgumentError,
            r"got bool\[2\].*\.any\(\)",
        ),
        (
            lambda: lax.while_loop(lambda c: True, lambda c: [c], 3.0),
            TreeError,
            "while_loop: the body must return a carry of the structure",
        ),
        (
            lambda: lax.while_loop(lambda c: True, lambda c: lax.broadcast(c, (2,)), X),
            ShapeError,
            r"carry comes in as f32\[\] and is returned as f32\[2\]",
        ),
        (lambda: lax.while_loop(1, 2, 3), ArgumentError, "cond_fun must be a function"),
        (
            lambda: lax.while_loop(lambda c: c < 9, lambda c: c, X, max_steps=0),
            ArgumentError,
            "max_steps is a positive int, got 0",
        ),
        (
            lambda: lax.while_loop(lambda c: c < 9, lambda c: c, X, max_steps=True),
            ArgumentError,
            "max_steps is a positive int, got True",
        ),
        (
            lambda: lax.while_loop(lambda c: c, lambda c: c, X, max_steps=3),
            ArgumentError,
            r"cond_fun must return one bool \(bool\[\]\), got f32\[\]",
        ),
    ],
)
def test_invalid_conditions_and_bodies_are_refused(
    call: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()


def test_an_inner_loop_of_a_row_that_is_done_keeps_nothing_alive() -> None:
    def run(x: Any) -> Any:
        inner = lambda v: lax.while_loop(lambda v: v < 100, lambda v: v * v, v)
        body = lambda c: (c[0] - 1, c[1] + inner(c[0]))
        return lax.while_loop(lambda c: c[0] > 1, body, (x, 0 * x))[1]

    xs = np.array([1.0, 2.5, 3.0, 0.5], np.float32)
    want = [float(run(x)) for x in xs]
    np.testing.assert_allclose(vmap(run)(xs), want, rtol=1e-6)
    np.testing.assert_allclose(jit(vmap(run))(xs), want, rtol=1e-6)


def test_a_bound_ends_the_loop() -> None:
    def run(x: Any, n: int) -> Any:
        return lax.while_loop(lambda c: c < 100, lambda c: 2 * c, x, max_steps=n)

    for n, expected in ((1, 6.0), (2, 12.0), (6, 192.0), (1000, 192.0)):
        assert float(run(3.0, n)) == float(jit(lambda x, n=n: run(x, n))(3.0))
        assert float(run(3.0, n)) == expected
        with config.override(disable_jit=True):
            assert float(run(3.0, n)) == expected
    assert float(run(300.0, 5)) == 300.0
    assert "bound" not in str(make_graph(doubled)(3.0))
    assert "bound=7" in str(make_graph(lambda x: run(x, 7))(3.0))


def test_a_loop_of_no_slices_takes_no_step() -> None:
    # XLA's compiler crashed on the first of these.
    seen: list[Any] = []

    @fxflow.custom_batching.custom_vmap
    def step(x: Any) -> Any:
        return x + 1

    @step.def_vmap
    def rule(size: int, mapped: Any, x: Any, *, active: Any) -> tuple[Any, bool]:
        fxflow.debug.callback(seen.append, x)
        return x + 1, True

    loop = lambda x: lax.while_loop(lambda v: v < 3, step, x)
    for run in (vmap(loop), jit(vmap(loop))):
        assert run(fnp.zeros(0)).shape == (0,)
    fxflow.effects_barrier()
    assert not seen
    pair = lambda x: lax.while_loop(lambda v: v[0] < 3, lambda v: (v[0] + 1, 7), (x, 2))
    x, count = vmap(pair)(fnp.zeros(0))
    assert x.shape == count.shape == (0,)
