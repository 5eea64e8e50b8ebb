"""Samples of `conv_general_dilated`."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow.lax.convolution_dims import conv_dimension_numbers
from fxflow.lax.product_precision import Precision
from tests.conformance.harness import Sample, uniform


def params(lhs: Any, rhs: Any, strides: Any, padding: Any, **more: Any) -> Any:
    axes = len(lhs) - 2
    numbers = conv_dimension_numbers(lhs, rhs, more.pop("dimension_numbers", None))
    return {
        "window_strides": strides,
        "padding": padding,
        "lhs_dilation": (1,) * axes,
        "rhs_dilation": (1,) * axes,
        "dimension_numbers": numbers,
        "feature_group_count": 1,
        "batch_group_count": 1,
        "precision": None,
        "preferred_element_type": None,
        **more,
    }


NHWC = ("NHWC", "HWIO", "NHWC")
CASES: list[tuple[Any, Any, Any, Any, dict[str, Any]]] = [
    ((2, 3, 5, 6), (4, 3, 2, 3), (2, 1), ((0, 1), (1, 1)), {}),
    (
        (2, 3, 7),
        (4, 3, 3),
        (2,),
        ((1, 2),),
        {"lhs_dilation": (2,), "rhs_dilation": (2,)},
    ),
    ((2, 3, 7), (4, 3, 3), (2,), ((-1, -1),), {}),
    ((2, 4, 6), (6, 2, 3), (1,), ((1, 1),), {"feature_group_count": 2}),
    ((4, 3, 6), (6, 3, 3), (2,), ((0, 1),), {"batch_group_count": 2}),
    ((2, 5, 6, 3), (2, 3, 3, 4), (1, 2), ((0, 1), (0, 1)), {"dimension_numbers": NHWC}),
    (
        (5, 6, 4, 2),
        (3, 2, 2, 8),
        (2, 1),
        ((1, 0), (0, 2)),
        {"dimension_numbers": ("HWNC", "WHIO", "NCHW"), "batch_group_count": 2},
    ),
    ((2, 3), (4, 3), (), (), {}),
    ((2, 3, 4), (4, 3, 6), (1,), ((0, 0),), {}),
    ((0, 2, 4), (2, 2, 3), (1,), ((1, 1),), {}),
]


def convolutions(rng: np.random.Generator) -> list[Sample]:
    out = [
        Sample(
            (uniform(rng, x), uniform(rng, w)),
            params(x, w, s, p, **more),
            second=x == (2, 3, 7),
        )
        for x, w, s, p, more in CASES
    ]
    x, w = (2, 2, 5), (3, 2, 3)
    plain = params(x, w, (1,), ((1, 1),))
    for dtype in ("float64", "bfloat16", "float16", "int32", "complex64"):
        pair = uniform(rng, x, dtype), uniform(rng, w, dtype)
        tol = 0.1 if dtype == "bfloat16" else None
        # Derivatives are taken in 64 bits: once is enough.
        diff = dtype == "complex64"
        out.append(Sample(pair, plain, tol=tol, diff=diff, second=False))
    exact = {**plain, "precision": (Precision.HIGHEST, Precision.DEFAULT)}
    small = uniform(rng, x, "int8"), uniform(rng, w, "int8")
    wide = {**plain, "preferred_element_type": np.dtype("int32")}
    return [
        *out,
        Sample((uniform(rng, x), uniform(rng, w)), exact, "precision"),
        Sample(small, wide, "int8 to int32"),
    ]


SAMPLES = {"conv_general_dilated": convolutions}
