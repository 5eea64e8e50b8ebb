"""`map`."""

from __future__ import annotations

import numpy as np
import pytest

import fxflow
from fxflow import lax, make_graph
from fxflow.errors import ArgumentError, ShapeError

XS = np.arange(7.0, dtype=np.float32)


def square(x):
    return lax.mul(x, x)


@pytest.mark.parametrize("batch_size", [None, 1, 2, 3, 7, 10])
def test_each_batch_size_gives_the_results_of_the_function(batch_size):
    assert lax.map(square, XS, batch_size=batch_size).tolist() == (XS**2).tolist()


@pytest.mark.parametrize("batch_size", [None, 2])
def test_trees_and_gradients(batch_size):
    xs = {"a": XS, "b": np.ones((7, 2), np.float32)}

    def run(xs):
        f = lambda x: (lax.mul(x["b"], lax.broadcast(x["a"], (2,))), x["a"])
        return lax.map(f, xs, batch_size=batch_size)

    both, a = run(xs)
    assert both.shape == (7, 2)
    assert a.tolist() == XS.tolist()
    total = lambda xs: lax.reduce_sum(run(xs)[0], (0, 1))
    assert fxflow.grad(total)(xs)["a"].tolist() == [2.0] * 7


def test_no_slices():
    assert lax.map(square, XS[:0]).shape == (0,)
    assert lax.map(square, XS[:0], batch_size=3).shape == (0,)


def test_results_that_do_not_depend_on_the_slice():
    assert lax.map(lambda x: 1.0, XS, batch_size=3).tolist() == [1.0] * 7


def test_batches_are_vectorized():
    graph = make_graph(lambda xs: lax.map(square, xs, batch_size=3))(XS)
    (node,) = [n for n in graph.nodes if n.primitive.name == "scan"]
    assert node.params["length"] == 2
    assert node.params["graph"].in_avals[-1].shape == (3,)


@pytest.mark.parametrize("size", [0, -1, 1.5, True])
def test_an_invalid_batch_size_is_refused(size):
    with pytest.raises(ArgumentError, match="batch_size must be a positive int"):
        lax.map(square, XS, batch_size=size)


def test_invalid_functions_and_lengths_are_refused():
    with pytest.raises(ArgumentError, match="map: f must be a function"):
        lax.map(3, XS)
    with pytest.raises(ShapeError, match="one length"):
        lax.map(lambda x: x, (XS, XS[:2]), batch_size=2)
