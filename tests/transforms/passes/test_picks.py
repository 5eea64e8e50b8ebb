"""Picks: single elements of products, before and after."""

import functools

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import make_graph
from fxflow.transforms.passes.picks import pick_products
from tests.transforms.passes.graphs import before_and_after, names, values

both = functools.partial(before_and_after, pick_products, rtol=1e-4)

IDS = np.random.default_rng(1).integers(0, 1024, 64).astype(np.int32)


def pick(logits, ids):
    return fnp.take_along_axis(logits, ids[..., None], axis=-1)[..., 0]


def test_golden():
    _, new = both(lambda h, w: pick(h @ w.T, IDS), values(64, 8), values(1024, 8))
    lines = [line.partition("[dimension")[0] for line in str(new).splitlines()]
    assert lines[-7:] == [
        "  i: f32[64,8] = gather",
        "  j: f32[64,8] = mul b i",
        "  k: f32[64] = reduce_sum[axes=(1,)] j",
        "  l: f32[64,1] = reshape[new_sizes=(64, 1)] k",
        "  m: f32[64] = reshape[new_sizes=(64,)] l",
        "  return m",
        "}",
    ]


def test_indices_outside():
    ids = np.array([5, 1024, -1, 2**31 - 1] * 16, np.int32)
    _, new = both(lambda h, w: pick(h @ w.T, ids), values(64, 8), values(1024, 8))
    assert "dot_general" not in names(new)


@pytest.mark.parametrize("turned", [False, True])
def test_a_loss_of_several_axes(turned):
    def loss(h, w, ids):
        logits = h @ (w.T if turned else w)
        return fnp.mean(fxflow.nn.logsumexp(logits, axis=-1) - pick(logits, ids))

    w = values(1024, 8) if turned else values(8, 1024)
    graph, new = both(loss, values(4, 16, 8), w, IDS.reshape(4, 16))
    assert names(new).count("dot_general") == 1
    gathered = [n for n in new.nodes if n.primitive.name == "gather"]
    assert [n.outputs[0].aval.shape for n in gathered] == [(4, 16, 8)]
    assert names(graph).count("reduce_sum") + 1 == names(new).count("reduce_sum")


def test_gradients_are_those_of_the_program_as_written():
    def loss(h, w):
        logits = h @ w.T
        return fnp.mean(fxflow.nn.logsumexp(logits, axis=-1) - pick(logits, IDS))

    args = values(64, 8), values(1024, 8)
    compiled = fxflow.jit(fxflow.grad(loss, (0, 1))).lower(*args).compile()
    with fxflow.config.override(passes="none"):
        expected = fxflow.jit(fxflow.grad(loss, (0, 1)))(*args)
    for got, other in zip(compiled(*args), expected, strict=True):
        np.testing.assert_allclose(np.asarray(got), np.asarray(other), atol=1e-6)


@pytest.mark.parametrize(
    "f",
    [
        lambda h, w: pick(h @ w.T + 1, IDS),
        lambda h, w: (h @ w.T)[fnp.arange(64), IDS],
        lambda h, w: pick((w @ h.T).T, IDS),
        lambda h, w: fnp.take_along_axis(h @ w.T, np.stack([IDS, IDS], 1), -1),
        lambda h, w: pick(h[:8] @ w.T, IDS[:8]),
        lambda h, w: pick((h @ w.T).astype("float16"), IDS),
        lambda h, w: pick(h.astype("float16") @ w.T.astype("float16"), IDS),
    ],
    ids=["sum", "two axes", "transposed", "two", "small", "converted", "half"],
)
def test_what_stays(f):
    graph = make_graph(f)(values(64, 8), values(1024, 8)).graph
    assert pick_products(graph) is graph


def test_long_rows_stay():
    args = values(64, 512), values(1024, 512)
    graph = make_graph(lambda h, w: pick(h @ w.T, IDS))(*args).graph
    assert pick_products(graph) is graph
