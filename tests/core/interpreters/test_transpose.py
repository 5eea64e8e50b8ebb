"""Reverse differentiation, second half: a tape run backwards."""

from __future__ import annotations

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import jit, lax
from fxflow.core.arrays.aval import Aval
from fxflow.core.interpreters.linearize import linearize_flat
from fxflow.core.interpreters.transpose import (
    backward,
    backward_with_values,
    transpose_graph,
)
from fxflow.core.ir.primitive import Zero
from fxflow.core.ir.staging import trace_flat
from fxflow.errors import NotDifferentiableError

SCALAR = Aval((), np.dtype(np.float32))
VECTOR = Aval((3,), np.dtype(np.float32))


def pull(function, primals, cotangents):
    lin = linearize_flat(function, primals)
    return backward(lin.nodes, lin.inputs, lin.tangents, cotangents)


def test_cotangents_of_a_value_used_twice_are_added():
    (ct,) = pull(lambda x: [lax.add(lax.mul(x, 3.0), x)], [2.0], [1.0])
    assert float(ct) == 4.0


def test_several_results():
    cts = pull(lambda x, y: [lax.mul(x, y), x], [2.0, 5.0], [1.0, 10.0])
    assert [float(c) for c in cts] == [15.0, 2.0]


def test_symbolic_zeros():
    zero = Zero(SCALAR)
    x, y = pull(lambda x, y: [lax.sin(x), lax.sin(y)], [0.0, 0.0], [1.0, zero])
    assert float(x) == 1.0
    assert type(y) is Zero and y.aval is SCALAR
    (none,) = pull(lambda x: [3.0], [1.0], [1.0])
    assert type(none) is Zero


def test_the_same_result_twice():
    (ct,) = pull(lambda x: [x, x], [1.0], [2.0, 3.0])
    assert float(ct) == 5.0


def test_several_results_of_one_operation():
    def fun(x):
        first, second = lax.split(x, [1, 2])
        return [first, lax.mul(second, 2.0)]

    x = fnp.array([1.0, 2.0, 3.0])
    (ct,) = pull(fun, [x], [fnp.array([5.0]), fnp.array([1.0, 1.0])])
    assert ct.tolist() == [5.0, 2.0, 2.0]
    zero = Zero(Aval((1,), SCALAR.dtype))
    (ct,) = pull(fun, [x], [zero, fnp.array([1.0, 1.0])])
    assert ct.tolist() == [0.0, 2.0, 2.0]


def test_transposed_graph():
    graph, _ = trace_flat(
        lambda w, x: [lax.mul(w, x), lax.neg(x)], [VECTOR, VECTOR], name="fun"
    )
    derived, has = transpose_graph(graph, [False, True], [True, True])
    derived.check()
    assert derived.name == "transpose_fun"
    assert has == [True]
    w = fnp.array([1.0, 2.0, 3.0])
    (ct,) = derived.evaluate(w, fnp.ones(3), fnp.full(3, 10.0))
    assert ct.tolist() == [-9.0, -8.0, -7.0]
    assert transpose_graph(graph, [False, True], [True, True])[0] is derived


def test_transposed_graph_with_zeros():
    graph, _ = trace_flat(lambda x, y: [lax.neg(x), lax.neg(y)], [SCALAR, SCALAR])
    derived, has = transpose_graph(graph, [True, True], [True, False])
    assert has == [True, False] and len(derived.outputs) == 1
    derived, has = transpose_graph(graph, [True, True], [True, False], True)
    assert has == [True, True]
    assert [float(c) for c in derived.evaluate(1.0)] == [-1.0, 0.0]


def test_what_does_not_depend_on_the_linear_inputs_runs_first():
    graph, _ = trace_flat(
        lambda w, x: [lax.mul(lax.exp(w), x), lax.sin(w)], [SCALAR, SCALAR]
    )
    w, x = graph.inputs
    (ct,) = backward_with_values(graph, {w: 1.0}, [x], [1.0, Zero(SCALAR)])
    assert float(ct) == pytest.approx(np.e)


def test_functions_that_are_not_linear_are_refused():
    graph, _ = trace_flat(lambda x: [lax.sin(x)], [SCALAR])
    with pytest.raises(NotDifferentiableError, match="sin is not linear"):
        transpose_graph(graph, [True], [True])
    for fun in (lambda x: lax.mul(x, x), lambda x: lax.div(1.0, x)):
        with pytest.raises(NotDifferentiableError, match=r"(mul|div) is not linear"):
            fxflow.linear_transpose(fun, 1.0)(1.0)
    dims = (((0,), (0,)), ((), ()))
    with pytest.raises(NotDifferentiableError, match="dot_general is not linear"):
        fxflow.linear_transpose(lambda x: lax.dot_general(x, x, dims), fnp.ones(3))(1.0)


def test_through_a_call():
    inner = jit(lambda x: lax.mul(x, 3.0))
    (ct,) = pull(lambda x: [lax.sin(inner(x))], [0.0], [1.0])
    assert float(ct) == pytest.approx(3.0)


def test_dot_product_test_of_a_composed_function():
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(3, 3)).astype(np.float32)

    def fun(x):
        dims = (((1,), (0,)), ((), ()))
        return [lax.tanh(lax.dot_general(matrix, x, dims)), lax.reduce_sum(x, (0,))]

    x, v, w = (fnp.asarray(rng.normal(size=3).astype(np.float32)) for _ in range(3))
    _, (t1, t2) = fxflow.jvp(fun, (x,), (v,))
    (ct,) = pull(fun, [x], [w, fnp.array(2.0, fnp.float32)])
    left = float(np.dot(t1, w) + 2.0 * np.float32(t2))
    assert left == pytest.approx(float(np.dot(v, ct)), rel=1e-5)
