"""Calls of graphs: shared text, pruned, differentiated and vectorized as calls."""

from __future__ import annotations

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import grad, jit, jvp, lax, make_graph, vmap
from fxflow.core.arrays.aval import Aval
from fxflow.core.ir.higher_order import uses_axis
from fxflow.core.ir.primitive import Zero
from fxflow.core.ir.staging import trace_flat
from fxflow.lax.calls import JitCall, call

SCALAR = Aval((), np.dtype(np.float32))


def traced(function, count=1):
    graph, consts = trace_flat(function, [SCALAR] * count)
    assert not consts
    return graph


def names(graph):
    return [n.primitive.name for n in graph.nodes]


def test_call():
    graph = traced(lambda x, y: [lax.sub(x, y), x], 2)
    out = call(graph, 5.0, 3.0)
    assert [float(v) for v in out] == [2.0, 5.0]
    out = call(graph, 5.0, Zero(SCALAR))
    assert [float(v) for v in out] == [5.0, 5.0]


def test_host_evaluation_goes_inside():
    graph = traced(lambda x: [jit(lambda y: lax.sin(y))(x), 2.0])
    out = JitCall.evaluate(np.float32(1.0), graph=graph)
    assert float(out[0]) == pytest.approx(np.sin(1.0))
    assert float(out[1]) == 2.0


def test_derivatives_are_calls():
    inner = jit(lambda x: lax.sin(lax.mul(x, x)))
    forward = make_graph(lambda x: jvp(inner, (x,), (1.0,))[1])(1.0)
    # The derivative by a Python number is made as weak as that.
    assert names(forward) == ["jit", "convert_element_type"]
    backward = make_graph(grad(inner))(1.0)
    assert set(names(backward)) == {"jit", "convert_element_type"}
    assert float(grad(inner)(0.5)) == pytest.approx(np.cos(0.25), rel=1e-6)


def test_only_what_is_needed_is_called():
    inner = jit(lambda x, y: (lax.sin(x), lax.exp(lax.cos(y))))
    graph = make_graph(lambda x, y: inner(x, y)[0])(1.0, 2.0)
    (node,) = graph.nodes
    assert names(node.params["graph"]) == ["sin"]
    assert len(node.inputs) == 1


def test_nothing_needed_nothing_called():
    inner = jit(lambda x: lax.sin(x))
    assert names(make_graph(lambda x: (inner(x), x)[1])(1.0)) == []


def test_partial_derivatives_skip_constants():
    inner = jit(lambda x, y: (lax.mul(x, y), lax.exp(y)))
    (out, other), (t, t_other) = jvp(lambda x: inner(x, 3.0), (2.0,), (1.0,))
    assert (float(out), float(t), float(t_other)) == (6.0, 3.0, 0.0)
    assert float(other) == pytest.approx(np.exp(3.0), rel=1e-6)


def test_vectorized_once_for_each_pattern():
    traces = []

    @jit
    def inner(x, y):
        traces.append(1)
        return x * y, y

    rows = fnp.arange(3.0)
    out, same = vmap(inner, (0, None))(rows, 2.0)
    assert out.tolist() == [0.0, 2.0, 4.0] and same.tolist() == [2.0] * 3
    assert vmap(inner)(rows, rows)[0].tolist() == [0.0, 1.0, 4.0]
    assert len(traces) <= 2


def test_named_axes_inside_calls():
    inner = jit(lambda x: x / lax.psum(x, "i"))
    shares = vmap(inner, axis_name="i")(fnp.array([1.0, 3.0]))
    assert shares.tolist() == [0.25, 0.75]
    nested = jit(lambda x: jit(lambda y: lax.axis_index("i") + y)(x))
    assert vmap(nested, axis_name="i")(fnp.zeros(3)).tolist() == [0.0, 1.0, 2.0]
    seen = []

    def fun(x):
        graph = make_graph(inner)(x)
        seen.append((uses_axis(graph.graph, "i"), uses_axis(graph.graph, "j")))
        return x

    vmap(fun, axis_name="i")(fnp.ones(2))
    assert seen == [(True, False)]


def test_one_jitted_function_over_axes_of_different_lengths():
    total = jit(lambda x: lax.psum(x, "i"))
    for n in (2, 3, 2):
        out = vmap(total, axis_name="i")(fnp.ones(n))
        assert out.tolist() == [float(n)] * n


def test_effects_inside_a_call():
    seen = []

    @jit
    def inner(x):
        fxflow.io_callback(lambda v: seen.append(float(v)), None, x)
        return x * 2

    jit(lambda x: (inner(x), x)[1])(3.0)
    assert seen == [3.0]


def test_recursion_in_python_is_unrolled():
    def recursive(x, n):
        return x if n == 1 else x * jit(recursive, static_argnums=1)(x, n - 1)

    assert float(jit(recursive, static_argnums=1)(2.0, 5)) == 32.0


def test_deep_nesting():
    def fun(x):
        return x + 1

    for _ in range(20):
        fun = jit(lambda x, fun=fun: fun(x) * 1.0)
    assert float(fun(1.0)) == 2.0
    assert float(grad(fun)(1.0)) == 1.0
