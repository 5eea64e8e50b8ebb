"""The files of examples/classical learn small tasks; beside scikit-learn when slow."""

from types import ModuleType

import numpy as np
import pytest

import fxflow
from fxflow import random
from tests.examples.programs import EXAMPLES, example


def load(name: str) -> ModuleType:
    return example(name, EXAMPLES / "classical")


def blobs(n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Three clouds far from each other."""
    rng = np.random.default_rng(0)
    labels = np.arange(n) % 3
    centres = np.array([[0, 0], [10, 0], [0, 10]])
    points = centres[labels] + rng.normal(size=(n, 2))
    return points.astype(np.float32), labels.astype(np.int32)


def test_clusters_of_three_clouds() -> None:
    kmeans = load("kmeans")
    points, labels = blobs()
    found = kmeans.fit(random.key(0), points, k=3, restarts=2)
    want = sum(
        ((points[labels == i] - points[labels == i].mean(0)) ** 2).sum()
        for i in range(3)
    )
    assert float(found.inertia) == pytest.approx(want, rel=1e-4)


@pytest.mark.slow
def test_clusters_by_batches() -> None:
    kmeans = load("kmeans")
    points, _ = blobs()
    whole = kmeans.fit(random.key(0), points, k=3, restarts=2)
    found = kmeans.fit_batches(random.key(0), points, k=3, steps=50, size=20)
    assert float(found.inertia) == pytest.approx(float(whole.inertia), rel=0.02)


@pytest.mark.slow
def test_logistic_regression_is_at_its_minimum() -> None:
    logistic = load("logistic")
    points, labels = blobs()
    model = logistic.fit(points, labels, classes=3)
    assert (np.asarray(logistic.predict(model, points)) == labels).all()
    slope = fxflow.grad(logistic.loss)(model, points, labels, 1.0)
    assert max(float(np.abs(part).max()) for part in slope) < 1e-4


@pytest.mark.slow
def test_forest_learns_what_no_line_parts() -> None:
    forest = load("forest")
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (200, 2)).astype(np.float32)
    labels = ((x[:, 0] > 0) ^ (x[:, 1] > 0)).astype(np.int32)
    bins = forest.binned(x, forest.quantiles(x, 8))
    sizes = {"classes": 2, "bins": 8, "depth": 4, "trees": 20, "together": 20}
    grown = forest.fit(random.key(0), bins, labels, **sizes)
    assert (np.asarray(forest.predict(grown, bins)) == labels).mean() > 0.9


@pytest.mark.soak
def test_posterior_of_a_line() -> None:
    bayes = load("bayes")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 2)).astype(np.float32)
    y = (x @ [1.0, -2.0] + 0.5 + 0.3 * rng.normal(size=80)).astype(np.float32)
    key = random.key(0)
    draws, rate = bayes.sample(key, x, y, warmup=200, draws=200)
    mean, deviation = bayes.approximate(key, x, y, steps=600)
    assert 0.6 < float(rate) < 0.95
    assert float(bayes.spread(draws.w).max()) < 1.05
    for w, b, log_sigma in (
        (np.mean(draws.w, (0, 1)), np.mean(draws.b), np.mean(draws.log_sigma)),
        (mean.w, mean.b, mean.log_sigma),
    ):
        np.testing.assert_allclose(w, [1, -2], atol=0.12)
        assert float(b) == pytest.approx(0.5, abs=0.12)
        assert float(np.exp(log_sigma)) == pytest.approx(0.3, rel=0.25)
    spread = np.std(draws.w, (0, 1))
    np.testing.assert_allclose(deviation.w, spread, rtol=0.3)


@pytest.mark.slow
def test_process_knows_where_it_knows() -> None:
    process = load("process")
    rng = np.random.default_rng(0)
    x = rng.uniform(-3, 3, (40, 1)).astype(np.float32)
    y = (np.sin(2 * x[:, 0]) + 0.1 * rng.normal(size=40)).astype(np.float32)
    model = process.fit(x, y)
    new = np.array([[0.3], [9.0]], np.float32)
    mean, deviation = process.predict(model, x, y, new)
    assert float(mean[0]) == pytest.approx(np.sin(0.6), abs=0.15)
    assert float(deviation[0]) < 0.15 < 0.5 < float(deviation[1])


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("task", ["kmeans", "logistic", "forest", "bayes", "process"])
def test_scores_beside_scikit_learn(task: str) -> None:
    pytest.importorskip("sklearn", reason="pip install fxflow[examples]")
    rows = load("compare").main([task])
    assert {row.task: row.gap() for row in rows if row.gap() > 0.01} == {}
