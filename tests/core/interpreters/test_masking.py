"""Effects in vectorized branches and loops: only for the rows that take part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import jit, lax, make_graph, vmap
from fxflow.core.interpreters.masking import masked_graph
from fxflow.errors import ArgumentError
from fxflow.lax.callbacks import debug_callback, io_callback

XS = np.array([1.0, 2.5, 3.0, 0.5], np.float32)
SCALAR = fxflow.ShapeDtypeStruct((), "float32")

seen: list[float] = []


def note(x: Any) -> np.float32:
    seen.append(float(x))
    return np.float32(x)


def reported(x: Any) -> Any:
    return io_callback(note, SCALAR, x)


def shown(x: Any) -> Any:
    debug_callback(note, x)
    return x


def in_branch(x: Any) -> Any:
    return lax.cond(x > 1, reported, lambda x: 0 * x, x)


def of_a_constant(x: Any) -> Any:
    return lax.cond(x > 1, lambda: reported(7.0), lambda: 0 * x)


def in_switch(x: Any) -> Any:
    branches = [lambda: x, lambda: reported(x), lambda: -shown(-x)]
    return lax.switch(x.astype("int32"), branches)


def in_loop(x: Any) -> Any:
    return lax.while_loop(lambda v: v > 1, lambda v: reported(v) - 1, x)


def of_a_constant_in_loop(x: Any) -> Any:
    body = lambda c: (c[0] - 1, reported(7.0))
    return lax.while_loop(lambda c: c[0] > 1, body, (x, 0 * x))[1]


def in_condition(x: Any) -> Any:
    return lax.while_loop(lambda v: shown(v) > 1, lambda v: v - 1, x)


def in_inner_loop(x: Any) -> Any:
    inner = lambda c: lax.while_loop(lambda v: v < 4, lambda v: shown(v) * 2, c)
    body = lambda c: (c[0] - 1, c[1] + inner(c[0]))
    return lax.while_loop(lambda c: c[0] > 1, body, (x, 0 * x))[1]


def in_calls(x: Any) -> Any:
    def branch(x: Any) -> Any:
        step = lambda c, i: (c, lax.cond(c + i > 2.6, reported, shown, c + i))
        return jit(lambda x: lax.scan(step, x, fnp.arange(2.0))[1].sum())(x)

    return lax.cond(x > 1, fxflow.checkpoint(branch), lambda x: x, x)


def in_a_custom_derivative(x: Any) -> Any:
    f = fxflow.custom_jvp(shown)
    f.defjvp(lambda primals, tangents: (f(*primals), *tangents))
    return lax.cond(x > 1, f, lambda x: x, x)


def in_a_custom_vmap(x: Any) -> Any:
    f = fxflow.custom_batching.custom_vmap(reported)
    f.def_vmap(lambda size, mapped, x: (x, True))
    return lax.cond(x > 1, f, lambda x: x, x)


PROGRAMS = [
    in_branch,
    of_a_constant,
    in_switch,
    in_loop,
    of_a_constant_in_loop,
    in_condition,
    in_inner_loop,
    in_calls,
    in_a_custom_derivative,
    in_a_custom_vmap,
]
MODES: dict[str, Callable[[Any], Any]] = {
    "eager": vmap,
    "jit": lambda f: jit(vmap(f)),
    "inner jit": lambda f: vmap(jit(f)),
    "two axes": lambda f: lambda xs: vmap(vmap(f))(xs.reshape(2, 2)).reshape(4),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("f", PROGRAMS)
def test_a_callback_runs_for_the_rows_that_take_part(f: Any, mode: str) -> None:
    seen.clear()
    want = [float(f(x)) for x in XS]
    each = sorted(seen)
    seen.clear()
    np.testing.assert_allclose(MODES[mode](f)(XS), want, rtol=1e-6)
    assert sorted(seen) == each
    assert each, "the program reports nothing"


def test_gradients_see_the_same_rows() -> None:
    f = lambda x: lax.cond(x > 1, shown, lambda x: 0 * x, x)
    for grad in (vmap(fxflow.grad(f)), fxflow.grad(lambda xs: vmap(f)(xs).sum())):
        seen.clear()
        assert grad(XS).tolist() == [0, 1, 1, 0]
        assert sorted(seen) == [2.5, 3.0]


def with_jvp(x: Any) -> Any:
    f = fxflow.custom_jvp(lambda x: shown(x) * x)

    def rule(primals: Any, tangents: Any) -> Any:
        shown(primals[0] + 100)
        return f(*primals), 3 * tangents[0]

    f.defjvp(rule)
    return lax.cond(x > 1, f, lambda x: x, x)


def with_vjp(x: Any) -> Any:
    f = fxflow.custom_vjp(lambda x: shown(x) * x)
    f.defvjp(
        lambda x: (shown(x + 100) * x, x), lambda x, ct: (3 * ct + 0 * shown(x + 200),)
    )
    return lax.cond(x > 1, f, lambda x: x, x)


@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["eager", "jit"])
@pytest.mark.parametrize("f", [with_jvp, with_vjp])
def test_rules_report_the_rows_that_take_part(f: Any, wrap: Any) -> None:
    seen.clear()
    want = [float(fxflow.grad(f)(x)) for x in XS]
    each = sorted(seen)
    assert want == [1, 3, 3, 1] and len(each) >= 4
    total = lambda xs: vmap(f)(xs).sum()
    square = lambda xs: vmap(vmap(f))(xs.reshape(2, 2)).sum()
    for slopes in (fxflow.grad(total), vmap(fxflow.grad(f)), fxflow.grad(square)):
        seen.clear()
        assert wrap(slopes)(XS).tolist() == want
        assert sorted(seen) == each


def test_rows_keep_the_order_of_the_program() -> None:
    def f(x: Any) -> Any:
        return lax.cond(x > 1, lambda x: shown(shown(x) + 10), lambda x: x, x)

    seen.clear()
    jit(vmap(f))(XS)
    assert [v for v in seen if v in (2.5, 12.5)] == [2.5, 12.5]


def test_an_ordered_callback_has_no_order_of_rows() -> None:
    def f(x: Any) -> Any:
        report = lambda: debug_callback(note, 7.0, ordered=True)
        lax.cond(x > 1, report, lambda: None)
        return x

    with pytest.raises(ArgumentError, match="slices have no order"):
        vmap(f)(XS)


def test_a_graph_without_effects_ignores_the_flag() -> None:
    graph = make_graph(lambda x: lax.sin(x))(XS).graph
    masked = masked_graph(graph)
    assert [n.primitive.name for n in masked.nodes] == ["sin"]
    assert len(masked.inputs) == 2
    assert masked_graph(graph) is masked
