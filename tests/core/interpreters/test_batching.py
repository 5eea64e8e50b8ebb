"""Vectorization of flat functions and of graphs."""

from __future__ import annotations

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import jit, lax, vmap
from fxflow.core.arrays.aval import Aval
from fxflow.core.interpreters.batching import (
    BatchTrace,
    batch_flat,
    batch_graph,
    materialize,
)
from fxflow.core.ir.staging import trace_flat
from fxflow.core.ir.trace import named_axes, state

SCALAR = Aval((), np.dtype(np.float32))


def test_values_that_are_the_same_for_all_stay_so():
    x = fnp.arange(3.0)
    outs, mapped = batch_flat(
        lambda x, y: [lax.mul(x, y), lax.sin(y), y, 4.0], 3, [x, 2.0], [True, False]
    )
    assert mapped == [True, False, False, False]
    assert outs[0].tolist() == [0.0, 2.0, 4.0]
    assert float(outs[1]) == pytest.approx(np.sin(2.0))


def test_types_inside():
    seen = []

    def fun(x):
        seen.append((x.aval, repr(x), type(state.trace)))
        return [x]

    batch_flat(fun, 2, [fnp.ones((2, 5))], [True])
    aval = Aval((5,), SCALAR.dtype)
    assert seen == [(aval, "Traced<f32[5]>", BatchTrace)]


def test_the_interpreter_and_the_axes_are_restored():
    before = state.trace
    with pytest.raises(ZeroDivisionError):
        batch_flat(lambda x: [1 / 0], 2, [fnp.ones(2)], [True], "i")
    assert state.trace is before and state.axes == ()


def test_materialize():
    x = fnp.ones(2)
    assert materialize(x, 2, True) is x
    assert materialize(x, 3, False).shape == (3, 2)
    assert materialize(2.0, 3, False).tolist() == [2.0, 2.0, 2.0]
    key = fxflow.random.key(0)
    assert materialize(key, 3, False).shape == (3,)


def test_a_batched_graph_says_which_results_are_mapped():
    graph, _ = trace_flat(lambda x, y: [lax.mul(x, y), lax.neg(y)], [SCALAR, SCALAR])
    derived, mapped = batch_graph(graph, 3, [True, False])
    derived.check()
    assert mapped == [True, False]
    assert [str(a) for a in derived.out_avals] == ["f32[3]", "f32[]"]
    derived, mapped = batch_graph(graph, 3, [True, False], force=True)
    assert mapped == [True, True]
    assert [a.shape for a in derived.out_avals] == [(3,), (3,)]
    assert batch_graph(graph, 3, [True, False], force=True)[0] is derived
    assert batch_graph(graph, 4, [True, False], force=True)[0] is not derived


def test_named_axes_are_part_of_a_graphs_key():
    with named_axes([("i", 2)]):
        graph, _ = trace_flat(lambda x: [lax.psum(x, "i")], [SCALAR])
    two, _ = batch_graph(graph, 2, [True], axis_name="i")
    with named_axes([("i", 2)]):
        other, _ = batch_graph(graph, 2, [True])
    assert "psum" not in str(two)
    assert "psum" in str(other)


def test_a_call_stays_one_call():
    graph = fxflow.make_graph(vmap(jit(lambda x: lax.sin(x))))(fnp.ones(3))
    assert [n.primitive.name for n in graph.nodes] == ["jit"]


def test_twice():
    x = fnp.arange(6.0).reshape(2, 3)
    outs = vmap(vmap(lambda v: v * 2.0))(x)
    assert outs.tolist() == (x * 2).tolist()
    swapped = vmap(vmap(lambda a, b: a - b, (0, None)), (None, 0))
    assert swapped(fnp.arange(3.0), fnp.arange(2.0)).tolist() == [
        [0.0, 1.0, 2.0],
        [-1.0, 0.0, 1.0],
    ]


def test_captured_batched_values():
    def outer(x):
        return vmap(lambda y: x * y)(fnp.arange(3.0))

    assert vmap(outer)(fnp.array([1.0, 10.0])).tolist() == [
        [0.0, 1.0, 2.0],
        [0.0, 10.0, 20.0],
    ]


def test_zero_slices():
    assert vmap(lambda x: x * 2)(fnp.zeros((0, 3))).shape == (0, 3)


def test_weak_types():
    seen = []
    vmap(lambda x: seen.append((x * 2).dtype) or x)(fnp.arange(3, dtype="int8"))
    assert seen == [np.int8]
