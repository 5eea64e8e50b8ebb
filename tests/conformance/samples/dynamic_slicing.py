"""Samples of the primitives of `fxflow.lax.dynamic_slicing`."""

import ml_dtypes
import numpy as np

from tests.conformance.harness import Sample
from tests.conformance.samples.shape import Samples, values

CASES = [
    ("f4", (5,), (2,), (3,), "i4"),
    # Starts outside are moved inside.
    ("f8", (3, 4), (7, -2), (2, 2), "i4"),
    ("c8", (3, 2), (1, 0), (1, 2), "i8"),
    ("i4", (), (), (), "i4"),
    ("?", (4,), (1,), (0,), "i4"),
    (ml_dtypes.bfloat16, (4, 3), (1, 1), (2, 1), "u4"),
    ("f2", (0, 2), (0, 1), (0, 1), "i4"),
    ("u1", (2, 3, 2), (1, 1, 0), (1, 2, 2), "i4"),
]


def starts(at: tuple[int, ...], dtype: str) -> tuple[np.ndarray, ...]:
    return tuple(np.array(i, dtype) for i in at)


def dynamic_slice(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample((values(rng, shape, t), *starts(at, index)), {"slice_sizes": sizes})
        for t, shape, at, sizes, index in CASES
    ]


def dynamic_update_slice(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample((values(rng, shape, t), values(rng, sizes, t), *starts(at, index)), {})
        for t, shape, at, sizes, index in CASES
    ]


SAMPLES: dict[str, Samples] = {
    "dynamic_slice": dynamic_slice,
    "dynamic_update_slice": dynamic_update_slice,
}
