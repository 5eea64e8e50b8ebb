"""Samples of the primitives of `fxflow.lax.padding`."""

import ml_dtypes
import numpy as np

from tests.conformance.harness import Sample
from tests.conformance.samples.shape import Samples, values


def pad(rng: np.random.Generator) -> list[Sample]:
    cases = [
        ("f4", (3,), ((1, 2, 0),)),
        ("f8", (2, 3), ((1, 0, 2), (0, 1, 1))),
        ("f8", (5,), ((-1, -2, 0),)),
        ("f4", (4,), ((-3, 1, 1),)),
        ("f8", (4,), ((-1, -1, 2),)),
        ("f4", (3,), ((-5, 4, 2),)),
        ("c8", (2, 2), ((0, -1, 0), (2, 2, 0))),
        ("i4", (), ()),
        ("?", (2,), ((1, 1, 1),)),
        (ml_dtypes.bfloat16, (0,), ((2, 1, 3),)),
        ("u1", (3,), ((-3, 0, 0),)),
        ("f2", (3, 0), ((1, 1, 0), (0, 0, 0))),
        # Everything that was there is cropped away.
        ("f4", (3,), ((4, -7, 0),)),
    ]
    return [
        Sample((values(rng, s, t), values(rng, (), t)), {"padding_config": config})
        for t, s, config in cases
    ]


SAMPLES: dict[str, Samples] = {"pad": pad}
