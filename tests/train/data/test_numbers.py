"""Datasets whose elements have numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fxflow.errors import ArgumentError, OutOfRangeError
from fxflow.train import data
from fxflow.train.data import Dataset, IndexedDataset

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("take"), st.integers(0, 12)),
        st.tuples(st.just("skip"), st.integers(0, 5)),
        st.tuples(st.just("repeat"), st.integers(0, 3)),
        st.tuples(st.just("shard"), st.integers(1, 3)),
    ),
    max_size=4,
)


def chained(dataset: Dataset[int], steps: list[tuple[str, int]]) -> Dataset[int]:
    for name, count in steps:
        if name == "shard":
            dataset = dataset.shard(count - 1, count)
        else:
            dataset = getattr(dataset, name)(count)
    return dataset


@given(st.integers(0, 12), STEPS)
def test_elements_by_number_equal_those_in_order(
    length: int, steps: list[tuple[str, int]]
) -> None:
    indexed = chained(data.indexed(range(length)), steps)
    assert isinstance(indexed, IndexedDataset)
    in_order = chained(data.iterable(range(length)), steps)
    assert list(indexed) == list(in_order)
    assert [indexed[i] for i in range(len(indexed))] == list(in_order)


@given(st.integers(1, 12), st.integers(1, 5), st.booleans(), st.integers(1, 3))
def test_batches_are_gathered_in_one_operation(
    length: int, size: int, drop: bool, epochs: int
) -> None:
    rows = np.arange(2 * length).reshape(length, 2)
    for at_once, one_by_one in (
        (
            data.arrays(rows).batch(size, drop_remainder=drop).repeat(epochs),
            data.iterable(rows).batch(size, drop_remainder=drop).repeat(epochs),
        ),
        (
            data.arrays(rows).repeat(epochs).batch(size, drop_remainder=drop),
            data.iterable(rows).repeat(epochs).batch(size, drop_remainder=drop),
        ),
    ):
        ours, theirs = list(at_once), list(one_by_one)
        assert len(ours) == len(theirs) == len(at_once)
        assert all(map(np.array_equal, ours, theirs))


def test_a_batch_may_span_two_epochs() -> None:
    order = list(data.indexed(range(5)).shuffle(0).repeat(2))
    batches = data.arrays(np.arange(5)).shuffle(0).repeat(2).batch(4)
    assert np.concatenate(list(batches)).tolist() == order


def test_arrays_are_not_shared() -> None:
    rows = np.zeros((4, 2))
    next(iter(data.arrays(rows).batch(2)))[:] = 1
    assert not rows.any()


def test_lengths_and_indices_are_checked() -> None:
    dataset = data.indexed(range(7))
    assert [len(dataset.batch(2)), len(dataset.batch(2, drop_remainder=True))] == [4, 3]
    assert len(dataset.repeat(3)) == 21
    assert (dataset[-1], dataset.repeat()[700]) == (6, 0)
    with pytest.raises(TypeError, match="no length"):
        len(dataset.repeat())
    with pytest.raises(OutOfRangeError, match="index 7 is out of range for 7 elements"):
        dataset[7]
    with pytest.raises(ArgumentError, match=r"shuffle it before repeat\(\)"):
        dataset.repeat().shuffle(0)
