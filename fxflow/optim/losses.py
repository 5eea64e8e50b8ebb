"""Losses, element by element or example by example: take the mean of what they give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fxflow import nn
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes, is_arraylike, not_an_array, typeof
from fxflow.core.docs import shared
from fxflow.core.runtime.eager import library
from fxflow.errors import AxisError, DtypeError, ShapeError
from fxflow.numpy._operands import ArrayLike


def _floats(name: str, what: str, x: Any) -> Any:
    """Checks that an argument is a float array."""
    if not is_arraylike(x):
        raise not_an_array(x, f"{name}: {what} is")
    aval = typeof(x)
    if not dtypes.is_floating(aval.dtype):
        raise DtypeError(
            f"{name}: {what} must be floats, got {aval}: convert with .astype"
        )
    return x


def _difference(name: str, predictions: Any, targets: Any) -> Any:
    """Returns the errors; shapes must be equal, as broadcasting hides mistakes."""
    _floats(name, "predictions", predictions)
    if targets is None:
        return predictions
    if not is_arraylike(targets):
        raise not_an_array(targets, f"{name}: targets is")
    given, wanted = typeof(predictions), typeof(targets)
    if wanted.ndim and given.shape != wanted.shape:
        raise ShapeError(
            f"{name}: predictions and targets must have one shape, got {given} and "
            f"{wanted}"
        )
    return fnp.subtract(predictions, targets)


_error_docs = shared("""
    Args:
      predictions: p: float[...].
      targets: t, of the same shape (or 0-d); None means 0.

    Returns:
      An array of the shape of the predictions.

    Raises:
      DtypeError: the predictions are no floats.
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
    return fnp.square(_difference("squared_error", predictions, targets))


@library()
@_error_docs
def l2_loss(predictions: ArrayLike, targets: ArrayLike | None = None) -> Array:
    r"""Returns half the squared errors: :math:`\tfrac12 (p - t)^2`.

    Example:
      >>> float(optim.losses.l2_loss(3.0, 1.0))
      2.0
    """
    error = _difference("l2_loss", predictions, targets)
    return fnp.multiply(0.5, fnp.square(error))


@library()
@_error_docs
def huber_loss(
    predictions: ArrayLike, targets: ArrayLike | None = None, *, delta: Any = 1.0
) -> Array:
    r"""Returns errors that are quadratic when small and linear when large.

    .. math:: \tfrac12 e^2 \text{ if } |e| \le \delta, \quad
       \delta (|e| - \tfrac12 \delta) \text{ else}

    Args:
      predictions: float[...].
      targets: of the same shape (or 0-d); None means 0.
      delta: δ > 0.

    Example:
      >>> float(optim.losses.huber_loss(3.0, 0.0))
      2.5

    Reference: Huber 1964.
    """
    size = fnp.abs(_difference("huber_loss", predictions, targets))
    near = fnp.minimum(size, delta)
    # The two parts add up to both cases; neither has a kink in its derivative.
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
    error = _difference("log_cosh", predictions, targets)
    both = fnp.logaddexp(error, fnp.negative(error))
    return fnp.subtract(both, fnp.log(fnp.asarray(2.0, typeof(error).dtype)))


# -- classification --------------------------------------------------------------------


@library()
def sigmoid_binary_cross_entropy(logits: ArrayLike, labels: ArrayLike) -> Array:
    r"""Returns cross entropies of independent yes-or-no questions.

    .. math:: -y \log \sigma(x) - (1 - y) \log (1 - \sigma(x))

    Args:
      logits: x: float[...], logarithms of odds.
      labels: y, probabilities (or 0 and 1), broadcast against the logits.

    Returns:
      An array of their common shape.

    Raises:
      DtypeError: the logits are no floats.

    Example:
      >>> round(float(optim.losses.sigmoid_binary_cross_entropy(0.0, 1.0)), 4)
      0.6931

    Reference: Goodfellow, Bengio, Courville 2016, section 6.2.2.
    """
    name = "sigmoid_binary_cross_entropy"
    x = _floats(name, "logits", logits)
    if not is_arraylike(labels):
        raise not_an_array(labels, f"{name}: labels is")
    yes = fnp.multiply(labels, nn.log_sigmoid(x))
    no = fnp.multiply(fnp.subtract(1.0, labels), nn.log_sigmoid(fnp.negative(x)))
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
      axis: along which the classes lie.
      where: bool, broadcast against the logits: which classes take part.

    Returns:
      An array without the axis of classes.

    Raises:
      AxisError: there is no such axis.
      DtypeError: the logits are no floats.

    Example:
      >>> labels = fnp.array([[0.0, 1.0]])
      >>> loss = optim.losses.softmax_cross_entropy(fnp.zeros((1, 2)), labels)
      >>> round(float(loss[0]), 4)
      0.6931
    """
    name = "softmax_cross_entropy"
    log_p = nn.log_softmax(_floats(name, "logits", logits), axis, where)
    if not is_arraylike(labels):
        raise not_an_array(labels, f"{name}: labels is")
    products = fnp.multiply(labels, log_p)
    return fnp.negative(fnp.sum(products, axis, where=where))


@library("axis")
def softmax_cross_entropy_with_integer_labels(
    logits: ArrayLike, labels: ArrayLike, axis: int = -1, where: ArrayLike | None = None
) -> Array:
    r"""Returns cross entropies with one class: :math:`-\log p_y`.

    p is the softmax of the logits.

    Args:
      logits: float[..., classes].
      labels: y: int[...], indices of classes.
      axis: along which the classes lie.
      where: bool, broadcast against the logits: which classes take part.

    Returns:
      An array without the axis of classes.

    Raises:
      AxisError: there is no such axis.
      DtypeError: the logits are no floats or the labels no integers.
      ShapeError: the labels' shape is not the logits' without the axis.

    Example:
      >>> loss = optim.losses.softmax_cross_entropy_with_integer_labels(
      ...     fnp.zeros((1, 2)), fnp.array([1])
      ... )
      >>> round(float(loss[0]), 4)
      0.6931
    """
    name = "softmax_cross_entropy_with_integer_labels"
    x = _floats(name, "logits", logits)
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
    picked = fnp.take_along_axis(x, fnp.expand_dims(labels, axis), axis)
    total = nn.logsumexp(x, axis, where=where)
    return fnp.subtract(total, fnp.squeeze(picked, axis))


@library()
def hinge_loss(predictor_outputs: ArrayLike, targets: ArrayLike) -> Array:
    r"""Returns margins that are missed: :math:`\max(0, 1 - y\, x)`.

    Args:
      predictor_outputs: x: float[...].
      targets: y, -1 or 1, broadcast against x.

    Returns:
      An array of their common shape.

    Raises:
      DtypeError: the outputs are no floats.

    Example:
      >>> float(optim.losses.hinge_loss(0.25, 1))
      0.75

    Reference: Cortes and Vapnik 1995.
    """
    x = _floats("hinge_loss", "predictor_outputs", predictor_outputs)
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
      axis: along which the classes lie.
      where: bool, broadcast against both: which classes take part.

    Returns:
      An array without the axis of classes.

    Raises:
      AxisError: there is no such axis.
      DtypeError: the predictions are no floats.

    Special cases:
      A target of 0 adds 0.

    Example:
      >>> p = fnp.array([0.5, 0.5])
      >>> float(optim.losses.kl_divergence(fnp.log(p), p))
      0.0

    Reference: Kullback and Leibler 1951.
    """
    log_p = _floats("kl_divergence", "log_predictions", log_predictions)
    y = _floats("kl_divergence", "targets", targets)
    none = fnp.equal(y, 0)
    # Where the target is 0, its logarithm and that one's derivative are not finite.
    log_y = fnp.log(fnp.where(none, 1, y))
    terms = fnp.multiply(y, fnp.subtract(fnp.where(none, 0, log_y), log_p))
    return fnp.sum(terms, axis, where=where)


