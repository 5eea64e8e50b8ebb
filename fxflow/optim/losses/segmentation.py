"""Losses of overlap, for the segmentation of images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fxflow import nn
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, typeof
from fxflow.core.docs import shared
from fxflow.errors import ArgumentError, ShapeError
from fxflow.numpy._operands import ArrayLike
from fxflow.optim.losses.checks import floats, same_shapes
from fxflow.optim.numerics import in_wide, quotient

_docs = shared("""
    Args:
      predictions: float[batch, ..., classes], scores.
      targets: array of the same shape: 1 where a point is in the class, else 0.
      smooth: s, added to numerator and denominator; with s = 0, a class without points
        and predictions has loss 0.
      apply_softmax: whether predictions are scores, of a softmax or, for one class, a
        sigmoid; otherwise they are probabilities.
      ignore_background: whether to leave out class 0.

    Raises:
      ArgumentError: the targets are not an array, or an option is unknown.
      AxisError: an axis is out of range.
      DtypeError: the predictions are not floats.
      ShapeError: the shapes differ, or the arrays have no axis of classes.
""")


def _probabilities(predictions: Any, scores: bool) -> Any:
    if not scores:
        return predictions
    if typeof(predictions).shape[-1] == 1:
        return nn.sigmoid(predictions)
    return nn.softmax(predictions, -1)


@_docs
def dice_loss(
    predictions: ArrayLike,
    targets: ArrayLike,
    *,
    class_weights: ArrayLike | None = None,
    smooth: ArrayLike = 1.0,
    alpha: ArrayLike = 0.5,
    beta: ArrayLike = 0.5,
    apply_softmax: bool = True,
    reduction: str = "mean",
    ignore_background: bool = False,
    axis: int | Sequence[int] | None = None,
) -> Array:
    r"""Returns Dice (or Tversky) losses of predicted and true regions.

    With the numbers of true positives H, false positives W and false negatives M of
    each class:

    .. math:: 1 - \frac{H + s}{H + \alpha W + \beta M + s}

    Args:
      class_weights: float[classes], factors; None means 1.
      alpha: α; for α = β = ½ the fraction is the Dice coefficient.
      beta: β.
      reduction: `"mean"` or `"sum"` over classes, or `"none"`.
      axis: the axes of points; None means all between the first and the last.

    Returns:
      float[batch], or float[batch, classes] without a reduction (in general, an array
      without the axes of points).

    Example:
      >>> p = fnp.array([[[1.0, 0.0], [1.0, 0.0]]])
      >>> t = fnp.array([[[1.0, 0.0], [0.0, 1.0]]])
      >>> optim.losses.dice_loss(p, t, apply_softmax=False, reduction="none").tolist()
      [[0.2..., 0.333...]]

    Reference: Milletari, Navab, Ahmadi 2016, "V-Net"; Salehi, Erdogmus, Gholipour 2017,
    "Tversky loss function for image segmentation".
    """
    aval = typeof(floats("dice_loss", "predictions", predictions))
    same_shapes("dice_loss", predictions, targets)
    if not aval.ndim:
        raise ShapeError(f"dice_loss: expected predictions [..., classes], got {aval}")
    if reduction not in ("mean", "sum", "none"):
        raise ArgumentError(
            f'dice_loss: reduction must be "mean", "sum" or "none", got {reduction!r}'
        )
    points = range(1, aval.ndim - 1) if axis is None else axis
    axes = points if isinstance(points, int) else tuple(points)

    def of(scores: Any, truth: Any) -> Any:
        p = _probabilities(scores, apply_softmax)
        hit = fnp.sum(fnp.multiply(p, truth), axes)
        wrong = fnp.multiply(alpha, fnp.subtract(fnp.sum(p, axes), hit))
        missed = fnp.multiply(beta, fnp.subtract(fnp.sum(truth, axes), hit))
        # 1 - (H + s) / (H + αW + βM + s), or 0 if the denominator is 0.
        return quotient(fnp.add(wrong, missed), fnp.add(hit, smooth) + wrong + missed)

    costs: Array = in_wide(of, predictions, targets)
    if class_weights is not None:
        costs = fnp.multiply(costs, class_weights)
    if ignore_background:
        costs = costs[..., 1:]
    if reduction == "none":
        return costs
    return fnp.mean(costs, -1) if reduction == "mean" else fnp.sum(costs, -1)


@_docs
def multiclass_generalized_dice_loss(
    predictions: ArrayLike,
    targets: ArrayLike,
    *,
    smooth: ArrayLike = 1.0,
    apply_softmax: bool = True,
    ignore_background: bool = False,
) -> Array:
    r"""Returns a mean of Dice losses, with larger weights for smaller regions.

    A class of n points in the whole batch has weight :math:`1 / n^2`, normalized over
    the classes.

    Returns:
      A 0-d float array.

    Special cases:
      A class without points outweighs all others.

    Example:
      >>> p = fnp.array([[[1.0, 0.0], [1.0, 0.0]]])
      >>> t = fnp.array([[[1.0, 0.0], [0.0, 1.0]]])
      >>> loss = optim.losses.multiclass_generalized_dice_loss
      >>> round(float(loss(p, t, apply_softmax=False)), 4)
      0.2667

    Reference: Sudre et al. 2017, "Generalised Dice overlap as a deep learning loss
    function for highly unbalanced segmentations".
    """
    costs = dice_loss(
        predictions,
        targets,
        smooth=smooth,
        apply_softmax=apply_softmax,
        reduction="none",
    )
    aval = typeof(targets)

    def of(costs: Any, truth: Any) -> Any:
        size = fnp.sum(truth, tuple(range(aval.ndim - 1)))
        weights = fnp.reciprocal(fnp.add(fnp.square(size), 1e-7))
        shares = fnp.divide(weights, fnp.mean(weights, -1, keepdims=True))
        costs = fnp.multiply(costs, shares)
        return fnp.mean(costs[..., 1:] if ignore_background else costs)

    loss: Array = in_wide(of, costs, targets)
    return loss


@_docs
def binary_dice_loss(
    predictions: ArrayLike,
    targets: ArrayLike,
    *,
    smooth: ArrayLike = 1.0,
    apply_sigmoid: bool = True,
) -> Array:
    """Returns Dice losses of a predicted and a true region.

    Args:
      predictions: float[batch, ...] or float[batch, ..., 1], scores.
      apply_sigmoid: whether predictions are scores; otherwise they are probabilities.

    Returns:
      float[batch].

    Example:
      >>> p, t = fnp.array([[1.0, 1.0]]), fnp.array([[1.0, 0.0]])
      >>> optim.losses.binary_dice_loss(p, t, apply_sigmoid=False).tolist()
      [0.2...]

    Reference: Milletari, Navab, Ahmadi 2016, "V-Net".
    """
    shape = typeof(floats("binary_dice_loss", "predictions", predictions)).shape
    same_shapes("binary_dice_loss", predictions, targets)
    if not shape or shape[-1] != 1:
        predictions = fnp.expand_dims(predictions, -1)
        targets = fnp.expand_dims(targets, -1)
    return dice_loss(predictions, targets, smooth=smooth, apply_softmax=apply_sigmoid)
