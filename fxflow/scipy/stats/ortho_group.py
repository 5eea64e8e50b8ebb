"""Random orthogonal matrices: rotations and reflections, all equally likely."""

from __future__ import annotations

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
    """Draws orthogonal matrices: `fxflow.random.orthogonal`.

    Example:
      >>> from fxflow import random
      >>> q = rvs(random.key(0), 3)
      >>> bool(fnp.allclose(q @ q.T, fnp.eye(3), atol=1e-5))
      True
    """
    dim = require_size("ortho_group.rvs", dim)
    return random.orthogonal(key, dim, shape, dtype)


_public(globals(), __all__)
