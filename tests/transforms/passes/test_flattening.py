"""Flat products: the graph before and after, the same numbers, less memory."""

import functools
import re

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import config, make_graph, nn
from fxflow.lax.remat import CUSTOM_CALLS, inlined
from fxflow.transforms.passes import PASSES, flattening
from fxflow.transforms.passes.flattening import flatten_products
from tests.transforms.passes.graphs import before_and_after, values


def flattened(graph):
    """As the pipeline does: what has a rule of its own is written out first."""
    return flatten_products(inlined(graph, CUSTOM_CALLS))


both = functools.partial(before_and_after, flattened, tolerance=1e-5)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(flattening, "_LARGE", 1)


def of_rank(graph, rank, *names):
    """How many operations of some names have floats of a rank."""
    found = [n.outputs[0].aval for n in graph.nodes if n.primitive.name in names]
    return sum(a.ndim == rank and a.dtype == np.float32 for a in found)


def test_the_graph_has_one_flat_product():
    def f(h, w):
        x = fnp.exp(h @ w)
        return fnp.sum(x, axis=-1)

    _, new = both(f, values(2, 3, 4), values(4, 5))
    product = "dot_general[dimension_numbers=(((1,), (0,)), ((), ()))"
    assert str(new).splitlines() == [
        "graph f(a: f32[2,3,4], b: f32[4,5]) {",
        "  c: f32[6,4] = reshape[new_sizes=(6, 4)] a",
        f"  d: f32[6,5] = {product}, precision=None, preferred_element_type=None] c b",
        "  e: f32[6,5] = exp d",
        "  f: f32[6] = reduce_sum[axes=(1,)] e",
        "  g: f32[2,3] = reshape[new_sizes=(2, 3)] f",
        "  return g",
        "}",
    ]


def loss(h, w, ids):
    logits = h @ w
    right = fnp.take_along_axis(logits, ids[..., None], axis=-1)[..., 0]
    return fnp.mean(fxflow.nn.logsumexp(logits, axis=-1) - right)


def test_gradients_of_a_loss():
    args = values(2, 3, 4), values(4, 5), np.ones((2, 3), np.int32)
    graph, new = both(fxflow.grad(loss, (0, 1)), *args)
    computed = "exp", "sub", "mul", "add", "dot_general"
    assert of_rank(graph, 3, *computed) > 2 and not of_rank(new, 3, *computed)


def test_what_needs_the_axes_gets_them():
    def f(h, w):
        x = h @ w
        y = fnp.where(x > 0, x, 0.5 * x) + fnp.arange(3.0)[:, None]
        return y[:, ::-1], fnp.cumsum(y, 1), fnp.sum(x, 1), y @ w.T, y, x

    _, new = both(f, values(2, 3, 4), values(4, 5))
    assert of_rank(new, 2, "dot_general") == 2


def test_products_of_other_axes():
    def f(h, w):
        x = h @ w
        return fnp.einsum("abm,abk->mk", x, h), fnp.einsum("abm,acm->abc", x, x)

    _, new = both(f, values(2, 3, 4), values(4, 5))
    shapes = [n.outputs[0].aval.shape for n in new.nodes if len(n.inputs) == 2]
    assert (5, 4) in shapes and (2, 3, 3) in shapes


@pytest.mark.parametrize(
    "f",
    [
        lambda h, w: h[0] @ w,
        lambda h, w: fnp.einsum("abk,kn->nab", h, w),
        lambda h, w: fnp.einsum("abk,akn->abn", h, fnp.stack([w, w])),
    ],
    ids=["two axes", "matrix first", "batch"],
)
def test_products_without_a_gain_stay(f):
    graph = make_graph(f)(values(2, 3, 4), values(4, 5)).graph
    assert flatten_products(graph) is graph


def test_small_products_stay(monkeypatch):
    monkeypatch.setattr(flattening, "_LARGE", 1 << 20)
    graph = make_graph(lambda h, w: h @ w)(values(2, 3, 4), values(4, 5)).graph
    assert flatten_products(graph) is graph


def test_memory(monkeypatch):
    """The logits, their exponentials and gradient take one place, not two.

    A kernel of rows takes two, and half of the time.
    """
    monkeypatch.setattr(flattening, "_LARGE", 1 << 18)
    args = values(4, 16, 8), values(8, 4096), np.ones((4, 16), np.int32)
    sizes = []
    others = ",".join(name for name in PASSES if name != "fuse_rows")
    for passes in ("join_scatters", others):
        with config.override(passes=passes):
            compiled = fxflow.jit(fxflow.grad(loss, (0, 1))).lower(*args).compile()
        sizes.append(compiled.memory_analysis()["temp_size_in_bytes"])
    logits = 4 * 4 * 16 * 4096
    assert sizes[1] < 1.5 * logits < sizes[0]


def test_gradient_of_a_matrix():
    """Nothing is written anew, transposed, for the sum over all axes of rows."""
    args = values(8, 64, 256), values(256, 256)

    def loss(h, w):
        return fnp.sum(nn.gelu(h @ w) ** 2)

    texts = []
    for passes in ("join_scatters", "all"):
        with config.override(passes=passes):
            slope = fxflow.jit(fxflow.grad(lambda h, w: loss(nn.gelu(h @ w), w), 1))
            texts.append(slope.lower(*args).compile().as_text())
    transposed = [
        len(re.findall(r" transpose\(.*dimensions={2,0,1}", t)) for t in texts
    ]
    assert transposed[1] == 0 < transposed[0]
