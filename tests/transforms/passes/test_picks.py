"""Picks: single elements of products, before and after."""

import functools

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import lax, make_graph
from fxflow.transforms.passes.picks import pick_products
from tests.transforms.passes.graphs import assert_same, before_and_after, names, values

both = functools.partial(before_and_after, pick_products, tolerance=1e-5)

IDS = np.random.default_rng(1).integers(0, 1024, 64).astype(np.int32)


def pick(logits, ids):
    return fnp.take_along_axis(logits, ids[..., None], axis=-1)[..., 0]


def test_the_graph_gathers_rows_instead_of_a_product():
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
    assert_same(compiled(*args), expected, tolerance=1e-5)


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
def test_products_without_a_gain_stay(f):
    graph = make_graph(f)(values(64, 8), values(1024, 8)).graph
    assert pick_products(graph) is graph


def windows(logits, ids, length):
    return fxflow.vmap(lambda line, i: lax.dynamic_slice(line, (i,), (length,)))(
        logits, ids
    )


def test_slices_of_lines():
    args = values(64, 8), values(8, 1024)
    _, new = both(lambda h, w: windows(h @ w, IDS, 1), *args)
    assert "dot_general" not in names(new)
    graph, new = both(lambda h, w: windows(h @ w, IDS, 2), *args)
    assert new is graph


def test_products_over_no_elements_stay():
    ids = np.full(64, 1024, np.int32)
    args = values(64, 0), values(0, 1024)
    graph, new = both(lambda h, w: pick(h @ w, ids), *args)
    assert new is graph  # outside is nan, not an empty sum


@pytest.mark.parametrize(
    "compare",
    [
        lambda logits, right: right >= fnp.max(logits, axis=-1),
        lambda logits, right: fnp.sum(-logits < -right[:, None], axis=-1),
        lambda logits, right: fnp.max(logits, axis=-1) - right <= 0,
        fxflow.jit(lambda logits, right: fnp.max(logits, axis=-1) == right),
    ],
    ids=["largest", "rank", "difference", "called"],
)
def test_what_is_compared_with_others_is_one_of_them(compare):
    def f(h, w):
        logits = h @ w.T
        right = pick(logits, fnp.argmax(logits, axis=-1))
        return compare(logits, right), fnp.mean(fxflow.nn.logsumexp(logits) - right)

    graph, new = both(f, values(64, 8), values(1024, 8))
    assert new is graph


def test_a_product_that_is_written_twice():
    def f(h, w):
        return pick(h @ w, fnp.argmax(h @ w, axis=-1)) == fnp.max(h @ w, axis=-1)

    graph, new = both(f, values(64, 8), values(8, 1024))
    assert new is graph


def test_comparisons_with_something_else():
    def f(h, w, best):
        logits = h @ w.T
        right = pick(logits, IDS)
        loss = fnp.mean(fxflow.nn.logsumexp(logits, axis=-1) - right)
        return loss, loss < best, right > 0, pick(logits, IDS[::-1]) > right

    graph, new = both(f, values(64, 8), values(1024, 8), np.float32(1))
    assert names(new).count("gather") == names(graph).count("gather")
    assert "mul" in names(new) and "mul" not in names(graph)


def test_long_rows_stay():
    args = values(64, 512), values(1024, 512)
    graph = make_graph(lambda h, w: pick(h @ w.T, IDS))(*args).graph
    assert pick_products(graph) is graph
