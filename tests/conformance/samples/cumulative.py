"""Samples of running reductions and linear recurrences."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.conformance.harness import Sample, uniform

SHAPES = [((7,), 0), ((3, 4), 1), ((2, 9, 2), 1), ((1,), 0)]


def running(*dtypes: str, low: float = -2.0) -> Any:
    def make(rng: np.random.Generator) -> list[Sample]:
        out = [
            Sample(
                (uniform(rng, shape, "float32", low),),
                {"axis": axis, "reverse": rev},
                second=shape == (3, 4),
            )
            for shape, axis in SHAPES
            for rev in (False, True)
        ]
        out += [
            Sample(
                (uniform(rng, (5, 3), dtype, low),),
                {"axis": 0, "reverse": False},
                diff=dtype == "complex64",
                second=False,
            )
            for dtype in dtypes
        ]
        empty = np.zeros((0, 3), "float32")
        return [*out, Sample((empty,), {"axis": 0, "reverse": True}, "empty")]

    return make


def recurrences(rng: np.random.Generator) -> list[Sample]:
    out = [
        Sample(
            (uniform(rng, shape), uniform(rng, shape)),
            {"axis": axis, "reverse": rev},
            second=shape == (3, 4),
        )
        for shape, axis in SHAPES
        for rev in (False, True)
    ]
    out += [
        Sample(
            (uniform(rng, (5, 2), dtype), uniform(rng, (5, 2), dtype)),
            {"axis": 0, "reverse": False},
            diff=dtype == "complex64",
            second=False,
        )
        for dtype in ("float64", "bfloat16", "float16", "complex64")
    ]
    return out


SAMPLES = {
    "cumsum": running("float64", "bfloat16", "float16", "int32", "uint8", "complex64"),
    "cumprod": running("float64", "bfloat16", "float16", "int32", "uint8", "complex64"),
    "cummax": running("float64", "bfloat16", "float16", "int32", "uint8", "complex64"),
    "cummin": running("float64", "bfloat16", "float16", "int32", "uint8", "complex64"),
    "cumlogsumexp": running("float64", "bfloat16", "float16"),
    "linear_recurrence": recurrences,
}
