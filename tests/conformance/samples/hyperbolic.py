"""Samples of `fxflow.lax.hyperbolic`."""

from __future__ import annotations

from tests.conformance.harness import both, elementwise_samples, special_samples

INF, NAN = float("inf"), float("nan")
ENDS = (0.0, 1.0, -1.0, INF, -INF, NAN)

SAMPLES = {
    "sinh": both(elementwise_samples(1, "fc"), special_samples(1, *ENDS)),
    "cosh": both(elementwise_samples(1, "fc"), special_samples(1, *ENDS)),
    "tanh": both(elementwise_samples(1, "fc", -1, 1), special_samples(1, *ENDS)),
    "asinh": both(elementwise_samples(1, "fc", -1, 0.8), special_samples(1, *ENDS)),
    "acosh": both(
        elementwise_samples(1, "fc", 1.4, 3.0), special_samples(1, 1.0, 0.5, INF, NAN)
    ),
    "atanh": both(
        elementwise_samples(1, "fc", -0.7, 0.7), special_samples(1, 0.0, 1.0, 2.0, NAN)
    ),
}
