"""Matrices made smaller at random."""

from __future__ import annotations

from typing import Any

from fxflow import numpy as fnp
from fxflow import random
from fxflow.core.arrays import Array
from fxflow.errors import ArgumentError
from fxflow.lax.axes import natural
from fxflow.numpy._operands import ArrayLike, promote_inexact
from fxflow.scipy.linalg._matrices import matrix_of


def clarkson_woodruff_transform(
    input_matrix: ArrayLike, sketch_size: int, rng: Any = None
) -> Array:
    """Adds the rows of a matrix, with signs, into fewer ones at random.

    Each row goes to one row of the result, so that norms and products with vectors
    change little: least squares may be solved with the smaller matrix.

    Args:
      input_matrix: array-like[..., n, d].
      sketch_size: the number of rows of the result.
      rng: key of `fxflow.random`, which has to be given.

    Returns:
      Float or complex array[..., sketch_size, d]; the signs are one for all of a batch.

    Raises:
      ArgumentError: `sketch_size` is not positive, or the key is missing.
      ShapeError: `input_matrix` has fewer than two axes.

    Example:
      >>> import fxflow as fx
      >>> small = clarkson_woodruff_transform(np.ones((50, 3)), 8, fx.random.key(0))
      >>> small.shape
      (8, 3)

    Source: `scipy.linalg.clarkson_woodruff_transform`, with a key; K. Clarkson and D.
    Woodruff, Low Rank Approximation and Regression in Input Sparsity Time, 2013.
    """
    name = "clarkson_woodruff_transform"
    if rng is None:
        raise ArgumentError(f"{name}: rows are drawn at random: give a key, rng=")
    (a,) = promote_inexact(name, matrix_of(name, input_matrix))
    size = natural(name, "sketch_size", sketch_size)
    n = a.aval.shape[-2]
    places, signs = random.split(rng)
    rows = random.randint(places, (n,), 0, size)
    signed = a * random.rademacher(signs, (n, 1), "int8").astype(a.aval.dtype)
    out = fnp.zeros((*a.aval.shape[:-2], size, a.aval.shape[-1]), a.aval.dtype)
    return out.at[..., rows, :].add(signed)
