"""Tracing: constants, origins, leaks, and how it grows."""

from __future__ import annotations

import gc
import re
import sys

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import config, jit, lax
from fxflow.core.arrays.aval import Aval
from fxflow.core.ir.graph import Literal
from fxflow.core.ir.staging import (
    GraphTrace,
    closed,
    recording,
    require_arrays,
    trace_closed,
    trace_flat,
)
from fxflow.core.ir.trace import state
from fxflow.errors import ArgumentError, LeakedTracerError

F32 = np.dtype(np.float32)
SCALAR = Aval((), F32)
VECTOR = Aval((3,), F32)


def test_a_value_captured_twice_is_one_input():
    table = fnp.arange(3.0)
    graph, consts = trace_flat(lambda x: [lax.add(lax.mul(x, table), table)], [VECTOR])
    assert consts == [table]
    assert len(graph.inputs) == 2


def test_equal_values_are_different_inputs():
    a, b = fnp.ones(3), fnp.ones(3)
    _, consts = trace_flat(lambda x: [lax.add(lax.add(x, a), b)], [VECTOR])
    assert len(consts) == 2


def test_unused_captured_values_are_dropped():
    table = fnp.arange(3.0)
    graph, consts = trace_flat(lambda x: (lax.add(x, table), [x])[1], [VECTOR])
    assert consts == [] and graph.num_consts == 0


def test_0d_values_are_written_into_the_graph():
    graph, consts = trace_flat(lambda x: [lax.add(x, fnp.array(2.0))], [SCALAR])
    assert consts == []
    assert type(graph.nodes[0].inputs[1]) is Literal


def test_keys_are_captured():
    key = fxflow.random.key(0)
    _, consts = trace_flat(lambda: [key], [])
    assert consts == [key]


def test_numpy_arrays_are_captured():
    host = np.arange(3, dtype=np.float32)
    graph, consts = trace_flat(lambda x: [lax.add(x, host)], [VECTOR])
    assert graph.num_consts == 1
    host[:] = 9  # captured as it was
    assert np.asarray(consts[0]).tolist() == [0.0, 1.0, 2.0]


def test_values_of_an_outer_trace_are_captured():
    graphs = []

    def outer(x):
        graph, consts = trace_flat(lambda y: [lax.mul(x, y)], [SCALAR])
        graphs.append(graph)
        assert len(consts) == 1 and consts[0] is x
        return graph.evaluate(consts[0], 3.0)

    trace_flat(outer, [SCALAR])
    assert graphs[0].num_consts == 1


def test_origin_of_an_argument_and_of_a_result():
    trace = GraphTrace("fun")
    x, z = trace.argument(SCALAR), trace.argument(SCALAR)
    trace.labels = lambda: ["x['w']", "z"]
    previous, state.trace = state.trace, trace
    try:
        y = lax.sin(x)
        both = lax.add(y, z)
    finally:
        state.trace = previous
    assert x.origin() == "It is argument x['w'] of fun."
    assert y.origin().startswith("It was computed by sin at ")
    assert y.origin().endswith("and depends on argument x['w'] of fun.")
    assert both.depends_on() == ["arguments x['w'] and z of fun"]
    unnamed = GraphTrace("fun").argument(SCALAR)
    assert unnamed.origin() == "It is argument #0 of fun."


def test_what_a_value_depends_on_in_functions_around():
    said = []

    def inner(y, outer):
        said.append((y * outer).depends_on())
        return y

    def whole(x, w):
        return jit(lambda y: inner(y, w))(x)

    jit(whole)(1.0, 2.0)
    (found,) = said
    assert re.match(r"argument y of <lambda> at .*test_staging.py:\d+$", found[0])
    assert found[1:] == ["argument w of whole"]


def test_nothing_is_recorded_after_the_end():
    kept = []
    trace_flat(lambda x: kept.append(state.trace) or [x], [SCALAR])
    (trace,) = kept
    with pytest.raises(LeakedTracerError, match="already been traced"):
        trace.process(None, (), {})


def test_results_that_are_not_arrays_are_refused():
    with pytest.raises(ArgumentError, match="fun returns 'a' of type str"):
        trace_flat(lambda x: ["a"], [SCALAR], name="fun")
    require_arrays([1.0, fnp.ones(2)], "fun")


def test_leak_check():
    kept = []

    def leaky(x):
        kept.append(lax.sin(x))
        return [x]

    trace_flat(leaky, [SCALAR])
    with (
        config.override(check_leaks=True),
        pytest.raises(LeakedTracerError, match=r"outside the .*f?.*computed by sin"),
    ):
        trace_flat(leaky, [SCALAR])
    kept.clear()
    with config.override(check_leaks=True):
        trace_flat(lambda x: [lax.sin(x)], [SCALAR])


def test_collector_is_paused_and_comes_back():
    def fail():
        raise ValueError

    assert gc.isenabled()
    assert not recording(GraphTrace(), lambda: recording(GraphTrace(), gc.isenabled))
    assert gc.isenabled()
    with pytest.raises(ValueError):
        recording(GraphTrace(), fail)
    assert gc.isenabled()
    gc.disable()
    try:
        recording(GraphTrace(), lambda: None)
        assert not gc.isenabled()
    finally:
        gc.enable()


def calls_to_trace(length):
    """How many functions are called while a chain of operations is traced."""

    def fun(x):
        for _ in range(length):
            x = lax.sin(x)
        return [x]

    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        trace_flat(fun, [SCALAR])
    finally:
        sys.setprofile(before)
    return calls


def test_tracing_grows_linearly():
    calls_to_trace(100)
    short, long = calls_to_trace(300), calls_to_trace(3000)
    assert 300 < short < long < 12 * short


def test_weak_types_survive():
    graph = fxflow.make_graph(lambda x: x * 2)(3)
    assert str(graph.out_avals[0]) == "i32[]~"
    assert jit(lambda x: x * 2)(3).weak_type


def test_captured_values_written_in():
    table = fnp.array([1.0, 2.0, 3.0])
    graph, consts = trace_flat(lambda x: [lax.mul(x, table), table], [VECTOR])
    whole = closed(graph, consts)
    whole.check()
    assert len(whole.inputs) == 1 and whole.num_consts == 0
    product, same = whole.evaluate(fnp.full(3, 2.0))
    assert product.tolist() == [2.0, 4.0, 6.0] and same.tolist() == [1.0, 2.0, 3.0]
    assert "mul a …:f32[3]" in str(whole)
    assert closed(whole, []) is whole
    again = trace_closed(lambda x: [lax.mul(x, table)], [VECTOR], name="again")
    assert again.name == "again" and len(again.inputs) == 1


def test_rules_that_bring_arrays_of_their_own():
    """The derivative of a real Fourier transform weighs the coefficients."""

    def power(x):
        return fnp.sum(fnp.abs(lax.fft(x, "RFFT", (4,))) ** 2)

    x = fnp.arange(4.0)
    expected = fxflow.grad(power)(x)
    np.testing.assert_allclose(fxflow.grad(jit(power))(x), expected, rtol=1e-6)
    np.testing.assert_allclose(jit(fxflow.grad(jit(power)))(x), expected, rtol=1e-6)
