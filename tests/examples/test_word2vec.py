"""Vectors of a made-up language, in which it is known which words are alike."""

from types import ModuleType
from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import random
from tests.examples.language import language
from tests.examples.programs import example


@pytest.fixture(scope="module")
def word2vec() -> ModuleType:
    return example("word2vec")


def test_words_of_one_subject_are_near(word2vec: ModuleType) -> None:
    settings = word2vec.Settings(
        size=16, stretch=64, drawn=16, threshold=1e-2, epochs=6, rate=0.2
    )
    seen: list[Any] = []
    vectors, pace = word2vec.fit(
        language(300), settings, log=lambda step, values: seen.append(values)
    )
    assert pace > 0 and float(seen[-1]["loss"]) < float(seen[0]["loss"])
    for subject in "abd":
        near = [word for word, _ in vectors.nearby(f"{subject}3", 5)]
        assert sum(word.startswith(subject) for word in near) >= 4, near
    again, _ = word2vec.fit(language(300), settings)
    np.testing.assert_array_equal(vectors.rows, again.rows)


def test_which_words_predict_which(word2vec: ModuleType) -> None:
    settings = word2vec.Settings(window=2)
    docs = np.zeros((1, 36), np.int32)
    docs[0, 20:] = 1
    taken = np.asarray(word2vec.neighbours(random.key(0), docs, settings))[0]
    assert taken.shape == (32, 36)
    for i, row in enumerate(taken):
        found = set(np.flatnonzero(row) - i - 2)
        whole = {d for d in (-2, -1, 1, 2) if docs[0, i + 2 + d] == docs[0, i + 2]}
        assert found in (whole, whole & {-1, 1})


def test_a_step_writes_rows_of_its_words_alone(word2vec: ModuleType) -> None:
    settings = word2vec.Settings(size=4, window=1, stretch=32, drawn=2)
    counts = np.array([5.0] * 3 + [0.0] * 7)  # the last seven are never drawn
    state = word2vec.init(random.key(0), 10, settings)
    state.tables["out"] = fnp.ones((10, 4))
    before = fxflow.tree.map(np.array, state.tables)
    words = np.full(34, 4, np.int32)
    step = word2vec.make_step(counts, settings)
    state, loss = step(state, random.key(1), words, np.zeros(34, np.int32))
    moved = {k: np.abs(state.tables[k] - before[k]).sum(1) > 0 for k in before}
    assert np.flatnonzero(moved["in"]).tolist() == [4]
    assert moved["out"][4] and not moved["out"][[3, 5, 6, 7, 8, 9]].any()
    assert np.isfinite(float(loss))


def test_analogies_and_pairs(word2vec: ModuleType) -> None:
    names = ["king", "queen", "man", "woman", "dog"]
    rows = np.array([[1, 1, 0], [1, -1, 0], [0, 1, 0.1], [0, -1, 0.1], [0, 0, 1]])
    vectors = word2vec.Vectors(names, rows)
    assert vectors.analogy("man", "king", "woman")[0][0] == "queen"
    assert vectors.nearby("king", 1)[0][0] == "man"
    near = word2vec.found_pairs(vectors, "king-man dog-cat")
    assert near == {("king", "man"): True, ("dog", "cat"): False}
    assert len(word2vec.PAIRS.split()) == 40
