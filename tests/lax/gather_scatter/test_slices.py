"""Where the slices of a gather or scatter lie."""

import numpy as np

from fxflow.lax.gather_scatter.dimension_numbers import GatherDimensionNumbers
from fxflow.lax.gather_scatter.slices import SliceWindow


def test_positions_of_a_window_and_whether_inside() -> None:
    # Slices of 2 in the second axis of [3,4], for indices [2] into both axes.
    window = SliceWindow((1, 2), GatherDimensionNumbers((1,), (0,), (0, 1)))
    at = np.array([[1, 2], [5, 3]])
    (rows, columns), inside = window.positions((3, 4), at, False)
    assert np.broadcast_to(rows, (2, 2)).tolist() == [[1, 1], [2, 2]]
    assert columns.tolist() == [[2, 3], [2, 3]]
    assert inside.tolist() == [True, False]
    _, nobody_asks = window.positions((3, 4), np.array([[1, 2]]), True)
    assert nobody_asks is None


def test_largest_unsigned_index_is_not_negative() -> None:
    window = SliceWindow((1,), GatherDimensionNumbers((), (0,), (0,)))
    huge = np.array([[2**64 - 1]], np.uint64)
    (at,), inside = window.positions((3,), huge, False)
    assert (at.tolist(), inside.tolist()) == ([2], [False])
