"""Samples of `fxflow.lax.complex`."""

from __future__ import annotations

from tests.conformance.harness import Sample, both, elementwise_samples, uniform


def _parts(rng):
    samples = []
    for dtype in ("float32", "float64"):
        for shape in ((2, 3), (), (0, 2)):
            x, y = (uniform(rng, shape, dtype) for _ in range(2))
            samples.append(Sample((x, y)))
    x = uniform(rng, (4,))
    samples.append(Sample((x, uniform(rng, ()))))
    samples.append(Sample((uniform(rng, ()), x)))
    return samples


def _reals(rng):
    return [
        Sample((uniform(rng, (2, 3), "float32"),), name="real"),
        Sample((uniform(rng, (2, 3), "float64"),), name="real64"),
    ]


SAMPLES = {
    "real": elementwise_samples(1, "c"),
    "imag": elementwise_samples(1, "c"),
    "complex": _parts,
    "conj": both(elementwise_samples(1, "c"), _reals),
}
