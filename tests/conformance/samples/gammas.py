"""Samples of `fxflow.lax.gammas`."""

from __future__ import annotations

import numpy as np

from tests.conformance.harness import (
    Sample,
    both,
    elementwise_samples,
    special_samples,
    uniform,
)

INF, NAN = float("inf"), float("nan")


def _polygamma(rng):
    samples = []
    for dtype in ("float32", "float64", "bfloat16"):
        m = np.array([1.0, 2.0, 3.0, 4.0]).astype(uniform(rng, (), dtype).dtype)
        x = uniform(rng, (4,), dtype, 0.5, 3.0)
        samples.append(
            Sample((m, x), active=(1,), tol=5e-2 if len(dtype) > 7 else None)
        )
    m = np.array(2, "f4")
    samples.append(Sample((m, uniform(rng, (2, 3), "float32", 0.5, 3.0))))
    return samples


def _zeta(rng):
    samples = []
    for dtype in ("float32", "float64", "bfloat16"):
        x = uniform(rng, (4,), dtype, 1.5, 4.0)
        q = uniform(rng, (4,), dtype, 0.5, 3.0)
        samples.append(Sample((x, q), active=(1,)))
    samples.append(Sample((np.array(2, "f4"), uniform(rng, (2, 3), low=0.5, high=3.0))))
    return samples


SAMPLES = {
    "lgamma": both(
        elementwise_samples(1, "f", 0.3, 6.0, slack=10.0),
        special_samples(1, 0.0, -1.0, -1.5, 100.0, INF, NAN),
    ),
    "digamma": both(
        elementwise_samples(1, "f", 0.3, 6.0, slack=10.0),
        special_samples(1, 0.0, -0.0, -1.0, -1.5, 100.0, INF, NAN),
    ),
    "polygamma": _polygamma,
    "zeta": _zeta,
}
