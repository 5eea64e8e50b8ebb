"""`jax.dtypes`."""

from typing import Any

import ml_dtypes
import numpy as np

from fxflow import numpy as fnp
from fxflow.compat.jax._mirror import listen
from fxflow.core.arrays import dtypes as _dtypes
from fxflow.core.arrays.dtypes import extended, float0, issubdtype, prng_key
from fxflow.errors import DtypeError as TypePromotionError

bfloat16 = fnp.bfloat16
finfo, iinfo = ml_dtypes.finfo, ml_dtypes.iinfo
ExtendedDType = _dtypes.KeyDtype


def canonicalize_dtype(
    dtype: Any, allow_extended_dtype: bool = False, *, allow_opaque_dtype: bool = False
) -> Any:
    """Returns the dtype that arrays of `dtype` get: 32 bits for 64 unless x64 is on.

    Args:
      dtype: anything that names a dtype.
      allow_extended_dtype: has no effect: dtypes of keys are always allowed.
      allow_opaque_dtype: likewise.
    """
    return fnp.zeros((), _dtypes.dtype(dtype)).dtype if not _dtypes.is_key(
        _dtypes.dtype(dtype)
    ) else _dtypes.dtype(dtype)


def itemsize_bits(dtype: Any) -> int:
    """Returns the number of bits of one element."""
    return _dtypes.bits(_dtypes.dtype(dtype))


def scalar_type_of(x: Any) -> type:
    """Returns the Python type (`bool`, `int`, `float`, `complex`) of x's kind."""
    kind = np.dtype(fnp.result_type(x))
    for python, abstract in (
        (bool, np.bool_),
        (int, np.integer),
        (float, np.floating),
        (complex, np.complexfloating),
    ):
        if issubdtype(kind, abstract):
            return python
    raise TypeError(f"Invalid scalar value {x}")


def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """Returns the dtype to which arguments are promoted.

    Args:
      *args: arrays, scalars, dtypes.
      return_weak_type_flag: whether to return `(dtype, weak_type)`.
    """
    dtype = fnp.result_type(*args)
    if not return_weak_type_flag:
        return dtype
    weak = all(
        isinstance(a, bool | int | float | complex) or getattr(a, "weak_type", False)
        for a in args
    )
    return dtype, weak


__all__ = [
    "TypePromotionError",
    "bfloat16",
    "canonicalize_dtype",
    "extended",
    "finfo",
    "float0",
    "iinfo",
    "issubdtype",
    "itemsize_bits",
    "prng_key",
    "result_type",
    "scalar_type_of",
]

listen(globals())
