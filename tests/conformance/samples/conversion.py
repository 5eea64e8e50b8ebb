"""Samples of `fxflow.lax.conversion`."""

from __future__ import annotations

import numpy as np

from fxflow.core.arrays import dtypes
from tests.conformance.harness import Sample, uniform

INF, NAN = float("inf"), float("nan")
DTYPES = [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint32",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
    "complex128",
    "float8_e4m3fn",
    "float8_e5m2",
]


def _pairs(rng):
    samples = []
    for old in DTYPES:
        for new in DTYPES:
            value = uniform(rng, (3,), old, 0.0, 5.0)
            params = {"new_dtype": dtypes.dtype(new), "weak_type": False}
            inexact = all(dtypes.is_inexact(dtypes.dtype(d)) for d in (old, new))
            samples.append(
                Sample(
                    (value,),
                    params,
                    name=f"{old}-{new}",
                    diff=inexact and "float8" not in old + new,
                )
            )
    return samples


def _edges(rng):
    samples = []
    for old in ("float32", "float64", "float16"):
        value = np.array([1e20, -1e20, NAN, INF, -INF, -1.9, 300.0, 0.5, -0.0], "f8")
        with np.errstate(over="ignore"):
            value = value.astype(old)
        for new in [
            "bool",
            "int8",
            "uint8",
            "int32",
            "uint32",
            "int64",
            "uint64",
            "int4",
        ]:
            params = {"new_dtype": dtypes.dtype(new), "weak_type": False}
            samples.append(Sample((value,), params, name=f"edges-{old}-{new}"))
    wrap = np.array([-1, 255, 256, 2**31 - 1, -(2**31)], "i4")
    for new in ("int8", "uint8", "uint32", "int64", "uint64"):
        params = {"new_dtype": dtypes.dtype(new), "weak_type": False}
        samples.append(Sample((wrap,), params, name=f"wrap-{new}"))
    weak = {"new_dtype": dtypes.dtype("float32"), "weak_type": True}
    samples.append(Sample((wrap,), weak, name="weak"))
    samples.append(Sample((wrap[:0],), weak, name="empty"))
    samples.append(Sample((np.array(2, "f2"),), weak, name="0-d"))
    return samples


SAMPLES = {"convert_element_type": lambda rng: _pairs(rng) + _edges(rng)}
