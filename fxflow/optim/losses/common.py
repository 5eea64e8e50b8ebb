"""Losses for regression, classification, distributions and directions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from fxflow import nn
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes, is_arraylike, not_an_array, typeof
from fxflow.core.docs import shared
from fxflow.core.runtime.library import library
from fxflow.errors import AxisError, DtypeError, ShapeError
from fxflow.numpy._operands import ArrayLike
from fxflow.numpy.elementary import flat_at_zero
from fxflow.optim.losses.checks import difference, floats, weighted_logs
from fxflow.optim.numerics import in_wide, quotient, widened

_error_docs = shared("""
    Args:
      predictions: p: float[...].
      targets: t: an array of the same shape, or 0-d; None means 0.

    Returns:
      An array of the shape of the predictions.

    Raises:
      DtypeError: the predictions are not floats.
      ShapeError: the shapes differ.
""")


@library()
@_error_docs
def squared_error(predictions: ArrayLike, targets: ArrayLike | None = None) -> Array:
    r"""Returns squared errors: :math:`(p - t)^2`.

    Example:
      >>> float(optim.losses.squared_error(3.0, 1.0))
      4.0
    """
    return fnp.square(difference("squared_error", predictions, targets))


@library()
@_error_docs
def l2_loss(predictions: ArrayLike, targets: ArrayLike | None = None) -> Array:
    r"""Returns half the squared errors: :math:`\tfrac12 (p - t)^2`.

    Example:
      >>> float(optim.losses.l2_loss(3.0, 1.0))
      2.0
    """
    error = difference("l2_loss", predictions, targets)
    return fnp.multiply(0.5, fnp.square(error))


@library()
@_error_docs
def huber_loss(
    predictions: ArrayLike, targets: ArrayLike | None = None, *, delta: Any = 1.0
) -> Array:
    r"""Returns Huber losses: quadratic in small errors, linear in large ones.

    .. math:: \tfrac12 e^2 \text{ if } |e| \le \delta, \quad
       \delta (|e| - \tfrac12 \delta) \text{ else}

    Args:
      predictions: float[...].
      targets: array of the same shape, or 0-d; None means 0.
      delta: δ > 0.

    Example:
      >>> float(optim.losses.huber_loss(3.0, 0.0))
      2.5

    Reference: Huber 1964.
    """
    size = fnp.abs(difference("huber_loss", predictions, targets))
    near = fnp.minimum(size, delta)
    # The sum of the two terms is right in both cases, and its derivative continuous.
    linear = fnp.multiply(delta, fnp.subtract(size, near))
    return fnp.add(fnp.multiply(0.5, fnp.square(near)), linear)


@library()
@_error_docs
def log_cosh(predictions: ArrayLike, targets: ArrayLike | None = None) -> Array:
    r"""Returns smooth absolute errors: :math:`\log \cosh (p - t)`.

    Example:
      >>> float(optim.losses.log_cosh(0.0))
      0.0
    """

    def of(error: Any) -> Any:
        size = fnp.abs(error)
        near = fnp.less(size, 1)
        # cosh e = 1 + 2 sinh²(e/2): computing the sum would round small errors to 0.
        half = fnp.sinh(fnp.multiply(0.5, fnp.where(near, error, 0)))
        small = fnp.log1p(fnp.multiply(2.0, fnp.square(half)))
        rest = fnp.log1p(fnp.exp(fnp.multiply(-2.0, size)))
        large = fnp.add(size, fnp.subtract(rest, math.log(2)))
        return fnp.where(near, small, large)

    loss: Array = in_wide(of, difference("log_cosh", predictions, targets))
    return loss


# -- classification --------------------------------------------------------------------


@library()
def sigmoid_binary_cross_entropy(logits: ArrayLike, labels: ArrayLike) -> Array:
    r"""Returns cross entropies of independent binary labels.

    .. math:: -y \log \sigma(x) - (1 - y) \log (1 - \sigma(x))

    Args:
      logits: x: float[...], logarithms of odds.
      labels: y, probabilities (or 0 and 1), broadcast against the logits.

    Returns:
      An array of their common shape.

    Raises:
      DtypeError: the logits are not floats.

    Special cases:
      An infinite logit for a certain label has loss 0.

    Example:
      >>> round(float(optim.losses.sigmoid_binary_cross_entropy(0.0, 1.0)), 4)
      0.6931

    Reference: Goodfellow, Bengio, Courville 2016, section 6.2.2.
    """
    name = "sigmoid_binary_cross_entropy"
    x = floats(name, "logits", logits)
    if not is_arraylike(labels):
        raise not_an_array(labels, f"{name}: labels is")
    yes = weighted_logs(labels, nn.log_sigmoid(x))
    no = weighted_logs(fnp.subtract(1.0, labels), nn.log_sigmoid(fnp.negative(x)))
    return fnp.negative(fnp.add(yes, no))


@library("axis")
def softmax_cross_entropy(
    logits: ArrayLike,
    labels: ArrayLike,
    axis: int | Sequence[int] | None = -1,
    where: ArrayLike | None = None,
) -> Array:
    r"""Returns cross entropies with a distribution: :math:`-\sum_i y_i \log p_i`.

    p is the softmax of the logits.

    Args:
      logits: float[..., classes].
      labels: y, probabilities of the classes, broadcast against the logits.
      axis: the axis of the classes.
      where: bool, broadcast against the logits: the classes to include.

    Returns:
      An array without the axis of classes.

    Raises:
      AxisError: an axis is out of range.
      DtypeError: the logits are not floats.

    Special cases:
      A class with logit -inf and label 0 adds 0 (in optax 0.2.8 it adds nan).

    Example:
      >>> labels = fnp.array([[0.0, 1.0]])
      >>> loss = optim.losses.softmax_cross_entropy(fnp.zeros((1, 2)), labels)
      >>> round(float(loss[0]), 4)
      0.6931
    """
    name = "softmax_cross_entropy"
    x = floats(name, "logits", logits)
    if not is_arraylike(labels):
        raise not_an_array(labels, f"{name}: labels is")
    scores, given = typeof(x), typeof(labels)
    try:
        fnp.broadcast_shapes(scores.shape, given.shape)
    except ShapeError:
        raise ShapeError(
            f"{name}: labels must be probabilities of the shape of the logits "
            f"{scores}, got {given}: for indices of classes use "
            "softmax_cross_entropy_with_integer_labels"
        ) from None

    def of(x: Any, y: Any) -> Any:
        costs = weighted_logs(y, fnp.negative(nn.log_softmax(x, axis, where)))
        return fnp.sum(costs, axis, where=where)

    loss: Array = in_wide(of, x, labels)
    return loss


@library("axis")
def softmax_cross_entropy_with_integer_labels(
    logits: ArrayLike, labels: ArrayLike, axis: int = -1, where: ArrayLike | None = None
) -> Array:
    r"""Returns cross entropies with one class: :math:`-\log p_y`.

    p is the softmax of the logits.

    Args:
      logits: float[..., classes].
      labels: y: int[...], indices of classes.
      axis: the axis of the classes.
      where: bool, broadcast against the logits: the classes to include.

    Returns:
      An array without the axis of classes.

    Raises:
      AxisError: an axis is out of range.
      DtypeError: the logits are not floats or the labels are not integers.
      ShapeError: the shape of the labels is not that of the logits without the axis.

    Example:
      >>> loss = optim.losses.softmax_cross_entropy_with_integer_labels(
      ...     fnp.zeros((1, 2)), fnp.array([1])
      ... )
      >>> round(float(loss[0]), 4)
      0.6931
    """
    name = "softmax_cross_entropy_with_integer_labels"
    x = floats(name, "logits", logits)
    if not is_arraylike(labels):
        raise not_an_array(labels, f"{name}: labels is")
    scores, classes = typeof(x), typeof(labels)
    if not -scores.ndim <= axis < scores.ndim:
        raise AxisError(f"{name}: there is no axis {axis} in logits {scores}")
    axis %= scores.ndim
    if not dtypes.is_integer(classes.dtype):
        raise DtypeError(f"{name}: labels must be integers, got {classes}")
    if classes.shape != scores.shape[:axis] + scores.shape[axis + 1 :]:
        raise ShapeError(
            f"{name}: labels must have the shape of the logits without axis {axis}, "
            f"got {classes} for logits {scores}"
        )

    def of(x: Any) -> Any:
        picked = fnp.take_along_axis(x, fnp.expand_dims(labels, axis), axis)
        total = nn.logsumexp(x, axis, where=where)
        return fnp.subtract(total, fnp.squeeze(picked, axis))

    loss: Array = in_wide(of, x)
    return loss


@library()
def hinge_loss(predictor_outputs: ArrayLike, targets: ArrayLike) -> Array:
    r"""Returns hinge losses: :math:`\max(0, 1 - y\, x)`.

    Args:
      predictor_outputs: x: float[...].
      targets: y, -1 or 1, broadcast against x.

    Returns:
      An array of their common shape.

    Raises:
      DtypeError: the outputs are not floats.

    Example:
      >>> float(optim.losses.hinge_loss(0.25, 1))
      0.75

    Reference: Cortes and Vapnik 1995.
    """
    x = floats("hinge_loss", "predictor_outputs", predictor_outputs)
    return nn.relu(fnp.subtract(1.0, fnp.multiply(x, targets)))


@library("axis")
def kl_divergence(
    log_predictions: ArrayLike,
    targets: ArrayLike,
    axis: int | Sequence[int] | None = -1,
    where: ArrayLike | None = None,
) -> Array:
    r"""Returns relative entropies: :math:`\sum_i y_i (\log y_i - \log p_i)`.

    Args:
      log_predictions: log p: float[..., classes].
      targets: y, probabilities, broadcast against them.
      axis: the axis of the classes.
      where: bool, broadcast against both: the classes to include.

    Returns:
      An array without the axis of classes.

    Raises:
      AxisError: an axis is out of range.
      DtypeError: the predictions are not floats.

    Special cases:
      A target of 0 adds 0, even where log p is -inf.

    Example:
      >>> p = fnp.array([0.5, 0.5])
      >>> float(optim.losses.kl_divergence(fnp.log(p), p))
      0.0

    Reference: Kullback and Leibler 1951.
    """
    log_p = floats("kl_divergence", "log_predictions", log_predictions)
    y = floats("kl_divergence", "targets", targets)

    def of(log_p: Any, y: Any) -> Any:
        # Where the target is 0, its logarithm and the derivative are not finite.
        log_y = fnp.log(fnp.where(fnp.equal(y, 0), 1, y))
        terms = weighted_logs(y, fnp.subtract(log_y, log_p))
        return fnp.sum(terms, axis, where=where)

    loss: Array = in_wide(of, log_p, y)
    return loss


@library("axis")
def smooth_labels(
    labels: ArrayLike,
    alpha: Any,
    *,
    axis: int = -1,
    where: ArrayLike | None = None,
) -> Array:
    r"""Returns labels mixed with uniform ones: :math:`(1-\alpha) y + \alpha/n`.

    Args:
      labels: y: float[..., n], probabilities.
      alpha: α in [0, 1].
      axis: the axis of the classes.
      where: bool, broadcast against the labels: the classes that n counts; None means
        all.

    Returns:
      An array of the shape of the labels, also smoothed where `where` is False: pass
      `where` to the loss as well.

    Raises:
      DtypeError: the labels are not floats.

    Example:
      >>> optim.losses.smooth_labels(fnp.array([0.0, 1.0]), 0.5).tolist()
      [0.25, 0.75]

    Reference: Müller, Kornblith, Hinton 2019, "When does label smoothing help?".
    """
    y = floats("smooth_labels", "labels", labels)
    aval = typeof(y)
    if not -aval.ndim <= axis < aval.ndim:
        raise AxisError(f"smooth_labels: there is no axis {axis} in {aval}")
    count: Any = aval.shape[axis]
    if where is not None:
        there = fnp.broadcast_to(fnp.astype(where, bool), aval.shape)
        count = fnp.sum(there, axis, keepdims=True, dtype=widened(y).dtype)
        count = fnp.astype(count, aval.dtype)
    share = quotient(alpha, count)
    return fnp.add(fnp.multiply(fnp.subtract(1.0, alpha), y), share)


# -- directions ------------------------------------------------------------------------


_cosine_docs = shared("""
    Args:
      epsilon: lower bound of the norms.
      axis: the axis of the vectors.
      where: bool, broadcast against both: the elements of vectors to include.

    Returns:
      An array without the axis.

    Raises:
      AxisError: an axis is out of range.
      DtypeError: an argument is not a float array.
