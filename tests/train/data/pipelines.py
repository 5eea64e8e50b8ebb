"""Pipelines of each kind, for several tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from fxflow.train import data
from fxflow.train.data import Dataset

ROWS = np.arange(23)
RAGGED = [np.full(n % 7 + 1, n) for n in range(23)]


def with_noise(row: Any, rng: np.random.Generator) -> tuple[Any, float]:
    return row, rng.random()


def letters(element: Any) -> list[int]:
    return [100 * int(element[0]) + i for i in range(len(element))]


PIPELINES: dict[str, Callable[[], Dataset[Any]]] = {
    "rows": lambda: data.arrays(ROWS),
    "shuffled": lambda: data.arrays(ROWS).shuffle(3).repeat(3).batch(4),
    "batches shuffled": lambda: data.arrays(ROWS).batch(4).shuffle(3).repeat(2),
    "endless": lambda: data.arrays(ROWS).shuffle(3).repeat().batch(5).take(17),
    "noise": lambda: data.arrays(ROWS).map(with_noise, seed=1).batch(3).repeat(2),
    "threads": lambda: (
        data.arrays(ROWS).shuffle(1).map(with_noise, seed=1, workers=3).repeat(2)
    ),
    "lines": lambda: (
        data.lines(Path(__file__).parent / "*.py")
        .filter(lambda line: len(line) > 20)
        .shuffle(1, buffer=16)
        .repeat(2)
        .batch(9)
    ),
    "flat": lambda: (
        data.indexed(RAGGED).flat_map(letters).shuffle(0, buffer=7).batch(5).prefetch()
    ),
    "buckets": lambda: (
        data.indexed(RAGGED).bucket_by_length(len, [2, 5], [2, 3, 4]).repeat(2)
    ),
    "padded": lambda: data.indexed(RAGGED).padded_batch(4, multiple=4),
    "mixed": lambda: data.mix(
        [
            data.indexed(range(10)),
            data.indexed(range(100, 130)).filter(lambda v: v % 3),
            data.arrays(ROWS),
        ],
        [1, 2, 3],
        seed=2,
        stop="all",
    ).repeat(2),
    "one after another": lambda: (
        data.concatenate([data.arrays(ROWS), data.indexed(range(5))])
        .skip(3)
        .shard(1, 3)
    ),
    "side by side": lambda: data.zip(
        [data.arrays(ROWS).shuffle(1), data.indexed(range(90)).skip(4)]
    ),
    "iterable": lambda: (
        data.iterable(lambda: (i * i for i in range(20)))
        .take(15)
        .shard(0, 2, drop_remainder=False)
    ),
    "devices": lambda: (
        data.arrays({"a": ROWS.astype(np.float64)})
        .batch(5)
        .to_devices()
        .map(lambda batch: np.asarray(batch["a"]))
    ),
}
