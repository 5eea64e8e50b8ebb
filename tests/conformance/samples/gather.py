"""Samples of the primitives of `fxflow.lax.gather`."""

import ml_dtypes
import numpy as np

from fxflow.lax.gather_scatter.dimension_numbers import (
    GatherDimensionNumbers,
    GatherScatterMode,
)
from tests.conformance.harness import Sample
from tests.conformance.samples.shape import Samples, values

CLIP = GatherScatterMode.CLIP
FILL = GatherScatterMode.FILL_OR_DROP
INSIDE = GatherScatterMode.PROMISE_IN_BOUNDS

# Dimension numbers and slice sizes for operands of the given shape.
ELEMENTS = GatherDimensionNumbers((), (0,), (0,)), (1,)  # x[i] of a vector
ROWS = GatherDimensionNumbers((1,), (0,), (0,)), (1, 3)  # x[i] of [n,3]
COLUMNS = GatherDimensionNumbers((0,), (1,), (1,)), (4, 1)  # x[:, i] of [4,n]
PAIRS = GatherDimensionNumbers((), (0, 1), (1, 0)), (1, 1)  # x[j, i] of a matrix
WINDOWS = GatherDimensionNumbers((0, 2), (), (0, 1)), (2, 2)  # parts of a matrix
LINES = GatherDimensionNumbers((), (1,), (1,), (0,), (0,)), (1, 1)  # along axis 1
NOTHING = GatherDimensionNumbers((1,), (), ()), (3,)  # the whole, repeated


def gather(rng: np.random.Generator) -> list[Sample]:
    def sample(t, shape, indices, how, mode, index="i4", fill=None, unique=False):
        numbers, sizes = how
        at = np.array(indices, index)
        if mode is FILL and fill is None and np.dtype(t).kind in "fcV":
            fill = -1.5
        return Sample(
            (values(rng, shape, t), at),
            {
                "dimension_numbers": numbers,
                "slice_sizes": sizes,
                "indices_are_sorted": False,
                "unique_indices": unique,
                "mode": mode,
                "fill_value": fill,
            },
        )

    return [
        sample("f4", (5,), [[1], [4], [1]], ELEMENTS, INSIDE),
        sample("f8", (5,), [[1], [7], [-1]], ELEMENTS, CLIP),
        sample("f8", (5,), [[1], [5], [-1]], ELEMENTS, FILL),
        sample("f8", (4, 3), [[0], [3], [9], [2]], ROWS, FILL, "i8"),
        sample("f4", (4, 5), [[[0], [4]], [[2], [2]]], COLUMNS, CLIP),
        sample("c8", (3, 4), [[0, 2], [3, 1], [1, 1]], PAIRS, INSIDE),
        sample("f8", (3, 4), [[0, 2], [3, 1], [-1, 1]], PAIRS, FILL),
        sample("f8", (4, 5), [[0, 1], [3, 4], [-2, 0]], WINDOWS, CLIP),
        sample("f4", (4, 5), [[0, 1], [3, 4], [2, 3]], WINDOWS, FILL),
        sample("f8", (3, 4), [[[0], [2]], [[3], [3]], [[1], [0]]], LINES, INSIDE),
        sample("f8", (3, 4), [[[0], [4]], [[3], [3]], [[1], [0]]], LINES, FILL),
        sample("f4", (3,), np.zeros((2, 0)), NOTHING, FILL),
        sample("f8", (5,), [[1], [3]], ELEMENTS, INSIDE, unique=True),
        sample("i4", (5,), [[1], [9]], ELEMENTS, FILL),
        sample("u1", (300,), [[1], [255]], ELEMENTS, FILL, "u1"),
        sample("i1", (300,), [[100], [-1]], ELEMENTS, FILL, "i1"),
        sample("?", (5,), [[1], [9]], ELEMENTS, FILL, "u4"),
        sample(ml_dtypes.bfloat16, (4, 3), [[1], [9]], ROWS, FILL),
        sample("f2", (4, 3), np.zeros((0, 1)), ROWS, FILL),
        sample("f4", (4, 3), [2], ROWS_ONE, CLIP),
        sample("f4", (), np.zeros((2, 0)), SCALAR, CLIP),
        sample("f8", (0, 3), [[1], [0]], NO_ROWS, FILL),
    ]


ROWS_ONE = GatherDimensionNumbers((0,), (0,), (0,)), (1, 3)  # x[i] for one i
SCALAR = GatherDimensionNumbers((), (), ()), ()  # x of a number, repeated
NO_ROWS = GatherDimensionNumbers((1,), (0,), (0,)), (0, 3)  # x[i] of [0,3]

SAMPLES: dict[str, Samples] = {"gather": gather}
