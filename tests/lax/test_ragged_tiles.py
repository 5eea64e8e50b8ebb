"""Tiles of ragged products: any number of rows, groups and tile boundaries."""

import itertools

import numpy as np
import pytest

from fxflow import jit, lax
from fxflow.lax.ragged_tiles import loop_axes
from tests.sweeps.sampling import sample


@pytest.mark.parametrize(
    ("rows", "groups"),
    sample(list(itertools.product([1, 7, 8, 9, 64, 100], [1, 3, 20])), 8, of="tiles"),
)
def test_every_boundary(rows: int, groups: int) -> None:
    rng = np.random.default_rng(rows * groups)
    x = rng.integers(-4, 5, (rows, 2)).astype("f4")
    w = rng.integers(-4, 5, (groups, 2, 3)).astype("f4")
    sizes = rng.multinomial(rows, np.ones(groups) / groups).astype("i4")
    of_row = np.repeat(np.arange(groups), sizes)
    expected = np.einsum("mk,mkn->mn", x, w[of_row])
    rows_of = jit(lambda *args: lax.ragged_dot(*args))
    np.testing.assert_array_equal(rows_of(x, w, sizes), expected)
    numbers = lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), [0], [])
    sums = jit(lambda *a: lax.ragged_dot_general(*a, numbers))(x, expected, sizes)
    for g in range(groups):
        mine = of_row == g
        np.testing.assert_array_equal(sums[g], x[mine].T @ expected[mine])


def test_loop_axes_are_those_before_the_ragged_one() -> None:
    dims = ((3,), (1,)), ((0,), (2,))
    assert loop_axes(5, dims, 4) == ((0, 2), (1, None), (2, None))
    assert loop_axes(5, (((3, 1), (0, 1)), ((), ())), 1) == ((3, 0),)
