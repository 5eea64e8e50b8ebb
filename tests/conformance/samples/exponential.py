"""Samples of `fxflow.lax.exponential`."""

from __future__ import annotations

from tests.conformance.harness import both, elementwise_samples, special_samples

INF, NAN = float("inf"), float("nan")
ENDS = (0.0, 1.0, -1.0, INF, -INF, NAN)

SAMPLES = {
    "exp": both(elementwise_samples(1, "fc"), special_samples(1, *ENDS)),
    "exp2": both(elementwise_samples(1, "fc"), special_samples(1, 100.0, *ENDS)),
    "expm1": both(elementwise_samples(1, "fc"), special_samples(1, 1e-7, *ENDS)),
    "log": both(elementwise_samples(1, "fc", 0.3, 3.0), special_samples(1, *ENDS)),
    "log1p": both(
        elementwise_samples(1, "fc", -0.5, 2.0), special_samples(1, 1e-7, *ENDS)
    ),
    "logistic": both(elementwise_samples(1, "fc"), special_samples(1, *ENDS)),
    "logistic_slope": both(elementwise_samples(1, "f"), special_samples(1, *ENDS)),
    "tanh_slope": both(elementwise_samples(1, "f"), special_samples(1, *ENDS)),
}
