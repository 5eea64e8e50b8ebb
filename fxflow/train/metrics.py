"""Metrics that accumulate over batches, devices and processes.

A metric is a pytree of sums. A function makes it from one batch, inside a jitted step.
`merge` adds the metrics of two batches, `lax.psum(metric, axis)` those of all devices,
and `compute` returns the result, which does not depend on how the data were divided.

Sums are float32 (float64 if the data are): counts are exact up to 2²⁴ = 16.8 million,
and rounded beyond.
"""

from __future__ import annotations

import abc
import dataclasses
from typing import Any, Self

from fxflow import lax
from fxflow import numpy as fnp
from fxflow.core import tree
from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.core.boundary import boundary
from fxflow.core.tree import register_dataclass
from fxflow.errors import ArgumentError, DtypeError, ShapeError
from fxflow.lax.axes import integer, natural
from fxflow.numpy._operands import ArrayLike
from fxflow.optim.numerics import widened


class Metric(abc.ABC):
    """The base class of metrics, which are pytrees of sums."""

    @abc.abstractmethod
    def compute(self) -> Array:
        """Returns the metric's value, a scalar or an array, from its sums."""

    def merge(self, other: Self) -> Self:
        """Returns the metric of both batches together.

        Args:
          other: a metric of the same class, with the same number of classes or bins.

        Raises:
          ArgumentError: `other` is of another class.
        """
        if type(other) is not type(self):
            raise ArgumentError(
                f"merge: expected a {type(self).__name__}, got a {type(other).__name__}"
            )
        merged: Self = tree.map(fnp.add, self, other)
        return merged


# -- means -----------------------------------------------------------------------------


@register_dataclass
@dataclasses.dataclass(frozen=True)
class Mean(Metric):
    """A weighted mean.

    Attributes:
      total: the sum of weight times value, a scalar.
      weight: the sum of the weights, a scalar.
    """

    total: Array
    weight: Array

    @classmethod
    def empty(cls) -> Self:
        """Returns the metric of no data."""
        return cls(fnp.zeros(()), fnp.zeros(()))

    def compute(self) -> Array:
        """Returns the mean; nan without data."""
        return self.total / self.weight


@register_dataclass
@dataclasses.dataclass(frozen=True)
class Perplexity(Mean):
    """The exponential of a mean negative log-likelihood.

    Attributes:
      total: the sum of weight times negative log-likelihood, in nats; a scalar.
      weight: the sum of the weights, a scalar.
    """

    def compute(self) -> Array:
        """Returns the perplexity; nan without data."""
        return fnp.exp(super().compute())


@register_dataclass
@dataclasses.dataclass(frozen=True)
class RootMean(Mean):
    """The square root of a mean.

    Attributes:
      total: the sum of weight times value, a scalar.
      weight: the sum of the weights, a scalar.
    """

    def compute(self) -> Array:
        """Returns the root; nan without data."""
        return fnp.sqrt(super().compute())


def _accumulator(*arrays: Any) -> Any:
    """Returns the dtype for sums: float64 if an array is float64, else float32."""
    wide = any(typeof(array).dtype == dtypes.float64 for array in arrays)
    return dtypes.float64 if wide else dtypes.float32


def _weighted(name: str, values: Any, weights: Any) -> tuple[Any, Any]:
    """Returns values and weights, broadcast, in the dtype for sums."""
    dtype = _accumulator(values) if weights is None else _accumulator(values, weights)
    values = fnp.asarray(values).astype(dtype)
    weights = fnp.asarray(1 if weights is None else weights)
    try:
        weights = fnp.broadcast_to(weights.astype(dtype), values.shape)
    except ShapeError:
        raise ShapeError(
            f"{name}: weights {typeof(weights)} do not broadcast to the values, "
            f"{typeof(values)}"
        ) from None
    # Values of weight 0 do not count, even if they are nan.
    return fnp.where(weights == 0, 0, values), weights


@boundary
def mean(values: ArrayLike, *, weights: ArrayLike | None = None) -> Mean:
    """Returns the mean of values.

    Args:
      values: numbers or booleans, of any shape.
      weights: the weight of each value, broadcast; booleans are a mask. None means 1.

    Returns:
      A `Mean`.

    Raises:
      ShapeError: the weights do not broadcast.

    Example:
      >>> first = train.metrics.mean(fnp.array([1.0, 2.0]))
      >>> float(first.merge(train.metrics.mean(fnp.array([6.0]))).compute())
      3.0
    """
    x, w = _weighted("mean", values, weights)
    return Mean(fnp.sum(w * x), fnp.sum(w))


