"""Samples of `fxflow.lax.incomplete_gamma`."""

from __future__ import annotations

import numpy as np

from tests.conformance.harness import Sample, both, special_samples, uniform

INF, NAN = float("inf"), float("nan")


def _samples(*active: int, tol: float | None = None):
    def make(rng):
        samples = []
        for dtype in ("float64", "float32", "bfloat16", "float16"):
            a = uniform(rng, (8,), dtype, 0.4, 6.0)
            x = uniform(rng, (8,), dtype, 0.2, 9.0)
            options = {"active": active, "second": False}
            if dtype in ("float64", "float32"):
                options["tol"] = tol
            samples.append(Sample((a, x), diff=bool(active), **options))
        a = np.array([30.0, 30.0, 200.0, 200.0, 12.0])
        x = np.array([25.0, 40.0, 190.0, 230.0, 12.0])
        samples.append(Sample((a, x), name="large", diff=False, tol=1e-8, batch=()))
        samples.append(Sample((a[:0], x[:0]), name="empty", diff=False))
        samples.append(Sample((a[0], x), name="constant", diff=False, tol=1e-8))
        return samples

    return make


EDGES = special_samples(2, 0.0, 1.0, -1.0, INF, NAN, batch=())

SAMPLES = {
    "igamma": both(_samples(0, 1), EDGES),
    "igammac": both(_samples(0, 1), EDGES),
    "igamma_grad_a": _samples(1, tol=3e-5),
    "random_gamma_grad": _samples(tol=3e-5),
}
