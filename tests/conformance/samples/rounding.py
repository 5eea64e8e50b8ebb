"""Samples of `fxflow.lax.rounding`."""

from __future__ import annotations

import numpy as np

from fxflow.lax.rounding import RoundingMethod
from tests.conformance.harness import (
    Sample,
    both,
    elementwise_samples,
    special_samples,
)

INF, NAN = float("inf"), float("nan")
HALVES = (0.5, -0.5, 1.5, 2.5, -2.5, 0.49999997, 8388609.0, 0.0, -0.0, INF, -INF, NAN)


def _rounds(rng):
    samples = []
    for method in RoundingMethod:
        params = {"rounding_method": method}
        make = elementwise_samples(1, "f", -0.4, 0.4, params=params)
        samples += make(rng)
        halves = np.array(HALVES, "f4")
        samples.append(Sample((halves,), params, name="halves", diff=False))
    return samples


SAMPLES = {
    "floor": both(elementwise_samples(1, "f", 1.1, 1.9), special_samples(1, *HALVES)),
    "ceil": both(elementwise_samples(1, "f", 1.1, 1.9), special_samples(1, *HALVES)),
    "round": _rounds,
    "nextafter": both(
        elementwise_samples(2, "f", tol=0.0), special_samples(2, 1.0, -1.5, INF, NAN)
    ),
    "is_finite": both(elementwise_samples(1, "f"), special_samples(1, *HALVES)),
}
