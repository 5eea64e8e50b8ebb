"""The operation behind `linear_call`; see also `transforms/test_linear_call`."""

import fxflow


def test_in_graphs():
    def f(x):
        return fxflow.linear_call(lambda r, x: x / r, lambda r, ct: ct / r, 2.0, x)

    graph = fxflow.make_graph(f)(1.0)
    (node,) = graph.nodes
    assert node.primitive.name == "linear_call"
    transposed = fxflow.make_graph(fxflow.linear_transpose(f, 1.0))(1.0)
    assert [n.primitive.name for n in transposed.nodes] == ["linear_call"]
