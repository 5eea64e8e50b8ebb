"""Scatters into sums: the graph before and after, and the same numbers to the bit."""

import functools
import re

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import config, lax
from fxflow.transforms.passes.sums import scatter_sums
from tests.transforms.passes.graphs import before_and_after, names, values

both = functools.partial(before_and_after, scatter_sums)

IDS = np.random.default_rng(1).integers(0, 40, (20, 6)).astype(np.int32)


def zeros_of(new, shape):
    """How often a graph makes an array of one number."""
    return sum(
        n.primitive.name == "broadcast_in_dim" and n.outputs[0].aval.shape == shape
        for n in new.nodes
    )


def descend(table, ids, weights):
    """A step of gradient descent on a table of which some rows are read."""
    gradient = fxflow.grad(lambda t: fnp.sum(t[ids] * weights))(table)
    return table - 0.01 * gradient


def test_the_graph_updates_rows_only():
    def f(x, i, u):
        return x - 0.5 * fnp.zeros_like(x).at[i].add(u, mode="drop")

    _, new = both(f, values(8192, 8), IDS[0].astype(np.uint32), values(6, 8))
    left_out = r"dimension_numbers.*(?=mode)|, broadcast_dim[^]]*"
    assert re.sub(left_out, "", str(new)).split("\n") == [
        "graph f(a: f32[8192,8], b: u32[6], c: f32[6,8]) {",
        "  d: u32[6,1] = broadcast_in_dim[shape=(6, 1)] b",
        "  e: i32[8192] = broadcast_in_dim[shape=(8192,)] 6:i32[]",
        "  f: i32[6] = iota[dtype=int32, shape=(6,), dimension=0]",
        "  g: i32[8192] = scatter_min[mode=fill] e d f",
        "  h: i32[6] = gather[mode=fill, fill_value=6] g d",
        "  i: f32[6,8] = broadcast_in_dim[shape=(6, 8)] 0.0:f32[]",
        "  j: i32[6,1] = reshape[new_sizes=(6, 1)] h",
        "  k: f32[6,8] = scatter_add[mode=fill] i j c",
        "  l: f32[6,8] = mul k 0.5:f32[]",
        "  m: f32[6,8] = neg l",
        "  n: f32[8192,8] = scatter_add[mode=fill] a d m",
        "  return n",
        "}",
    ]


def test_a_table():
    graph, new = both(descend, values(4096, 16), IDS, values(20, 6, 16))
    assert zeros_of(graph, (4096, 16)) == 1 and not zeros_of(new, (4096, 16))
    assert "sub" in names(graph) and "sub" not in names(new)


def test_updates_that_are_lost_one_by_one():
    table, ids = np.ones((4096, 16), np.float32), np.zeros(120, np.int32)
    _, new = both(descend, table, ids, np.full((120, 16), 1e-6, np.float32))
    (got,) = new(*map(fnp.asarray, (table, ids, np.full((120, 16), 1e-6, np.float32))))
    assert np.asarray(got)[0, 0] < 1


@pytest.mark.parametrize("mode", ["drop", "clip", "promise_in_bounds"])
def test_modes_treat_indices_out_of_bounds(mode):
    ids = np.array([3, 3, 5, 3], np.int32)
    if mode != "promise_in_bounds":
        ids = np.array([3, 300, 3, -400, 5, 900, 2**31 - 1], np.int32)

    def f(x, u):
        return (fnp.zeros_like(x).at[ids].add(u, mode=mode) * 3.0) / 8.0 + x

    _, new = both(f, values(256, 256), values(len(ids), 256))
    assert not zeros_of(new, (256, 256))


def test_one_element_of_each_line():
    def loss(x, ids):
        right = fnp.take_along_axis(x, ids[:, None], axis=-1)[:, 0]
        return fnp.mean(fxflow.nn.logsumexp(x, axis=-1) - right)

    graph, new = both(fxflow.grad(loss), values(40, 1000), IDS[:, 0].repeat(2))
    assert "scatter_add" in names(graph) and "scatter_add" not in names(new)


def test_one_element_of_each_line_of_what_is_in_memory():
    def f(x, ids, u):
        return x + fnp.zeros_like(x).at[np.arange(40), ids].add(u)

    def by_lines(x, ids, u):
        _, back = fxflow.vjp(lambda v: fnp.take_along_axis(v, ids[:, None], -1), x)
        return x - back(u[:, None])[0]

    args = values(40, 1000), IDS[:, 0].repeat(2), values(40)
    _, new = both(by_lines, *args)
    assert "scatter_add" in names(new) and not zeros_of(new, (40, 1000))
    graph, new = both(f, *args)
    assert new is graph  # indices of two axes


def test_indices_outside_of_computed_lines():
    ids = np.array([3, 1000, -1, 2**31 - 1] * 10, np.int32)

    def f(x, u):
        numbers = lax.ScatterDimensionNumbers((), (1,), (1,), (0,), (0,))
        back = lax.scatter_add(fnp.zeros_like(x), ids[:, None], u, numbers)
        return fnp.exp(x) - 2.0 * back

    _, new = both(f, values(40, 1000), values(40))
    assert "scatter_add" not in names(new)


def test_several_sums_and_integers():
    def f(x, i, u):
        zeros = fnp.zeros_like(x)
        return x + zeros.at[i].add(u) - zeros.at[i[::-1]].add(-u) * 2

    x = np.arange(1 << 16, dtype=np.int32).reshape(-1, 16)
    _, new = both(f, x, IDS[0], x[:6])
    assert not zeros_of(new, x.shape)


@pytest.mark.parametrize(
    "f",
    [
        lambda x, s: (s + x, s),
        lambda x, s: s - x,
        lambda x, s: x * s,
        lambda x, s: x + s * s,
        lambda x, s: x + s * fnp.inf,
        lambda x, s: x + 1.0 / s,
        lambda x, s: x + s[::-1],
    ],
    ids=list(map(str, range(7))),
)
def test_other_sums_stay(f):
    def g(x, u):
        return f(x, fnp.zeros_like(x).at[IDS[0]].add(u))

    graph, new = both(g, values(8192, 8), values(6, 8))
    assert new is graph


@pytest.mark.parametrize(
    ("rows", "count"), [(64, 6), (8192, 4000)], ids=["small", "many"]
)
def test_where_it_does_not_pay(rows, count):
    def f(x, u):
        return x + fnp.zeros_like(x).at[np.arange(count) % rows].add(u)

    graph, new = both(f, values(rows, 8), values(count, 8))
    assert new is graph


def test_compiled_and_donated():
    args = values(4096, 16), IDS, values(20, 6, 16)
    step = fxflow.jit(descend, donate_argnums=0)
    compiled = step.lower(*args).compile()
    assert not compiled.copies()
    with config.override(passes="none"):
        expected = fxflow.jit(descend)(*args)
        other = step.lower(*args).compile()
    got = compiled(fnp.asarray(args[0]), *args[1:])
    np.testing.assert_allclose(np.asarray(got), np.asarray(expected), atol=1e-6)
    memory = [c.memory_analysis()["temp_size_in_bytes"] for c in (compiled, other)]
    assert memory[0] < memory[1] / 2
