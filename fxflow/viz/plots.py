"""Figures of what training gives: curves, confusion matrices, points of vectors."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fxflow.core.arrays import Array
from fxflow.devices.memory import bytes_text
from fxflow.errors import ArgumentError
from fxflow.lax.axes import integer
from fxflow.numpy import asarray
from fxflow.numpy._operands import ArrayLike
from fxflow.numpy.linalg import eigh
from fxflow.transforms.memory_reports import By, MemoryReport
from fxflow.viz.figures import COLORS, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Method = Literal["pca", "tsne"]


def smoothed(values: ArrayLike, weight: float) -> np.ndarray[Any, Any]:
    """Returns a moving average of values, as TensorBoard shows it.

    Each value counts `weight` times as much as the next; the average of the first few
    is of those few (Kingma & Ba 2015, bias correction).

    Args:
      values: float[n]; what is not finite is left out, and leaves a gap.
      weight: from 0, which gives the values, to below 1.

    Returns:
      float64[n].

    Raises:
      ArgumentError: `weight` is not in [0, 1).

    Example:
      >>> viz.smoothed([0.0, 1.0, 1.0], 0.5)
      array([0.        , 0.66666667, 0.85714286])
    """
    if not 0 <= weight < 1:
        raise ArgumentError(f"smoothed: weight must be in [0, 1), got {weight}")
    given = np.asarray(values, np.float64)
    out = np.full_like(given, np.nan)
    total = count = 0.0
    for i, value in enumerate(given):
        if np.isfinite(value):
            total = weight * total + (1 - weight) * value
            count = weight * count + (1 - weight)
            out[i] = total / count
    return out


def curves(
    data: Mapping[str, Any],
    *,
    smoothing: float = 0.0,
    log: bool = False,
    xlabel: str = "step",
    ylabel: str = "",
) -> Figure:
    """Draws numbers over steps: losses, accuracies, learning rates.

    Args:
      data: for each name float[n], or a pair of steps and values of one length.
      smoothing: from 0 to below 1: weight of the moving average that is drawn over the
        numbers (see `smoothed`).
      log: whether the vertical axis is logarithmic.
      xlabel: what the steps are.
      ylabel: what the numbers are.

    Returns:
      A figure of `matplotlib`, which notebooks show and `savefig` writes.

    Raises:
      ArgumentError: there are no curves, or steps and values differ in length.
      ImportError: matplotlib is not installed (extra `viz`).

    Example:
      >>> figure = viz.curves({"loss": [3.0, 2.0, 1.5]}, smoothing=0.5)
      >>> [line.get_label() for line in figure.axes[0].lines][-1]
      'loss'
    """
    if not data:
        raise ArgumentError("curves: give a mapping of names to values, got none")
    figure, (ax,) = new_figure(6.4, 3.6)
    for number, (name, given) in enumerate(data.items()):
        pair = isinstance(given, tuple) and len(given) == 2
        values = np.asarray(given[1] if pair else given, np.float64)
        steps = np.asarray(given[0]) if pair else np.arange(len(values))
        if values.ndim != 1 or steps.shape != values.shape:
            raise ArgumentError(
                f"curves: {name} must be float[n], or steps and values of one length, "
                f"got {list(steps.shape)} and {list(values.shape)}"
            )
        color = COLORS[number % len(COLORS)]
        average = smoothed(values, smoothing)
        if smoothing:
            ax.plot(steps, values, color=color, alpha=0.25, linewidth=0.8)
        ax.plot(steps, average, color=color, label=name, linewidth=1.6)
    if log:
        ax.set_yscale("log")
    ax.set_xlabel(xlabel)
    ax.set_ylabel(ylabel)
    ax.grid(alpha=0.25)
    ax.legend(frameon=False)
    return figure


def memory(report: MemoryReport, *, by: By = "line", limit: int = 10) -> Figure:
    """Draws what makes the peak of a program's memory.

    Args:
      report: of `Compiled.memory_report`.
      by: `"line"`, `"scope"`, `"operation"` or `"kind"`; see `MemoryReport.rows`.
      limit: how many bars at most, the largest first.

    Returns:
      A figure of `matplotlib`, which notebooks show and `savefig` writes.

    Raises:
      ArgumentError: `by` is something else, or `limit` is not positive.
      ImportError: matplotlib is not installed (extra `viz`).

    Example:
      >>> program = fxflow.jit(lambda x: (x @ x).sum()).lower(fnp.ones((64, 64)))
      >>> figure = viz.memory(program.compile().memory_report())
      >>> figure.axes[0].get_xlabel()
      'MB held at the peak, by line'
    """
    if limit < 1:
        raise ArgumentError(f"viz.memory: limit is a positive number, got {limit}")
    rows = report.rows(by)[:limit]
    figure, (ax,) = new_figure(9, 1.0 + 0.3 * len(rows))
    figure.suptitle(
        f"{report.name} needs {bytes_text(report.nbytes)}", x=0.01, ha="left", size=11
    )
    names = [re.sub(r"^.*/(?=[^/]+:\d+ )", "", row.name) for row in rows]
    ax.barh(range(len(rows)), [row.nbytes / 1e6 for row in rows], color=COLORS[0])
    ax.set_yticks(range(len(rows)), names, family="monospace", size=7.5)
    ax.invert_yaxis()
    ax.set_xlabel(f"MB held at the peak, by {by}", size=9)
    for i, row in enumerate(rows):
        ax.annotate(f" {row.share:.0%}", (row.nbytes / 1e6, i), va="center", size=8)
    return figure


def confusion(
    counts: ArrayLike, labels: Sequence[Any] | None = None, *, normalize: bool = False
) -> Figure:
    """Draws a confusion matrix: which classes are taken for which.

    Args:
      counts: int[classes, classes], as `metrics.confusion(...).matrix`: a row for each
        true class, a column for each predicted one.
      labels: names of the classes; None: their numbers.
      normalize: whether to show shares of each row in percent.

    Returns:
      A figure of `matplotlib`. Colours are shares of a row, so that rare classes are
      seen as well.

    Raises:
      ArgumentError: `counts` is not square, or `labels` has another length.
      ImportError: matplotlib is not installed (extra `viz`).

    Example:
      >>> figure = viz.confusion([[8, 2], [1, 9]], ["cat", "dog"])
      >>> [text.get_text() for text in figure.axes[0].texts]
      ['8', '2', '1', '9']
    """
    table = np.asarray(counts)
    if table.ndim != 2 or table.shape[0] != table.shape[1] or not table.size:
        raise ArgumentError(
            f"confusion: counts must be [classes, classes], got {list(table.shape)}"
        )
    names = list(range(len(table))) if labels is None else list(labels)
    if len(names) != len(table):
        raise ArgumentError(f"confusion: {len(table)} classes have {len(names)} labels")
    totals = table.sum(axis=1, keepdims=True)
    shares = table / np.where(totals > 0, totals, 1)
    size = 2.2 + 0.42 * len(table)
    figure, (ax,) = new_figure(size, size)
    ax.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    if len(table) <= 25:  # more cannot be read
        for (row, column), share in np.ndenumerate(shares):
            text = f"{100 * share:.0f}" if normalize else f"{table[row, column]:g}"
            ax.text(
                column, row, text, ha="center", va="center", size=8,
                color="white" if share > 0.55 else "#333333",
            )  # fmt: skip
    long = max(len(str(name)) for name in names) > 3
    ax.set_xticks(range(len(names)), names, rotation=90 if long else 0)
    ax.set_yticks(range(len(names)), names)
    ax.set_xlabel("predicted")
    ax.set_ylabel("true" + (" (percent of each row)" if normalize else ""))
    return figure


# -- vectors in two dimensions ---------------------------------------------------------


def pca(vectors: ArrayLike, components: int = 2) -> Array:
    """Returns vectors projected onto the directions in which they vary most.

    The eigenvectors of the covariance; each is turned so that its largest element is
    positive, which makes the result the same everywhere.

    Args:
      vectors: float[n, d].
      components: how many directions, at most d.

    Returns:
      float[n, components].

    Raises:
      ArgumentError: `vectors` does not have two axes, or has fewer directions.

    Example:
      >>> pca = viz.pca([[0.0, 0.0], [2.0, 2.0], [4.0, 4.0]], 1)
      >>> [round(float(x), 3) for x in pca[:, 0]]
      [-2.828, 0.0, 2.828]

    Source: Hotelling 1933.
    """
    given = asarray(vectors, float) if _is_integral(vectors) else asarray(vectors)
    components = integer("pca", "components", components)
    if given.ndim != 2 or not 0 < components <= given.shape[1]:
        raise ArgumentError(
            f"pca: {components} directions of vectors [n, d] were asked for, got "
            f"{given.aval}"
        )
    centred = given - given.mean(axis=0)
    _, directions = eigh(centred.T @ centred)
    # Eigenvalues rise.
    chosen = np.asarray(directions)[:, ::-1][:, :components]
    largest = chosen[np.abs(chosen).argmax(axis=0), np.arange(components)]
    return centred @ asarray(chosen * np.sign(largest))


def _is_integral(values: Any) -> bool:
    return np.asarray(values).dtype.kind in "biu"


def tsne(
    vectors: ArrayLike, components: int = 2, *, perplexity: float = 30.0, seed: int = 0
) -> Array:
    """Returns points whose neighbours are those of vectors (t-SNE).

    Args:
      vectors: float[n, d].
      components: 2 or 3.
      perplexity: how many neighbours count, less than n.
      seed: of where they begin.

    Returns:
      float32[n, components].

    Raises:
      ArgumentError: there are not more vectors than `perplexity`.
      ImportError: scikit-learn is not installed (extra `viz`).

    Source: van der Maaten & Hinton 2008, by scikit-learn.
    """
    given = np.asarray(vectors)
    if given.ndim != 2 or len(given) <= perplexity:
        raise ArgumentError(
            f"tsne: vectors must be [n, d] with n above the perplexity {perplexity}, "
            f"got {list(given.shape)}"
        )
    try:
        from sklearn.manifold import TSNE
    except ImportError as error:
        raise ImportError(
            "t-SNE needs scikit-learn: pip install 'fxflow[viz]'"
        ) from error
    model = TSNE(components, perplexity=perplexity, init="pca", random_state=seed)
    return asarray(np.asarray(model.fit_transform(given), np.float32))


def embedding(
    vectors: ArrayLike,
    labels: Sequence[Any] | None = None,
    *,
    method: Method = "pca",
    names: Sequence[str] | None = None,
) -> Figure:
    """Draws vectors as points in two dimensions.

    Args:
      vectors: float[n, d].
      labels: a class for each, which gives its colour.
      method: `"pca"`, or `"tsne"` (with scikit-learn).
      names: a text for each, written beside its point, such as a word.

    Returns:
      A figure of `matplotlib`.

    Raises:
      ArgumentError: there is another number of labels or names, or another method.
      ImportError: matplotlib is not installed (extra `viz`).

    Example:
      >>> figure = viz.embedding(np.eye(3), names=["a", "b", "c"])
      >>> [text.get_text() for text in figure.axes[0].texts]
      ['a', 'b', 'c']
    """
    methods = {"pca": pca, "tsne": tsne}
    if method not in methods:
        raise ArgumentError(
            f"embedding: method is one of {', '.join(methods)}, got {method!r}"
        )
    points = np.asarray(methods[method](vectors))
    for what, given in (("labels", labels), ("names", names)):
        if given is not None and len(given) != len(points):
            raise ArgumentError(
                f"embedding: {len(points)} vectors have {len(given)} {what}"
            )
    figure, (ax,) = new_figure(6, 5)
    kinds = [""] * len(points) if labels is None else [str(label) for label in labels]
    size = 30 if len(points) < 200 else 8
    for number, kind in enumerate(sorted(set(kinds))):
        mine = points[[k == kind for k in kinds]]
        ax.scatter(*mine.T, s=size, color=_color(number), label=kind, linewidths=0)
    for name, point in zip(names or (), points, strict=False):
        ax.annotate(str(name), point, xytext=(3, 3), textcoords="offset points", size=8)
    if labels is not None:
        ax.legend(
            frameon=False, markerscale=2, loc="center left", bbox_to_anchor=(1, 0.5)
        )
    ax.set_xticks([])
    ax.set_yticks([])
    return figure


def _color(number: int) -> Any:
    """Returns the colour of a class: ten that differ, then round again."""
    from matplotlib import colormaps

    return COLORS[number] if number < len(COLORS) else colormaps["tab20"](number % 20)
