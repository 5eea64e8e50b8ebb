"""Samples of `fxflow.lax.incomplete_beta`."""

from __future__ import annotations

import numpy as np

from tests.conformance.harness import Sample, uniform


def _samples(rng):
    samples = []
    for dtype in ("float64", "float32", "bfloat16", "float16"):
        a, b = (uniform(rng, (8,), dtype, 0.5, 5.0) for _ in range(2))
        x = uniform(rng, (8,), dtype, 0.05, 0.95)
        samples.append(Sample((a, b, x), active=(2,)))
    a = np.array([50.0, 3.0, 1.0, 1.0, -1.0, 1.0, 2.0])
    b = np.array([60.0, 80.0, 1.0, 2.0, 1.0, 0.0, 2.0])
    x = np.array([0.45, 0.05, 0.0, 1.0, 0.5, 0.5, 1.5])
    samples.append(Sample((a, b, x), name="edges", diff=False, batch=()))
    samples.append(Sample((a[0], b[0], x), name="constant", active=(2,), diff=False))
    return samples


SAMPLES = {"regularized_incomplete_beta": _samples}
