"""Samples of `fxflow.lax.special`."""

from __future__ import annotations

from tests.conformance.harness import (
    both,
    elementwise_samples,
    special_samples,
)

INF, NAN = float("inf"), float("nan")


SAMPLES = {
    "erf": both(elementwise_samples(1, "f"), special_samples(1, 0.0, 5.0, INF, NAN)),
    "erfc": both(elementwise_samples(1, "f"), special_samples(1, 0.0, 5.0, INF, NAN)),
    "erf_inv": both(
        elementwise_samples(1, "f", -0.9, 0.9), special_samples(1, 1.0, -1.0, 2.0, NAN)
    ),
}
