"""Samples of `fxflow.lax.bitcasting`."""

from __future__ import annotations

import numpy as np

from fxflow.core.arrays import dtypes
from tests.conformance.harness import Sample, uniform


def _samples(rng):
    samples = []
    pairs = [
        ("float32", "uint32", (2, 3)),
        ("float32", "int32", ()),
        ("float32", "uint8", (2, 3)),
        ("float64", "uint32", (2,)),
        ("float64", "float16", ()),
        ("uint8", "float32", (2, 4)),
        ("uint16", "float32", (3, 2)),
        ("uint8", "int64", (8,)),
        ("bfloat16", "uint16", (5,)),
        ("float32", "bfloat16", (2, 0)),
        ("uint8", "uint8", (3,)),
        ("bool", "bool", (3,)),
        ("complex64", "complex64", (3,)),
    ]
    for old, new, shape in pairs:
        value = uniform(rng, shape, old, 0, 100)
        params = {"new_dtype": dtypes.dtype(new)}
        samples.append(Sample((value,), params, name=f"{old}-{new}-{len(shape)}"))
    nibbles = np.arange(12).reshape(6, 2) % 7
    for old in ("int4", "uint4"):
        value = nibbles.astype(dtypes.dtype(old))
        params = {"new_dtype": dtypes.dtype("uint8")}
        samples.append(Sample((value,), params, name=f"{old}-uint8"))
    value = np.arange(0, 250, 9).astype("u1")
    for new in ("int4", "uint4"):
        params = {"new_dtype": dtypes.dtype(new)}
        samples.append(Sample((value,), params, name=f"uint8-{new}"))
    return samples


SAMPLES = {"bitcast_convert_type": _samples}
