"""`jax.numpy`."""

import string
from typing import Any

import ml_dtypes
import numpy as _np

from fxflow import numpy as _numpy
from fxflow.compat.jax._mirror import mirror
from fxflow.compat.jax.dtypes import issubdtype as issubdtype
from fxflow.lax import dot_general as _dot_general

# Classes, as in NumPy: programs ask `isinstance(d, jnp.dtype)`.
dtype = _np.dtype
finfo = ml_dtypes.finfo
iinfo = ml_dtypes.iinfo


def promote_types(a: Any, b: Any) -> Any:
    """Returns the dtype to which two dtypes are promoted.

    Args:
      a: a dtype.
      b: a dtype.

    Returns:
      A `numpy.dtype`.
    """
    return _numpy.promote_types(a, b)


def einsum(subscripts: Any, /, *operands: Any, **options: Any) -> Any:
    """Sums products over subscripts; see `fxflow.numpy.einsum`.

    Args:
      subscripts: `"ij,jk->ik"`, or the first operand.
      *operands: arrays.
      **options: of `fxflow.numpy.einsum`; and `_dot_general`, which must be
        `lax.dot_general` if it is given.

    Returns:
      The sum.

    Raises:
      NotImplementedError: `_dot_general` is another function.
    """
    product = options.pop("_dot_general", None)
    if product not in (None, _dot_general):
        raise NotImplementedError(
            f"fxflow.compat.jax: einsum with another product ({product})"
        )
    if isinstance(subscripts, str):
        subscripts = _lettered(subscripts)
    return _numpy.einsum(subscripts, *operands, **options)


def _lettered(subscripts: str) -> str:
    """Returns subscripts with letters for digits, which are labels in JAX, too."""
    digits = sorted(set(subscripts) & set(string.digits))
    free = (c for c in string.ascii_letters if c not in subscripts)
    return subscripts.translate({ord(d): c for d, c in zip(digits, free, strict=False)})


__all__ = mirror(globals(), "fxflow.numpy")
