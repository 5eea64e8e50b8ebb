"""Ranking losses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fxflow import nn
from fxflow import numpy as fnp
from fxflow.core.arrays import Array
from fxflow.numpy._operands import ArrayLike
from fxflow.optim.losses.checks import floats, same_shapes, weighted_logs
from fxflow.optim.numerics import in_wide


def ranking_softmax_loss(
    logits: ArrayLike,
    labels: ArrayLike,
    *,
    where: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    reduce_fn: Callable[..., Any] | None = fnp.mean,
) -> Array:
    r"""Returns cross entropies of the softmax of scores and the relevances of items.

    .. math:: -\sum_i w_i y_i \log \frac{e^{s_i}}{\sum_j e^{s_j}}

    Args:
      logits: s: float[..., n], the scores of the items of a list.
      labels: y: array of the same shape, the items' relevances.
      where: bool[..., n]: the items to include; None means all.
      weights: w: float[..., n]; None means 1.
      reduce_fn: takes the losses of all lists and, with `where`, a keyword argument
        `where=`: the lists that have an item. None returns the losses.

    Returns:
      The result of `reduce_fn`, a 0-d float array for `fnp.mean`; float[...] for None.

    Raises:
      ArgumentError: an argument is not an array.
      DtypeError: the scores are not floats.
      ShapeError: the shapes differ.

    Special cases:
      A list without items has loss 0, and the mean over no lists is 0.

    Example:
      >>> scores = fnp.array([[0.0, 0.0]])
      >>> float(optim.losses.ranking_softmax_loss(scores, fnp.array([[1.0, 0.0]])))
      0.69314...

    Reference: Cao et al. 2007, "Learning to rank: from pairwise approach to listwise
    approach".
    """
    name = "ranking_softmax_loss"
    floats(name, "logits", logits)
    same_shapes(name, logits, labels)
    shares = labels if weights is None else fnp.multiply(labels, weights)
    there = None
    if where is not None:
        there = fnp.any(fnp.broadcast_to(where, fnp.shape(logits)), -1)

    def of(scores: Any, shares: Any) -> Any:
        log_p = nn.log_softmax(scores, -1, where)
        if where is not None:
            # Excluded items have an infinite logarithm: set it and its derivative to 0.
            log_p = fnp.where(where, log_p, 0)
            shares = fnp.where(where, shares, 0)
        return fnp.negative(fnp.sum(weighted_logs(shares, log_p), -1))

    losses: Array = in_wide(of, logits, shares)
    if reduce_fn is None:
        return losses
    if there is None:
        total: Array = reduce_fn(losses)
        return total
    total = reduce_fn(losses, where=there)
    return fnp.where(fnp.any(there), total, 0)
