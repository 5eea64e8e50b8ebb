"""New nodes, counted uses, copied nodes."""

import numpy as np

import fxflow.numpy as fnp
from fxflow import make_graph
from fxflow.core.ir.graph import Graph, Var
from fxflow.transforms.passes.rewriting import made, uses, written_out

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
