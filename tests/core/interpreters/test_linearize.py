"""Reverse differentiation, first half: values run, tangents are written down."""

from __future__ import annotations

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import debug, grad, jit, lax
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


@fxflow.custom_vjp
def _by_vjp(p, t):
    return fnp.sin(p), fnp.cos(p) * t


_by_vjp.defvjp(
    lambda p, t: (_by_vjp(p, t), (p, t)),
    lambda pt, ct: (
        ct[0] * fnp.cos(pt[0]) - ct[1] * fnp.sin(pt[0]) * pt[1],
        ct[1] * fnp.cos(pt[0]),
    ),
)


def _by_vjp_in_a_loop(p, t):
    return lax.scan(lambda c, _: (_by_vjp(*c), None), (p, t), None, length=1)[0]


def _by_vjp_in_a_branch(p, t):
    return lax.cond(p > 0, jit(_by_vjp), lambda p, t: (p, t), p, t)


def _in_a_solve(p, t):
    both = fnp.sin(p), fnp.cos(p) * t
    twice = lambda x: fxflow.tree.map(lambda leaf: 2.0 * leaf, x)
    half = lambda _, x: fxflow.tree.map(lambda leaf: 0.5 * leaf, x)
    return lax.custom_linear_solve(twice, twice(both), half, half)


def _printing(p, t):
    debug.print("values {} of {}", fnp.sin(p), p)
    debug.print("tangent {}", t)
    debug.print("both {} {}", p, t)
    return fnp.sin(p), fnp.cos(p) * t


def _only_printing(p, t):
    debug.print("call {}", p)
    debug.print("call {}", t)


def _printing_in_a_loop(p, t):
    lax.scan(lambda c, x: (c, debug.print("given {} {}", *x)), (), (p[None], t[None]))
    lax.scan(lambda c, x: (c, debug.print("again {}", *x)), (), (p[None],))
    jit(_only_printing)(p, t)
    step = lambda c, _: (_printing(*c), None)
    return lax.scan(step, (p, t), None, length=1)[0]


def _printing_in_a_branch(p, t):
    return lax.cond(p > 0, _printing, lambda p, t: (p, t), p, t)


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
        _by_vjp,
        jit(_by_vjp),
        _by_vjp_in_a_loop,
        _by_vjp_in_a_branch,
        _in_a_solve,
    ],
    ids=[
        *("jit", "checkpoint", "jvp", "jvp of loop", "loop", "branch", "both"),
        *("vjp", "jit of vjp", "loop of vjp", "branch of vjp", "solve"),
    ],
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


@pytest.mark.parametrize(
    ("rule", "more"),
    [
        (_printing, []),
        (jit(_printing), []),
        (fxflow.checkpoint(_printing), []),
        (_printing_in_a_loop, ["again 0.5", "call 0.5"]),
        (_printing_in_a_branch, []),
    ],
    ids=["direct", "jit", "checkpoint", "loop", "branch"],
)
def test_prints_of_tangents_do_not_show_zeros(rule, more, capsys):
    # Reverse mode runs no operation on tangents: it showed zeros in their place.
    @fxflow.custom_jvp
    def f(x):
        return fnp.sin(x)

    f.defjvp(lambda primals, tangents: rule(*primals, *tangents))
    for function in (grad(f), jit(grad(f))):
        np.testing.assert_allclose(function(0.5), np.cos(0.5), rtol=1e-5)
        fxflow.effects_barrier()
        lines = capsys.readouterr().out.splitlines()
        assert sorted(lines) == sorted([*more, f"values {fnp.sin(0.5)} of 0.5"])
    fxflow.jvp(jit(f), (0.5,), (2.0,))
    fxflow.effects_barrier()
    assert "both 0.5 2.0" in capsys.readouterr().out


def test_a_rule_whose_result_depends_on_a_tangent_is_refused():
    @fxflow.custom_jvp
    def f(x):
        return fnp.sin(x)

    f.defjvp(lambda primals, tangents: (primals[0] + tangents[0], tangents[0]))
    with pytest.raises(fxflow.errors.NotDifferentiableError, match="result 0"):
        grad(f)(0.5)
