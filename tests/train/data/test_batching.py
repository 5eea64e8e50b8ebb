"""Batches of elements with different shapes."""

from __future__ import annotations

import numpy as np
import pytest

from fxflow.errors import ArgumentError, DataError
from fxflow.train import data
from tests.train.data.pipelines import RAGGED


def test_ragged_elements_are_named() -> None:
    words = data.indexed([{"text": np.ones(2)}, {"text": np.ones(3)}])
    with pytest.raises(DataError, match=r"\['text'\] has shape \(2,\) in element 0"):
        list(words.batch(2))


def test_different_structures_are_refused() -> None:
    with pytest.raises(DataError, match=r"element 1 .* differs from .*'y'"):
        list(data.indexed([{"x": 1, "y": 2}, {"x": 1}]).batch(2))


def test_padding_of_every_leaf() -> None:
    elements = [
        {"ids": np.array([1]), "image": np.ones((1, 2)), "label": 0},
        {"ids": np.array([1, 2, 3]), "image": np.ones((2, 1)), "label": 1},
    ]
    fills = {"ids": -1, "image": 0.5, "label": 0}
    batch = next(iter(data.indexed(elements).padded_batch(2, pad_value=fills)))
    assert batch["ids"].tolist() == [[1, -1, -1], [1, 2, 3]]
    assert batch["image"].shape == (2, 2, 2) and batch["image"][0, 1, 0] == 0.5
    assert batch["label"].tolist() == [0, 1]


def test_a_fixed_length_limits_elements() -> None:
    words = data.indexed([np.ones(2), np.ones(3)])
    assert next(iter(words.padded_batch(2, length=5))).shape == (2, 5)
    with pytest.raises(DataError, match="length 3, more than length=2"):
        list(words.padded_batch(2, length=2))
    with pytest.raises(DataError, match=r"different ranks .* \[1, 2\]"):
        list(data.indexed([np.ones(2), np.ones((2, 2))]).padded_batch(2))


def test_buckets_keep_every_element() -> None:
    for drop, expected in ((False, 23), (True, 21)):
        batches = list(
            data.indexed(RAGGED).bucket_by_length(
                len, [2, 5], [2, 3, 4], pad_value=-1, drop_remainder=drop
            )
        )
        assert sum(len(batch) for batch in batches) == expected
        for batch in batches:
            lengths = (batch >= 0).sum(axis=1)
            assert batch.shape[1] in (2, 5, lengths.max())
            assert all(row[0] % 7 + 1 == n for row, n in zip(batch, lengths))


def test_buckets_may_pad_to_the_longest_element() -> None:
    short = data.indexed([np.ones(1), np.ones(2)])
    by_longest = short.bucket_by_length(len, [4], 2, pad_to_boundary=False)
    assert next(iter(by_longest)).shape == (2, 2)


def test_sizes_must_fit_the_boundaries() -> None:
    dataset = data.indexed(RAGGED)
    with pytest.raises(ArgumentError, match="2 boundaries make 3 buckets"):
        dataset.bucket_by_length(len, [2, 5], [2, 3])
    with pytest.raises(ArgumentError, match="boundaries must increase"):
        dataset.bucket_by_length(len, [5, 2], 2)
    with pytest.raises(ArgumentError, match="size must be at least 1, got 0"):
        dataset.batch(0)


def test_ragged_batches_have_one_shape() -> None:
    lengths = [3, 1, 4, 0, 2, 5, 1]
    elements = [
        {"ids": np.arange(n), "near": np.ones((n, 2), "f4"), "label": i}
        for i, n in enumerate(lengths)
    ]
    batches = list(data.indexed(elements).ragged_batch(3, capacity=6))
    found = [row for b in batches for row in b["ids"].tolist()]
    assert [row for row in found if row] == [list(range(n)) for n in lengths if n]
    assert [b["ids"].lengths.tolist() for b in batches] == [
        [3, 1, 0],
        [4, 0, 2],
        [5, 1, 0],
    ]
    for batch in batches:
        assert batch["ids"].values.shape == (6,)
        assert batch["near"].values.shape == (6, 2)
        assert batch["label"].shape == (3,)
    assert batches[-1]["label"].tolist() == [5, 6, 0]
    full = data.indexed(elements).ragged_batch(3, capacity=6, drop_remainder=True)
    assert len(list(full)) == 2


def test_ragged_batches_are_resumed() -> None:
    words = data.indexed([np.arange(n) for n in (3, 1, 4, 2, 2, 1)]).shuffle(3)
    batches = words.ragged_batch(2, capacity=5)
    whole = [batch.tolist() for batch in batches]
    reader = batches.iterate()
    first = next(reader).tolist()
    rest = [batch.tolist() for batch in batches.iterate(reader.state)]
    assert [first, *rest] == whole


def test_bad_ragged_batches() -> None:
    words = data.indexed([np.ones(2), np.ones(3)])
    with pytest.raises(DataError, match="3 values, more than capacity=2"):
        list(words.ragged_batch(2, capacity=2))
    wide = data.indexed([np.ones((2, 1)), np.ones((2, 3))])
    with pytest.raises(DataError, match="only the first axis may differ"):
        list(wide.ragged_batch(2, capacity=9))
    with pytest.raises(DataError, match="element 1"):
        mixed = data.indexed([{"a": np.ones(1)}, {"b": np.ones(1)}])
        list(mixed.ragged_batch(2, capacity=9))
    with pytest.raises(ArgumentError, match="capacity"):
        words.ragged_batch(2, capacity=0)
