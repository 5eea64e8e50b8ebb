"""Sentences of a made-up language, in which one word decides."""

from types import ModuleType

import numpy as np
import pytest

from tests.examples.programs import example


@pytest.fixture(scope="module")
def model() -> ModuleType:
    return example("sentences")


def language(count: int, seed: int = 0) -> tuple[list[list[str]], np.ndarray]:
    """Sentences of drawn words, of which one praises or blames."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, count).astype(np.uint8)
    sentences = []
    for label in labels:
        words = [f"w{n}" for n in rng.integers(0, 30, rng.integers(3, 9))]
        words[rng.integers(len(words))] = "yes" if label else "no"
        sentences.append(words)
    return sentences, labels


@pytest.mark.slow
@pytest.mark.parametrize("channels", ["random", "static", "tuned", "both"])
def test_net_learns(model: ModuleType, channels: str) -> None:
    data, known = model.encoded(*language(400), 3)
    settings = model.Settings(
        channels=channels, widths=(2, 3), filters=8, batch=20, epochs=6, folds=1,
        rate=1e-2,
    )  # fmt: skip
    table = np.random.default_rng(0).normal(size=(len(known), 8)).astype("f")
    [accuracy] = model.accuracies(data, known, table, 8, settings)
    assert accuracy > 0.9


def test_only_what_learns_is_among_the_weights(model: ModuleType) -> None:
    table = np.ones((5, 4), np.float32)
    counts = {
        channels: tuple(
            map(len, model.tables_of(model.Settings(channels=channels), 4, 5, table))
        )
        for channels in model.CHANNELS
    }
    assert counts == {
        "random": (1, 0),
        "static": (0, 1),
        "tuned": (1, 0),
        "both": (1, 1),
    }
    with pytest.raises(AssertionError, match="static needs vectors: --vectors"):
        model.tables_of(model.Settings(channels="static"), 4, 5, None)


def test_sentences_have_room_for_the_filters(model: ModuleType) -> None:
    data, known = model.encoded([["b", "a", "b"], ["a"]], np.array([1, 0]), 3)
    assert known.words == ["", "a", "b"]
    assert data.words.tolist() == [[0, 0, 2, 1, 2, 0, 0], [0, 0, 1, 0, 0, 0, 0]]


def test_folds_are_fixed_and_even(model: ModuleType) -> None:
    labels = np.arange(100) % 2
    found = model.folds(labels)
    np.testing.assert_array_equal(found, model.folds(labels))
    for fold in range(10):
        assert labels[found == fold].tolist().count(1) == 5
        assert (found == fold).sum() == 10
