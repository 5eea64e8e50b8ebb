"""What all scatters share."""

import numpy as np
import pytest

from fxflow import lax
from fxflow.errors import ArgumentError
from fxflow.lax.gather_scatter.scatter_family import (
    read_back,
    scatter_params,
    scatter_positions,
)

ROWS = lax.ScatterDimensionNumbers((1,), (0,), (0,))


def test_updates_outside_have_no_position() -> None:
    x = np.zeros((3, 2), "f4")
    updates = np.array([[1, 2], [3, 4]], "f4")
    at = np.array([[2], [5]])
    (rows, columns), values = scatter_positions(ROWS, x, at, updates, False)
    assert (rows.tolist(), columns.tolist()) == ([[2, 2]], [[0, 1]])
    assert values.tolist() == [[1, 2]]
    (rows, _), values = scatter_positions(ROWS, x, at, updates, True)
    assert np.broadcast_to(rows, (2, 2)).tolist() == [[2, 2], [2, 2]]
    assert values.tolist() == updates.tolist()


def test_read_back_gathers_what_updates_go_to() -> None:
    x = np.arange(6, dtype="f4").reshape(3, 2)
    params = scatter_params("f", ROWS, False, False, "drop")
    out = read_back(params, x, np.array([[2], [5]]), (2, 2))
    np.testing.assert_array_equal(out, [[4, 5], [0, 0]])


def test_dimension_numbers_are_needed() -> None:
    with pytest.raises(ArgumentError, match="f: dimension_numbers must be Scatter"):
        scatter_params("f", (0,), False, False, None)
