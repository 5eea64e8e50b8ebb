"""Joined scatters: the graph before and after, and the same numbers."""

import functools

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import make_graph
from fxflow.transforms.passes.pipeline import optimized
from fxflow.transforms.passes.scatters import join_scatters
from tests.transforms.passes.graphs import assert_same, before_and_after, names, values

both = functools.partial(before_and_after, join_scatters)

ROWS = np.array([1, 3, 3, -1, 9], np.int32)
MORE = np.array([3, 0, 7], np.int32)


def test_the_graph_has_one_scatter():
    def f(x, i, j, a, b):
        return x.at[i].add(a, mode="clip").at[j].add(b, mode="clip")

    i = np.zeros((2, 1), np.uint32)
    _, new = both(f, values(5, 3), i[:, 0], i[:1, 0], values(2, 3), values(1, 3))
    numbers = (
        "(update_window_dims=(1,), inserted_window_dims=(0,), "
        "scatter_dims_to_operand_dims=(0,))"
    )
    flags = "indices_are_sorted=False, unique_indices=False, mode=clip"
    assert str(new).splitlines()[-5:] == [
        "  h: u32[3,1] = concatenate[dimension=0] f g",
        "  i: f32[3,3] = concatenate[dimension=0] d e",
        f"  j: f32[5,3] = scatter_add[dimension_numbers={numbers}, {flags}] a h i",
        "  return j",
        "}",
    ]


@pytest.mark.parametrize("kind", ["add", "multiply", "min", "max"])
def test_two_scatters_of_a_kind_become_one(kind):
    def f(x, a, b):
        x = getattr(x.at[ROWS], kind)(a)
        return getattr(x.at[MORE], kind)(b)

    graph, new = both(f, values(8, 2), values(5, 2), values(3, 2))
    scatter = "scatter_" + {"multiply": "mul"}.get(kind, kind)
    assert names(graph).count(scatter) == 2 and names(new).count(scatter) == 1


def test_three_and_other_shapes_of_indices():
    def f(x, a, b, c):
        x = x.at[ROWS.reshape(5, 1)].add(a).at[MORE].add(b)
        return x.at[ROWS[:2]].add(c)

    _, new = both(f, values(8, 2), values(5, 1, 2), values(3, 2), values(2, 2))
    assert names(new).count("scatter_add") == 1


@pytest.mark.parametrize(
    "f",
    [
        lambda x, a, b: x.at[ROWS].set(a).at[MORE].set(b),
        lambda x, a, b: x.at[ROWS].add(a).at[MORE].max(b),
        lambda x, a, b: x.at[ROWS].add(a, mode="clip").at[MORE].add(b, mode="drop"),
        lambda x, a, b: x.at[ROWS].add(a).at[:, MORE[:2] % 2].add(1.0),
        lambda x, a, b: x.at[ROWS].add(a) + x.at[MORE].add(b),
    ],
    ids=["writes", "kinds", "modes", "axes", "no-zeros"],
)
def test_left_alone(f):
    graph, new = both(f, values(8, 2), values(5, 2), values(3, 2))
    assert new is graph


def test_what_is_read_between_stays():
    def f(x, a, b):
        x = x.at[ROWS].add(a)
        return x.at[MORE].add(b), fnp.sum(x)

    graph, new = both(f, values(8, 2), values(5, 2), values(3, 2))
    assert new is graph


def test_gradient_of_a_table_read_twice():
    def loss(table):
        return fnp.sum(fnp.tanh(table[ROWS % 8])) + fnp.sum(table[MORE] ** 2)

    traced = make_graph(fxflow.grad(loss))(values(8, 2))
    graph = traced.graph
    new = join_scatters(graph)
    new.check()
    assert names(graph).count("scatter_add") == 2
    assert names(new).count("scatter_add") == 1
    given = [*traced.consts, fnp.asarray(values(8, 2))]
    assert_same(new(*given), graph(*given), tolerance=1e-6)


def test_inside_of_calls_and_loops():
    @fxflow.jit
    def update(x, a):
        return x.at[ROWS].add(a).at[MORE].add(a[:3])

    def f(x, a):
        x = update(x, a)
        return fxflow.lax.fori_loop(0, 2, lambda _, x: update(x, a), x)

    graph = make_graph(f)(values(8, 2), values(5, 2)).graph
    assert str(graph).count("scatter_add") == 4
    assert str(optimized(graph)).count("scatter_add") == 2


def test_integers_of_no_common_dtype():
    def f(x, a, i, j):
        return x.at[i].add(a).at[j].add(a)

    i = fnp.zeros(5, dtype=fnp.uint64)
    args = values(8, 2), values(5, 2), i, fnp.zeros(5, dtype=fnp.int64)
    x, y = (optimized(make_graph(f)(*args).graph, p) for p in ((), ("join_scatters",)))
    given = [fnp.asarray(a) for a in args]
    np.testing.assert_array_equal(np.asarray(x(*given)[0]), np.asarray(y(*given)[0]))
