"""Sparsemax losses, whose probabilities may be 0, and Fenchel-Young losses."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from fxflow import nn
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, dtypes, typeof
from fxflow.core.runtime.library import library
from fxflow.errors import DtypeError, ShapeError
from fxflow.numpy._operands import ArrayLike
from fxflow.optim.losses.checks import floats, same_shapes
from fxflow.optim.projections import projection_simplex
from fxflow.transforms.custom_jvp import custom_jvp
from fxflow.transforms.vmap import vmap


@library()
def sparsemax_loss(logits: ArrayLike, labels: ArrayLike) -> Array:
    r"""Returns sparsemax losses of binary labels, which are 0 for confident scores.

    With z = -s for label 1 and z = s for label 0:

    .. math:: 0 \text{ if } z \le -1, \quad \tfrac14 (z + 1)^2 \text{ if } |z| < 1,
       \quad z \text{ if } z \ge 1

    Args:
      logits: s: float[...].
      labels: array of the same shape; a label that is not 0 counts as 1.

    Returns:
      An array of the shape of the logits.

    Raises:
      ArgumentError: an argument is not an array.
      DtypeError: the logits are not floats.
      ShapeError: the shapes differ.

    Example:
      >>> optim.losses.sparsemax_loss(fnp.array([2.0, 0.0]), fnp.array([1, 1])).tolist()
      [0.0, 0.25]

    Reference: Martins, Astudillo 2016, "From softmax to sparsemax".
    """
    floats("sparsemax_loss", "logits", logits)
    same_shapes("sparsemax_loss", logits, labels)
    yes = fnp.not_equal(labels, 0)
    return nn.sparse_plus(fnp.where(yes, fnp.negative(logits), logits))


@custom_jvp
def _sparse_maximum(scores: Any) -> Any:
    """Returns the maximum of ⟨s, p⟩ - |p|²/2 over probabilities p."""
    p = projection_simplex(scores)
    return fnp.subtract(fnp.vdot(scores, p), fnp.multiply(0.5, fnp.vdot(p, p)))


@_sparse_maximum.defjvp
def _sparse_maximum_jvp(primals: Any, tangents: Any) -> Any:
    # The derivative is p, also where p is not differentiable.
    (scores,), (change,) = primals, tangents
    return _sparse_maximum(scores), fnp.vdot(projection_simplex(scores), change)


def _each(f: Callable[..., Any], *arrays: Any) -> Any:
    """Applies a function to the vectors along the last axis of arrays."""
    *batch, n = typeof(arrays[0]).shape
    rows = [fnp.reshape(x, (math.prod(batch), n)) for x in arrays]
    out = vmap(f)(*rows)
    return fnp.reshape(out, tuple(batch) + typeof(out).shape[1:])


def multiclass_sparsemax_loss(scores: ArrayLike, labels: ArrayLike) -> Array:
    r"""Returns sparsemax losses of classes, which are 0 for a margin of at least 1.

    .. math:: \max_p \left( s \cdot p - \tfrac{1}{2} |p|^2 \right) - s_y + \tfrac{1}{2}

    Args:
      scores: s: float[..., n].
      labels: y: int[...], in [0, n).

    Returns:
      float[...].

    Raises:
      ArgumentError: an argument is not an array.
      DtypeError: the scores are not floats, or the labels are not integers.
      ShapeError: the shapes are incompatible, or the number of classes is 0.

    Example:
      >>> scores = fnp.array([[2.0, 0.0], [0.0, 0.0]])
      >>> optim.losses.multiclass_sparsemax_loss(scores, fnp.array([0, 0])).tolist()
      [0.0, 0.25]

    Reference: Martins, Astudillo 2016, "From softmax to sparsemax".
    """
    name = "multiclass_sparsemax_loss"
    aval, given = typeof(floats(name, "scores", scores)), typeof(labels)
    if not dtypes.is_integer(given.dtype):
        raise DtypeError(f"{name}: labels must be integers, got {given}")
    if given.shape != aval.shape[:-1] or not aval.ndim or not aval.shape[-1]:
        raise ShapeError(
            f"{name}: expected scores [..., n] with n > 0 and labels [...], got {aval} "
            f"and {given}"
        )
    index = fnp.expand_dims(labels, -1)
    right = fnp.squeeze(fnp.take_along_axis(scores, index, -1), -1)
    most = _each(_sparse_maximum, scores)
    return fnp.add(fnp.subtract(most, right), 0.5)


def make_fenchel_young_loss(
    max_fun: Callable[[Array], Any],
) -> Callable[[ArrayLike, ArrayLike], Array]:
    r"""Makes the Fenchel-Young loss of a regularized maximum: :math:`M(s) - s \cdot y`.

    Its derivative is the regularized argmax minus the targets. With `nn.logsumexp` it
    is the cross entropy minus the entropy of the targets.

    Args:
      max_fun: M: takes float[n], returns a number.

    Returns:
      A function of scores s, float[..., n], and targets y of the same shape; it returns
      float[...], and raises ShapeError if the shapes differ.

    Example:
      >>> loss = optim.losses.make_fenchel_young_loss(nn.logsumexp)
      >>> float(loss(fnp.zeros(2), fnp.array([1.0, 0.0])))
      0.69314...

    Reference: Blondel, Martins, Niculae 2020, "Learning with Fenchel-Young losses".
    """

    def loss(scores: ArrayLike, targets: ArrayLike) -> Array:
        aval = typeof(floats("fenchel_young_loss", "scores", scores))
        same_shapes("fenchel_young_loss", scores, targets)
        if not aval.ndim:
            raise ShapeError(
                f"fenchel_young_loss: expected scores [..., n], got {aval}"
            )
        out: Array = _each(
            lambda s, y: fnp.subtract(max_fun(s), fnp.vdot(s, y)), scores, targets
        )
        return out

    return loss
