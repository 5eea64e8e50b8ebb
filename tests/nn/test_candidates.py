"""Samplers of classes: what they draw, and what they say they expect."""

from typing import Any

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import nn, random
from fxflow.errors import ArgumentError, DtypeError, ShapeError

KEY = random.key(0)
CLASSES = 20
LABELS = np.array([[3, 7], [0, 3], [19, 1]])
WEIGHTS = np.linspace(0, 2, CLASSES, dtype=np.float32) ** 2

SAMPLERS: dict[str, tuple[Any, Any]] = {
    "uniform": (
        lambda *args, **more: nn.uniform_candidates(*args, CLASSES, **more),
        np.full(CLASSES, 1 / CLASSES),
    ),
    "log_uniform": (
        lambda *args, **more: nn.log_uniform_candidates(*args, CLASSES, **more),
        np.log(np.arange(2, CLASSES + 2) / np.arange(1, CLASSES + 1))
        / np.log(CLASSES + 1),
    ),
    "unigram": (
        lambda *args, **more: nn.unigram_candidates(*args, WEIGHTS, **more),
        WEIGHTS / WEIGHTS.sum(),
    ),
}
samplers = pytest.mark.parametrize("name", SAMPLERS)


@samplers
def test_frequencies(name: str) -> None:
    draw, p = SAMPLERS[name]
    n = 20_000
    ids, log_expected, true, hits = draw(KEY, LABELS, n, unique=False)
    counts = np.bincount(ids, minlength=CLASSES)
    assert (abs(counts - n * p) <= 5 * np.sqrt(n * p)).all(), counts
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(log_expected, np.log(n * p)[ids], 1e-4, 1e-4)
        np.testing.assert_allclose(true, np.log(n * p)[LABELS], 1e-4, 1e-4)
    want = (LABELS[..., None] == np.asarray(ids)).any(1)
    np.testing.assert_array_equal(hits, want)


@pytest.mark.parametrize(
    "name",
    [
        "log_uniform",
        *(pytest.param(n, marks=pytest.mark.slow) for n in ("uniform", "unigram")),
    ],
)
def test_different_ones(name: str) -> None:
    draw, p = SAMPLERS[name]
    many = fxflow.jit(fxflow.vmap(lambda k: draw(k, LABELS, 6)))
    ids, log_expected, _, _ = (np.asarray(x) for x in many(random.split(KEY, 500)))
    assert ids.shape == (500, 6) and (ids >= 0).all() and (ids < CLASSES).all()
    assert all(len(set(row)) == 6 for row in ids.tolist())
    # The first draw follows p.
    counts = np.bincount(ids[:, 0], minlength=CLASSES)
    assert (abs(counts - 500 * p) <= 5 * np.sqrt(500 * p)).all()
    # Sums of 1 / E over what is drawn estimate how many classes can be.
    np.testing.assert_allclose(np.exp(-log_expected).sum(1).mean(), (p > 0).sum(), 0.3)
    one = draw(random.split(KEY, 500)[5], LABELS, 6)
    np.testing.assert_array_equal(one.ids, ids[5])


def test_tries_are_counted() -> None:
    """Three of four classes have hardly a chance."""
    weights = fnp.array([1.0, 1e-3, 1e-3, 1e-3])
    drawn = nn.unigram_candidates(KEY, np.array([[1]]), 4, weights)
    assert sorted(drawn.ids.tolist()) == [0, 1, 2, 3]
    p = np.asarray(weights) / 1.003
    # All drawn by as many tries: E of the rare ones says how many there were.
    rare = float(np.exp(drawn.log_expected[int(np.argmax(drawn.ids == 1))]))
    tries = np.log1p(-rare) / np.log1p(-p[1])
    assert 100 < tries < 20_000 and abs(tries - round(tries)) < 0.02 * tries
    stream = [
        nn.unigram_candidates(
            random.fold_in(KEY, i), np.array([[1]]), 4, weights, unique=False
        ).ids
        for i in range(int(tries) // 4 + 2)
    ]
    seen = np.concatenate(stream)
    firsts = [int(np.argmax(seen == c)) for c in range(4)]
    assert round(tries) == max(firsts) + 1
    np.testing.assert_array_equal(drawn.ids, np.argsort(firsts))


def test_learned_weights() -> None:
    weights = fnp.ones(5)
    for labels in ([[1], [2]], [[1], [1]]):
        weights = weights.at[np.array(labels)].add(1)
    assert weights.tolist() == [1, 4, 2, 1, 1]
    all_of_them = nn.uniform_candidates(KEY, LABELS, CLASSES, CLASSES).ids
    assert sorted(all_of_them.tolist()) == list(range(CLASSES))


def test_invalid_counts_labels_and_weights_are_refused() -> None:
    with pytest.raises(ArgumentError, match="cannot draw 21 different ones of 20"):
        nn.uniform_candidates(KEY, LABELS, 21, CLASSES)
    with pytest.raises(DtypeError, match="labels must be integers, got f32"):
        nn.log_uniform_candidates(KEY, fnp.ones(3), 2, CLASSES)
    with pytest.raises(ShapeError, match=r"labels must be int\[..., labels\], got"):
        nn.uniform_candidates(KEY, fnp.int32(3), 2, CLASSES)
    with pytest.raises(ShapeError, match=r"weights must be float\[classes\], got f32"):
        nn.unigram_candidates(KEY, LABELS, 2, fnp.ones((2, 2)))
