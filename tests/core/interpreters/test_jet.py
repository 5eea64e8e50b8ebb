"""Taylor coefficients of flat functions and of graphs."""

from __future__ import annotations

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import lax
from fxflow.core.arrays.aval import Aval
from fxflow.core.interpreters.jet import JetTrace, jet_flat, jet_graph
from fxflow.core.ir.primitive import Zero
from fxflow.core.ir.staging import trace_flat
from fxflow.core.ir.trace import state

SCALAR = Aval((), np.dtype(np.float32))


def nodes(function, order):
    """How many operations the series of a function takes."""
    terms = [1.0] * order
    made = fxflow.make_graph(lambda x, t: fxflow.jet(function, (x,), (t,)))(0.5, terms)
    return len(made.graph.nodes)


def test_leibniz():
    outs, terms = jet_flat(
        lambda x, y: [lax.mul(x, y)], [2.0, 3.0], [[5.0, 7.0], [11.0, 13.0]], 2
    )
    assert float(outs[0]) == 6.0
    assert [float(t) for t in terms[0]] == [37.0, 2 * 13 + 5 * 11 + 7 * 3]


def test_quotient():
    _, terms = jet_flat(lambda x, y: [lax.div(x, y)], [6.0, 2.0], [[2.0], [4.0]], 1)
    assert float(terms[0][0]) == (2.0 - 3.0 * 4.0) / 2.0


def test_symbolic_zeros_cost_nothing():
    zero = Zero(SCALAR)
    outs, terms = jet_flat(
        lambda x, y: [lax.sin(x), lax.add(x, y), y, lax.floor(y)],
        [0.0, 4.0],
        [zero, [1.0, zero]],
        2,
    )
    assert type(terms[0]) is Zero
    assert float(outs[1]) == 4.0
    assert type(terms[1][1]) is Zero
    assert type(terms[3]) is Zero


def test_the_interpreter_is_restored():
    before = state.trace

    def fail(x):
        assert type(state.trace) is JetTrace
        raise ValueError

    with pytest.raises(ValueError):
        jet_flat(fail, [1.0], [[1.0]], 1)
    assert state.trace is before


@pytest.mark.parametrize(
    "function",
    [
        lambda x: fnp.sin(fnp.cos(x)),
        lambda x: fnp.tanh(fnp.exp(x)) / (1 + x * x),
        lambda x: (1 + x * x) ** 1.5,
        fxflow.nn.gelu,
    ],
)
def test_the_cost_is_a_power_of_the_order(function):
    few, many = nodes(function, 4), nodes(function, 8)
    # Cubic at most; nested derivatives would take 16 times as many.
    assert many < 6 * few


def test_a_rule_that_refers_back_is_applied_once():
    """`sin` to `cos` and back, through one memo: two series, not one for each order."""
    made = fxflow.make_graph(lambda x: fxflow.jet(fnp.sin, (x,), ([1.0] * 6,)))(0.5)
    names = [node.primitive.name for node in made.graph.nodes]
    assert names.count("sin") == names.count("cos") == 1


def test_graph_is_remembered():
    graph, _ = trace_flat(lambda x, y: [lax.mul(x, y), y], [SCALAR] * 2)
    derived, has = jet_graph(graph, 3, [True, False])
    assert jet_graph(graph, 3, [True, False])[0] is derived
    assert has == [True, False]
    assert len(derived.inputs) == 2 + 3
    assert len(derived.outputs) == 2 + 3
    _, has = jet_graph(graph, 3, [True, False], True)
    assert has == [True, True]


def test_loops_in_the_rule_of_another_operation():
    """Inside of a rule a loop is expanded no further than its operands are known."""

    @fxflow.custom_jvp
    def f(x):
        return fnp.sin(x)

    @f.defjvp
    def rule(primals, tangents):
        (x,), (t,) = primals, tangents
        y = f(x)  # the result itself goes through a loop
        return y, lax.fori_loop(0, 2, lambda i, c: c + (1 - y * y) * t, 0.0 * t)

    _, got = fxflow.jet(f, (0.5,), ([1.0, 0.0, 0.0],))
    y = np.sin(0.5)
    first = 2 * (1 - y**2)
    second = -4 * y * first
    third = -4 * (first**2 + y * second)
    np.testing.assert_allclose(got, [first, second, third], rtol=1e-5)


def test_types_that_vary():
    """In a `shard_map` coefficients differ along the axes along which values do."""
    mesh = fxflow.make_mesh((2,), ("d",))
    spec = fxflow.P("d")
    x = fnp.arange(4.0)

    def inside(x):
        return fxflow.jet(
            lambda x: lax.psum(fnp.sin(x) * 2.0, "d"), (x,), ([1.0, 0.0],)
        )[1][1]

    got = fxflow.shard_map(inside, mesh=mesh, in_specs=spec, out_specs=fxflow.P())(x)
    np.testing.assert_allclose(got, -2 * (np.sin(x[:2]) + np.sin(x[2:])), rtol=1e-5)

    def outside(x):
        return fxflow.shard_map(
            lambda x: lax.psum(fnp.sin(x) * 2.0, "d"),
            mesh=mesh,
            in_specs=spec,
            out_specs=fxflow.P(),
        )(x)

    got = fxflow.jet(outside, (x,), ([fnp.ones(4), 0.0],))[1][1]
    np.testing.assert_allclose(got, -2 * (np.sin(x[:2]) + np.sin(x[2:])), rtol=1e-5)
