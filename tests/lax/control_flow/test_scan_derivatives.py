"""The graphs of a scan's derivatives."""

from __future__ import annotations

import numpy as np

from fxflow import lax
from fxflow.core.arrays.aval import Aval
from fxflow.core.ir.staging import trace_flat
from fxflow.lax.control_flow.scan_derivatives import LinearScan, transposed_body

VECTOR = Aval((3,), np.dtype(np.float32))


def body(w, c, x):
    """One constant, one carry, one slice; a new carry and an output."""
    new = lax.sin(lax.add(lax.mul(w, c), lax.mul(lax.exp(w), x)))
    return [new, lax.mul(new, c)]


def graph():
    made, consts = trace_flat(body, [VECTOR] * 3)
    assert not consts
    return made


def test_linear_scan_sorts_what_it_keeps():
    linear = LinearScan(graph(), [True, True, True], [True], 1, 1)
    for part in (linear.invariant, linear.primal, linear.tangent):
        part.check()
    assert linear.has_tangent == [True, True]
    assert linear.given == [0], "w itself"
    assert [n.primitive.name for n in linear.invariant.nodes] == ["exp"]
    assert len(linear.primal.inputs) == 4, "the invariant is a further constant"
    assert "exp" not in [n.primitive.name for n in linear.primal.nodes]
    # The slice is taken from the input; the carry, the cosine and the new carry are
    # outputs of the first loop.
    assert linear.sliced.count(2) == 1
    assert len(linear.primal.outputs) == 2 + 3


def test_linear_scan_without_a_tangent_of_the_constant():
    linear = LinearScan(graph(), [False, True, False], [True], 1, 1)
    linear.tangent.check()
    assert len(linear.tangent.outputs) == 2


def test_transposed_body_leaves_out_what_gets_nothing():
    # Linear in the carry and in the slice; the second constant is not used.
    def linear(a, b, c, x):
        return [lax.add(lax.mul(a, c), x), c]

    made, _ = trace_flat(linear, [VECTOR] * 4)
    flags = [False, True, True, True]
    derived, has_const, has_x = transposed_body(made, 2, 1, flags, [False])
    derived.check()
    assert (has_const, has_x) == ([False], [True])
    assert len(derived.inputs) == 2, "a, and the carry's cotangent"
    assert len(derived.outputs) == 2, "the carry's and the slice's cotangent"
