"""Operations that only call a graph: their rules are calls of derived graphs."""

from __future__ import annotations

import pytest

from fxflow import checkpoint, grad, jit, lax, make_graph, vmap
from fxflow.core.interpreters.calls import GraphCall, with_tangents
from fxflow.core.ir.graph import Graph
from fxflow.core.ir.primitive import Zero

CALLS = pytest.mark.parametrize("wrap", [jit, checkpoint])


def calls_in(function, *args) -> list[Graph]:
    graph = make_graph(function)(*args)
    called = [n for n in graph.nodes if isinstance(n.primitive, GraphCall)]
    return [node.params["graph"] for node in called]


def names(graph: Graph) -> list[str]:
    return [node.primitive.name for node in graph.nodes]


@CALLS
def test_what_is_not_wanted_is_not_called(wrap):
    two = wrap(lambda x, y: (lax.sin(x), lax.exp(lax.cos(y))))
    (called,) = calls_in(lambda x, y: two(x, y)[0], 1.0, 2.0)
    assert names(called) == ["sin"]
    assert len(called.inputs) == 1


@CALLS
def test_the_vectorized_call_is_a_call(wrap):
    (called,) = calls_in(vmap(wrap(lax.sin)), lax.iota("float32", 3))
    assert [a.shape for a in called.out_avals] == [(3,)]


@CALLS
def test_the_derivative_is_calls(wrap):
    called = calls_in(grad(wrap(lambda x: lax.sin(lax.sin(x)))), 1.0)
    assert any("cos" in names(graph) for graph in called)


def test_results_without_a_tangent():
    graph = make_graph(lambda x: (x, lax.eq(x, x)))(1.0).graph
    outs, tangents = with_tangents([1, 2, 3], graph.out_avals, [True, False])
    assert (outs, tangents[0]) == ([1, 2], 3)
    assert type(tangents[1]) is Zero and str(tangents[1].aval) == "float0[]"
