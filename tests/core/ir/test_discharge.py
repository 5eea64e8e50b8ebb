"""From graphs with references to graphs of arrays."""

import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import lax, make_graph
from fxflow.core.ir.discharge import discharge, keeps_rules
from fxflow.core.ir.graph import STATE
from fxflow.errors import ArgumentError


def graph_of(f, *args):
    return make_graph(f)(*args).graph


def test_inputs_for_contents_and_outputs_for_what_is_written() -> None:
    def f(a, b, x):
        a[...] += b[0] * x
        return x

    a, b = fxflow.new_ref(fnp.ones(3)), fxflow.new_ref(fnp.ones(2))
    graph = graph_of(f, a, b, 2.0)
    assert graph.facts.has_refs and STATE in graph.effects
    pure = discharge(graph)
    assert [str(t) for t in pure.graph.in_avals] == ["f32[3]", "f32[2]", "f32[]~"]
    assert pure.written == (0,)
    assert [str(t) for t in pure.graph.out_avals] == ["f32[]~", "f32[3]"]
    assert not pure.graph.facts.has_refs and not pure.graph.effects
    assert discharge(graph) is pure
    assert discharge(graph, frozenset((1,))).written == (0, 1)


def test_a_graph_without_references_is_itself() -> None:
    graph = graph_of(lambda x: x + 1, 1.0)
    assert discharge(graph).graph is graph


def test_references_made_inside_disappear() -> None:
    def f(x):
        total = fxflow.new_ref(0.0)

        def body(i, c):
            total[...] += x[i]
            return c

        lax.fori_loop(0, 3, body, 0)
        return total[...]

    graph = graph_of(f, fnp.arange(3.0))
    # The writes are invisible outside, so the graph as a whole has no effects.
    assert graph.facts.has_refs and not graph.effects
    graph.check()
    pure = discharge(graph)
    assert not pure.graph.facts.has_refs and not pure.written
    assert float(pure.graph.evaluate(fnp.arange(3.0))[0]) == 3.0
    assert float(graph.evaluate(fnp.arange(3.0))[0]) == 3.0


def test_rules_that_are_given_references_are_seen() -> None:
    @fxflow.custom_vjp
    def f(x, r):
        return x

    f.defvjp(lambda x, r: (x, r), lambda r, ct: (ct, None))
    assert keeps_rules(graph_of(f, 1.0, fxflow.new_ref(1.0)))
    assert not keeps_rules(graph_of(lambda r: r[...], fxflow.new_ref(1.0)))


def test_what_takes_functions_of_arrays_refuses() -> None:
    r = fxflow.new_ref(2.0)
    with pytest.raises(ArgumentError, match=r"read it before"):
        lax.custom_linear_solve(lambda v: v * r[...], 1.0, lambda f, b: b / r[...])
