"""Samples of `fxflow.lax.elementwise`."""

from __future__ import annotations

import numpy as np

from tests.conformance.harness import (
    Sample,
    away_from_zero,
    both,
    elementwise_samples,
    special_samples,
)

INF, NAN = float("inf"), float("nan")
SPECIAL = (0.0, -0.0, 1.0, -1.5, INF, -INF, NAN)


def _integers(*names: str):
    def make(rng):
        samples = []
        for name in names:
            info = np.iinfo(name)
            values = [info.min, info.min + 1, 0, 1, 2, 5, info.max]
            values += [-1, -2, -5] if info.min else []
            x, y = (g.reshape(-1) for g in np.meshgrid(values, values))
            samples.append(
                Sample((x.astype(name), y.astype(name)), name=f"edges-{name}")
            )
        return samples

    return make


def _fixed(rng):
    x = np.array([5.5, -5.5, 7.25, -0.5], "f4")
    y = np.array([3.0, 3.0, -2.0, 2.0], "f4")
    return [Sample((x, y), name="signs"), Sample((x, x[:1][0] * 0 + 2), name="half")]


EDGES = _integers("int8", "int32", "uint8", "uint32", "int64")

SAMPLES = {
    "neg": both(elementwise_samples(1, "iufc"), special_samples(1, *SPECIAL)),
    "add": both(
        elementwise_samples(2, "iufc", constant=(0, 1)),
        special_samples(2, *SPECIAL),
        EDGES,
    ),
    "sub": both(
        elementwise_samples(2, "iufc", constant=(0, 1)),
        special_samples(2, *SPECIAL),
        EDGES,
    ),
    "mul": both(
        elementwise_samples(2, "iufc", constant=(0, 1)),
        special_samples(2, *SPECIAL),
        EDGES,
    ),
    "div": both(
        elementwise_samples(2, "iufc", 0.5, 2.0, constant=(0, 1)),
        special_samples(2, *SPECIAL),
        EDGES,
    ),
    "rem": both(
        elementwise_samples(2, "iuf", 1.0, 9.0, diff=False),
        special_samples(2, *SPECIAL),
        EDGES,
        _fixed,
    ),
    "sign": both(
        elementwise_samples(1, "iuc"),
        elementwise_samples(1, "f", prepare=away_from_zero),
        special_samples(1, *SPECIAL),
    ),
    "abs": both(
        elementwise_samples(1, "if", prepare=away_from_zero),
        elementwise_samples(1, "c"),
        special_samples(1, *SPECIAL),
    ),
    "max": both(
        elementwise_samples(2, "biufc", constant=(1,)),
        special_samples(2, 0.0, 1.0, -1.5, INF, -INF, NAN),
    ),
    "min": both(
        elementwise_samples(2, "biufc", constant=(1,)),
        special_samples(2, 0.0, 1.0, -1.5, INF, -INF, NAN),
    ),
}
