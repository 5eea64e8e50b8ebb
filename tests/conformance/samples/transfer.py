"""Samples of `fxflow.lax.transfer`."""

from __future__ import annotations

import numpy as np

from fxflow import NamedSharding, P, make_mesh
from fxflow.devices import local_devices
from fxflow.devices.shardings import SingleDeviceSharding
from tests.conformance.harness import Sample, uniform


def _device_put(rng: np.random.Generator) -> list[Sample]:
    here = {"to": SingleDeviceSharding(local_devices()[0])}
    pair = make_mesh((2,), ("x",))
    return [
        *(
            Sample((uniform(rng, shape, dtype),), here)
            for shape in ((2, 3), (), (0, 2))
            for dtype in ("float32", "int32", "complex64")
        ),
        Sample((uniform(rng, (2, 3)),), {"to": NamedSharding(pair, P("x"))}),
        Sample((uniform(rng, (2, 2)),), {"to": NamedSharding(pair, P(None, "x"))}),
    ]


SAMPLES = {"device_put": _device_put}
