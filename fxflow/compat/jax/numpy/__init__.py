"""`jax.numpy`."""

from typing import Any

import ml_dtypes
import numpy as _np

from fxflow import numpy as _numpy
from fxflow.compat.jax._mirror import mirror

# Classes, as in NumPy: programs ask `isinstance(d, jnp.dtype)`.
dtype = _np.dtype
finfo = ml_dtypes.finfo
iinfo = ml_dtypes.iinfo
ComplexWarning = _np.exceptions.ComplexWarning


def promote_types(a: Any, b: Any) -> Any:
    """Returns the dtype to which two dtypes are promoted."""
    return _numpy.promote_types(a, b)


__all__ = mirror(globals(), "fxflow.numpy")
__all__ += ["ComplexWarning"]
