"""Samples of `fxflow.lax.transfer`."""

from __future__ import annotations

import numpy as np

from fxflow import NamedSharding, P, make_mesh
from fxflow.core.spmd.memories import Going
from fxflow.devices import local_devices
from fxflow.devices.shardings import SingleDeviceSharding
from tests.conformance.harness import Sample, uniform


def _device_put(rng: np.random.Generator) -> list[Sample]:
    one = SingleDeviceSharding(local_devices()[0])
    here = {"to": one, "memory": Going(None)}
    pair = make_mesh((2,), ("x",))
    return [
        *(
            Sample((uniform(rng, shape, dtype),), here)
            for shape in ((2, 3), (), (0, 2))
            for dtype in ("float32", "int32", "complex64")
        ),
        *(
            Sample((uniform(rng, (2, 2)),), {"to": NamedSharding(pair, spec), **memory})
            for spec in (P("x"), P(None, "x"))
            for memory in ({"memory": Going(None)}, {"memory": None})
        ),
        *(
            Sample((uniform(rng, (2, 3)),), {"to": to, "memory": Going("pinned_host")})
            for to in (None, one, NamedSharding(pair, P("x")))
        ),
    ]


SAMPLES = {"device_put": _device_put}
