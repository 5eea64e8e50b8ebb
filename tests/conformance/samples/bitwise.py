"""Samples of `fxflow.lax.bitwise`."""

from __future__ import annotations

import numpy as np

from tests.conformance.harness import Sample, both, elementwise_samples


def _edges(count):
    def make(rng):
        samples = []
        for name in ("int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"):
            info = np.iinfo(name)
            values = [info.min, 0, 1, 2, 7, 8, 31, 33, 65, info.max // 3, info.max]
            values += [-1, -8] if info.min else []
            grid = np.meshgrid(*[np.array(values, name)] * count)
            args = tuple(g.reshape(-1) for g in grid)
            samples.append(Sample(args, name=f"edges-{name}"))
        return samples

    return make


SAMPLES = {
    "and": both(elementwise_samples(2, "biu", constant=(1,)), _edges(2)),
    "or": both(elementwise_samples(2, "biu", constant=(1,)), _edges(2)),
    "xor": both(elementwise_samples(2, "biu", constant=(1,)), _edges(2)),
    "not": both(elementwise_samples(1, "biu"), _edges(1)),
    "shift_left": both(elementwise_samples(2, "iu", 0, 9, constant=(1,)), _edges(2)),
    "shift_right_logical": both(
        elementwise_samples(2, "iu", 0, 9, constant=(1,)), _edges(2)
    ),
    "shift_right_arithmetic": both(
        elementwise_samples(2, "iu", 0, 9, constant=(1,)), _edges(2)
    ),
    "population_count": both(elementwise_samples(1, "iu"), _edges(1)),
    "clz": both(elementwise_samples(1, "iu"), _edges(1)),
}
