"""Samples of `cond_rows`: conditions vectorized over the index."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow import vmap
from tests.conformance.harness import Sample, uniform
from tests.conformance.samples.cond import loops, three, two


def _cond_rows(rng: np.random.Generator) -> list[Sample]:
    pred, index = np.array([True, False, True]), np.array([2, 0, 1], np.int32)
    x, y = uniform(rng, (3, 2)), uniform(rng, (3, 2))
    shared: Any = vmap(two, (0, None, 0))
    return [
        Sample((pred, x, y), function=vmap(two)),
        Sample((pred, x[0], y), function=shared, name="shared operand"),
        Sample((~pred | pred, x[0], y), function=shared, name="one branch"),
        Sample((pred, x.astype("c8"), y.astype("c8")), function=vmap(two)),
        Sample((index, x), function=vmap(three)),
        Sample((index, x.astype("bfloat16")), function=vmap(three), diff=False),
        Sample((pred[:0], x[:0], y[:0]), function=vmap(two)),
        Sample((pred, x), function=vmap(loops), second=False),
        Sample((pred, x, y), function=vmap(two), active=(1,)),
    ]


SAMPLES: dict[str, Callable[[np.random.Generator], list[Sample]]] = {
    "cond_rows": _cond_rows
}
