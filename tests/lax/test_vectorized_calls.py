"""The operation behind `custom_vmap`; see also `transforms/test_custom_vmap`."""

import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import lax
from fxflow.custom_batching import custom_vmap


@custom_vmap
def double(x):
    return x * 2


@double.def_vmap
def rule(size, in_batched, x):
    return x + x, True


def test_in_graphs():
    graph = fxflow.make_graph(double)(1.0)
    (node,) = graph.nodes
    assert node.primitive.name == "custom_vmap_call"
    assert "rule=rule" in str(graph)
    mapped = fxflow.make_graph(fxflow.vmap(double))(fnp.ones(3))
    assert [n.primitive.name for n in mapped.nodes] == ["add"]


def test_in_loops_and_branches():
    def fun(x):
        y, _ = lax.scan(lambda c, _: (double(c), None), x, None, length=2)
        return lax.cond(y > 4, double, lambda v: v, y)

    expected = [4.0, 16.0]
    x = fnp.array([1.0, 2.0])
    assert fxflow.vmap(fun)(x).tolist() == expected
    assert fxflow.jit(fxflow.vmap(fun))(x).tolist() == expected


def test_what_is_captured_may_not_be_mapped():
    def fun(x, y):
        @custom_vmap
        def inner(x):
            return x * y

        inner.def_vmap(lambda size, flags, x: (x, True))
        return inner(x)

    with pytest.raises(TypeError, match="closes over a value that is mapped"):
        fxflow.vmap(fun)(fnp.ones(2), fnp.ones(2))
    with pytest.raises(TypeError, match="closes over a value that is being diff"):
        fxflow.jvp(lambda y: fun(1.0, y), (1.0,), (1.0,))
