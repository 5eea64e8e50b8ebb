"""Samples of `broadcasting`, `reshaping` and `axis_order`."""

from collections.abc import Callable

import ml_dtypes
import numpy as np

from tests.conformance.harness import Sample

Samples = Callable[[np.random.Generator], list[Sample]]


def values(
    rng: np.random.Generator, shape: tuple[int, ...], dtype: object
) -> np.ndarray:
    """Random elements of any dtype."""
    dtype = np.dtype(dtype)
    numbers = rng.standard_normal(shape) * 3
    if dtype.kind == "c":
        return (numbers + 1j * rng.standard_normal(shape)).astype(dtype)
    if dtype.kind == "b":
        return numbers > 0
    if dtype.kind == "u":
        return np.abs(numbers).astype(dtype)
    return numbers.astype(dtype)


def broadcast_in_dim(rng: np.random.Generator) -> list[Sample]:
    cases = [
        ("f4", (), (2, 3), ()),
        ("f4", (3,), (2, 3), (1,)),
        ("f8", (2, 1), (2, 5, 3), (0, 2)),
        (ml_dtypes.bfloat16, (1, 3), (2, 3), (0, 1)),
        ("c8", (2,), (2, 3), (0,)),
        ("?", (1,), (4,), (0,)),
        ("i4", (3, 1), (3, 4), (0, 1)),
        ("u1", (3,), (0, 3), (1,)),
        ("f2", (0,), (2, 0), (1,)),
        (ml_dtypes.float8_e4m3fn, (2,), (2, 2), (1,)),
    ]
    return [
        Sample(
            (values(rng, old, dtype),),
            {"shape": new, "broadcast_dimensions": dims},
            # Sums of numbers of 8 bits are too rough to be compared.
            diff=np.dtype(dtype).itemsize > 1,
        )
        for dtype, old, new, dims in cases
    ]


def reshape(rng: np.random.Generator) -> list[Sample]:
    cases = [
        ("f4", (2, 3), (3, 2)),
        ("f8", (), (1, 1)),
        ("c8", (4,), (2, 1, 2)),
        ("i4", (1,), ()),
        ("?", (2, 2), (4,)),
        (ml_dtypes.bfloat16, (3, 0), (0, 7)),
        ("u1", (7,), (7,)),
    ]
    return [
        Sample((values(rng, old, dtype),), {"new_sizes": new})
        for dtype, old, new in cases
    ]


def transpose(rng: np.random.Generator) -> list[Sample]:
    cases = [
        ("f4", (2, 3), (1, 0)),
        ("f8", (2, 3, 4), (1, 2, 0)),
        ("c8", (2, 1, 3), (2, 0, 1)),
        ("i4", (), ()),
        ("?", (5,), (0,)),
        (ml_dtypes.bfloat16, (3, 0), (1, 0)),
        ("u1", (1, 2, 3, 2), (3, 1, 2, 0)),
    ]
    return [
        Sample((values(rng, shape, dtype),), {"permutation": order})
        for dtype, shape, order in cases
    ]


def rev(rng: np.random.Generator) -> list[Sample]:
    cases = [
        ("f4", (5,), (0,)),
        ("f8", (2, 3), (0, 1)),
        ("c8", (2, 3), (1,)),
        ("i4", (), ()),
        ("?", (3, 2), (0,)),
        (ml_dtypes.bfloat16, (0, 2), (0,)),
    ]
    return [
        Sample((values(rng, shape, dtype),), {"dimensions": dims})
        for dtype, shape, dims in cases
    ]


SAMPLES: dict[str, Samples] = {
    "broadcast_in_dim": broadcast_in_dim,
    "reshape": reshape,
    "transpose": transpose,
    "rev": rev,
}
