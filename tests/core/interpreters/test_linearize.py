"""Reverse differentiation, first half: values run, tangents are written down."""

from __future__ import annotations

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import grad, jit, lax
from fxflow.core.arrays.aval import Aval
from fxflow.core.interpreters.linearize import (
    linearize_flat,
    linearize_graph,
    tape_to_graph,
)
from fxflow.core.ir.graph import Graph, Var
from fxflow.core.ir.primitive import Zero
from fxflow.core.ir.staging import trace_flat
from fxflow.core.ir.trace import state

SCALAR = Aval((), np.dtype(np.float32))


def traced(function, count=1):
    graph, consts = trace_flat(function, [SCALAR] * count)
    assert not consts
    return graph


def names(nodes):
    return [n.primitive.name for n in nodes]


def test_values_are_computed_and_only_linear_work_is_kept():
    lin = linearize_flat(lambda x: [lax.sin(lax.exp(x))], [fnp.array(0.5)])
    assert float(lin.outs[0]) == pytest.approx(np.sin(np.exp(0.5)))
    assert names(lin.nodes) == ["mul", "mul"]
    assert len(lin.inputs) == 1
    factors = [a for n in lin.nodes for a in n.inputs if not isinstance(a, Var)]
    assert [float(f) for f in factors] == pytest.approx(
        [np.exp(0.5), np.cos(np.exp(0.5))]
    )


def test_inactive_arguments():
    lin = linearize_flat(
        lambda x, y: [lax.mul(x, y), lax.cos(y)], [2.0, 3.0], [True, False]
    )
    assert len(lin.inputs) == 1
    assert type(lin.tangents[0]) is Var and type(lin.tangents[1]) is Zero
    assert names(lin.nodes) == ["mul"]


def test_constants_have_no_tangent():
    lin = linearize_flat(lambda x: [3.0, x], [2.0])
    assert type(lin.tangents[0]) is Zero
    assert lin.tangents[1] is lin.inputs[0]
    assert lin.nodes == []


def test_the_interpreter_is_restored():
    before = state.trace
    with pytest.raises(ZeroDivisionError):
        linearize_flat(lambda x: [1 / 0], [1.0])
    assert state.trace is before


def test_under_a_trace_values_land_in_its_graph():
    graph = fxflow.make_graph(grad(lambda x: lax.sin(lax.sin(x))))(1.0)
    # Two sines forward, two cosines, the products backward: no graph in between.
    # (The derivative by a Python number is as weak as that.)
    operations = sorted(set(names(graph.nodes)))
    assert operations == ["convert_element_type", "cos", "mul", "sin"]
    assert names(graph.nodes).count("sin") <= 2
    assert names(graph.nodes).count("cos") == 2


def test_split_of_a_graph():
    graph = traced(lambda x, y: [lax.mul(lax.sin(x), y), lax.cos(y)], 2)
    split = linearize_graph(graph, [True, False])
    split.primal.check()
    split.tangent.check()
    assert split.has_tangent == [True, False]
    outs = split.primal.evaluate(0.5, 3.0)
    assert float(outs[0]) == pytest.approx(np.sin(0.5) * 3)
    residuals = split.residuals([0.5, 3.0], outs[2:])
    (tangent,) = split.tangent.evaluate(*residuals, 1.0)
    assert float(tangent) == pytest.approx(np.cos(0.5) * 3)
    assert linearize_graph(graph, [True, False]) is split


def test_residuals_that_are_inputs_are_not_computed_again():
    graph = traced(lambda x, y: [lax.mul(x, y)], 2)
    split = linearize_graph(graph, [True, True])
    assert sorted(i for i in split.residual_inputs if i is not None) == [0, 1]
    assert len(split.primal.outputs) == 1


def test_instantiated_split():
    graph = traced(lambda x, y: [lax.cos(y)], 2)
    split = linearize_graph(graph, [True, False], instantiated=True)
    assert split.has_tangent == [True]
    residuals = split.residuals([1.0, 2.0], split.primal.evaluate(1.0, 2.0)[1:])
    assert float(split.tangent.evaluate(*residuals, 1.0)[0]) == 0.0


def test_tape_as_a_graph():
    x = fnp.array([1.0, 2.0])
    lin = linearize_flat(lambda v: [lax.mul(v, v), 2.0], [x])
    graph, residuals = tape_to_graph(lin, "derivative")
    assert isinstance(graph, Graph) and graph.num_consts == len(residuals)
    graph.check()
    out, zero = graph.evaluate(*residuals, fnp.ones(2))
    assert out.tolist() == [2.0, 4.0]
    assert float(zero) == 0.0


def test_work_that_no_result_needs_is_dropped():
    def fun(x):
        lax.exp(x)  # unused
        return [lax.sin(x)]

    graph, _ = tape_to_graph(linearize_flat(fun, [1.0]), "d")
    assert names(graph.nodes) == ["mul"]


def test_second_order():
    second = grad(grad(lambda x: lax.mul(lax.sin(x), x)))
    expected = 2 * np.cos(0.7) - 0.7 * np.sin(0.7)
    assert float(second(0.7)) == pytest.approx(expected, rel=1e-5)
    assert float(jit(second)(0.7)) == pytest.approx(expected, rel=1e-5)


def _in_a_loop(p, t):
    step = lambda c, _: ((fnp.sin(c[0]), fnp.cos(c[0]) * c[1]), None)
    return lax.scan(step, (p, t), None, length=1)[0]


def _in_a_branch(p, t):
    right = lambda p, t: (fnp.sin(p), fnp.cos(p) * t)
    return lax.cond(p > 0, right, lambda p, t: (p, t), p, t)


def _in_a_loop_of_branches(p, t):
    step = lambda c, _: (_in_a_branch(*c), None)
    return lax.scan(step, (p, t), None, length=1)[0]


def _sin(x):
    return lax.scan(lambda c, _: (lax.cond(c > 0, fnp.sin, abs, c), None), x, None, 1)[
        0
    ]


@pytest.mark.parametrize(
    "rule",
    [
        jit(lambda p, t: (fnp.sin(p), fnp.cos(p) * t)),
        fxflow.checkpoint(lambda p, t: (fnp.sin(p), fnp.cos(p) * t)),
        lambda p, t: fxflow.jvp(jit(fnp.sin), (p,), (t,)),
        lambda p, t: fxflow.jvp(_sin, (p,), (t,)),
        _in_a_loop,
        _in_a_branch,
        _in_a_loop_of_branches,
    ],
    ids=["jit", "checkpoint", "jvp", "jvp of loop", "loop", "branch", "both"],
)
def test_a_rule_computes_values_and_tangents_together(rule):
    # Values that came out of one operation with tangents were tangents themselves.
    @fxflow.custom_jvp
    def f(x):
        return fnp.sin(x)

    f.defjvp(lambda primals, tangents: rule(*primals, *tangents))
    x = fnp.array([0.5, 1.0])
    total = lambda x: fnp.sum(fxflow.vmap(f)(x) ** 2)
    for function in (total, jit(total), lambda x: fnp.sum(fxflow.vmap(jit(f))(x) ** 2)):
        value, gradient = fxflow.value_and_grad(function)(x)
        np.testing.assert_allclose(value, np.sum(np.sin(x) ** 2), rtol=1e-5)
        np.testing.assert_allclose(gradient, np.sin(2 * np.asarray(x)), rtol=1e-5)
    np.testing.assert_allclose(grad(grad(f))(1.0), -np.sin(1.0), rtol=1e-5)
