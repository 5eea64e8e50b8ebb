"""Metrics equal scikit-learn's, however the data are divided."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fxflow
from fxflow import lax
from fxflow import numpy as fnp
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.train import metrics
from fxflow.train.metrics import Metric

RNG = np.random.default_rng(0)
LOGITS = RNG.normal(size=(64, 5)).astype(np.float32)
LABELS = RNG.integers(0, 5, 64)
WEIGHTS = RNG.integers(0, 3, 64)
CHANCES = RNG.random(64).astype(np.float32)
POSITIVE = RNG.random(64) < CHANCES
RELEVANT = RNG.integers(-3, 3, (64, 5)).clip(0)

MADE: dict[str, Callable[..., Metric]] = {
    "mean": lambda i: metrics.mean(CHANCES[i], weights=WEIGHTS[i]),
    "root": lambda i: metrics.root_mean_square(CHANCES[i]),
    "perplexity": lambda i: metrics.perplexity(CHANCES[i]),
    "accuracy": lambda i: metrics.accuracy(LOGITS[i], LABELS[i]),
    "top 2": lambda i: metrics.top_k_accuracy(LOGITS[i], LABELS[i], 2),
    "confusion": lambda i: metrics.confusion(
        LOGITS[i].argmax(1), LABELS[i], 5, weights=WEIGHTS[i]
    ),
    "scores": lambda i: metrics.scores(CHANCES[i], POSITIVE[i], bins=50),
    "log loss": lambda i: metrics.log_loss(LOGITS[i, 0], POSITIVE[i]),
    "recall": lambda i: metrics.recall_at_k(LOGITS[i], RELEVANT[i], 2),
    "ndcg": lambda i: metrics.ndcg_at_k(LOGITS[i], RELEVANT[i], 3),
    "calibration": lambda i: metrics.calibration(CHANCES[i], POSITIVE[i], bins=7),
}


@pytest.mark.parametrize("name", MADE)
def test_metrics_do_not_depend_on_the_batches(name: str) -> None:
    make = MADE[name]
    whole = make(slice(None)).compute()
    for cuts in ([0, 1, 40, 64], [0, 64], [0, 13, 13, 64]):
        total = make(slice(0, cuts[1]))
        for first, last in itertools.pairwise(cuts[1:]):
            total = total.merge(make(slice(first, last)))
        np.testing.assert_allclose(total.compute(), whole, rtol=1e-6)


def test_metrics_are_summed_over_devices() -> None:
    @fxflow.pmap(axis_name="data", out_axes=None)
    def evaluated(logits: Any, labels: Any) -> Any:
        return lax.psum(metrics.accuracy(logits, labels), "data")

    parts = LOGITS.reshape(4, 16, 5), LABELS.reshape(4, 16)
    expected = np.mean(LOGITS.argmax(1) == LABELS)
    np.testing.assert_allclose(evaluated(*parts).compute(), expected, rtol=1e-6)


def test_metrics_are_carried_by_a_scan() -> None:
    def step(total: Any, batch: Any) -> tuple[Any, None]:
        return total.merge(metrics.accuracy(*batch)), None

    parts = LOGITS.reshape(4, 16, 5), LABELS.reshape(4, 16)
    total, _ = lax.scan(step, metrics.Mean.empty(), parts)
    assert float(total.weight) == 64
    assert float(total.compute()) == np.mean(LOGITS.argmax(1) == LABELS)


@given(st.lists(st.tuples(st.floats(0, 1, width=32), st.booleans()), min_size=1))
def test_the_area_is_the_share_of_ordered_pairs(
    examples: list[tuple[float, bool]],
) -> None:
    # Scores on the grid of bins are equal, or in different bins.
    given_scores = np.array([round(s * 20) / 20 for s, _ in examples], np.float32)
    labels = np.array([label for _, label in examples])
    area = float(metrics.scores(given_scores, labels, bins=997).compute())
    pairs = given_scores[labels][:, None] - given_scores[~labels][None]
    if not pairs.size:
        assert np.isnan(area)
    else:
        expected = ((pairs > 0).sum() + 0.5 * (pairs == 0).sum()) / pairs.size
        np.testing.assert_allclose(area, expected, atol=1e-5)


def test_average_precision_of_a_small_example() -> None:
    table = metrics.scores(np.array([0.9, 0.8, 0.7, 0.6]), np.array([1, 0, 1, 0]))
    # Recall 1/2 at precision 1, then 1 at precision 2/3.
    np.testing.assert_allclose(table.average_precision(), (1 + 2 / 3) / 2, rtol=1e-6)
    precision, recall = table.precision_recall_curve()
    assert (float(precision[0]), float(recall[0]), float(recall[-1])) == (1, 0, 1)


def test_class_metrics_of_a_small_example() -> None:
    table = metrics.confusion(np.array([0, 1, 1, 2]), np.array([0, 0, 1, 1]), 4)
    np.testing.assert_allclose(table.precision(), [1, 0.5, 0, np.nan])
    np.testing.assert_allclose(table.recall(), [0.5, 0.5, np.nan, np.nan])
    np.testing.assert_allclose(table.f1(), [2 / 3, 0.5, 0, np.nan])
    assert float(table.accuracy()) == 0.5


def test_labels_out_of_range_do_not_count() -> None:
    assert float(metrics.accuracy(LOGITS[:1], np.array([-1])).compute()) == 0
    for jitted in (False, True):
        make = fxflow.jit(metrics.confusion, static_argnums=2)
        table = (make if jitted else metrics.confusion)(
            np.array([0, 5, 1, -1]), np.array([0, 1, -2, 1]), 2
        )
        assert table.matrix.tolist() == [[1, 0], [0, 0]]
        assert (float(table.outside), float(table.accuracy())) == (3, 0.25)
    given_scores = np.array([0.5, 1.5, np.nan, -np.inf, 0.0, 1.0])
    found = metrics.scores(given_scores, np.ones(6), bins=2)
    assert (found.positive.tolist(), float(found.outside)) == ([1, 2], 3)


def test_values_without_weight_may_be_nan() -> None:
    values = fnp.array([1.0, fnp.nan, 3.0])
    masked = metrics.mean(values, weights=np.array([True, False, True]))
    assert float(masked.compute()) == 2
    assert np.isnan(metrics.mean(values).compute())
    assert np.isnan(metrics.Mean.empty().compute())


def test_counts_of_small_dtypes_do_not_overflow() -> None:
    many = metrics.mean(fnp.ones(4096, fnp.bfloat16))
    assert (float(many.weight), many.total.dtype) == (4096, np.float32)


def test_shapes_and_dtypes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"got f32\[64,5\] and .*\[5\]"):
        metrics.accuracy(LOGITS, LABELS[:5])
    with pytest.raises(DtypeError, match="labels must be integers"):
        metrics.accuracy(LOGITS, CHANCES)
    with pytest.raises(DtypeError, match="take the argmax"):
        metrics.confusion(CHANCES, LABELS, 5)
    with pytest.raises(ArgumentError, match="between 1 and 5"):
        metrics.top_k_accuracy(LOGITS, LABELS, 6)
    with pytest.raises(ShapeError, match="do not broadcast"):
        metrics.mean(CHANCES, weights=np.ones(3))
    with pytest.raises(ArgumentError, match="expected a Perplexity, got a Mean"):
        metrics.Perplexity.empty().merge(metrics.Mean.empty())


def test_16_bit_scores_are_in_the_right_bins() -> None:
    p = fnp.asarray([0.7031, 0.9961], "bfloat16")
    found = metrics.scores(p, np.array([0, 1]), bins=1000)
    places = np.flatnonzero(np.asarray(found.positive + found.negative))
    assert places.tolist() == [703, 996]


# -- clicks and lists of items ---------------------------------------------------------


@given(st.integers(0, 2**32 - 1))
def test_log_loss_equals_scikit_learn(seed: int) -> None:
    sklearn = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(seed)
    x, y, w = rng.normal(0, 3, 50), rng.random(50) < 0.3, rng.integers(0, 3, 50)
    y[:2] = True, False
    p = 1 / (1 + np.exp(-x))
    have = metrics.log_loss(x.astype(np.float32), y, weights=w + 1).compute()
    want = sklearn.log_loss(y, p, sample_weight=w + 1)
    np.testing.assert_allclose(have, want, rtol=1e-5)


def test_log_loss_of_large_logits_and_soft_labels() -> None:
    x = np.array([-200.0, 200.0, 200.0, np.inf, -np.inf, 0.5], np.float32)
    y = np.array([0.0, 1.0, 0.0, 1.0, 0.0, 0.25], np.float32)
    each = [metrics.log_loss(x[i : i + 1], y[i : i + 1]).compute() for i in range(6)]
    soft = np.log1p(np.exp(0.5)) - 0.25 * 0.5
    np.testing.assert_allclose(each[:3], [0, 0, 200], rtol=1e-6, atol=1e-30)
    np.testing.assert_allclose(each[5], soft, rtol=1e-6)
    assert each[3] == each[4] == 0


@given(st.integers(0, 2**32 - 1), st.integers(1, 9))
def test_ndcg_equals_scikit_learn(seed: int, k: int) -> None:
    sklearn = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(seed)
    scores = rng.permuted(np.tile(np.arange(9.0), (12, 1)), axis=1).astype(np.float32)
    gains = rng.integers(-2, 4, (12, 9)).clip(0)
    known = gains.any(1)
    have = metrics.ndcg_at_k(scores, gains, k).compute()
    want = sklearn.ndcg_score(gains[known], scores[known], k=k)
    np.testing.assert_allclose(have, want, rtol=1e-5)


@given(st.integers(0, 2**32 - 1), st.integers(1, 9))
def test_recall_counts(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.permuted(np.tile(np.arange(9.0), (12, 1)), axis=1).astype(np.float32)
    relevant, weights = rng.random((12, 9)) < 0.2, rng.integers(1, 3, 12)
    shares, sums = 0.0, 0
    for row, wanted, weight in zip(scores, relevant, weights, strict=True):
        if wanted.any():
            best = set(np.argsort(-row)[:k])
            found = len(best & set(np.flatnonzero(wanted)))
            shares, sums = shares + weight * found / wanted.sum(), sums + weight
    have = metrics.recall_at_k(scores, relevant, k, weights=weights)
    np.testing.assert_allclose(have.compute(), shares / sums if sums else np.nan, 1e-5)


def test_lists_of_items_are_checked() -> None:
    with pytest.raises(ShapeError, match="recall_at_k: scores and relevant must have"):
        metrics.recall_at_k(LOGITS, RELEVANT[:, :4], 2)
    with pytest.raises(ArgumentError, match="ndcg_at_k: k must be between 1 and 5"):
        metrics.ndcg_at_k(LOGITS, RELEVANT, 6)
    with pytest.raises(DtypeError, match="recall_at_k: scores must be floats"):
        metrics.recall_at_k(RELEVANT, RELEVANT, 1)
    with pytest.raises(ShapeError, match="log_loss: logits and labels must have"):
        metrics.log_loss(LOGITS, POSITIVE)


@pytest.mark.parametrize("edges", [None, [0.05, 0.1, 0.5]])
def test_calibration_is_the_gap_in_each_bin(edges: Any) -> None:
    bins = 10 if edges is None else np.array(edges, np.float32)
    places = np.digitize(CHANCES, np.arange(1, 10) / 10 if edges is None else bins)
    made = fxflow.jit(lambda p, y: metrics.calibration(p, y, bins=bins))
    found = made(CHANCES, POSITIVE)
    predicted, happened, weight = (np.asarray(x) for x in found.table())
    gap = 0.0
    for place in range(len(weight)):
        here = places == place
        assert weight[place] == here.sum()
        if here.any():
            np.testing.assert_allclose(predicted[place], CHANCES[here].mean(), 1e-5)
            np.testing.assert_allclose(happened[place], POSITIVE[here].mean(), 1e-5)
            gap += abs(CHANCES[here].sum() - POSITIVE[here].sum()) / 64
        else:
            assert np.isnan(predicted[place]) and np.isnan(happened[place])
    np.testing.assert_allclose(found.compute(), gap, rtol=1e-4)
    np.testing.assert_allclose(found.bias(), CHANCES.sum() / POSITIVE.sum(), 1e-5)


def test_calibration_leaves_out_what_is_not_a_probability() -> None:
    p = np.array([0.0, 1.0, -0.1, 1.5, np.nan, 0.5], np.float32)
    found = metrics.calibration(p, np.ones(6, bool), bins=2, weights=np.arange(6))
    assert found.weight.tolist() == [0, 6] and found.outside == 9
    assert metrics.Calibration.empty(2).merge(found).weight.tolist() == [0, 6]
    with pytest.raises(ShapeError, match="edges of bins must be"):
        metrics.calibration(p, np.ones(6), bins=np.ones((2, 2), np.float32))
