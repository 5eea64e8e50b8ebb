"""Samples of `fxflow.lax.copying`."""

from __future__ import annotations

from tests.conformance.harness import Sample, elementwise_samples, uniform


def _barriers(rng):
    x, y = uniform(rng, (2, 3)), uniform(rng, (4,), "complex64")
    n = uniform(rng, (), "int32")
    return [Sample((x,)), Sample((x, y, n)), Sample((x[:0], y)), Sample((n, n))]


SAMPLES = {
    "copy": elementwise_samples(1, "biufc"),
    "optimization_barrier": _barriers,
}
