"""Samples of draws from keys, and of keys as words."""

from collections.abc import Callable
from typing import Any

import numpy as np

from fxflow.core.arrays import dtypes
from fxflow.core.arrays.array import put_host
from fxflow.core.arrays.aval import Aval
from tests.conformance.harness import Sample, same


def _words(rng: np.random.Generator, *shape: int) -> Any:
    return rng.integers(0, 2**32, (*shape, 2), np.uint32)


def _keys(rng: np.random.Generator, *shape: int) -> Any:
    return put_host(_words(rng, *shape), Aval(shape, dtypes.key_fry))


def _bits(rng: np.random.Generator) -> list[Sample]:
    cases = [
        ((), (5,), 8),
        ((), (3, 4), 16),
        ((), (2, 1, 3), 32),
        ((), (2, 3), 64),
        ((), (), 32),
        ((), (0, 2), 32),
        ((3,), (), 32),
        ((2, 3), (4, 5), 64),
    ]
    return [
        Sample(
            (_words(rng, *keys),),
            {"shape": shape, "bit_width": width},
            name=f"{keys}-{shape}-{width}",
        )
        for keys, shape, width in cases
    ]


def _split(rng: np.random.Generator) -> list[Sample]:
    cases = [((), (2,)), ((), (3, 2)), ((), ()), ((4,), (2,)), ((), (0,)), ((), (20,))]
    return [
        Sample((_words(rng, *keys),), {"shape": shape}, name=f"{keys}-{shape}")
        for keys, shape in cases
    ]


def _fold_in(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample(
            (_words(rng, *shape), rng.integers(0, 2**32, shape, np.uint32)),
            name=f"{shape}",
        )
        for shape in [(), (3,), (2, 5)]
    ]


def _wrap(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample((_words(rng, *shape),), {"dtype": dtypes.key_fry}, name=f"{shape}")
        for shape in [(), (3,), (0,), (2, 2)]
    ]


def _unwrap(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample((_keys(rng, *shape),), name=f"{shape}", vary=same)
        for shape in [(), (3,), (0,), (2, 2)]
    ]


SAMPLES: dict[str, Callable[[np.random.Generator], list[Sample]]] = {
    "random_bits": _bits,
    "random_split": _split,
    "random_fold_in": _fold_in,
    "random_wrap": _wrap,
    "random_unwrap": _unwrap,
}
