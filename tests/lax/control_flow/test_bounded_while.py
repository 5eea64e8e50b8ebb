"""Reverse mode of `while_loop` with `max_steps`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import checkify, jit, lax, make_graph, vmap
from fxflow import numpy as fnp

RNG = np.random.default_rng(0)
W = RNG.normal(size=(8, 8)).astype(np.float32) / 3
X = RNG.normal(size=(2, 8)).astype(np.float32)


def newton(a: Any, n: int = 50) -> Any:
    """The square root of a number, by Newton's method."""

    def goes_on(carry: Any) -> Any:
        return fnp.abs(carry[0] ** 2 - a) > 1e-5 * a

    def step(carry: Any) -> Any:
        return (carry[0] + a / carry[0]) / 2, carry[1] + 1

    return lax.while_loop(goes_on, step, (a, 0), max_steps=n)[0]


def test_derivatives_of_several_orders() -> None:
    value, slope = fxflow.value_and_grad(newton)(7.0)
    np.testing.assert_allclose([value, slope], [7**0.5, 0.5 / 7**0.5], rtol=1e-5)
    second = jit(fxflow.grad(fxflow.grad(newton)))(7.0)
    np.testing.assert_allclose(second, -0.25 * 7**-1.5, rtol=1e-4)
    np.testing.assert_allclose(fxflow.hessian(newton)(7.0), second, rtol=1e-5)
    forward = fxflow.jvp(newton, (7.0,), (1.0,))[1]
    np.testing.assert_allclose(forward, slope, rtol=1e-6)


def test_each_row_has_its_own_steps() -> None:
    xs = np.array([2.0, 7.0, 1e4], np.float32)
    expected = 0.5 / np.sqrt(xs)
    np.testing.assert_allclose(vmap(fxflow.grad(newton))(xs), expected, rtol=1e-4)
    whole = fxflow.grad(lambda x: vmap(newton)(x).sum())(xs)
    np.testing.assert_allclose(whole, expected, rtol=1e-4)


def by_while(w: Any, x: Any, n: Any, bound: int) -> Any:
    def step(carry: Any) -> Any:
        return carry[0] + 1, fnp.tanh(carry[1] @ w)

    return lax.while_loop(lambda c: c[0] < n, step, (0, x), max_steps=bound)[1]


def by_scan(w: Any, x: Any, n: int) -> Any:
    return lax.fori_loop(0, n, lambda _, c: fnp.tanh(c @ w), x)


@pytest.mark.parametrize("steps", [0, 1, 4, 5, 9])
@pytest.mark.parametrize("bound", [1, 5, 9, 30])
def test_steps_around_the_bound_give_the_derivatives_of_a_scan(
    steps: int, bound: int
) -> None:
    made = min(steps, bound)
    run = jit(lambda w, x, n: fxflow.vjp(lambda *a: by_while(*a, n, bound), w, x)[1](X))
    given = run(W, X, steps)
    expected = fxflow.vjp(lambda w, x: by_scan(w, x, made), W, X)[1](X)
    for got, want in zip(given, expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)


def test_memory_grows_with_the_root_of_the_bound() -> None:
    def temporary(bound: int) -> int:
        slope = fxflow.grad(lambda w, x: by_while(w, x, 3, bound).sum())
        return jit(slope).lower(W, X).compile().memory_analysis()["temp_size_in_bytes"]

    few, many = temporary(100), temporary(10_000)
    assert many < 15 * few


def test_a_loop_over_references_and_within_other_loops() -> None:
    def run(x: Any) -> Any:
        def outer(carry: Any, _: Any) -> Any:
            return newton(carry), None

        return lax.scan(outer, x, None, length=2)[0]

    np.testing.assert_allclose(fxflow.grad(run)(16.0), 0.25 * 16**-0.75, rtol=1e-4)

    def counted(x: Any) -> Any:
        ref = fxflow.new_ref(x)

        def step(i: Any) -> Any:
            ref[...] = ref[...] * 2
            return i + 1

        lax.while_loop(lambda i: i < 3, step, 0, max_steps=5)
        return ref[...]

    assert float(fxflow.grad(lambda x: counted(x) ** 2)(1.5)) == 2 * 64 * 1.5


def test_checks_and_checkpoints_around_it() -> None:
    checked = checkify.checkify(fxflow.grad(newton), errors=checkify.float_checks)
    error, slope = checked(7.0)
    error.throw()
    again = fxflow.grad(fxflow.checkpoint(newton))(7.0)
    np.testing.assert_allclose([slope, again], 0.5 / 7**0.5, rtol=1e-5)


def test_what_is_not_differentiated_stays_a_loop() -> None:
    graph = make_graph(fxflow.grad(lambda x: x * newton(lax.stop_gradient(x))))(7.0)
    assert "while[" in str(graph) and "scan[" not in str(graph)


def test_a_batch_skips_the_chunks_after_its_last_step():
    def f(x):
        return lax.while_loop(lambda x: x < 100, lambda x: 2 * x, x, max_steps=64)

    x = np.array([3.0, 60.0], np.float32)
    program = fxflow.jit(fxflow.vmap(fxflow.grad(f)))
    # One branch of the scan over chunks forward, one backward.
    assert program.lower(x).as_text().count("stablehlo.case") >= 2
    np.testing.assert_array_equal(program(x), [64, 2])
