"""`while_loop` and `fori_loop`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import config, jit, lax, make_graph, vmap
from fxflow.errors import (
    ArgumentError,
    DtypeError,
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


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize(
    ("lower", "upper"),
    [(0.0, 3.0), (0.5, 3.2), (0, 2.5), (-1.5, 2), (2.0, 1.0), (1.0, 1.0)],
)
def test_float_bounds(lower: float, upper: float, traced: bool) -> None:
    expected, i = [], float(lower)
    while i < upper:
        expected.append(i)
        i += 1

    def run(lower, upper):
        return lax.fori_loop(
            lower, upper, lambda i, c: (c[0] + i, c[1] + 1), (np.float32(0), 0)
        )

    if traced:
        run = jit(run)
    total, steps = run(float(lower), upper) if traced else run(lower, upper)
    assert (float(total), int(steps)) == (sum(expected), len(expected))
    if not traced:
        with config.override(disable_jit=True):
            total, steps = run(lower, upper)
        assert (float(total), int(steps)) == (sum(expected), len(expected))


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


def test_fori_values() -> None:
    assert int(lax.fori_loop(0, 5, lambda i, c: lax.add(c, i), 0)) == 10
    assert int(lax.fori_loop(3, 5, lambda i, c: lax.add(c, i), 0)) == 7
    assert int(lax.fori_loop(5, 3, lambda i, c: lax.add(c, i), 1)) == 1
    assert int(lax.fori_loop(-2, 2, lambda i, c: lax.add(c, i), 0)) == -2
    total = lax.fori_loop(0, 5, lambda i, c: lax.add(c, i), 0, unroll=2)
    assert int(total) == 10
    big = lax.fori_loop(np.int32(0), np.int32(3), lambda i, c: lax.add(c, i), 0)
    assert int(big) == 3


def test_fori_traced_bounds() -> None:
    def run(start: Any, stop: Any) -> Any:
        return lax.fori_loop(start, stop, lambda i, c: lax.add(c, i), 0)

    assert int(jit(run)(2, 6)) == 14
    small = jit(lambda n: lax.fori_loop(0, n, lambda i, c: lax.add(c, i), n))
    assert small(np.uint8(4)).dtype == np.uint8
    assert int(small(np.uint8(4))) == 10
    stops = np.array([0, 3, 5], np.int32)
    assert vmap(lambda n: run(0, n))(stops).tolist() == [0, 3, 10]


def test_fori_gradient() -> None:
    run = lambda x: lax.fori_loop(0, 3, lambda i, c: lax.mul(c, x), 1.0)
    assert float(fxflow.grad(run)(2.0)) == 12.0
    with pytest.raises(NotDifferentiableError, match="Python ints"):
        jit(
            lambda n: fxflow.grad(
                lambda x: lax.fori_loop(0, n, lambda i, c: lax.mul(c, x), 1.0)
            )(2.0)
        )(3)


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
            lambda: lax.fori_loop(0j, 3, lambda i, c: c, X),
            ArgumentError,
            r"lower must be a real number, got c64\[\]",
        ),
        (
            lambda: lax.fori_loop(0.0, np.inf, lambda i, c: c, X),
            ArgumentError,
            "bounds must be finite, got lower 0.0 and upper inf",
        ),
        (
            lambda: lax.fori_loop(0.5, np.int32(3), lambda i, c: c, X),
            DtypeError,
            r"bounds must have one dtype, got lower f32\[\]~ and upper i32\[\]",
        ),
        (
            lambda: lax.fori_loop(np.int32(0), np.uint8(3), lambda i, c: c, X),
            DtypeError,
            r"bounds must have one dtype, got lower i32\[\] and upper u8\[\]",
        ),
        (
            lambda: jit(lambda n: lax.fori_loop(0, n, lambda i, c: c, X, unroll=2))(3),
            ArgumentError,
            "unroll needs bounds that are known",
        ),
    ],
)
def test_invalid_conditions_bodies_and_bounds_are_refused(
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
