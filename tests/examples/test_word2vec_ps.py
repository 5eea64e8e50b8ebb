"""The tables of a parameter server learn what one process does."""

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from fxflow import random
from tests.examples.language import language
from tests.examples.programs import example


@pytest.fixture(scope="module")
def word2vec_ps() -> ModuleType:
    return example("word2vec_ps")


def test_words_of_one_subject_are_near(word2vec_ps: ModuleType) -> None:
    settings = word2vec_ps.Settings(
        size=16, stretch=64, drawn=16, threshold=1e-2, epochs=3, rate=0.2
    )
    seen: list[Any] = []
    vectors, pace = word2vec_ps.fit(
        language(300), settings, log=lambda step, values: seen.append(values)
    )
    assert pace > 0 and float(seen[-1]["loss"]) < float(seen[0]["loss"])
    for subject in "abd":
        near = [word for word, _ in vectors.nearby(f"{subject}3", 5)]
        assert sum(word.startswith(subject) for word in near) >= 4, near


def test_the_loss_is_that_of_one_process(word2vec_ps: ModuleType) -> None:
    import word2vec  # on the path no longer, but loaded

    settings = word2vec.Settings(size=4, window=2, stretch=64, drawn=8)
    stretches = word2vec_ps.Stretches(np.arange(1.0, 21), settings)
    rng = np.random.default_rng(0)
    words = rng.integers(0, 20, settings.stretch + 2 * settings.window)
    docs = np.zeros(len(words), np.int32)[stretches.places]
    ids = stretches.ids(words, rng)
    assert ids["in"].reshape(-1).tolist() == words[2:-2].tolist()
    assert ids["out"][docs.size :].shape == (8,) and ids["out"].max() < 20

    tables = {name: rng.normal(size=(20, 4)).astype("f") for name in ids}
    rows = {name: tables[name][ids[name]] for name in ids}
    key = random.key(1)
    loss = word2vec_ps.make_loss(settings)({}, rows, (key, docs))
    whole = {
        "in": rows["in"],
        "out": tables["out"][words[stretches.places]],
        "drawn": tables["out"][ids["out"][docs.size :]],
    }
    taken = word2vec.neighbours(key, docs, settings)
    np.testing.assert_allclose(loss, word2vec.loss_of(whole, taken, settings), 1e-6)