""")


@library("axis")
@_cosine_docs
def cosine_similarity(
    predictions: ArrayLike,
    targets: ArrayLike,
    *,
    epsilon: Any = 0.0,
    axis: int | Sequence[int] | None = -1,
    where: ArrayLike | None = None,
) -> Array:
    r"""Returns cosines of angles: :math:`a \cdot b / (\lVert a\rVert \lVert b\rVert)`.

    Args:
      predictions: a: float[..., n].
      targets: b: array of the same shape.

    Special cases:
      The cosine of a zero vector and any vector is 0; if `epsilon` is 0, its derivative
      is 0 too. (optax 0.2.8 gives nan, and compares `epsilon` with squared norms.)

    Example:
      >>> a = fnp.array([3.0, 4.0])
      >>> round(float(optim.losses.cosine_similarity(a, a)), 5)
      1.0
    """
    a = floats("cosine_similarity", "predictions", predictions)
    b = floats("cosine_similarity", "targets", targets)

    def unit(x: Any) -> Any:
        square = fnp.sum(fnp.square(x), axis, keepdims=True, where=where)
        small = fnp.less_equal(square, fnp.square(epsilon))
        # The root's derivative at 0 is infinite: 0 · inf would be nan.
        root = fnp.sqrt(fnp.where(small, 1.0, square))
        return quotient(x, fnp.where(small, epsilon, root))

    def of(a: Any, b: Any) -> Any:
        return fnp.sum(fnp.multiply(unit(a), unit(b)), axis, where=where)

    cosine: Array = in_wide(of, a, b)
    return cosine


@library("axis")
@_cosine_docs
def cosine_distance(
    predictions: ArrayLike,
    targets: ArrayLike,
    *,
    epsilon: Any = 0.0,
    axis: int | Sequence[int] | None = -1,
    where: ArrayLike | None = None,
) -> Array:
    """Returns one minus the cosine of angles.

    Args:
      predictions: float[..., n].
      targets: array of the same shape.

    Example:
      >>> a, b = fnp.array([1.0, 0.0]), fnp.array([0.0, 1.0])
      >>> float(optim.losses.cosine_distance(a, b))
      1.0
    """
    similarity = cosine_similarity(
        predictions, targets, epsilon=epsilon, axis=axis, where=where
    )
    return fnp.subtract(1.0, similarity)


# -- classification, continued ---------------------------------------------------------


@library()
def sigmoid_focal_loss(
    logits: ArrayLike, labels: ArrayLike, *, alpha: Any = None, gamma: Any = 2.0
) -> Array:
    r"""Returns cross entropies of binary labels, with less weight for easy examples.

    .. math:: -(1 - p_t)^\gamma \log p_t, \qquad p_t = y p + (1 - y)(1 - p)

    Args:
      logits: float[...], logarithms of odds.
      labels: y, 0 or 1 (or between), broadcast against the logits.
      alpha: weight of the label 1 (and 1 - alpha of 0); None means 1 for both.
      gamma: γ.

    Returns:
      An array of their common shape.

    Example:
      >>> round(float(optim.losses.sigmoid_focal_loss(0.0, 1.0)), 4)
      0.1733

    Reference: Lin, Goyal, Girshick, He, Dollár 2017, "Focal loss for dense object
    detection".
    """
    floats("sigmoid_focal_loss", "logits", logits)
    entropy = sigmoid_binary_cross_entropy(logits, labels)
    # σ(-x), because 1 - σ(x) and so the weight would round to 0 for large x.
    yes, no = nn.sigmoid(logits), nn.sigmoid(fnp.negative(logits))
    other = fnp.subtract(1.0, labels)
    wrong = fnp.add(fnp.multiply(no, labels), fnp.multiply(yes, other))
    found = fnp.multiply(fnp.power(wrong, gamma), entropy)
    if alpha is None:
        return found
    weight = fnp.add(
        fnp.multiply(alpha, labels), fnp.multiply(fnp.subtract(1.0, alpha), other)
    )
    return fnp.multiply(weight, found)


@library()
def safe_softmax_cross_entropy(logits: ArrayLike, labels: ArrayLike) -> Array:
    """Returns cross entropies for logits that may be -inf, for impossible classes.

    Args:
      logits: float[..., n].
      labels: probabilities, float[..., n]; classes with label 0 add 0.

    Returns:
      float[...].

    Example:
      >>> logits = fnp.array([0.0, -fnp.inf])
      >>> float(optim.losses.safe_softmax_cross_entropy(logits, fnp.array([1.0, 0.0])))
      0.0
    """
    return softmax_cross_entropy(
        floats("safe_softmax_cross_entropy", "logits", logits), labels
    )


@library("axis")
def poly_loss_cross_entropy(
    logits: ArrayLike,
    labels: ArrayLike,
    *,
    epsilon: Any = 2.0,
    axis: int = -1,
    where: ArrayLike | None = None,
) -> Array:
    r"""Returns cross entropies with another weight of the first polynomial term.

    .. math:: -\sum y \log p + \epsilon \sum y (1 - p)

    Args:
      logits: float[..., n].
      labels: y, probabilities, float[..., n].
      epsilon: ε, above -1.
      axis: the axis of the classes.
      where: bool, broadcast against both: the classes to include.

    Returns:
      An array without that axis.

    Example:
      >>> labels = fnp.array([1.0, 0.0])
      >>> loss = optim.losses.poly_loss_cross_entropy(fnp.zeros(2), labels)
      >>> round(float(loss), 4)
      1.6931

    Reference: Leng et al. 2022, "PolyLoss: a polynomial expansion perspective of
    classification loss functions".
    """
    x = floats("poly_loss_cross_entropy", "logits", logits)

    def of(x: Any, y: Any) -> Any:
        wrong = fnp.subtract(1.0, nn.softmax(x, axis=axis, where=where))
        first = fnp.sum(fnp.multiply(y, wrong), axis, where=where)
        entropy = softmax_cross_entropy(x, y, axis=axis, where=where)
        return fnp.add(entropy, fnp.multiply(epsilon, first))

    loss: Array = in_wide(of, x, labels)
    return loss


@library()
def perceptron_loss(predictor_outputs: ArrayLike, targets: ArrayLike) -> Array:
    r"""Returns perceptron losses: :math:`\max(0, -x y)`.

    Args:
      predictor_outputs: x, float[...].
      targets: y, -1 or 1, an array of the same shape.

    Returns:
      An array of that shape.

    Example:
      >>> float(optim.losses.perceptron_loss(-0.5, 1.0))
      0.5

    Reference: Rosenblatt 1958.
    """
    floats("perceptron_loss", "predictor_outputs", predictor_outputs)
    return fnp.maximum(0, fnp.negative(fnp.multiply(predictor_outputs, targets)))


def _score_of(scores: Any, labels: Any) -> Any:
    return fnp.take_along_axis(scores, fnp.expand_dims(labels, -1), -1)[..., 0]


@library()
def multiclass_perceptron_loss(scores: ArrayLike, labels: ArrayLike) -> Array:
    r"""Returns perceptron losses for several classes: :math:`\max_j s_j - s_y`.

    Args:
      scores: s, float[..., n].
      labels: y, int[...].

    Returns:
      float[...].

    Example:
      >>> scores = fnp.array([0.25, 1.0])
      >>> float(optim.losses.multiclass_perceptron_loss(scores, 0))
      0.75

    Reference: Collins 2002.
    """
    floats("multiclass_perceptron_loss", "scores", scores)
    return fnp.subtract(fnp.max(scores, -1), _score_of(scores, labels))


@library()
def multiclass_hinge_loss(scores: ArrayLike, labels: ArrayLike) -> Array:
    r"""Returns hinge losses for several classes.

    .. math:: \max_j (s_j + [j \ne y]) - s_y

    Args:
      scores: s, float[..., n].
      labels: y, int[...].

    Returns:
      float[...].

    Example:
      >>> float(optim.losses.multiclass_hinge_loss(fnp.array([0.25, 1.0]), 0))
      1.75

    Reference: Crammer and Singer 2001.
    """
    floats("multiclass_hinge_loss", "scores", scores)
    aval = typeof(scores)
    own = nn.one_hot(labels, aval.shape[-1], dtype=aval.dtype)
    others = fnp.add(scores, fnp.subtract(1.0, own))
    return fnp.subtract(fnp.max(others, -1), _score_of(scores, labels))


# -- divergences and distances ---------------------------------------------------------


@library("axis")
def kl_divergence_with_log_targets(
    log_predictions: ArrayLike,
    log_targets: ArrayLike,
    axis: int = -1,
    where: ArrayLike | None = None,
) -> Array:
    r"""Returns relative entropies: :math:`\sum t (\log t - \log p)`.

    Args:
      log_predictions: log p, float[...].
      log_targets: log t, an array of the same shape.
      axis: the axis of the classes.
      where: bool, broadcast against both: the classes to include.

    Returns:
      An array without that axis.

    Special cases:
      A target of 0, whose logarithm is -inf, adds 0.

    Example:
      >>> log_p = fnp.log(fnp.array([0.5, 0.5]))
      >>> float(optim.losses.kl_divergence_with_log_targets(log_p, log_p))
      0.0

    Reference: Kullback and Leibler 1951.
    """
    name = "kl_divergence_with_log_targets"
    none = fnp.equal(floats(name, "log_targets", log_targets), -math.inf)
    error = difference(
        name, fnp.where(none, 0, log_targets), fnp.where(none, 0, log_predictions)
    )

    def of(log_t: Any, error: Any) -> Any:
        return fnp.sum(fnp.multiply(fnp.exp(log_t), error), axis, where=where)

    loss: Array = in_wide(of, log_targets, error)
    return loss


@library("axis")
def generalized_kl_divergence(
    log_predictions: ArrayLike,
    targets: ArrayLike,
    axis: int = -1,
    where: ArrayLike | None = None,
) -> Array:
    r"""Returns relative entropies of nonnegative arrays, whose sums may differ.

    .. math:: \sum t (\log t - \log p) + p - t

    Args:
      log_predictions: log p, float[...].
      targets: t, a nonnegative array of the same shape.
      axis: the axis of the classes.
      where: bool, broadcast against both: the classes to include.

    Returns:
      A nonnegative array without that axis.

    Example:
      >>> p = fnp.array([0.5, 0.25])
      >>> float(optim.losses.generalized_kl_divergence(fnp.log(p), p))
      0.0
    """

    def of(log_p: Any, t: Any) -> Any:
        rest = fnp.subtract(fnp.exp(log_p), t)
        kl = kl_divergence(log_p, t, axis, where)
        return fnp.add(kl, fnp.sum(rest, axis, where=where))

    loss: Array = in_wide(of, log_predictions, targets)
    return loss


@library("axis")
def triplet_margin_loss(
    anchors: ArrayLike,
    positives: ArrayLike,
    negatives: ArrayLike,
    axis: int = -1,
    norm_degree: Any = 2,
    margin: Any = 1.0,
    eps: Any = 1e-6,
) -> Array:
    r"""Returns triplet losses: anchors should be nearer to positives than to negatives.

    .. math:: \max(\lVert a - p \rVert - \lVert a - n \rVert + m, 0)

    Args:
      anchors: a, float[...].
      positives: p, an array of the same shape.
      negatives: n, an array of the same shape.
      axis: the axis of the coordinates.
      norm_degree: degree of the norm, > 0. (optax 0.2.8 takes powers of signed
        differences, which is not a norm for odd degrees.)
      margin: m.
      eps: added under the root.

    Returns:
      An array without that axis.

    Example:
      >>> a, n = fnp.array([0.0]), fnp.array([4.0])
      >>> round(float(optim.losses.triplet_margin_loss(a, a, n, margin=5.0)), 2)
      1.0

    Reference: Schroff, Kalenichenko, Philbin 2015, "FaceNet".
    """

    def of(positive: Any, negative: Any) -> Any:
        def distance(error: Any) -> Any:
            total = fnp.sum(fnp.power(fnp.abs(error), norm_degree), axis)
            exponent = fnp.divide(1.0, norm_degree)
            return flat_at_zero(
                lambda x: fnp.power(x, exponent), fnp.asarray(fnp.add(total, eps))
            )

        gap = fnp.subtract(distance(positive), distance(negative))
        return fnp.maximum(fnp.add(gap, margin), 0)

    errors = (
        difference("triplet_margin_loss", anchors, other)
        for other in (positives, negatives)
    )
    loss: Array = in_wide(of, *errors)
    return loss
