"""Vectorized conditions: values, and derivatives past the branches not taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import jit, lax, make_graph, vmap

ZEROS = np.zeros(3, np.float32)
XS = np.array([0.0, 1.0, 4.0], np.float32)

Wrap = Callable[[Callable[..., Any]], Callable[..., Any]]
wrappers = pytest.mark.parametrize("wrap", [lambda f: f, jit, fxflow.checkpoint])


def root(x: Any) -> Any:
    return lax.cond(
        lax.lt(x, 1e-3), lambda x: lax.full_like(x, 1e-3), lambda x: lax.sqrt(x), x
    )


def total(x: Any) -> Any:
    return lax.reduce_sum(vmap(root)(x), (0,))


@wrappers
def test_no_derivative_from_the_branch_not_taken(wrap: Wrap) -> None:
    f = wrap(total)
    assert fxflow.grad(f)(ZEROS).tolist() == [0, 0, 0]
    assert jit(fxflow.grad(f))(ZEROS).tolist() == [0, 0, 0]
    assert float(fxflow.jvp(f, (ZEROS,), (ZEROS + 1,))[1]) == 0
    assert fxflow.grad(f)(XS).tolist() == [0, 0.5, 0.25]
    want = np.diag([0, -0.25, -0.03125]).tolist()
    for outer in (fxflow.jacfwd, fxflow.jacrev):
        for inner in (fxflow.jacfwd, fxflow.jacrev):
            assert outer(inner(f))(XS).tolist() == want


@wrappers
def test_gradient_inside_vmap(wrap: Wrap) -> None:
    slopes = vmap(fxflow.grad(wrap(root)))
    assert slopes(XS).tolist() == [0, 0.5, 0.25]
    bend = fxflow.grad(lambda x: lax.reduce_sum(slopes(x), (0,)))
    assert bend(XS).tolist() == [0, -0.25, -0.03125]


@pytest.mark.parametrize("named", [False, True])
def test_operand_that_rows_share(named: bool) -> None:
    """Its cotangent is a sum over rows, among them those that took another branch."""

    def f(w: Any, x: Any) -> Any:
        def row(x: Any) -> Any:
            value = lambda: lax.mul(w, lax.log(x))
            if named:
                value = lambda: lax.psum(lax.mul(w, lax.log(lax.max(x, 1e-30))), "i")
            return lax.cond(lax.lt(x, 1e-3), lambda: lax.mul(w, 0.0), value)

        rows = vmap(row, axis_name="i" if named else None)(x)
        return lax.reduce_sum(rows, (0,))

    dw, dx = fxflow.grad(f, (0, 1))(2.0, XS)
    logs = np.log(np.maximum(XS.astype("f8"), 1e-30))
    if named:
        np.testing.assert_allclose(dw, 2 * logs.sum(), rtol=1e-6)
    else:
        np.testing.assert_allclose(dw, logs[1:].sum(), rtol=1e-6)
        assert dx.tolist() == [0, 2, 0.5]
    dw, dx = fxflow.grad(f, (0, 1))(2.0, ZEROS)
    assert float(dw) == 0
    assert dx.tolist() == [0, 0, 0]


def test_two_vectorized_axes_and_no_rows() -> None:
    def f(x: Any) -> Any:
        return lax.reduce_sum(vmap(vmap(root))(x), (0, 1))

    grid = np.stack([ZEROS, XS])
    assert fxflow.grad(f)(grid).tolist() == [[0, 0, 0], [0, 0.5, 0.25]]
    assert fxflow.grad(total)(ZEROS[:0]).tolist() == []


def test_scan_inside_a_branch() -> None:
    def row(x: Any) -> Any:
        def steps(x: Any) -> Any:
            step = lambda c, _: (lax.mul(lax.sqrt(c), x), None)
            return lax.scan(step, x, None, length=2)[0]

        return lax.cond(lax.lt(x, 1e-3), lambda x: x, steps, x)

    slopes = fxflow.grad(lambda x: lax.reduce_sum(vmap(row)(x), (0,)))(XS)
    np.testing.assert_allclose(slopes, [1, 1.75, 1.75 * 4**0.75], rtol=1e-6)


def test_transposed() -> None:
    rows = vmap(lambda p, t: lax.cond(p, lambda: t, lambda: lax.mul(t, 2.0)))
    back = fxflow.linear_transpose(
        lambda t: rows(np.array([True, False]), t), np.ones(2, np.float32)
    )
    assert back(np.array([3, 4], np.float32))[0].tolist() == [3, 8]


def test_unwanted_results_are_dropped() -> None:
    def f(x: Any) -> Any:
        pair = lambda x: (lax.sin(x), lax.cos(x))
        swapped = lambda x: (lax.cos(x), lax.sin(x))
        return vmap(lambda x: lax.cond(lax.gt(x, 0.0), pair, swapped, x))(x)[0]

    (node,) = [n for n in make_graph(f)(XS).nodes if n.primitive.name == "cond_rows"]
    assert len(node.outputs) == 1
    text = jit(f).lower(XS).as_text()
    assert text.count("stablehlo.select") == 1


def test_the_guard_adds_no_select_or_reduction() -> None:
    text = jit(vmap(root)).lower(XS).as_text()
    assert text.count("stablehlo.select") == 1
    assert "stablehlo.reduce" not in text


@pytest.mark.parametrize("mode", [vmap, lambda f: jit(vmap(f)), lambda f: vmap(jit(f))])
def test_a_loop_ends_although_it_would_not_for_rows_of_other_branches(
    mode: Wrap,
) -> None:
    squares = lambda x: lax.while_loop(lambda v: v < 100, lambda v: v * v, x)
    f = lambda x: lax.cond(x > 1, squares, lambda x: x * 2, x)
    assert mode(f)(np.array([1.0, 2, 3, 0.5], np.float32)).tolist() == [2, 256, 6561, 1]
    assert mode(f)(np.ones(3, np.float32)).tolist() == [2, 2, 2], "no row takes it"
    grid = np.array([[1.0, 2], [0.5, 1]], np.float32)
    assert vmap(mode(f))(grid).tolist() == [[2, 256], [1, 2]]


def test_a_loop_in_a_rule_ends_too() -> None:
    """The derivative's own loop runs over the operands of the rows that take part."""
    squares = fxflow.custom_vjp(
        lambda x: lax.while_loop(lambda v: v < 100, lambda v: v * v, x)
    )
    squares.defvjp(lambda x: (squares(x), x), lambda x, ct: (ct * x,))
    f = lambda x: lax.cond(x > 1, squares, lambda x: x * 2, x)
    xs = np.array([1.0, 2, 3, 0.5], np.float32)
    assert fxflow.grad(lambda x: vmap(f)(x).sum())(xs).tolist() == [2, 2, 3, 2]
    assert jit(vmap(fxflow.grad(f)))(xs).tolist() == [2, 2, 3, 2]
