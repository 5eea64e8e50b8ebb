"""Samples of ragged products."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.conformance.harness import Sample, uniform


def ranges(*sizes: Any) -> Any:
    ends = np.cumsum(np.array(sizes, "i4"), -1, dtype="i4")
    return np.stack([ends - np.array(sizes, "i4"), ends], -1)


def shifted(value: Any, i: int) -> Any:
    """Other rows for other slices of a batch; smaller numbers for operands."""
    if value.dtype.kind == "i":
        return value + np.asarray(i % 2, value.dtype)
    return value * np.asarray((1, 0.5, -1)[i], value.dtype)


# lhs, rhs, dimension numbers, ragged, group, group sizes
PLAIN = (((1,), (1,)), ((), ()))
FREE = [
    ((7, 3), (3, 3, 2), PLAIN, 0, 0, (2, 0, 4)),
    ((2, 6, 3), (3, 2, 2, 4), (((2,), (0,)), ((0,), (1,))), 1, 2, ((2, 3), (0, 5))),
    ((3, 4, 5), (5, 2, 2), (((2,), (0,)), ((), ())), 1, 1, ((1, 2), (0, 4), (2, 2))),
    ((3, 5, 4), (2, 4, 2), (((2,), (1,)), ((), ())), 1, 0, (2, 2)),
]
CONTRACTED = [
    ((3, 7), (2, 7), (((1,), (1,)), ((), ())), 1, None, (2, 0, 4)),
    ((2, 6, 3), (6, 2, 4), (((1,), (0,)), ((0,), (1,))), 1, None, ((2, 3), (0, 5))),
    ((5, 3, 2), (2, 5, 4), (((2, 0), (0, 1)), ((), ())), 0, None, ((2, 3), (1, 1))),
]


def products(rng: np.random.Generator) -> list[Sample]:
    def sample(x, y, dims, ragged, group, sizes, dtype="f4", preferred=None, **more):
        params = {
            "dimension_numbers": dims,
            "ragged": ragged,
            "group": group,
            "precision": None,
            "preferred_element_type": preferred and np.dtype(preferred),
        }
        groups = ranges(*sizes)
        args = uniform(rng, x, dtype), uniform(rng, y, dtype), groups
        return Sample(args, params, vary=shifted, **more)

    plain, summed = FREE[0], CONTRACTED[0]
    return [
        *(sample(*case) for case in FREE + CONTRACTED),
        *(
            sample(*case, dtype=dtype, diff=False)
            for case in (plain, summed)
            for dtype in ("f8", "bfloat16", "i4", "bool", "c8")
        ),
        sample(*plain, dtype="bfloat16", preferred="f4", diff=False, name="to f32"),
        sample(*summed, dtype="i1", preferred="i4", diff=False, name="to i32"),
        sample((0, 3), (2, 3, 2), PLAIN, 0, 0, (0, 0), name="no rows"),
        sample((3, 3), (0, 3, 2), PLAIN, 0, 0, (), name="no groups"),
        sample((40, 3), (2, 3, 2), PLAIN, 0, 0, (25, 9), name="many", diff=False),
        sample((3, 40), (2, 40), PLAIN, 1, None, (25, 9), name="long", diff=False),
    ]


SAMPLES = {"ragged_dot": products}
