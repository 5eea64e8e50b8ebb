"""Samples of all scatters."""

import ml_dtypes
import numpy as np

from fxflow.lax.gather_scatter.dimension_numbers import (
    GatherScatterMode,
    ScatterDimensionNumbers,
)
from tests.conformance.harness import Sample
from tests.conformance.samples.shape import Samples, values

CLIP = GatherScatterMode.CLIP
DROP = GatherScatterMode.FILL_OR_DROP
INSIDE = GatherScatterMode.PROMISE_IN_BOUNDS

ELEMENTS = ScatterDimensionNumbers((), (0,), (0,))
ROWS = ScatterDimensionNumbers((1,), (0,), (0,))
COLUMNS = ScatterDimensionNumbers((0,), (1,), (1,))
PAIRS = ScatterDimensionNumbers((), (0, 1), (1, 0))
WINDOWS = ScatterDimensionNumbers((0, 2), (), (0, 1))
LINES = ScatterDimensionNumbers((), (1,), (1,), (0,), (0,))

# dtype, operand, indices, updates' shape, numbers, mode, index dtype, unique
CASES = [
    ("f4", (5,), [[1], [4], [0]], (3,), ELEMENTS, INSIDE, "i4", True),
    ("f8", (5,), [[1], [4], [1], [1]], (4,), ELEMENTS, DROP, "i4", False),
    ("f8", (5,), [[1], [7], [-1]], (3,), ELEMENTS, CLIP, "i4", False),
    ("f8", (5,), [[1], [5], [-1]], (3,), ELEMENTS, DROP, "i4", True),
    ("f8", (4, 3), [[0], [3], [9], [0]], (4, 3), ROWS, DROP, "i8", False),
    ("f4", (4, 5), [[0], [4], [2]], (4, 3), COLUMNS, CLIP, "i4", False),
    ("f8", (3, 4), [[0, 2], [3, 1], [1, 1]], (3,), PAIRS, INSIDE, "i4", True),
    # Windows that overlap, one that does not lie inside.
    ("f8", (4, 5), [[0, 1], [1, 2], [3, 4]], (2, 3, 2), WINDOWS, DROP, "i4", False),
    ("f4", (4, 5), [[0, 1], [1, 2], [3, 4]], (2, 3, 2), WINDOWS, CLIP, "i4", False),
    ("f8", (2, 4), [[[0], [2]], [[3], [3]]], (2, 2), LINES, DROP, "i4", False),
    ("i4", (5,), [[1], [9], [1]], (3,), ELEMENTS, DROP, "i4", False),
    ("u1", (300,), [[1], [255]], (2,), ELEMENTS, CLIP, "u1", False),
    ("i1", (300,), [[100], [-1]], (2,), ELEMENTS, DROP, "i1", False),
    (ml_dtypes.bfloat16, (4, 3), [[1], [9]], (2, 3), ROWS, DROP, "u4", False),
    ("f2", (4, 3), np.zeros((0, 1)), (0, 3), ROWS, DROP, "i4", False),
    ("f4", (0, 3), np.zeros((1, 1)), (1, 3), ROWS, DROP, "i4", False),
    (
        "f4",
        (4, 3),
        [2],
        (3,),
        ScatterDimensionNumbers((0,), (0,), (0,)),
        CLIP,
        "i4",
        True,
    ),
]
SCALAR = ScatterDimensionNumbers((), (), ())
CASES += [("f8", (), np.zeros((2, 0)), (2,), SCALAR, DROP, "i4", False)]
COMPLEX = ("c8", (4, 3), [[1], [0], [1]], (3, 3), ROWS, DROP, "i4", False)
BOOL = ("?", (5,), [[1], [4]], (2,), ELEMENTS, DROP, "i4", False)


def scatters(*extra: tuple) -> Samples:
    def samples(rng: np.random.Generator) -> list[Sample]:
        return [
            Sample(
                (values(rng, s, t), np.array(at, index), values(rng, shape, t)),
                {
                    "dimension_numbers": numbers,
                    "indices_are_sorted": False,
                    "unique_indices": unique,
                    "mode": mode,
                },
            )
            for t, s, at, shape, numbers, mode, index, unique in (*CASES, *extra)
        ]

    return samples


SAMPLES: dict[str, Samples] = {
    "scatter": scatters(COMPLEX, BOOL),
    "scatter_add": scatters(COMPLEX),
    "scatter_mul": scatters(COMPLEX),
    "scatter_min": scatters(BOOL),
    "scatter_max": scatters(BOOL),
}