@library("axis")
def smooth_labels(labels: ArrayLike, alpha: Any, *, axis: int = -1) -> Array:
    r"""Returns labels mixed with uniform ones: :math:`(1-\alpha) y + \alpha/n`.

    Args:
      labels: y: float[..., n], probabilities.
      alpha: α in [0, 1].
      axis: along which the classes lie.

    Returns:
      An array of the shape of the labels.

    Raises:
      DtypeError: the labels are no floats.

    Example:
      >>> optim.losses.smooth_labels(fnp.array([0.0, 1.0]), 0.5).tolist()
      [0.25, 0.75]

    Reference: Müller, Kornblith, Hinton 2019, "When does label smoothing help?".
    """
    y = _floats("smooth_labels", "labels", labels)
    aval = typeof(y)
    if not -aval.ndim <= axis < aval.ndim:
        raise AxisError(f"smooth_labels: there is no axis {axis} in {aval}")
    share = fnp.divide(alpha, aval.shape[axis])
    return fnp.add(fnp.multiply(fnp.subtract(1.0, alpha), y), share)


# -- directions ------------------------------------------------------------------------


_cosine_docs = shared("""
    Args:
      epsilon: the least norm that is assumed.
      axis: along which the vectors lie.

    Returns:
      An array without the axis.

    Raises:
      AxisError: there is no such axis.
      DtypeError: an argument is no float array.
""")


@library("axis")
@_cosine_docs
def cosine_similarity(
    predictions: ArrayLike,
    targets: ArrayLike,
    *,
    epsilon: Any = 0.0,
    axis: int | Sequence[int] | None = -1,
) -> Array:
    r"""Returns cosines of angles: :math:`a \cdot b / (\lVert a\rVert \lVert b\rVert)`.

    Args:
      predictions: a: float[..., n].
      targets: b: float[..., n], of the same shape.

    Special cases:
      The derivative at a vector of norm `epsilon` or less is finite if `epsilon` > 0.

    Example:
      >>> a = fnp.array([3.0, 4.0])
      >>> round(float(optim.losses.cosine_similarity(a, a)), 5)
      1.0
    """
    a = _floats("cosine_similarity", "predictions", predictions)
    b = _floats("cosine_similarity", "targets", targets)

    def unit(x: Any) -> Any:
        square = fnp.sum(fnp.square(x), axis, keepdims=True)
        small = fnp.less_equal(square, fnp.square(epsilon))
        # The root's derivative at 0 is infinite: 0 · inf would be nan.
        root = fnp.sqrt(fnp.where(small, 1.0, square))
        return fnp.divide(x, fnp.where(small, epsilon, root))

    return fnp.sum(fnp.multiply(unit(a), unit(b)), axis)


@library("axis")
@_cosine_docs
def cosine_distance(
    predictions: ArrayLike,
    targets: ArrayLike,
    *,
    epsilon: Any = 0.0,
    axis: int | Sequence[int] | None = -1,
) -> Array:
    """Returns one minus the cosine of angles.

    Args:
      predictions: float[..., n].
      targets: float[..., n], of the same shape.

    Example:
      >>> a, b = fnp.array([1.0, 0.0]), fnp.array([0.0, 1.0])
      >>> float(optim.losses.cosine_distance(a, b))
      1.0
    """
    similarity = cosine_similarity(predictions, targets, epsilon=epsilon, axis=axis)
    return fnp.subtract(1.0, similarity)
