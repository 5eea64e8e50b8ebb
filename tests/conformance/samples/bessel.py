"""Samples of `fxflow.lax.bessel`."""

from __future__ import annotations

from tests.conformance.harness import both, elementwise_samples, special_samples

SAMPLES = {
    "bessel_i0e": both(
        elementwise_samples(1, "f", -12.0, 12.0),
        special_samples(1, 0.0, 8.0, -8.0, 500.0),
    ),
    "bessel_i1e": both(
        elementwise_samples(1, "f", -12.0, 12.0),
        special_samples(1, 0.0, 8.0, -8.0, 500.0),
    ),
}
