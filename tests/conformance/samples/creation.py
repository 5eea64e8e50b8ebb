"""Samples of the primitives of `fxflow.lax.creation`."""

import ml_dtypes
import numpy as np

from tests.conformance.harness import Sample
from tests.conformance.samples.shape import Samples


def iota(rng: np.random.Generator) -> list[Sample]:
    cases = [
        ("i4", (5,), 0),
        ("f4", (2, 3), 1),
        ("f8", (2, 3), 0),
        ("c8", (3,), 0),
        (ml_dtypes.bfloat16, (2, 3, 2), 1),
        ("i1", (300,), 0),
        ("u1", (0,), 0),
        ("i8", (2,), 0),
        ("f2", (1, 1), 1),
    ]
    return [
        Sample((), {"dtype": np.dtype(t), "shape": shape, "dimension": axis})
        for t, shape, axis in cases
    ]


def dimension_size(rng: np.random.Generator) -> list[Sample]:
    # Sizes that a program does not know are in tests/export/test_symbolic.py.
    return [Sample((), {"size": size}) for size in (0, 3)]


SAMPLES: dict[str, Samples] = {"iota": iota, "dimension_size": dimension_size}
