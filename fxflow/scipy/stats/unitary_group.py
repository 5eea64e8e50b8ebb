"""Random unitary matrices, all equally likely."""

from __future__ import annotations

from fxflow import random
from fxflow.core.arrays import Array, dtypes
from fxflow.core.boundary import public as _public
from fxflow.errors import DtypeError
from fxflow.numpy._operands import DTypeLike, ShapeLike
from fxflow.scipy.stats._groups import matrix_docs, require_size

__all__ = ["rvs"]


@matrix_docs
def rvs(
    key: Array, dim: int, shape: ShapeLike = (), dtype: DTypeLike | None = None
) -> Array:
    """Draws unitary matrices: `fxflow.random.orthogonal`.

    Args:
      dtype: a complex dtype; None means that of the default float.

    Returns:
      Complex array[*shape, dim, dim].

    Raises:
      DtypeError: `dtype` is not complex.

    Example:
      >>> from fxflow import random
      >>> q = rvs(random.key(0), 2)
      >>> bool(fnp.allclose(q @ q.conj().T, fnp.eye(2), atol=1e-5))
      True
    """
    name = "unitary_group.rvs"
    dim = require_size(name, dim)
    if dtype is None:
        dtype = dtypes.default_complex()
    if not dtypes.is_complex(dtypes.dtype(dtype)):
        raise DtypeError(f"{name}: dtype must be complex, got {dtypes.dtype(dtype)}")
    return random.orthogonal(key, dim, shape, dtype)


_public(globals(), __all__)
