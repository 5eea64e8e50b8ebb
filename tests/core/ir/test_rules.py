"""Answers of operations that have no rule of their own."""

from __future__ import annotations

import numpy as np

import fxflow.numpy as fnp
from fxflow import make_graph
from fxflow.core.arrays.aval import Aval
from fxflow.core.ir.primitive import Primitive, table

F32 = Aval((4,), np.dtype(np.float32))


def test_cost_counts_elements_and_bytes():
    assert table["add"].cost(F32, F32) == {"flops": 4.0, "bytes": 48.0}


def test_host_functions_hold_their_parameters():
    class Scaled(Primitive):
        def evaluate(self, x, factor=1):
            return x * factor

    assert Scaled().host_function()(2) == 2
    assert Scaled().host_function(factor=3)(2) == 6


def test_numpy_runs_what_it_computes_alike():
    graph = make_graph(lambda x: fnp.sin(x) + 1)
    (sin, *_) = graph(np.float32(1.0)).nodes
    assert sin.primitive.runs_on_host(sin)
    (sin, *_) = graph(np.complex64(1.0)).nodes
    assert not sin.primitive.runs_on_host(sin)


def test_nothing_is_pruned_hidden_or_passed_on():
    base = Primitive()
    assert base.effects() == frozenset()
    assert base.plan([], {}) is None
    assert base.show({"a": 1}) == {"a": 1}
    assert base.dce("node", [True]) == "node"
    assert base.forwarded() == []