@boundary
def root_mean_square(
    errors: ArrayLike, *, weights: ArrayLike | None = None
) -> RootMean:
    """Returns the root of the mean square.

    Args:
      errors: floats of any shape.
      weights: as for `mean`.

    Returns:
      A `RootMean`.

    Example:
      >>> float(train.metrics.root_mean_square(fnp.array([3.0, -3.0])).compute())
      3.0
    """
    x, w = _weighted("root_mean_square", errors, weights)
    return RootMean(fnp.sum(w * x**2), fnp.sum(w))


@boundary
def perplexity(
    negative_log_likelihoods: ArrayLike, *, weights: ArrayLike | None = None
) -> Perplexity:
    """Returns the perplexity of a language model.

    Args:
      negative_log_likelihoods: one for each token, in nats, as
        `optim.losses.softmax_cross_entropy_with_integer_labels` returns them.
      weights: one for each token, 0 for padding.

    Returns:
      A `Perplexity`.

    Example:
      >>> found = train.metrics.perplexity(fnp.log(fnp.array([2.0, 8.0])))
      >>> round(float(found.compute()), 3)
      4.0
    """
    x, w = _weighted("perplexity", negative_log_likelihoods, weights)
    return Perplexity(fnp.sum(w * x), fnp.sum(w))


def _classes(name: str, logits: Any, labels: Any) -> tuple[Any, Any]:
    """Checks logits `[..., classes]` and integer labels `[...]`."""
    logits, labels = fnp.asarray(logits), fnp.asarray(labels)
    if logits.ndim == 0 or logits.shape[:-1] != labels.shape:
        raise ShapeError(
            f"{name}: logits must have the shape of the labels and one more axis, of "
            f"classes, got {typeof(logits)} and {typeof(labels)}"
        )
    _require_integers(name, labels)
    return logits, labels


def _require_integers(name: str, labels: Any) -> None:
    if not dtypes.is_integer(labels.dtype):
        raise DtypeError(f"{name}: labels must be integers, got {typeof(labels)}")


@boundary
def accuracy(
    logits: ArrayLike, labels: ArrayLike, *, weights: ArrayLike | None = None
) -> Mean:
    """Returns the share of examples whose largest logit is that of the label.

    Args:
      logits: float[..., classes], or probabilities.
      labels: int[...]. A label that is out of range is never right.
      weights: as for `mean`.

    Returns:
      A `Mean`.

    Raises:
      ShapeError: the shapes are incompatible.
      DtypeError: the labels are not integers.

    Example:
      >>> logits = fnp.array([[0.1, 0.9], [0.8, 0.2], [0.3, 0.7]])
      >>> found = train.metrics.accuracy(logits, fnp.array([1, 1, 1]))
      >>> round(float(found.compute()), 3)
      0.667
    """
    given, wanted = _classes("accuracy", logits, labels)
    return mean(fnp.argmax(given, axis=-1) == wanted, weights=weights)


@boundary
def top_k_accuracy(
    logits: ArrayLike, labels: ArrayLike, k: int, *, weights: ArrayLike | None = None
) -> Mean:
    """Returns the share of examples whose label is among the `k` largest logits.

    Args:
      logits: float[..., classes], or probabilities.
      labels: int[...]. A label that is out of range is never right.
      k: the number of logits, at least 1; among equal logits, the first count.
      weights: as for `mean`.

    Returns:
      A `Mean`.

    Raises:
      ShapeError: the shapes are incompatible.
      DtypeError: the labels are not integers.
      ArgumentError: `k` is not between 1 and the number of classes.

    Example:
      >>> logits = fnp.array([[0.1, 0.5, 0.4], [0.6, 0.3, 0.1]])
      >>> float(train.metrics.top_k_accuracy(logits, fnp.array([2, 2]), 2).compute())
      0.5
    """
    given, wanted = _classes("top_k_accuracy", logits, labels)
    k = integer("top_k_accuracy", "k", k)
    if not 1 <= k <= given.shape[-1]:
        raise ArgumentError(
            f"top_k_accuracy: k must be between 1 and {given.shape[-1]}, the number "
            f"of classes, got {k}"
        )
    found = lax.top_k(given, k)[1] == wanted[..., None]
    return mean(fnp.any(found, axis=-1), weights=weights)


