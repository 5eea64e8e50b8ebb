"""Random rotations: orthogonal matrices with determinant 1, all equally likely."""

from __future__ import annotations

from fxflow import numpy as fnp
from fxflow import random
from fxflow.core.arrays import Array
from fxflow.core.boundary import public as _public
from fxflow.numpy._operands import DTypeLike, ShapeLike
from fxflow.scipy.stats._groups import matrix_docs, require_size

__all__ = ["rvs"]


@matrix_docs
def rvs(
    key: Array, dim: int, shape: ShapeLike = (), dtype: DTypeLike | None = None
) -> Array:
    """Draws rotations.

    Example:
      >>> from fxflow import random
      >>> fnp.linalg.det(rvs(random.key(0), 3)).round(4)
      Array(1., dtype=float32)
    """
    dim = require_size("special_ortho_group.rvs", dim)
    q = random.orthogonal(key, dim, shape, dtype)
    # Where the determinant is -1, a reflection of the first row makes it 1.
    sign = fnp.sign(fnp.linalg.det(q)).astype(q.aval.dtype)
    return q.at[..., 0, :].multiply(sign[..., None])


_public(globals(), __all__)
