"""Samples of `fxflow.lax.comparison`."""

from __future__ import annotations

from tests.conformance.harness import both, elementwise_samples, special_samples

INF, NAN = float("inf"), float("nan")
SPECIAL = special_samples(2, 0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, -NAN)

SAMPLES = {
    "eq": both(elementwise_samples(2, "biufc", constant=(0,)), SPECIAL),
    "ne": both(elementwise_samples(2, "biufc", constant=(1,)), SPECIAL),
    "lt": both(elementwise_samples(2, "biuf", constant=(0,)), SPECIAL),
    "le": both(elementwise_samples(2, "biuf", constant=(1,)), SPECIAL),
    "gt": both(elementwise_samples(2, "biuf", constant=(0,)), SPECIAL),
    "sorts_before": both(elementwise_samples(2, "f", constant=(0,)), SPECIAL),
    "ge": both(elementwise_samples(2, "biuf", constant=(1,)), SPECIAL),
}
