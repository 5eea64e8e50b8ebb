"""Positions: pipelines resume exactly, at any element."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from fxflow import tree
from fxflow.errors import DataError
from fxflow.train import data
from tests.train.data.pipelines import PIPELINES, ROWS


def same(one: Any, other: Any) -> bool:
    """Returns whether two elements are bitwise equal."""
    (a, first), (b, second) = tree.flatten(one), tree.flatten(other)
    return first == second and all(map(np.array_equal, a, b))


@pytest.mark.parametrize("name", PIPELINES)
def test_pipelines_resume_at_every_position(name: str) -> None:
    dataset = PIPELINES[name]()
    batches = dataset.iterate()
    states, elements = [json.dumps(batches.state)], []
    for element in batches:
        elements.append(element)
        states.append(json.dumps(batches.state))
    assert len(elements) > 4
    for read, state in enumerate(states):
        rest = list(dataset.iterate(json.loads(state)))
        assert len(rest) == len(elements) - read
        assert all(map(same, rest, elements[read:]))


@pytest.mark.parametrize("name", PIPELINES)
def test_positions_keep_their_structure(name: str) -> None:
    batches = PIPELINES[name]().iterate()
    first = tree.structure(batches.state)
    for _ in batches:
        assert tree.structure(batches.state) == first


def test_positions_of_other_pipelines_are_refused() -> None:
    state = data.arrays(ROWS).filter(bool).take(2).iterate().state
    with pytest.raises(DataError, match="not a position of this dataset"):
        data.arrays(ROWS).iterate(state)
    with pytest.raises(DataError, match="not a position of this dataset"):
        data.mix([data.arrays(ROWS)]).iterate({"count": 0, "ended": 0, "epoch": 0})


def test_windows_are_shuffled_within_themselves() -> None:
    given = list(data.iterable(range(10)).shuffle(0, buffer=4))
    assert [sorted(given[i : i + 4]) for i in (0, 4, 8)] == [
        [0, 1, 2, 3],
        [4, 5, 6, 7],
        [8, 9],
    ]
    assert given != sorted(given)


def test_epochs_have_different_orders() -> None:
    for dataset in (data.indexed(range(50)), data.iterable(range(50))):
        orders = list(dataset.shuffle(0, buffer=50).repeat(3))
        parts = [orders[i : i + 50] for i in (0, 50, 100)]
        assert all(sorted(part) == list(range(50)) for part in parts)
        assert parts[0] != parts[1] != parts[2] != parts[0]
        assert list(dataset.shuffle(0, buffer=50).iterate(epoch=2)) == parts[2]


def test_repeating_an_empty_dataset_ends() -> None:
    assert list(data.indexed([]).filter(bool).repeat()) == []
    assert list(data.indexed([1, 2]).filter(bool).repeat(0)) == []


def test_uneven_shards_drop_or_keep_the_remainder() -> None:
    stream = data.iterable(range(7))
    assert [list(stream.shard(i, 3)) for i in range(3)] == [[0, 3], [1, 4], [2, 5]]
    uneven = [list(stream.shard(i, 3, drop_remainder=False)) for i in range(3)]
    assert uneven == [[0, 3, 6], [1, 4], [2, 5]]


def test_mixing_follows_the_weights() -> None:
    ones = data.indexed([1]).repeat()
    twos = data.indexed([2]).repeat()
    drawn = list(data.mix([ones, twos], [1, 3], seed=0).take(4000))
    assert abs(drawn.count(2) / 4000 - 0.75) < 0.03


def test_mixing_ends_with_the_first_or_with_all() -> None:
    short, long = data.indexed("ab"), data.indexed("x" * 50)
    first = "".join(data.mix([short, long], seed=3))
    assert first.count("a") == first.count("b") == 1 and first.count("x") < 50
    whole = "".join(data.mix([short, long], seed=3, stop="all"))
    assert sorted(whole) == sorted("ab" + "x" * 50)
