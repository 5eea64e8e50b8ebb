"""Samples of the block cipher."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.conformance.harness import Sample


def _words(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return rng.integers(0, 2**32, shape, np.uint32)


def _threefry(rng: np.random.Generator) -> list[Sample]:
    shapes = [(), (1,), (5,), (3, 7), (0, 2)]
    same = [
        Sample(tuple(_words(rng, s) for _ in range(4)), name=f"{s}") for s in shapes
    ]
    one_key = [
        Sample(
            (_words(rng, ()), _words(rng, ()), _words(rng, s), _words(rng, s)),
            name=f"one-key-{s}",
        )
        for s in shapes[1:4]
    ]
    return same + one_key


SAMPLES: dict[str, Callable[[np.random.Generator], list[Sample]]] = {
    "threefry2x32": _threefry
}