@boundary
def log_loss(
    logits: ArrayLike, labels: ArrayLike, *, weights: ArrayLike | None = None
) -> Mean:
    """Returns the mean negative log-likelihood of two classes, in nats.

    Args:
      logits: float[...], the log-odds of the positive class. From probabilities, they
        are `fnp.log(p) - fnp.log1p(-p)`.
      labels: of the same shape: booleans, or numbers from 0 to 1.
      weights: as for `mean`.

    Returns:
      A `Mean`.

    Raises:
      ShapeError: the shapes differ.
      DtypeError: the logits are not floats.

    Example:
      >>> found = train.metrics.log_loss(fnp.array([0.0, 2.0]), fnp.array([1, 1]))
      >>> round(float(found.compute()), 3)
      0.41
    """
    x, y = _floats("log_loss", "logits", logits), fnp.asarray(labels)
    _require_same("log_loss", "logits", x, "labels", y)
    x = x.astype(_accumulator(x))
    y = y.astype(x.dtype)
    # log(1 + eˣ) − x y, as terms that are not negative, so that none overflows.
    size, against = fnp.abs(x), fnp.where(x > 0, 1 - y, y)
    loss = fnp.log1p(fnp.exp(-size)) + fnp.where(against == 0, 0, against * size)
    return mean(loss, weights=weights)


def _floats(name: str, what: str, given: Any) -> Any:
    """Returns an array of floats."""
    found = fnp.asarray(given)
    if not dtypes.is_floating(found.dtype):
        raise DtypeError(f"{name}: {what} must be floats, got {typeof(found)}")
    return found


def _require_same(name: str, what: str, one: Any, others: str, other: Any) -> None:
    if one.shape != other.shape:
        raise ShapeError(
            f"{name}: {what} and {others} must have the same shape, got {typeof(one)} "
            f"and {typeof(other)}"
        )


# -- lists of items --------------------------------------------------------------------


def _ranked(name: str, scores: Any, relevant: Any, k: int) -> tuple[Any, Any, int]:
    """Returns what each item is worth, the same of the best `k`, and `k`."""
    given = _floats(name, "scores", scores)
    worth = fnp.asarray(relevant)
    _require_same(name, "scores", given, "relevant", worth)
    if given.ndim == 0:
        raise ShapeError(f"{name}: scores must be float[..., items], got a scalar")
    k = integer(name, "k", k)
    if not 1 <= k <= given.shape[-1]:
        raise ArgumentError(
            f"{name}: k must be between 1 and {given.shape[-1]}, the number of items, "
            f"got {k}"
        )
    worth = worth.astype(_accumulator(given, worth))
    best = fnp.take_along_axis(worth, lax.top_k(given, k)[1], -1)
    return worth, best, k


def _mean_of_lists(name: str, values: Any, known: Any, weights: Any) -> Mean:
    """Returns the mean over the lists that have something relevant."""
    _, w = _weighted(name, values, weights)
    return mean(fnp.where(known, values, 0), weights=fnp.where(known, w, 0))


@boundary
def recall_at_k(
    scores: ArrayLike,
    relevant: ArrayLike,
    k: int,
    *,
    weights: ArrayLike | None = None,
) -> Mean:
    """Returns the share of a list's relevant items that are among its `k` best.

    Args:
      scores: float[..., items]. Items that do not count, such as those that a person
        has seen, get -inf.
      relevant: bool[..., items], or numbers: other than 0 is relevant.
      k: the number of items, at least 1; among equal scores, the first count.
      weights: [...], one for each list, broadcast.

    Returns:
      A `Mean` over the lists that have a relevant item.

    Raises:
      ShapeError: the shapes differ.
      DtypeError: the scores are not floats.
      ArgumentError: `k` is not between 1 and the number of items.

    Example:
      >>> scores = fnp.array([[0.9, 0.1, 0.5, 0.2], [0.3, 0.6, 0.1, 0.0]])
      >>> relevant = fnp.array([[1, 1, 0, 0], [0, 1, 0, 0]])
      >>> float(train.metrics.recall_at_k(scores, relevant, 2).compute())
      0.75
    """
    worth, best, _ = _ranked(
        "recall_at_k", scores, fnp.not_equal(fnp.asarray(relevant), 0), k
    )
    all_of_them = fnp.sum(worth, -1)
    share = fnp.sum(best, -1) / fnp.maximum(all_of_them, 1)
    return _mean_of_lists("recall_at_k", share, all_of_them > 0, weights)


