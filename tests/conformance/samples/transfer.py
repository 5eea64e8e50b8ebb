"""Samples of `fxflow.lax.transfer`."""

from __future__ import annotations

import numpy as np

from fxflow.devices import local_devices
from tests.conformance.harness import Sample, uniform


def _device_put(rng: np.random.Generator) -> list[Sample]:
    params = {"device": local_devices()[0]}
    return [
        Sample((uniform(rng, shape, dtype),), params)
        for shape in ((2, 3), (), (0, 2))
        for dtype in ("float32", "int32", "complex64")
    ]


SAMPLES = {"device_put": _device_put}
