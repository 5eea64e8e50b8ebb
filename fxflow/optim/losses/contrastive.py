"""Contrastive losses of embeddings."""

from __future__ import annotations

from typing import Any

from fxflow import nn
from fxflow import numpy as fnp
from fxflow.core.arrays import Array, is_arraylike, not_an_array, typeof
from fxflow.core.runtime.library import library
from fxflow.errors import ShapeError
from fxflow.numpy._operands import ArrayLike
from fxflow.optim.losses.checks import floats
from fxflow.optim.numerics import in_wide, quotient, safe_norm


@library()
def ntxent(
    embeddings: ArrayLike, labels: ArrayLike, temperature: ArrayLike = 0.07
) -> Array:
    r"""Returns the normalized temperature-scaled cross entropy (NT-Xent).

    With the cosines s of the angles between embeddings, it is the mean, over all pairs
    i ≠ j with the same label, of

    .. math:: -\log \frac{e^{s_{ij}/\tau}}
       {e^{s_{ij}/\tau} + \sum_{k: y_k \ne y_i} e^{s_{ik}/\tau}}

    Args:
      embeddings: float[n, d].
      labels: y: [n].
      temperature: τ.

    Returns:
      A 0-d float array.

    Raises:
      ArgumentError: an argument is not an array.
      DtypeError: the embeddings are not floats.
      ShapeError: the shapes are incompatible.

    Special cases:
      nan if no two embeddings have the same label. The cosines of a zero embedding are
      0.

    Example:
      >>> x = fnp.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
      >>> round(float(optim.losses.ntxent(x, fnp.array([0, 0, 1]), 1.0)), 4)
      0.3133

    Reference: Chen, Kornblith, Norouzi, Hinton 2020, "A simple framework for
    contrastive learning of visual representations".
    """
    x, aval = floats("ntxent", "embeddings", embeddings), typeof(embeddings)
    if not is_arraylike(labels):
        raise not_an_array(labels, "ntxent: labels is")
    given = typeof(labels)
    if aval.ndim != 2 or given.shape != aval.shape[:1]:
        raise ShapeError(
            f"ntxent: expected embeddings [n, d] and labels [n], got {aval} and {given}"
        )
    same = fnp.equal(fnp.expand_dims(labels, 1), labels)
    pairs = fnp.logical_and(same, fnp.logical_not(fnp.eye(aval.shape[0], dtype=bool)))

    def of(x: Any) -> Any:
        unit = quotient(x, safe_norm(x, 0, axis=1, keepdims=True))
        s = fnp.divide(fnp.matmul(unit, fnp.transpose(unit)), temperature)
        others = nn.logsumexp(s, 1, where=fnp.logical_not(same), keepdims=True)
        return fnp.mean(fnp.subtract(fnp.logaddexp(s, others), s), where=pairs)

    loss: Array = in_wide(of, x)
    return loss
