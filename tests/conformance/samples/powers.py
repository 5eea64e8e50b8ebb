"""Samples of `fxflow.lax.powers`."""

from __future__ import annotations

import numpy as np

from tests.conformance.harness import (
    Sample,
    away_from_zero,
    both,
    elementwise_samples,
    special_samples,
    uniform,
)

INF, NAN = float("inf"), float("nan")


def _integer_pow(rng):
    samples = [
        Sample((uniform(rng, (2, 3), "float32", 0.5, 1.5),), {"y": y})
        for y in (0, 1, 2, 3, 7, -1, -3)
    ]
    samples += [
        Sample((uniform(rng, (5,), dtype, 1, 3),), {"y": 3})
        for dtype in ("int32", "uint8", "float64", "bfloat16", "float16", "complex64")
    ]
    samples.append(Sample((uniform(rng, (), "float32", 1, 2),), {"y": 2}))
    samples.append(Sample((uniform(rng, (0, 2), "float32", 1, 2),), {"y": -2}))
    return samples


def _integer_exponents(rng):
    x = uniform(rng, (2, 4), "float32", 0.5, 2.0)
    y = uniform(rng, (2, 4), "int32", -3, 3)
    return [
        Sample((x, y), name="integers"),
        Sample((x.astype("complex64"), y), name="complex-integers"),
        Sample((x, np.array(3, "i4")), name="integer-constant"),
        Sample((x.astype("f8"), y.astype("i8")), name="wide-integers"),
    ]


SAMPLES = {
    "square": elementwise_samples(1, "iufc"),
    "integer_pow": _integer_pow,
    "pow": both(
        elementwise_samples(2, "fc", 0.5, 2.0, constant=(0, 1)),
        special_samples(2, 0.0, 1.0, 2.0, -1.5, -2.0, INF, NAN),
        _integer_exponents,
    ),
    "sqrt": both(
        elementwise_samples(1, "fc", 0.3, 3.0), special_samples(1, 0.0, -0.0, -1.0, INF)
    ),
    "rsqrt": both(
        elementwise_samples(1, "fc", 0.3, 3.0), special_samples(1, 0.0, -0.0, -1.0, INF)
    ),
    "cbrt": both(
        elementwise_samples(1, "f", prepare=away_from_zero),
        special_samples(1, 0.0, -0.0, -8.0, INF, NAN),
    ),
}
