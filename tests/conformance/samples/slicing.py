"""Samples of the primitives of `fxflow.lax.slicing`."""

import ml_dtypes
import numpy as np

from tests.conformance.harness import Sample
from tests.conformance.samples.shape import Samples, values


def slice_(rng: np.random.Generator) -> list[Sample]:
    cases = [
        ("f4", (5,), (1,), (4,), None),
        ("f8", (7, 3), (1, 0), (7, 2), (3, 1)),
        ("f8", (6,), (0,), (6,), (4,)),
        ("c8", (3, 3), (0, 1), (2, 3), (1, 2)),
        ("i4", (), (), (), None),
        ("?", (4,), (2,), (2,), None),
        (ml_dtypes.bfloat16, (0, 3), (0, 1), (0, 3), None),
        ("u1", (5,), (0,), (5,), None),
    ]
    return [
        Sample(
            (values(rng, shape, t),),
            {"start_indices": start, "limit_indices": limit, "strides": strides},
        )
        for t, shape, start, limit, strides in cases
    ]


SAMPLES: dict[str, Samples] = {"slice": slice_}
