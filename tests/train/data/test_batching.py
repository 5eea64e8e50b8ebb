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
