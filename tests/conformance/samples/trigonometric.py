"""Samples of `fxflow.lax.trigonometric`."""

from __future__ import annotations

from tests.conformance.harness import both, elementwise_samples, special_samples

INF, NAN = float("inf"), float("nan")
ENDS = (0.0, 1.0, -1.0, INF, -INF, NAN)

SAMPLES = {
    "sin": both(elementwise_samples(1, "fc"), special_samples(1, 0.0, 100.0, INF, NAN)),
    "cos": both(elementwise_samples(1, "fc"), special_samples(1, 0.0, 100.0, INF, NAN)),
    "tan": both(
        elementwise_samples(1, "fc", -1.0, 1.0), special_samples(1, 0.0, INF, NAN)
    ),
    "asin": both(
        elementwise_samples(1, "fc", -0.8, 0.8), special_samples(1, 1.0, -1.0, 2.0, NAN)
    ),
    "acos": both(
        elementwise_samples(1, "fc", -0.8, 0.8), special_samples(1, 1.0, -1.0, 2.0, NAN)
    ),
    "atan": both(
        elementwise_samples(1, "fc", -0.8, 0.8), special_samples(1, 0.0, INF, -INF, NAN)
    ),
    "atan2": both(
        elementwise_samples(2, "fc", 0.3, 2.0, constant=(0, 1)),
        elementwise_samples(2, "f", -2.0, -0.3),
        special_samples(2, 0.0, -0.0, 1.0, -1.0, INF, -INF, NAN),
    ),
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
