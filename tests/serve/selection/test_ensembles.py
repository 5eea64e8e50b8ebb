"""Combining the answers of several models."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fxflow.errors import ServeError
from fxflow.serve.selection.ensembles import (
    by_function,
    confidence,
    mean,
    substituted,
    vote,
)


def outputs(*classes: int) -> dict[str, np.ndarray]:
    return {"y": np.array(classes), "z": np.array(classes) * 1.5}


def test_votes_are_weighted_row_by_row() -> None:
    said = {"a": outputs(1, 5), "b": outputs(2, 5), "c": outputs(2, 6)}
    found = vote(said, {"a": 0.4, "b": 0.3, "c": 0.3}, "y")
    assert found["y"].tolist() == [2, 5] and found["z"].tolist() == [3.0, 7.5]
    found = vote(said, {"a": 0.7, "b": 0.1, "c": 0.2}, "y")
    assert found["y"].tolist() == [1, 5]


def test_scores_and_strings_vote_too() -> None:
    scores = {
        "a": {"p": np.array([[0.4, 0.6]])},
        "b": {"p": np.array([[0.9, 0.1]])},
        "c": {"p": np.array([[0.1, 0.9]])},
    }
    weights = {"a": 0.3, "b": 0.4, "c": 0.3}
    assert vote(scores, weights, "p")["p"].argmax() == 1
    texts = {k: {"t": np.array([t], object)} for k, t in zip("abc", [b"x", b"y", b"y"])}
    assert vote(texts, weights, "t")["t"].tolist() == [b"y"]


@given(st.lists(st.tuples(st.floats(-1e3, 1e3), st.floats(0.01, 1)), min_size=1))
def test_a_mean_lies_between(given: list[tuple[float, float]]) -> None:
    said = {str(k): {"y": np.array([v])} for k, (v, _) in enumerate(given)}
    weights = {str(k): w for k, (_, w) in enumerate(given)}
    found = mean(said, weights)["y"][0]
    values = [v for v, _ in given]
    assert min(values) - 1e-9 <= found <= max(values) + 1e-9


def test_integers_have_no_mean() -> None:
    with pytest.raises(ServeError, match="output 'y' has dtype int64"):
        mean({"a": outputs(1)}, {"a": 1.0})


def test_late_models_are_left_out_or_substituted() -> None:
    said = {"a": {"y": np.array([1.0])}, "b": {"y": np.array([4.0])}}
    weights = {"a": 0.5, "b": 0.25, "c": 0.25}
    assert mean(said, weights)["y"].tolist() == [2.0]
    full = substituted(said, weights, "y")
    assert full["c"]["y"].tolist() == [2.0] and full["a"] is said["a"]
    classes = {"a": outputs(1), "b": outputs(2)}
    assert substituted(classes, weights, "y")["c"]["y"].tolist() == [1]
    assert substituted(classes, {"a": 0.5, "b": 0.5}, "y") == classes


def test_confidence_is_the_share_that_agrees() -> None:
    said = {"a": np.array([1, 2]), "b": np.array([1, 3])}
    assert confidence(np.array([1, 2]), said, 2, 0.1).tolist() == [1.0, 0.5]
    assert confidence(np.array([1, 2]), said, 4, 0.1).tolist() == [0.5, 0.25]
    near = {"a": np.array([1.0]), "b": np.array([1.05]), "c": np.array([2.0])}
    assert confidence(np.array([1.0]), near, 3, 0.1)[0] == pytest.approx(2 / 3)
    texts = {"a": np.array([b"x"], object), "b": np.array([b"y"], object)}
    assert confidence(texts["a"], texts, 2, 0.1).tolist() == [0.5]
    pairs = {"a": np.array([[1, 2]]), "b": np.array([[1, 3]])}
    assert confidence(pairs["a"], pairs, 2, 0.0).tolist() == [0.5]


def test_results_of_a_combine_function_are_checked() -> None:
    said = {"a": outputs(1, 5)}
    given = by_function(lambda said, weights: {**said["a"], "more": 1}, said, {})
    assert given.keys() == {"y", "z"} and given["y"].tolist() == [1, 5]
    for function, words in (
        (
            lambda said, weights: {"y": said["a"]["y"]},
            "'z' as float64.*, got nothing",
        ),
        (lambda said, weights: outputs(1), r"'y' as int64\[2\], got int64\[1\]"),
        (lambda said, weights: 1 / 0, "failed: ZeroDivisionError: division by zero"),
    ):
        with pytest.raises(ServeError, match=words):
            by_function(function, said, {})
