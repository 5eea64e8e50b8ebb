"""New nodes, counted uses, copied nodes."""

import numpy as np

import fxflow.numpy as fnp
from fxflow import make_graph
from fxflow.core.ir.graph import Graph, Var
from fxflow.transforms.passes.rewriting import computed, made, uses, written_out

X = np.arange(3.0, dtype=np.float32)


def graph_of(f):
    return make_graph(f)(X).graph


def test_made_derives_types_and_keeps_the_line():
    node = graph_of(lambda x: fnp.sum(x)).nodes[0]
    wide = Var(node.inputs[0].aval.update(shape=(2, 3)))
    new = made(node, node.primitive, [wide], {"axes": (0,)})
    assert str(new.outputs[0].aval) == "f32[3]"
    assert new.source is node.source and new.scope == node.scope


def test_uses_counts_operands_and_outputs():
    graph = graph_of(lambda x: (x * x, fnp.sin(x)))
    counts = uses(graph.nodes, [*graph.outputs, graph.outputs[0]])
    assert counts[graph.inputs[0]] == 3
    assert [counts[out] for out in graph.outputs] == [2, 1]


def test_written_out_twice_has_other_names():
    inner = graph_of(lambda x: fnp.sin(x) + 1.0)
    outer = Var(inner.in_avals[0])
    first, (middle,) = written_out(inner, [outer])
    second, outs = written_out(inner, [middle])
    whole = Graph([outer], [*first, *second], outs)
    whole.check()
    np.testing.assert_allclose(
        np.asarray(whole(fnp.asarray(X))[0]), np.sin(np.sin(X) + 1) + 1, rtol=1e-6
    )


def test_computed_in_another_way():
    graph = graph_of(lambda x: fnp.cos(x) * 2.0)
    cos = graph.nodes[0]
    nodes = computed(cos, lambda x: fnp.sin(x + np.pi / 2), graph.inputs)
    assert len(nodes) == 2 and nodes[-1].outputs == cos.outputs
    assert all(n.source is cos.source and n.scope == cos.scope for n in nodes)
    new = graph.replace(nodes=[*nodes, *graph.nodes[1:]])
    new.check()
    np.testing.assert_allclose(
        np.asarray(new(fnp.asarray(X))[0]), np.cos(X) * 2, rtol=1e-6, atol=1e-6
    )


def test_computed_of_another_type():
    graph = graph_of(fnp.cos)
    assert computed(graph.nodes[0], fnp.sum, graph.inputs) == []
