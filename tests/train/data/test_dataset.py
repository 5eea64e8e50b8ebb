"""The methods of datasets check their arguments."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fxflow.errors import ArgumentError
from fxflow.train import data
from fxflow.train.data import Dataset

ROWS = data.arrays(np.arange(6))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda d: d.map(3), "map takes a function, got int 3"),
        (lambda d: d.map(abs, workers=-1), "workers must be at least 0"),
        (lambda d: d.map(abs, processes=True), "processes=True needs workers="),
        (lambda d: d.map(abs, timeout=0), "timeout must be positive"),
        (lambda d: d.map(abs, seed=-1), "seed must be at least 0"),
        (lambda d: d.filter(None), "filter takes a function"),
        (lambda d: d.flat_map([]), "flat_map takes a function"),
        (lambda d: d.take(-1), "take: count must be at least 0"),
        (lambda d: d.skip("2"), "skip: count"),
        (lambda d: d.repeat(1.5), "repeat: count"),
        (lambda d: d.shard(3, 3), "index 3 is not below count 3"),
        (lambda d: d.prefetch(0), "prefetch: size must be at least 1"),
        (lambda d: d.filter(bool).shuffle(0), "has no length, so it needs buffer="),
        (lambda d: d.iterate(epoch=-1), "epoch must be at least 0"),
    ],
)
def test_invalid_arguments_are_refused(
    call: Callable[[Dataset[Any]], Any], words: str
) -> None:
    with pytest.raises(ArgumentError, match=words):
        call(ROWS)


def test_a_dataset_can_be_iterated_again() -> None:
    dataset = ROWS.shuffle(1).map(lambda x: x + 1)
    assert list(dataset) == list(dataset)


def test_positions_do_not_change_later() -> None:
    batches = ROWS.batch(2).iterate()
    before = copy.deepcopy(batches.state)
    kept = batches.state
    next(batches)
    assert kept == before != batches.state


def test_the_default_shard_is_that_of_this_process() -> None:
    # With one process, its part is all of the data.
    assert list(ROWS.shard()) == list(ROWS)