@boundary
def ndcg_at_k(
    scores: ArrayLike,
    relevant: ArrayLike,
    k: int,
    *,
    weights: ArrayLike | None = None,
) -> Mean:
    r"""Returns the normalized discounted cumulative gain of the `k` best items.

    An item of gain g at place i, from 1, counts :math:`g / \log_2(i + 1)`; the sum is
    divided by that of the best order.

    Args:
      scores: float[..., items], as for `recall_at_k`.
      relevant: bool[..., items], or non-negative gains.
      k: the number of items, at least 1; among equal scores, the first count.
      weights: [...], one for each list, broadcast.

    Returns:
      A `Mean` over the lists that have a relevant item.

    Raises:
      ShapeError: the shapes differ.
      DtypeError: the scores are not floats.
      ArgumentError: `k` is not between 1 and the number of items.

    Example:
      >>> scores = fnp.array([[0.9, 0.1, 0.5, 0.2]])
      >>> found = train.metrics.ndcg_at_k(scores, fnp.array([[0, 0, 1, 0]]), 3)
      >>> round(float(found.compute()), 3)
      0.631

    Source: Järvelin and Kekäläinen 2002, "Cumulated gain-based evaluation of IR
    techniques".
    """
    worth, best, k = _ranked("ndcg_at_k", scores, relevant, k)
    discounts = 1 / fnp.log2(fnp.arange(2, k + 2, dtype=worth.dtype))
    ideal = fnp.sum(lax.top_k(worth, k)[0] * discounts, -1)
    known = ideal > 0
    gain = fnp.sum(best * discounts, -1) / fnp.where(known, ideal, 1)
    return _mean_of_lists("ndcg_at_k", gain, known, weights)


# -- tables ----------------------------------------------------------------------------


@register_dataclass
@dataclasses.dataclass(frozen=True)
class Confusion(Metric):
    """A confusion matrix: how often each label was predicted as each class.

    Attributes:
      matrix: [labels, predictions], sums of weights.
      outside: the weight of examples whose label or prediction is not a class.
    """

    matrix: Array
    outside: Array

    @classmethod
    def empty(cls, num_classes: int) -> Confusion:
        """Returns the metric of no data.

        Args:
          num_classes: the number of classes.
        """
        return cls(fnp.zeros((num_classes, num_classes)), fnp.zeros(()))

    def compute(self) -> Array:
        """Returns the matrix, [labels, predictions]."""
        return self.matrix

    def accuracy(self) -> Array:
        """Returns the share on the diagonal; `outside` counts as wrong."""
        return fnp.trace(self.matrix) / (fnp.sum(self.matrix) + self.outside)

    def precision(self) -> Array:
        """Returns the share of right predictions among those of each class.

        It is nan for a class that was never predicted.
        """
        return fnp.diagonal(self.matrix) / fnp.sum(self.matrix, axis=0)

    def recall(self) -> Array:
        """Returns the share of right predictions among the examples of each class.

        It is nan for a class without examples.
        """
        return fnp.diagonal(self.matrix) / fnp.sum(self.matrix, axis=1)

    def f1(self) -> Array:
        """Returns the harmonic mean of precision and recall of each class.

        It is nan for a class that neither occurs nor is predicted.
        """
        both = fnp.sum(self.matrix, axis=0) + fnp.sum(self.matrix, axis=1)
        return 2 * fnp.diagonal(self.matrix) / both


@boundary
def confusion(
    predictions: ArrayLike,
    labels: ArrayLike,
    num_classes: int,
    *,
    weights: ArrayLike | None = None,
) -> Confusion:
    """Returns the confusion matrix: how often each label was predicted as each class.

    Args:
      predictions: int[...].
      labels: int[...], of the same shape.
      num_classes: the number of classes; other numbers are counted as `outside`.
      weights: as for `mean`.

    Returns:
      A `Confusion`.

    Raises:
      ShapeError: the shapes differ.
      DtypeError: the predictions or labels are not integers.

    Example:
      >>> table = train.metrics.confusion(fnp.array([0, 1, 1]), fnp.array([0, 0, 1]), 2)
      >>> table.compute().tolist(), table.precision().tolist()
      ([[1.0, 1.0], [0.0, 1.0]], [1.0, 0.5])
    """
    rows, columns = fnp.asarray(labels), fnp.asarray(predictions)
    _require_integers("confusion", rows)
    if not dtypes.is_integer(columns.dtype):
        raise DtypeError(
            f"confusion: predictions must be integers, got {typeof(columns)}: take "
            f"the argmax of logits"
        )
    _require_same("confusion", "predictions", columns, "labels", rows)
    count = integer("confusion", "num_classes", num_classes)
    inside = (columns >= 0) & (columns < count) & (rows >= 0) & (rows < count)
    _, w = _weighted("confusion", inside, weights)
    counted, zeros = fnp.where(inside, w, 0), fnp.zeros((count, count), w.dtype)
    rows, columns = fnp.where(inside, rows, 0), fnp.where(inside, columns, 0)
    matrix = zeros.at[rows, columns].add(counted)
    return Confusion(matrix, fnp.sum(fnp.where(inside, 0, w)))


