"""Forward differentiation of flat functions and of graphs."""

from __future__ import annotations

import numpy as np
import pytest

import fxflow.numpy as fnp
from fxflow import jit, jvp, lax
from fxflow.core.arrays import dtypes
from fxflow.core.arrays.aval import Aval
from fxflow.core.interpreters.jvp import JVPTrace, jvp_flat, jvp_graph
from fxflow.core.ir.primitive import Zero
from fxflow.core.ir.staging import trace_flat
from fxflow.core.ir.trace import state

SCALAR = Aval((), np.dtype(np.float32))


def traced(function, count=1):
    graph, consts = trace_flat(function, [SCALAR] * count)
    assert not consts
    return graph


def test_product_rule():
    outs, tangents = jvp_flat(lambda x, y: [lax.mul(x, y)], [3.0, 4.0], [1.0, 10.0])
    assert float(outs[0]) == 12.0
    assert float(tangents[0]) == 34.0


def test_symbolic_zeros_cost_nothing():
    zero = Zero(SCALAR)
    outs, tangents = jvp_flat(
        lambda x, y: [lax.sin(x), lax.mul(x, y), y], [0.0, 4.0], [zero, 1.0]
    )
    assert type(tangents[0]) is Zero
    assert float(tangents[1]) == 0.0
    assert float(tangents[2]) == 1.0
    assert float(outs[0]) == 0.0


def test_results_without_tangents():
    _, tangents = jvp_flat(
        lambda x: [lax.gt(x, 0.0), lax.convert_element_type(x, np.int32), 3.0],
        [2.0],
        [1.0],
    )
    assert [type(t) for t in tangents] == [Zero] * 3
    assert tangents[0].dtype == tangents[1].dtype == dtypes.float0
    assert tangents[2].dtype == np.float32


def test_the_interpreter_is_restored():
    before = state.trace

    def fail(x):
        assert type(state.trace) is JVPTrace
        raise ValueError

    with pytest.raises(ValueError):
        jvp_flat(fail, [1.0], [1.0])
    assert state.trace is before


def test_inside_each_other():
    # d/dx (x * d/dy (x * y²)) at y = 3: x * 2·x·y, so 4·x·y.
    def outer(x):
        _, (t,) = jvp_flat(lambda y: [lax.mul(x, lax.mul(y, y))], [3.0], [1.0])
        return [lax.mul(x, t)]

    _, (t,) = jvp_flat(outer, [5.0], [1.0])
    assert float(t) == pytest.approx(4 * 5 * 3)


def test_a_graph_of_tangents_says_which_results_have_one():
    graph = traced(lambda x, y: [lax.mul(x, y), lax.sin(y)], 2)
    derived, has_tangent = jvp_graph(graph, [True, False])
    assert has_tangent == [True, False]
    assert len(derived.inputs) == 3 and len(derived.outputs) == 3
    derived.check()
    product, sine, t = derived.evaluate(2.0, 3.0, 10.0)
    assert (float(product), float(t)) == (6.0, 30.0)
    assert float(sine) == pytest.approx(np.sin(3.0))
    assert jvp_graph(graph, [True, False])[0] is derived
    assert jvp_graph(graph, [True, True])[0] is not derived


def test_instantiated_tangents():
    graph = traced(lambda x, y: [lax.sin(y), x], 2)
    derived, has_tangent = jvp_graph(graph, [True, False], instantiated=True)
    assert has_tangent == [True, True]
    *_, zero, one = derived.evaluate(2.0, 3.0, 1.0)
    assert (float(zero), float(one)) == (0.0, 1.0)
    derived, has_tangent = jvp_graph(graph, [False, False], instantiated=[True, False])
    assert has_tangent == [True, False]


def test_a_call_stays_one_call():
    inner = jit(lambda x: lax.sin(lax.cos(x)))
    graph = traced(lambda x: [inner(x)])
    derived, _ = jvp_graph(graph, [True])
    assert [n.primitive.name for n in derived.nodes] == ["jit"]


def test_weak_types():
    out, tangent = jvp(lambda x: x * 2, (3.0,), (1.0,))
    assert out.weak_type and float(tangent) == 2.0
    out, tangent = jvp(lambda x: x * 2, (fnp.ones(2),), (fnp.ones(2),))
    assert tangent.tolist() == [2.0, 2.0]
