"""Samples of `dot_general`."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow.lax.product_precision import DotAlgorithmPreset, Precision
from tests.conformance.harness import Sample, uniform

DIMS = [
    ((3, 4), (4, 5), (((1,), (0,)), ((), ()))),
    ((2, 3, 4), (2, 4, 5), (((2,), (1,)), ((0,), (0,)))),
    ((3, 4, 2), (5, 2, 4, 3), (((1, 2), (2, 1)), ((0,), (3,)))),
    ((4,), (4,), (((0,), (0,)), ((), ()))),
    ((2, 3, 4, 5), (5, 3, 6, 2), (((3,), (0,)), ((0, 1), (3, 1)))),
    ((4, 3, 2), (2, 4, 7), (((2, 0), (0, 1)), ((), ()))),
    ((2,), (3,), (((), ()), ((), ()))),
    ((), (3,), (((), ()), ((), ()))),
]
PLAIN = DIMS[0][2]


def params(dims: Any, precision: Any = None, preferred: Any = None) -> dict[str, Any]:
    return {
        "dimension_numbers": dims,
        "precision": precision,
        "preferred_element_type": None if preferred is None else np.dtype(preferred),
    }


def products(rng: np.random.Generator) -> list[Sample]:
    out = [
        Sample((uniform(rng, x), uniform(rng, y)), params(dims)) for x, y, dims in DIMS
    ]
    for dtype in (
        "float64",
        "bfloat16",
        "float16",
        "int32",
        "int8",
        "bool",
        "complex64",
    ):
        pair = uniform(rng, (3, 4), dtype), uniform(rng, (4, 5), dtype)
        out.append(Sample(pair, params(PLAIN)))
    small = uniform(rng, (3, 4), "int8"), uniform(rng, (4, 5), "int8")
    half = uniform(rng, (3, 4), "bfloat16"), uniform(rng, (4, 5), "bfloat16")
    tiny = uniform(rng, (3, 4), "float8_e4m3fn"), uniform(rng, (4, 5), "float8_e5m2")
    pair = uniform(rng, (3, 4)), uniform(rng, (4, 5))
    high = (Precision.HIGHEST, Precision.HIGH)
    out += [
        Sample(small, params(PLAIN, preferred="int32"), "int8 to int32"),
        Sample(half, params(PLAIN, preferred="float32"), "bf16 to f32", widen=False,
               diff=False),
        Sample(tiny, params(PLAIN, preferred="float32"), "f8 to f32", diff=False),
        Sample(pair, params(PLAIN, high), "precision"),
        Sample(pair, params(PLAIN, DotAlgorithmPreset.F32_F32_F32), "algorithm",
               diff=False),
        Sample((np.zeros((0, 3), "f4"), uniform(rng, (3, 2))), params(PLAIN)),
        Sample((np.zeros((2, 0), "f4"), np.zeros((0, 3), "f4")), params(PLAIN)),
    ]  # fmt: skip
    return out


SAMPLES = {"dot_general": products}
