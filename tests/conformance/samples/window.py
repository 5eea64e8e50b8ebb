"""Samples of windowed reductions."""

from __future__ import annotations

from typing import Any

import numpy as np

from fxflow import lax
from fxflow.core.arrays.aval import Aval
from fxflow.lax.windows import Window, make_window
from tests.conformance.harness import Sample, uniform

CASES: list[tuple[Any, ...]] = [
    ((6,), (2,), None, "VALID", None, None),
    ((6, 5), (2, 3), (2, 1), "SAME", None, None),
    ((7, 6), (3, 2), (2, 2), ((1, 2), (0, 1)), (2, 1), (1, 2)),
    ((7,), (3,), (2,), ((-1, 1),), None, None),
    ((1, 4, 4, 2), (1, 2, 2, 1), (1, 2, 2, 1), "VALID", None, None),
    ((40,), (20,), (3,), "SAME", None, None),
    ((5, 7), (4, 3), (1, 2), "SAME", None, None),
    ((2,), (5,), None, "VALID", None, None),
    ((0, 3), (1, 2), None, "VALID", None, None),
    ((), (), None, (), None, None),
]


def window_of(case: tuple[Any, ...]) -> Window:
    return make_window("window", *case)


def distinct(rng: np.random.Generator, shape: Any, dtype: Any = "float32") -> Any:
    """Elements far apart, so that finite differences do not change the selection."""
    size = int(np.prod(shape))
    return (rng.permutation(size).reshape(shape) * 0.25 - size / 8).astype(dtype)


def spread(value: Any, i: int) -> Any:
    """The i-th slice of a batch: all elements stay distinct."""
    return np.flip(value).copy() if i == 1 else value


def reductions(*dtypes: str) -> Any:
    def make(rng: np.random.Generator) -> list[Sample]:
        out = [
            Sample((distinct(rng, case[0]),), {"window": window_of(case)}, vary=spread)
            for case in CASES
        ]
        case = CASES[1]
        return out + [
            Sample(
                (uniform(rng, case[0], dtype),), {"window": window_of(case)}, diff=False
            )
            for dtype in dtypes
        ]

    return make


def gathers(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample(
            (uniform(rng, case[0], dtype), distinct(rng, case[0], dtype)),
            {"greatest": greatest, "window": window_of(case)},
            active=(0,),
            vary=spread,
            diff=dtype == "float32",
            second=case is CASES[0],
        )
        for case in CASES
        for greatest, dtype in ((True, "float32"), (False, "bfloat16"))
    ]


def scatters(rng: np.random.Generator) -> list[Sample]:
    out = []
    for case in CASES:
        window = window_of(case)
        operand = distinct(rng, case[0])
        shape = window.out_shape("sample", Aval(operand.shape, operand.dtype))
        out += [
            Sample(
                (uniform(rng, shape), operand),
                {"greatest": greatest, "window": window},
                active=(0,),
                vary=spread,
                second=case is CASES[0],
            )
            for greatest in (True, False)
        ]
    return out


def any_computation(rng: np.random.Generator) -> list[Sample]:
    def product(x: Any, i: Any) -> Any:
        return lax.reduce_window(x, i, lax.mul, (2, 3), (2, 1))

    # Padding is of initial values, which therefore must be identities.
    def padded(x: Any, i: Any) -> Any:
        return lax.reduce_window(x, i, lax.mul, (2, 3), (2, 1), "SAME")

    def both(a: Any, b: Any, i: Any) -> Any:
        one = np.float32(1) if a.dtype == np.float32 else lax.full((), 1, a.dtype)
        return lax.reduce_window(
            (a, b),
            (i, one),
            lambda x, y: (lax.add(x[0], y[0]), lax.mul(x[1], y[1])),
            (3,),
        )

    return [
        Sample((uniform(rng, (4, 5)), np.float32(1)), function=product),
        Sample(
            (uniform(rng, (5,)), uniform(rng, (5,)), np.float32(0.25)), function=both
        ),
        Sample((uniform(rng, (4, 5), "int32"), np.int32(1)), function=product),
        Sample((uniform(rng, (4, 5)), np.float32(1)), function=padded, constant=(1,)),
        Sample(
            (np.float32(3), np.float32(2)),
            function=lambda x, i: lax.reduce_window(x, i, lax.mul, (), None, ()),
            oracle=lambda x, i: x * i,
        ),
    ]


SAMPLES = {
    "reduce_window_sum": reductions("float64", "bfloat16", "int32", "complex64"),
    "reduce_window_max": reductions(
        "float64", "bfloat16", "int32", "bool", "complex64"
    ),
    "reduce_window_min": reductions("float64", "bfloat16", "uint8", "bool"),
    "reduce_window": any_computation,
    "select_and_gather_add": gathers,
    "select_and_scatter_add": scatters,
}
