"""Which rows of a vectorized branch or loop take part."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import jit, lax, make_graph, random, vmap
from fxflow.lax.control_flow.rows import any_row, filled, has_loop, select_rows

MASK = np.array([False, True, True])


def squares(x: Any) -> Any:
    return lax.while_loop(lambda v: lax.lt(v, 100.0), lambda v: lax.mul(v, v), x)


def test_loops_are_seen_wherever_they_are() -> None:
    inside = jit(lambda x: lax.cond(lax.gt(x, 1.0), squares, lambda x: x, x))
    assert has_loop(make_graph(inside)(2.0).graph)
    steps = lambda x: lax.fori_loop(0, 3, lambda i, c: lax.sin(c), x)
    assert not has_loop(make_graph(steps)(2.0).graph), "it always ends"


def test_the_others_are_filled_with_a_row_of_the_mask() -> None:
    x, shared = np.arange(6.0).reshape(3, 2), np.ones(2)
    rows, same = filled(MASK, [x, shared], [True, False])
    assert rows.tolist() == [[2, 3]] * 3
    assert same is shared
    assert select_rows(MASK, x, -x).tolist() == [[0, -1], [2, 3], [4, 5]]
    assert bool(any_row(MASK))
    keys = random.split(random.key(0), 3)
    (key, *_), _ = filled(MASK, [keys, shared], [True, False])
    assert (random.key_data(key) == random.key_data(keys[1])).all()


def test_there_may_be_no_rows() -> None:
    empty = np.zeros((0, 2), np.float32)
    assert filled(MASK[:0], [empty], [True])[0].shape == (0, 2)
    assert not any_row(MASK[:0])
    assert vmap(squares)(np.zeros(0, np.float32)).shape == (0,)


@pytest.mark.parametrize("kind", ["Auto", "Explicit"])
@pytest.mark.parametrize("name", [None, "x"])
def test_rows_that_are_divided_over_devices(kind: str, name: str | None) -> None:
    f = lambda x: lax.cond(x > 1, squares, lambda x: x * 2, x)
    nested = lambda x: lax.while_loop(
        lambda c: c[0] > 1, lambda c: (c[0] - 1, c[1] + squares(c[0])), (x, 0 * x)
    )[1]
    types = getattr(fxflow.sharding.AxisType, kind)
    with fxflow.set_mesh(fxflow.make_mesh((2,), ("x",), axis_types=types)) as mesh:
        sharding = fxflow.NamedSharding(mesh, fxflow.P("x"))
        xs = fxflow.device_put(np.array([1.0, 2, 3, 0.5], np.float32), sharding)
        rows = jit(vmap(f, spmd_axis_name=name))(xs)
        assert rows.tolist() == [2, 256, 6561, 1]
        rows = jit(vmap(nested, spmd_axis_name=name))(xs)
        assert rows.tolist() == [0, 256, 6817, 0]
