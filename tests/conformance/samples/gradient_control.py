"""Samples of `fxflow.lax.gradient_control`."""

from __future__ import annotations

from tests.conformance.harness import elementwise_samples

# Its derivative is not that of its values: that is what it is for.
SAMPLES = {"stop_gradient": elementwise_samples(1, "biufc", diff=False)}
