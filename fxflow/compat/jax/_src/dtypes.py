"""`jax._src.dtypes`."""

from typing import Any

import numpy as np

from fxflow.compat.jax._mirror import mirror

DType = np.dtype[Any]


class ExtendedDType:
    """Base of dtypes that clients define; arrays of such dtypes cannot be made."""


def supports_inf(dtype: Any) -> bool:
    """Returns whether a float dtype has an infinity."""
    return bool(np.isinf(np.array(np.inf).astype(np.dtype(dtype))))


def to_complex_dtype(dtype: Any) -> Any:
    """Returns the complex dtype of the precision of another."""
    return np.promote_types(dtype, np.complex64)


__all__ = mirror(globals(), "fxflow.compat.jax.dtypes")
