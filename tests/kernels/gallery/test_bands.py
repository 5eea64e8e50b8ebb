"""Systems with bands: against dense ones, and the checker."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fxflow
from fxflow import kernels
from fxflow.kernels.gallery.bands import solved_bands
from fxflow.scipy.linalg._bands import _eliminated

RNG = np.random.default_rng(0)


def rows_and_matrix(n: int, low: int, up: int) -> tuple[Any, Any]:
    """Returns a matrix that needs pivots, by its rows and whole."""
    rows = RNG.normal(size=(n, low + up + 1)).astype("float32")
    rows[:, low] = 0.1 * rows[:, low] if up else 2
    whole = np.zeros((n, n + low + up))
    for i in range(n):
        whole[i, i : i + low + up + 1] = rows[i]
    whole = whole[:, low : low + n]
    for i in range(n):
        for j in range(low + up + 1):
            if not 0 <= i - low + j < n:
                rows[i, j] = 0
    return rows, whole


@pytest.mark.parametrize(
    ("n", "low", "up"),
    [
        (12, 2, 1),
        pytest.param(7, 0, 3, marks=pytest.mark.slow),
        pytest.param(9, 3, 0, marks=pytest.mark.slow),
        pytest.param(5, 4, 4, marks=pytest.mark.slow),
    ],
)
def test_solutions_are_those_of_the_dense_systems(n: int, low: int, up: int) -> None:
    rows, matrix = rows_and_matrix(n, low, up)
    sides = RNG.normal(size=(n, 2)).astype("float32")
    plain = lambda rows, sides: _eliminated(rows, sides, low)
    run = lambda rows, sides: solved_bands(rows, sides, low, reference=plain)
    found = kernels.check(run, rows, sides, rtol=1e-2, atol=1e-2)
    want = np.linalg.solve(matrix, sides)
    np.testing.assert_allclose(found, want, 5e-3, 5e-3 * np.abs(want).max())


def test_singular_systems_have_no_finite_solution() -> None:
    rows = np.zeros((6, 3), "float32")
    plain = lambda rows, sides: _eliminated(rows, sides, 1)
    run = lambda rows, sides: solved_bands(rows, sides, 1, reference=plain)
    found = fxflow.jit(run)(rows, np.ones((6, 1), "float32"))
    assert not np.isfinite(found).any()
