"""A made-up language, of which it is known how well it can be predicted."""

from types import ModuleType

import numpy as np
import pytest

from tests.examples.programs import example


@pytest.fixture(scope="module")
def model() -> ModuleType:
    return example("language_model")


def counting(words: int, seed: int = 0) -> np.ndarray:
    """Each word is the next of twenty, or, one time in five, any of them."""
    rng = np.random.default_rng(seed)
    out = [0]
    for _ in range(words - 1):
        out.append((out[-1] + 1) % 20 if rng.random() < 0.8 else rng.integers(20))
    return np.array(out, np.int32)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["full", "sampled"])
def test_both_losses_learn(model: ModuleType, loss: str) -> None:
    settings = model.Settings(
        loss=loss, vocabulary=25, units=16, batch=8, length=10, drawn=15, dropout=0.0,
        rate=0.2, epochs=2,
    )  # fmt: skip
    seen: list[int] = []
    result = model.fit(
        counting(8000), counting(1000, 1), settings, lambda step, _: seen.append(step)
    )
    # One of 20 words: 20. What there is to know leaves p = 0.81 and 19 times 0.01.
    best = np.exp(-(0.81 * np.log(0.81) + 19 * 0.01 * np.log(0.01)))
    assert best < result.perplexity < 8
    assert seen == [50, 100, 150] and result.pace > 0


def test_columns_go_on(model: ModuleType) -> None:
    words = np.arange(41)
    first, second = model.batches(words, 4, 5)
    np.testing.assert_array_equal(first[0].T[0], np.arange(5))
    np.testing.assert_array_equal(second[0], first[0] + 5)
    np.testing.assert_array_equal(first[1], first[0] + 1)
    assert first[0][0].tolist() == [0, 10, 20, 30]


def test_texts_are_cut_and_coded(model: ModuleType) -> None:
    text = ["a"] * 20 + ["b"] * 18 + ["c", "d"]
    learnt, tested, known = model.coded([text], 3)
    assert known.words == [model.UNKNOWN, "a", "b"]
    assert learnt.tolist() == [1] * 20 + [2] * 18 and tested.tolist() == [0, 0]
