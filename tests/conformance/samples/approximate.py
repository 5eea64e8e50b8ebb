"""Samples of the primitive of `fxflow.lax.approximate`."""

import ml_dtypes
import numpy as np

from tests.conformance.harness import Sample
from tests.conformance.samples.shape import Samples, values
from tests.conformance.samples.sort import distinct


def approx_top_k(rng: np.random.Generator) -> list[Sample]:
    def sample(x, k, axis=0, largest=True, length=None, diff=True):
        params = {
            "k": k,
            "axis": axis,
            "length": k if length is None else length,
            "largest": largest,
            "recall_target": 0.9,
            "override": -1,
        }
        return Sample((x,), params, diff=diff)

    return [
        sample(distinct(rng, (7,), "f4"), 3),
        sample(distinct(rng, (7,), "f4"), 3, largest=False),
        sample(distinct(rng, (3, 5), "f8"), 2, axis=1),
        sample(distinct(rng, (4, 3), "f8"), 2, axis=0, largest=False),
        sample(distinct(rng, (7,), "f4"), 3, length=7),
        sample(distinct(rng, (1500,), "f4"), 1, length=1024, diff=False),
        sample(distinct(rng, (9,), "f4").astype(ml_dtypes.bfloat16), 4, diff=False),
        sample(distinct(rng, (9,), "f2"), 4, largest=False, diff=False),
        sample(values(rng, (0, 3), "f4"), 2, axis=1),
    ]


SAMPLES: dict[str, Samples] = {"approx_top_k": approx_top_k}