@register_dataclass
@dataclasses.dataclass(frozen=True)
class Scores(Metric):
    """The distributions of the scores of positive and of negative examples.

    Curves and areas are computed from counts in bins, which can be added over batches
    and devices. Within a bin, scores count as equal: the error of an area is at most
    half the share of pairs that fall into one bin.

    Attributes:
      positive: float[bins], the weight of positive examples by score.
      negative: float[bins], the weight of negative examples by score.
      outside: the weight of examples whose score is not in [0, 1].
    """

    positive: Array
    negative: Array
    outside: Array

    @classmethod
    def empty(cls, bins: int = 1000) -> Scores:
        """Returns the metric of no data.

        Args:
          bins: the number of bins.
        """
        return cls(fnp.zeros(bins), fnp.zeros(bins), fnp.zeros(()))

    def _above(self) -> tuple[Array, Array]:
        """Returns the weights of positives and negatives above each threshold."""
        zero = fnp.zeros(1, self.positive.dtype)
        found = (fnp.cumsum(counts[::-1]) for counts in (self.positive, self.negative))
        positives, negatives = (fnp.concatenate([zero, sums]) for sums in found)
        return positives, negatives

    def compute(self) -> Array:
        """Returns the area under the ROC curve; nan if a class has no examples."""
        false_rates, true_rates = self.roc_curve()
        return fnp.trapezoid(true_rates, false_rates)

    def roc_curve(self) -> tuple[Array, Array]:
        """Returns false and true positive rates, float[bins + 1] each.

        Thresholds fall, so the rates rise from (0, 0) to (1, 1).
        """
        positives, negatives = self._above()
        return negatives / negatives[-1], positives / positives[-1]

    def precision_recall_curve(self) -> tuple[Array, Array]:
        """Returns precision and recall, float[bins + 1] each, for falling thresholds.

        Precision is 1 if no score is above the threshold.
        """
        positives, negatives = self._above()
        found = positives + negatives
        nothing = found == 0
        precision = fnp.where(nothing, 1, positives / fnp.where(nothing, 1, found))
        return precision, positives / positives[-1]

    def average_precision(self) -> Array:
        """Returns the precision averaged over the steps of recall."""
        precision, recall = self.precision_recall_curve()
        return fnp.sum(fnp.diff(recall) * precision[1:])


@boundary
def scores(
    probabilities: ArrayLike,
    labels: ArrayLike,
    *,
    bins: int = 1000,
    weights: ArrayLike | None = None,
) -> Scores:
    """Returns the distributions of scores, for ROC and precision-recall curves.

    Args:
      probabilities: float[...] in [0, 1], such as `nn.sigmoid(logits)`.
      labels: bool[...] or int[...]; a label other than 0 is positive.
      bins: the number of equal parts of [0, 1].
      weights: as for `mean`.

    Returns:
      A `Scores`; `compute` returns the area under the ROC curve.

    Raises:
      ShapeError: the shapes differ.

    Example:
      >>> given = fnp.array([0.1, 0.4, 0.35, 0.8])
      >>> float(train.metrics.scores(given, fnp.array([0, 0, 1, 1])).compute())
      0.75
    """
    p, positive = fnp.asarray(probabilities), fnp.asarray(labels) != 0
    if p.shape != positive.shape:
        raise ShapeError(
            f"scores: probabilities and labels must have the same shape, got {p.shape} "
            f"and {positive.shape}"
        )
    count = natural("scores", "bins", bins)
    inside = (p >= 0) & (p <= 1)
    _, w = _weighted("scores", inside, weights)
    counted, empty = fnp.where(inside, w, 0), fnp.zeros(count, w.dtype)
    places = (widened(fnp.where(inside, p, 0)) * count).astype(dtypes.int32)
    places = fnp.minimum(places, count - 1)
    return Scores(
        empty.at[places].add(fnp.where(positive, counted, 0)),
        empty.at[places].add(fnp.where(positive, 0, counted)),
        fnp.sum(fnp.where(inside, 0, w)),
    )


