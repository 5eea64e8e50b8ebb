"""Figures of what training gives."""

import numpy as np
import pytest

import fxflow
import fxflow.numpy as fnp
from fxflow import viz
from fxflow.errors import ArgumentError

pytest.importorskip("matplotlib", reason="pip install 'fxflow[viz]'")


def test_smoothed():
    values = [4.0, np.nan, 2.0, np.inf, 2.0]
    assert viz.smoothed(values, 0.0).tolist()[::2] == [4.0, 2.0, 2.0]
    found = viz.smoothed(values, 0.9)
    assert np.isnan(found[[1, 3]]).all() and 2 < found[4] < found[2] < 4
    assert viz.smoothed([3.0] * 50, 0.99) == pytest.approx([3.0] * 50)
    with pytest.raises(ArgumentError, match=r"in \[0, 1\), got 1"):
        viz.smoothed([1.0], 1)


def test_curves():
    figure = viz.curves(
        {"a": [1.0, 2.0], "b": ([0, 10, 20], [3.0, 2.0, 1.0])}, log=True
    )
    (ax,) = figure.axes
    assert [line.get_xdata().tolist() for line in ax.lines] == [[0, 1], [0, 10, 20]]
    assert ax.get_yscale() == "log"
    smooth = viz.curves({"a": [0.0, 1.0]}, smoothing=0.5).axes[0].lines
    assert smooth[0].get_ydata().tolist() == [0, 1]
    assert smooth[1].get_ydata() == pytest.approx([0, 2 / 3])
    with pytest.raises(ArgumentError, match=r"a must be .*\[3\] and \[2\]"):
        viz.curves({"a": ([1, 2, 3], [1.0, 2.0])})
    with pytest.raises(ArgumentError, match="got none"):
        viz.curves({})


def test_confusion():
    figure = viz.confusion([[3, 1], [0, 0]], ["cat", "horse"], normalize=True)
    (ax,) = figure.axes
    assert [text.get_text() for text in ax.texts] == ["75", "25", "0", "0"]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["cat", "horse"]
    assert viz.confusion(np.eye(30)).axes[0].texts[:] == []
    with pytest.raises(ArgumentError, match=r"got \[2, 3\]"):
        viz.confusion(np.ones((2, 3)))
    with pytest.raises(ArgumentError, match="2 classes have 1 labels"):
        viz.confusion(np.eye(2), ["a"])


def test_pca():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(40, 5)) * [5, 3, 0.1, 0.1, 0.1] + 7
    found = np.asarray(viz.pca(vectors.astype(np.float32), 2))
    values = np.linalg.eigvalsh(np.cov(vectors.T))[::-1]
    assert found.var(axis=0, ddof=1) == pytest.approx(values[:2], rel=1e-3)
    assert abs(found.mean()) < 1e-4 and abs(np.corrcoef(found.T)[0, 1]) < 1e-3
    shuffled = rng.permutation(40)
    again = np.asarray(viz.pca(vectors[shuffled].astype(np.float32), 2))
    assert again == pytest.approx(found[shuffled], abs=1e-3)
    assert viz.pca(np.eye(3, dtype=int), 3).shape == (3, 3)
    with pytest.raises(ArgumentError, match=r"6 directions .* got f32\[40,5\]"):
        viz.pca(vectors.astype(np.float32), 6)


def test_points():
    vectors = np.repeat(np.eye(3), 4, axis=0)
    figure = viz.embedding(vectors, labels=[*"aaaabbbbcccc"])
    (ax,) = figure.axes
    assert [len(c.get_offsets()) for c in ax.collections] == [4, 4, 4]
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["a", "b", "c"]
    many = viz.embedding(np.eye(30), labels=range(30)).axes[0].collections
    assert len({tuple(c.get_facecolor()[0]) for c in many}) >= 20
    with pytest.raises(ArgumentError, match="3 vectors have 2 names"):
        viz.embedding(np.eye(3), names=["a", "b"])
    with pytest.raises(ArgumentError, match="one of pca, tsne, got 'umap'"):
        viz.embedding(np.eye(3), method="umap")


def test_tsne():
    with pytest.raises(ArgumentError, match="above the perplexity 30"):
        viz.tsne(np.eye(3))
    pytest.importorskip("sklearn", reason="pip install 'fxflow[viz]'")
    threadpoolctl = pytest.importorskip("threadpoolctl", reason="part of scikit-learn")
    rng = np.random.default_rng(0)
    vectors = np.concatenate([rng.normal(c, 0.1, (15, 4)) for c in (0, 5)])
    # Threads that wait for each other took 15 s on a busy machine; one takes 0.3 s.
    with threadpoolctl.threadpool_limits(1):
        points = np.asarray(viz.tsne(vectors, perplexity=5))
    first, second = points[:15].mean(axis=0), points[15:].mean(axis=0)
    spread = max(points[:15].std(), points[15:].std())
    assert points.shape == (30, 2) and np.linalg.norm(first - second) > spread


def test_memory():
    program = fxflow.jit(lambda x: fnp.sum(fnp.sort(x @ x))).lower(fnp.ones((64, 64)))
    report = program.compile().memory_report()
    figure = viz.memory(report, by="scope", limit=2)
    (ax,) = figure.axes
    assert len(ax.patches) == 2 and "by scope" in ax.get_xlabel()
    assert sum(bar.get_width() for bar in ax.patches) * 1e6 <= report.nbytes + 4096
    assert "test_plots.py" in viz.memory(report).axes[0].get_yticklabels()[0].get_text()
