"""Losses of answers, from labels."""

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from fxflow.errors import ServeError
from fxflow.serve.selection.losses import (
    absolute,
    auto,
    decisions,
    loss_of,
    parse_label,
    parse_loss,
    squared,
    zero_one,
)

SCORES = np.array([[0.1, 0.9], [0.8, 0.2]], np.float32)


def test_scores_of_classes_become_decisions() -> None:
    assert decisions(SCORES).tolist() == [1, 0]
    assert decisions(SCORES.astype(ml_dtypes.bfloat16)).tolist() == [1, 0]
    assert decisions(np.array([[3.0], [4.0]])).tolist() == [3.0, 4.0]
    assert decisions(np.array([[1, 2], [3, 4]])).tolist() == [[1, 2], [3, 4]]


def test_classes() -> None:
    assert zero_one(SCORES, np.array([1, 1])) == 0.5
    text = np.array([b"a", b"b"], object)
    assert zero_one(text, parse_label(["a", "c"], 2)) == 0.5
    with pytest.raises(ServeError, match="'label' must be strings"):
        zero_one(text, np.array([1, 2]))
    with pytest.raises(ServeError, match=r"must have shape \[2\], got \[2, 2\]"):
        zero_one(SCORES, np.zeros((2, 2)))


def test_losses_of_numbers_are_bounded() -> None:
    near = np.array([0.5, 7.0], np.float32)
    assert absolute(near, np.array([1, 1])) == pytest.approx(0.75)
    assert squared(near, np.array([1, 1])) == pytest.approx(0.625)
    assert absolute(near[:, None], np.array([1, 1])) == pytest.approx(0.75)
    assert absolute(np.array([math.nan]), np.array([0.0])) == 1.0
    with pytest.raises(ServeError, match="strings have no distance"):
        absolute(near, parse_label(["a", "b"], 2))


def test_the_automatic_loss_follows_the_label() -> None:
    assert auto(SCORES, np.array([1, 1])) == 0.5
    assert auto(SCORES, SCORES.copy()) == 0.0  # numbers for numbers
    assert auto(np.array([0.5]), np.array([1.0])) == 0.5
    assert auto(np.array([3]), np.array([4])) == 1.0


@pytest.mark.parametrize(
    ("value", "rows", "words"),
    [
        ([1, 2], 1, "1 in all; got 2"),
        ([], 1, "1 in all; got 0"),
        ([math.nan], 1, "must be finite"),
        (math.inf, 1, "must be finite"),
        (None, 1, "must be numbers or strings"),
        (["a", 1], 2, "must be numbers or strings"),
        ([{}], 1, "must be numbers or strings"),
        ([[1, 2], [3]], 2, "different lengths"),
        ([[]], 1, "must be numbers or strings"),
        ([1 << 400, 1.5], 2, "'label'"),
    ],
)
def test_invalid_labels_are_refused(value: Any, rows: int, words: str) -> None:
    with pytest.raises(ServeError, match=words) as caught:
        parse_label(value, rows)
    assert caught.value.status == 400


@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan, math.inf, "0", True, None])
def test_invalid_losses_are_refused(value: Any) -> None:
    with pytest.raises(ServeError, match="from 0") as caught:
        parse_loss(value)
    assert caught.value.status == 400


def test_results_of_a_loss_function_are_checked() -> None:
    assert loss_of(lambda a, b: 0.25, SCORES, SCORES) == 0.25
    with pytest.raises(ServeError, match="gave nan"):
        loss_of(lambda a, b: math.nan, SCORES, SCORES)
    with pytest.raises(ServeError, match="ZeroDivisionError"):
        loss_of(lambda a, b: 1 / 0, SCORES, SCORES)
