"""Samples of the primitives of `fxflow.lax.concatenation`."""

import ml_dtypes
import numpy as np

from tests.conformance.harness import Sample
from tests.conformance.samples.shape import Samples, values


def concatenate(rng: np.random.Generator) -> list[Sample]:
    cases = [
        ("f4", [(2,), (3,)], 0),
        ("f8", [(2, 3), (2, 1), (2, 0)], 1),
        ("c8", [(1, 2), (3, 2)], 0),
        ("i4", [(3,)], 0),
        ("?", [(2, 1), (2, 2)], 1),
        (ml_dtypes.bfloat16, [(0,), (0,)], 0),
        ("f2", [(1, 2, 1), (1, 3, 1)], 1),
    ]
    return [
        Sample(tuple(values(rng, s, dtype) for s in shapes), {"dimension": axis})
        for dtype, shapes, axis in cases
    ]


def split(rng: np.random.Generator) -> list[Sample]:
    cases = [
        ("f4", (5,), (2, 3), 0),
        ("f8", (2, 4), (1, 0, 3), 1),
        ("c8", (3, 2), (1, 1, 1), 0),
        ("i4", (2, 3, 4), (4,), 2),
        ("?", (3,), (3, 0), 0),
        (ml_dtypes.bfloat16, (2, 0), (0, 0), 1),
    ]
    return [
        Sample((values(rng, shape, dtype),), {"sizes": sizes, "axis": axis})
        for dtype, shape, sizes, axis in cases
    ]


SAMPLES: dict[str, Samples] = {"concatenate": concatenate, "split": split}
