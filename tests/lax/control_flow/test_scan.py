"""`scan`: values against Python loops, derivatives, what is kept, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import config, jit, lax, make_graph, vmap
from fxflow.core import caches
from fxflow.core.ir.graph import Graph
from fxflow.errors import ArgumentError, DtypeError, ShapeError, TreeError


def add_up(carry: Any, x: Any) -> Any:
    new = lax.add(carry, x)
    return new, lax.mul(new, x)


XS = np.arange(1.0, 6.0, dtype=np.float32)


def expected(carry: float, xs: Any) -> tuple[float, list[float]]:
    ys = []
    for x in xs:
        carry += x
        ys.append(carry * x)
    return carry, ys


@pytest.mark.parametrize("unroll", [1, 2, 3, 5, 7, True, False])
@pytest.mark.parametrize("reverse", [False, True])
def test_every_unroll_and_direction_agrees_with_a_python_loop(
    unroll: Any, reverse: bool
) -> None:
    last, ys = lax.scan(add_up, 0.5, XS, reverse=reverse, unroll=unroll)
    want, want_ys = expected(0.5, XS[::-1] if reverse else XS)
    assert float(last) == want
    assert ys.tolist() == (want_ys[::-1] if reverse else want_ys)


def test_pytrees_and_none() -> None:
    def body(carry: Any, x: Any) -> Any:
        return {"n": lax.add(carry["n"], x["a"])}, (x["b"], None)

    xs = {"a": np.arange(3, dtype=np.int32), "b": np.ones((3, 2), np.float32)}
    carry, (ys, nothing) = lax.scan(body, {"n": 0}, xs)
    assert int(carry["n"]) == 3
    assert ys.shape == (3, 2)
    assert nothing is None


def test_length_without_xs() -> None:
    last, ys = lax.scan(lambda c, _: (lax.mul(c, 2.0), c), 1.0, None, length=4)
    assert float(last) == 16.0
    assert ys.tolist() == [1.0, 2.0, 4.0, 8.0]


def test_no_steps() -> None:
    last, ys = lax.scan(add_up, 2.0, np.zeros((0,), np.float32))
    assert float(last) == 2.0
    assert ys.shape == (0,)


def test_weak_carry_takes_the_body_type() -> None:
    last, _ = lax.scan(lambda c, x: (lax.add(x, 1.0), None), 0, XS)
    assert last.dtype == np.float32
    assert not last.weak_type


def test_captured_values_and_jit() -> None:
    weight = np.full((), 3.0, np.float32)

    def run(w: Any, xs: Any) -> Any:
        return lax.scan(lambda c, x: (lax.add(lax.mul(c, w), x), c), 0.0, xs)[0]

    total = 0.0
    for x in XS:
        total = total * 3.0 + x
    assert float(jit(run)(weight, XS)) == total
    assert float(run(weight, XS)) == total


def test_gradient_is_a_reverse_scan() -> None:
    def run(w: Any) -> Any:
        return lax.scan(lambda c, x: (lax.sin(lax.mul(c, w)), None), 0.5, XS)[0]

    def loop(w: float) -> float:
        c = 0.5
        for _ in XS:
            c = np.sin(c * w)
        return c

    want = (loop(1.2 + 1e-6) - loop(1.2 - 1e-6)) / 2e-6
    for gradient in (fxflow.grad(run), jit(fxflow.grad(run)), fxflow.grad(jit(run))):
        np.testing.assert_allclose(float(gradient(1.2)), want, rtol=1e-5)


def scans(graph: Graph) -> list[Any]:
    return [n for n in graph.nodes if n.primitive.name == "scan"]


def test_what_is_the_same_in_all_steps_is_not_stacked() -> None:
    def run(w: Any, xs: Any) -> Any:
        def body(c: Any, x: Any) -> Any:
            gain = lax.exp(lax.sin(w))
            return lax.mul(lax.add(c, x), gain), None

        return lax.reduce_sum(lax.scan(body, w, xs)[0], (0,))

    w, xs = np.ones((3,), np.float32), np.ones((50, 3), np.float32)
    graph = make_graph(fxflow.grad(run))(w, xs)
    forward, backward = scans(graph)
    stacked = [a for a in forward.outputs if a.aval.shape[:1] == (50,)]
    assert len(stacked) == 1, "only carry + x varies, and is multiplied"
    assert any(n.primitive.name == "exp" for n in graph.nodes), "hoisted"
    assert backward.params["reverse"]


def test_inputs_are_not_stacked_again() -> None:
    def run(w: Any, xs: Any) -> Any:
        return lax.scan(lambda c, x: (lax.add(c, lax.mul(w, x)), None), 0.0, xs)[0]

    graph = make_graph(fxflow.grad(run))(2.0, XS)
    forward = scans(graph)
    assert all(a.aval.shape != (5,) for n in forward for a in n.outputs)


def test_unwanted_outputs_are_dropped() -> None:
    def run(xs: Any) -> Any:
        def body(carry: Any, x: Any) -> Any:
            a, b = carry
            return (lax.add(a, x), lax.mul(b, x)), (lax.sin(a), b)

        (a, _), _ = lax.scan(body, (0.0, 1.0), xs)
        return a

    (node,) = scans(make_graph(run)(XS))
    assert len(node.outputs) == 1
    assert [n.primitive.name for n in node.params["graph"].nodes] == ["add"]


def test_forward_over_reverse_and_vmap_of_grad() -> None:
    def run(w: Any) -> Any:
        return lax.scan(lambda c, x: (lax.mul(lax.sin(c), w), None), 0.5, XS)[0]

    twice = fxflow.grad(fxflow.grad(run))(0.9)
    _, forward = fxflow.jvp(fxflow.grad(run), (0.9,), (1.0,))
    np.testing.assert_allclose(float(twice), float(forward), rtol=1e-5)
    ws = np.array([0.5, 0.9, 1.3], np.float32)
    many = vmap(fxflow.grad(run))(ws)
    one = [float(fxflow.grad(run)(w)) for w in ws]
    np.testing.assert_allclose(np.asarray(many), one, rtol=1e-5)


def test_integer_carry_beside_a_differentiated_one() -> None:
    def run(x: Any) -> Any:
        def body(carry: Any, _: Any) -> Any:
            i, c = carry
            return (lax.add(i, 1), lax.mul(c, x)), None

        return lax.scan(body, (0, 1.0), None, length=3)[0][1]

    assert float(fxflow.grad(run)(2.0)) == 12.0


def test_linear_transpose_with_a_counter() -> None:
    def linear(x: Any) -> Any:
        def body(carry: Any, _: Any) -> Any:
            i, c = carry
            scale = lax.convert_element_type(i, np.float32)
            return (lax.add(i, 1), lax.mul(c, scale)), None

        return lax.scan(body, (1, x), None, length=3)[0][1]

    (ct,) = fxflow.linear_transpose(linear, 1.0)(2.0)
    assert float(ct) == 12.0


def test_disable_jit_runs_python() -> None:
    seen = []

    def body(carry: Any, x: Any) -> Any:
        seen.append(float(x))
        return lax.add(carry, x), carry

    with config.override(disable_jit=True):
        last, ys = lax.scan(body, 0.0, XS, reverse=True)
    assert seen == XS[::-1].tolist()
    assert float(last) == 15.0
    assert ys.tolist() == [14.0, 12.0, 9.0, 5.0, 0.0]


def test_eager_loops_do_not_trace_again() -> None:
    traced = []

    def run() -> Any:
        return lax.scan(lambda c, x: (lax.add(c, x), traced_here()), 0.0, XS)

    def traced_here() -> None:
        count = len(traced)
        traced.append(count)

    run()
    # A list may change, so nothing that refers to one is remembered ...
    run()
    assert len(traced) >= 2

    def pure() -> Any:
        return lax.scan(lambda c, x: (lax.add(c, x), None), 0.0, XS)

    pure()
    known = caches.sizes()["traced bodies"]
    pure()
    assert caches.sizes()["traced bodies"] == known


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: lax.scan(3, 0.0, XS), ArgumentError, "scan: f must be a function"),
        (
            lambda: lax.scan(lambda c, x: c, 0.0, XS),
            ArgumentError,
            r"must return a pair \(carry, output\)",
        ),
        (
            lambda: lax.scan(add_up, 0.0, None),
            ArgumentError,
            "pass xs or length",
        ),
        (
            lambda: lax.scan(add_up, 0.0, {"a": XS, "b": XS[:2]}),
            ShapeError,
            r"xs\['a'\] is f32\[5\] and xs\['b'\] is f32\[2\]",
        ),
        (
            lambda: lax.scan(add_up, 0.0, XS, length=3),
            ShapeError,
            r"length is 3 and xs is f32\[5\]",
        ),
        (
            lambda: lax.scan(add_up, 0.0, np.float32(3)),
            ShapeError,
            "no leading axis",
        ),
        (
            lambda: lax.scan(add_up, 0.0, XS, unroll=0),
            ArgumentError,
            "unroll must be a positive int",
        ),
        (lambda: lax.scan(add_up, 0.0, length=-1), ArgumentError, "not be negative"),
        (lambda: lax.scan(add_up, 0.0, length=1.5), ArgumentError, "length must be"),
        (lambda: lax.scan(add_up, {"a": "no"}, XS), ArgumentError, r"init\['a'\]"),
        (
            lambda: lax.scan(
                lambda c, x: ({"h": lax.broadcast(c["h"], (2,))}, x), {"h": XS[0]}, XS
            ),
            ShapeError,
            r"carry\['h'\] comes in as f32\[\] and is returned as f32\[2\]",
        ),
        (
            lambda: lax.scan(
                lambda c, x: (lax.convert_element_type(c, np.int32), x), XS[0], XS
            ),
            DtypeError,
            r"carry comes in as f32\[\] and is returned as i32\[\].*astype",
        ),
        (
            lambda: lax.scan(lambda c, x: ((c, c), x), 0.0, XS),
            TreeError,
            "must return a carry of the structure it takes",
        ),
    ],
)
def test_invalid_bodies_carries_and_lengths_are_refused(
    call: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()
