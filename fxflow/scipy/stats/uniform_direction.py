"""Random unit vectors, all equally likely."""

from __future__ import annotations

from fxflow import numpy as fnp
from fxflow import random
from fxflow.core.arrays import Array
from fxflow.core.boundary import public as _public
from fxflow.lax.axes import shape_or_length
from fxflow.numpy._operands import DTypeLike, ShapeLike
from fxflow.scipy.stats._groups import require_size

__all__ = ["rvs"]


def rvs(
    key: Array, dim: int, shape: ShapeLike = (), dtype: DTypeLike | None = None
) -> Array:
    """Draws unit vectors: normal vectors over their lengths.

    Args:
      key: a key of `fxflow.random`.
      dim: how many elements a vector has: a positive int.
      shape: shape of the array of vectors.
      dtype: a float dtype; None means the default.

    Returns:
      Float array[*shape, dim].

    Raises:
      ArgumentError: `key` is not a key, or `dim` is not a positive int.

    Example:
      >>> from fxflow import random
      >>> fnp.linalg.norm(rvs(random.key(0), 3)).round(4)
      Array(1., dtype=float32)

    Source: `scipy.stats.uniform_direction.rvs`.
    """
    name = "uniform_direction.rvs"
    dim = require_size(name, dim)
    x = random.normal(key, (*shape_or_length(name, shape), dim), dtype)
    return x / fnp.linalg.norm(x, axis=-1, keepdims=True)


_public(globals(), __all__)