@register_dataclass
@dataclasses.dataclass(frozen=True)
class Calibration(Metric):
    """How often what was predicted with a probability has happened.

    Attributes:
      weight: float[bins], the weight of the examples by probability.
      predicted: float[bins], the sums of weight times probability.
      positive: float[bins], the weight of positive examples.
      outside: the weight of examples whose probability is not in [0, 1].
    """

    weight: Array
    predicted: Array
    positive: Array
    outside: Array

    @classmethod
    def empty(cls, bins: int = 20) -> Calibration:
        """Returns the metric of no data.

        Args:
          bins: the number of bins.
        """
        zeros = fnp.zeros(bins)
        return cls(zeros, zeros, zeros, fnp.zeros(()))

    def compute(self) -> Array:
        """Returns the expected calibration error; nan without data.

        It is the mean over examples of the difference, in the bin of each, between the
        mean probability and the share of positives.
        """
        gaps = fnp.abs(self.predicted - self.positive)
        return fnp.sum(gaps) / fnp.sum(self.weight)

    def bias(self) -> Array:
        """Returns the mean probability divided by the share of positives.

        It is inf, or nan, without positives.
        """
        return fnp.sum(self.predicted) / fnp.sum(self.positive)

    def table(self) -> tuple[Array, Array, Array]:
        """Returns the rows of a reliability diagram, float[bins] each.

        These are mean probability, share of positives, and weight of each bin; the
        first two are nan where a bin has no examples.
        """
        none = fnp.where(self.weight > 0, self.weight, fnp.nan)
        return self.predicted / none, self.positive / none, self.weight


@boundary
def calibration(
    probabilities: ArrayLike,
    labels: ArrayLike,
    *,
    bins: int | ArrayLike = 20,
    weights: ArrayLike | None = None,
) -> Calibration:
    """Returns how well probabilities fit to what happened.

    Args:
      probabilities: float[...], such as `nn.sigmoid(logits)`.
      labels: bool[...] or int[...]; a label other than 0 is positive.
      bins: the number of equal parts of [0, 1]; or the edges between bins, float[n],
        ascending, for n + 1 bins: rare clicks need some below 0.05.
      weights: as for `mean`.

    Returns:
      A `Calibration`; `compute` returns the expected calibration error, `table` a
      reliability diagram.

    Raises:
      ShapeError: the shapes differ, or the edges are not an array of one axis.
      DtypeError: the probabilities, or edges, are not floats.

    Example:
      >>> p, clicked = fnp.array([0.1, 0.1, 0.8, 0.6]), fnp.array([0, 1, 1, 1])
      >>> found = train.metrics.calibration(p, clicked, bins=2)
      >>> for row in zip(*found.table()):
      ...     print("predicted {:.2f}, happened {:.2f}, of {:.0f}".format(*row))
      predicted 0.10, happened 0.50, of 2
      predicted 0.70, happened 1.00, of 2
      >>> round(float(found.compute()), 2)
      0.35

    Source: Naeini, Cooper, Hauskrecht 2015, "Obtaining well calibrated probabilities
    using Bayesian binning".
    """
    p = _floats("calibration", "probabilities", probabilities)
    positive = fnp.asarray(labels) != 0
    _require_same("calibration", "probabilities", p, "labels", positive)
    inside = (p >= 0) & (p <= 1)
    _, w = _weighted("calibration", inside, weights)
    p = widened(fnp.where(inside, p, 0))
    if isinstance(bins, int):
        count = natural("calibration", "bins", bins)
        places = fnp.minimum((p * count).astype(dtypes.int32), count - 1)
    else:
        edges = _floats("calibration", "edges of bins", bins)
        if edges.ndim != 1:
            raise ShapeError(
                f"calibration: edges of bins must be float[n], got {typeof(edges)}"
            )
        count = edges.size + 1
        places = fnp.searchsorted(edges.astype(p.dtype), p, side="right")
    counted, empty = fnp.where(inside, w, 0), fnp.zeros(count, w.dtype)
    return Calibration(
        empty.at[places].add(counted),
        empty.at[places].add(counted * p.astype(w.dtype)),
        empty.at[places].add(fnp.where(positive, counted, 0)),
        fnp.sum(fnp.where(inside, 0, w)),
    )
