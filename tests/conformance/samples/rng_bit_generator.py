"""Samples of XLA's own generators."""

from collections.abc import Callable

import numpy as np

from fxflow.lax import RandomAlgorithm
from tests.conformance.harness import Sample

SHAPES = [(), (5,), (3, 3), (2, 3), (4, 3), (0, 2), (2, 2, 2), (1, 3, 3)]


def _generated(rng: np.random.Generator) -> list[Sample]:
    samples = []
    for algorithm in RandomAlgorithm:
        for i, shape in enumerate(SHAPES):
            dtype = (np.uint32, np.uint64)[i % 2]
            words = rng.integers(0, 2**32, 4, np.uint32)
            if i % 3 == 1:
                words[2:] = 2**32 - 1  # the counter is carried over
            params = {"shape": shape, "dtype": np.dtype(dtype), "algorithm": algorithm}
            name = f"{algorithm.name}-{shape}-{np.dtype(dtype)}"
            # No batch: all its bits come from the first state, which is tested apart.
            samples.append(Sample((words,), params, name=name, batch=()))
    return samples


SAMPLES: dict[str, Callable[[np.random.Generator], list[Sample]]] = {
    "rng_bit_generator": _generated
}
