"""Facts about dtypes: which there are, how they are related, how large they are.

The dtypes themselves are in `fxflow.numpy` (`fnp.float32`, …).
"""

from __future__ import annotations

from typing import Any

from fxflow.core.arrays import dtypes as _dtypes
from fxflow.core.arrays.dtypes import (
    KeyDtype,
    bfloat16,
    extended,
    finfo,
    float0,
    iinfo,
    issubdtype,
    prng_key,
)
from fxflow.core.arrays.promotion import promote_types, result_type
from fxflow.core.boundary import public as _public
from fxflow.errors import DtypeError
from fxflow.numpy._operands import DTypeLike

__all__ = [
    "KeyDtype",
    "bfloat16",
    "canonicalize_dtype",
    "extended",
    "finfo",
    "float0",
    "iinfo",
    "issubdtype",
    "itemsize_bits",
    "prng_key",
    "promote_types",
    "result_type",
    "scalar_type_of",
]


def canonicalize_dtype(dtype: DTypeLike, allow_extended_dtype: bool = False) -> Any:
    """Returns the dtype that an array gets which is asked for with this one.

    Python's `int`, `float` and `complex` are the defaults, 32 bits or, with
    `config.x64`, 64. A dtype that is asked for by name is kept: `"float64"` stays.

    Args:
      dtype: what stands for a dtype.
      allow_extended_dtype: whether dtypes of keys are taken.

    Returns:
      A `numpy.dtype`, or the dtype of keys.

    Raises:
      DtypeError: XLA has no such element type; or it is one of keys and these are not
        allowed.

    Example:
      >>> canonicalize_dtype(float), canonicalize_dtype("float64")
      (dtype('float32'), dtype('float64'))
    """
    found = _dtypes.dtype(dtype)
    if _dtypes.is_key(found) and not allow_extended_dtype:
        raise DtypeError(
            f"canonicalize_dtype: {found} is a dtype of random keys, which NumPy does "
            "not have: pass allow_extended_dtype=True to have it back"
        )
    return found


def itemsize_bits(dtype: DTypeLike) -> int:
    """Returns the bits of one element: 4 for int4, of which memory takes a byte.

    Args:
      dtype: what stands for a dtype.

    Returns:
      The number of bits; 8 for booleans, which are stored as bytes.

    Raises:
      DtypeError: XLA has no such element type.

    Example:
      >>> itemsize_bits("int4"), itemsize_bits(bool), itemsize_bits("complex64")
      (4, 8, 64)
    """
    found = _dtypes.dtype(dtype)
    return 8 if _dtypes.is_bool(found) else _dtypes.bits(found)


def scalar_type_of(x: Any) -> type:
    """Returns the Python type of the numbers of a dtype, or of an array.

    Args:
      x: an array, a number, or what stands for a dtype.

    Returns:
      `bool`, `int`, `float` or `complex`.

    Raises:
      DtypeError: they are not numbers.

    Example:
      >>> scalar_type_of("bfloat16"), scalar_type_of(3)
      (<class 'float'>, <class 'int'>)
    """
    if isinstance(x, bool | int | float | complex):
        return scalar_type_of(type(x))
    found = _dtypes.dtype(getattr(x, "dtype", x))
    kind = None if found == float0 else _kind(found)
    if kind is None:
        raise DtypeError(
            f"scalar_type_of: {_dtypes.short_name(found)} is not a dtype of numbers"
        )
    return kind


def _kind(dtype: Any) -> type | None:
    if _dtypes.is_key(dtype):
        return None
    if _dtypes.is_bool(dtype):
        return bool
    if _dtypes.is_integer(dtype):
        return int
    return complex if _dtypes.is_complex(dtype) else float


_public(globals(), __all__)
