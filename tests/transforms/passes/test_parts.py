"""Products in parts: the same numbers, from nodes put in the place of others."""

import itertools

import numpy as np
import pytest

import fxflow.numpy as fnp
from fxflow import lax, make_graph
from fxflow.lax.concatenation import Split
from fxflow.transforms.passes.parts import (
    contracted_parts,
    products_of_pieces,
    split_axis,
    sum_of_products,
)
from fxflow.transforms.passes.rewriting import made
from tests.transforms.passes.graphs import values

NO_BATCH = ((), ())


def cut(product, atom, sizes, axis):
    split = made(product, Split, [atom], {"sizes": sizes, "axis": axis})
    return [split], split.outputs


def nodes_of(graph, name):
    return [n for n in graph.nodes if n.primitive.name == name]


def replaced(graph, new):
    """The graph with other nodes in the place of some, given by id."""
    nodes = [n for node in graph.nodes for n in new.get(id(node), [node])]
    result = graph.replace(nodes=nodes)
    result.check()
    return result


def same(graph, new, *args):
    given = list(map(fnp.asarray, args))
    for old, out in zip(graph(*given), new(*given), strict=True):
        np.testing.assert_allclose(np.asarray(old), np.asarray(out), 1e-5, 1e-5)


PARTS = values(2, 3), values(2, 1, seed=1), values(2, 4, seed=2)


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("kinds", [(0, 1, 0), (0, 0, 1), (0, 1, 1), (1, 0, 2)])
def test_sum_of_products(side, kinds):
    def f(w, *parts):
        joined = fnp.concatenate(parts, axis=1)
        operands = [joined, w] if side == 0 else [w, joined]
        axes = ((1,), (0,)) if side == 0 else ((0,), (1,))
        return lax.dot_general(*operands, (axes, NO_BATCH))

    graph = make_graph(f)(values(8, 5), *PARTS).graph
    (joined,) = nodes_of(graph, "concatenate")
    (product,) = nodes_of(graph, "dot_general")
    assert contracted_parts(product, side, joined) == joined.inputs
    nodes = sum_of_products(product, side, joined, kinds, cut)
    groups = 1 + sum(a != b for a, b in itertools.pairwise(kinds))
    assert [n.primitive.name for n in nodes].count("dot_general") == groups
    new = replaced(graph, {id(product): nodes})
    same(graph, new, values(8, 5), *PARTS)


def test_products_that_do_not_contract_parts_are_left_alone():
    def f(x, y, w, v):
        free = fnp.concatenate([x, y], axis=0) @ w
        batch = lax.dot_general(
            fnp.stack([x, y]), fnp.stack([w, w]), (((2,), (1,)), ((0,), (0,)))
        )
        return free, batch, fnp.sin(x) @ v

    x, w = values(3, 4), values(4, 5)
    graph = make_graph(f)(x, x, w, w).graph
    for product in nodes_of(graph, "dot_general"):
        for node in graph.nodes:
            assert contracted_parts(product, 0, node) is None


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize("kinds", [(0, 1, 0), (0, 0, 1), (0, 1, 1), (1, 0, 2)])
def test_products_of_pieces(side, kinds):
    def f(c, w):
        # The pieces are of the axis that w brings in.
        operands = [w, c] if side == 0 else [c, w]
        out = lax.dot_general(*operands, (((1,), (1,)), NO_BATCH))
        return lax.split(out, (3, 1, 4), axis=side)

    args = values(2, 5), values(8, 5, seed=1)
    graph = make_graph(f)(*args).graph
    (product,) = nodes_of(graph, "dot_general")
    (split,) = nodes_of(graph, "split")
    assert split_axis(product, side, split) == 0
    assert split_axis(product, 1 - side, split) is None
    nodes = products_of_pieces(product, side, split, kinds, cut)
    new = replaced(graph, {id(product): [], id(split): nodes})
    same(graph, new, *args)


def test_batch_axes_are_not_split():
    def f(x, y):
        return lax.split(x @ y, (1, 1), axis=0)

    graph = make_graph(f)(values(2, 3, 4), values(2, 4, 5)).graph
    (product,) = nodes_of(graph, "dot_general")
    (split,) = nodes_of(graph, "split")
    assert split_axis(product, 0, split) is None
