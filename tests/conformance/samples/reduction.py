"""Samples of the reductions, named and by any computation."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow import lax
from tests.conformance.harness import Sample, uniform

SHAPES = [((3, 5), (1,)), ((2, 3, 4), (0, 2)), ((), ()), ((7,), (0,)), ((2, 3), ())]
NUMERIC = ("float64", "bfloat16", "float16", "int32", "uint8", "complex64")


def reductions(dtypes: tuple[str, ...], diff: bool = True, low: float = -2.0) -> Any:
    def make(rng: np.random.Generator) -> list[Sample]:
        out = [
            Sample((uniform(rng, shape, "float32" if diff else dtypes[0], low),),
                   {"axes": axes})
            for shape, axes in SHAPES
        ]  # fmt: skip
        out += [
            Sample((uniform(rng, (3, 5), dtype, low),), {"axes": (1,)})
            for dtype in dtypes
        ]
        empty = np.zeros((0, 3), "float32" if diff else dtypes[0])
        return [*out, Sample((empty,), {"axes": (0,)}, "empty", diff=False)]

    return make


def bits(rng: np.random.Generator) -> list[Sample]:
    return reductions(("int32", "bool", "uint8", "int8"), diff=False)(rng)


def positions(rng: np.random.Generator) -> list[Sample]:
    nan = np.array([[1, np.nan, 3, np.nan], [2, 2, 1, 1]], "float32")
    out = [
        Sample(
            (uniform(rng, (3, 5), dtype),), {"axis": 1, "index_dtype": np.dtype("i4")}
        )
        for dtype in ("float32", "bfloat16", "float16", "int32", "uint8", "bool")
    ]
    out += [
        Sample((nan,), {"axis": 1, "index_dtype": np.dtype("i4")}, "nan and ties"),
        Sample(
            (uniform(rng, (4, 2, 3)),), {"axis": 0, "index_dtype": np.dtype("int64")}
        ),
        Sample((uniform(rng, (1,)),), {"axis": 0, "index_dtype": np.dtype("uint8")}),
        Sample((np.zeros((3, 0), "f4"),), {"axis": 0, "index_dtype": np.dtype("i4")}),
    ]
    return out


def product_and_sum(a: Any, b: Any, i: Any, j: Any) -> Any:
    def combine(x: Any, y: Any) -> Any:
        return lax.add(x[0], y[0]), lax.mul(x[1], y[1])

    return lax.reduce((a, b), (i, j), combine, (1,))


def any_computation(rng: np.random.Generator) -> list[Sample]:
    zero, one = np.float32(0), np.float32(1)

    def far(a: Any, i: Any) -> Any:
        return lax.reduce(
            a, i, lambda x, y: lax.add(lax.mul(x, y), lax.add(x, y)), (0,)
        )

    return [
        Sample(
            (uniform(rng, (3, 5)), uniform(rng, (3, 5)), zero, one),
            function=product_and_sum,
            oracle=lambda a, b, i, j: (a.sum(1), b.prod(1)),
        ),
        Sample(
            (uniform(rng, (4, 2)), np.float32(0.3)),
            function=far,
            oracle=lambda a, i: (np.prod(1 + a, 0) * (1 + i) - 1).astype("f4"),
        ),
        Sample((np.zeros((0, 2), "float32"), np.float32(0.3)), function=far),
        Sample(
            (uniform(rng, (3, 4), "int32"), np.int32(5)),
            function=lambda a, i: lax.reduce(a, i, lax.add, (0, 1)),
            oracle=lambda a, i: np.asarray(a.sum() + i, "i4"),
        ),
    ]


SAMPLES = {
    "reduce_sum": reductions(NUMERIC),
    "reduce_prod": reductions(NUMERIC),
    "reduce_max": reductions((*NUMERIC, "bool", "float8_e4m3fn")),
    "reduce_min": reductions((*NUMERIC, "bool", "float8_e4m3fn")),
    "reduce_and": bits,
    "reduce_or": bits,
    "reduce_xor": bits,
    "argmax": positions,
    "argmin": positions,
    "reduce": any_computation,
}
